// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// What follows is what the page, the JSON and the tools for agents have in common.

// head is in each answer: what it is about, and what it cannot know.
type head struct {
	From         time.Time `json:"from"`
	Until        time.Time `json:"until"`
	RecordsSince time.Time `json:"records_since"`     // from then on records are complete
	Standby      bool      `json:"standby,omitempty"` // another replica has the new events
	Dropped      *dropped  `json:"dropped,omitempty"`
}

// dropped counts what there was no room for.
type dropped struct {
	Workloads int   `json:"workloads,omitempty"` // the longest quiet first
	Events    int   `json:"events,omitempty"`    // of workloads that are kept
	Missed    int64 `json:"missed,omitempty"`    // records that came while the page was busy
}

// event is an Event in its newest state.
type event struct {
	Record    string       `json:"record"`
	Key       incident.Key `json:"workload"`
	Object    string       `json:"object"`
	Container string       `json:"container,omitempty"`
	Node      string       `json:"node,omitempty"`
	Type      string       `json:"type"`
	Reason    string       `json:"reason"`
	Message   string       `json:"message"`
	Reporter  string       `json:"reporter,omitempty"`
	Count     int64        `json:"count"`
	First     time.Time    `json:"first,omitzero"`
	Last      time.Time    `json:"last"`

	Warning bool `json:"-"`
}

func (v *view) head(q incident.Query) head {
	from, until := q.Window(v.now)
	h := head{From: from, Until: until, RecordsSince: v.model.Since(v.now), Standby: v.standby}
	lost := v.model.Dropped(q.Namespace)
	if all := (dropped{lost.Workloads, lost.Facts, v.missed}); all != (dropped{}) {
		h.Dropped = &all
	}
	return h
}

// each returns what f makes of each value. It is never nil, so that JSON has an empty list.
func each[T, R any](all []T, f func(T) R) []R {
	made := make([]R, 0, len(all))
	for _, one := range all {
		made = append(made, f(one))
	}
	return made
}

func eventOf(f *incident.Fact) event {
	return event{
		Record: f.ID, Key: f.Key, Object: f.Object().String(), Container: f.Container, Node: f.Node, Type: f.Type,
		Reason: f.Reason, Message: f.Message, Reporter: f.Reporter, Count: f.Count, First: f.First, Last: f.Last,
		Warning: f.IsWarning(),
	}
}

func (v *view) problems(q incident.Query) []incident.Problem { return v.model.At(v.now, q).Problems() }

func (v *view) changes(q incident.Query) []incident.Change { return v.model.At(v.now, q).Changes() }

// events returns the newest events.
func (v *view) events(q incident.Query, limit int) []event {
	var all []*incident.Fact
	for _, s := range v.model.At(v.now, q).Workloads() {
		all = append(all, s.Facts...)
	}
	slices.SortFunc(all, func(a, b *incident.Fact) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Event, b.Event))
	})
	return each(all[:min(limit, len(all))], eventOf)
}
