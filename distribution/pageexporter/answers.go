// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// What follows is what the page, the JSON and the tools for agents have in common.

// view is the model as a request sees it. It is valid while the board computes the answer.
type view struct {
	model   *incident.Model
	now     time.Time
	filter  filter
	key     incident.Key // of the workload that the filter chooses, after resolve
	standby bool
	missed  int64
	ctx     context.Context // of the viewer
}

// head is in each answer: what it is about, and what it cannot know.
type head struct {
	From         time.Time `json:"from"`
	Until        time.Time `json:"until"`
	RecordsSince time.Time `json:"records_since"`     // from then on records are complete
	Standby      bool      `json:"standby,omitempty"` // another replica has the new events
	Dropped      dropped   `json:"dropped,omitzero"`
	Total        totals    `json:"total,omitempty"`
}

// totals has the lengths of the lists that are cut, by their names in JSON.
type totals map[string]int

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

func (v *view) head() head {
	q := v.query()
	from, until := q.Window(v.now)
	lost := v.model.Dropped(q.Namespace)
	return head{
		From: from, Until: until, RecordsSince: v.model.Since(v.now), Standby: v.standby, Total: totals{},
		Dropped: dropped{lost.Workloads, lost.Facts, v.missed},
	}
}

// each returns what f makes of each value. It is never nil, so that JSON has an empty list.
func each[T, R any](all []T, f func(T) R) []R {
	made := make([]R, 0, len(all))
	for _, one := range all {
		made = append(made, f(one))
	}
	return made
}

// first returns the first values of a list.
func first[T any](all []T, most int) []T { return all[:min(most, len(all))] }

func eventOf(f *incident.Fact) event {
	return event{
		Record: f.ID, Key: f.Key, Object: f.Object().String(), Container: f.Container, Node: f.Node, Type: f.Type,
		Reason: f.Reason, Message: f.Message, Reporter: f.Reporter, Count: f.Count, First: f.First, Last: f.Last,
		Warning: f.IsWarning(),
	}
}

func (v *view) query() incident.Query { return v.filter.at(v.now) }

// inTime returns an error if the filter chooses a time of which the model has nothing.
func (v *view) inTime() error {
	if from, until := v.query().Window(v.now); until.Before(from) {
		return requestError{fmt.Errorf("until is %s: the page has one hour, so use a time after %s", timeIn(until), timeIn(from)), http.StatusBadRequest}
	}
	return nil
}

// at returns what the filter chooses of the model.
func (v *view) at() *incident.At { return v.model.At(v.ctx, v.now, v.query()) }

// events returns the events, the newest first.
func (v *view) events() (all []*incident.Fact) {
	for _, s := range v.at().Workloads() {
		all = append(all, s.Facts...)
	}
	slices.SortFunc(all, func(a, b *incident.Fact) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Event, b.Event))
	})
	return all
}
