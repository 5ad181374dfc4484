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

// workload identifies a workload, or another object.
type workload struct {
	ID        string `json:"id"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Kind      string `json:"kind"`
	Group     string `json:"group,omitempty"`
	Name      string `json:"name"`
}

// change is something that happened.
type change struct {
	Kind     string    `json:"kind"`
	Text     string    `json:"text"`
	Time     time.Time `json:"time"`
	Until    time.Time `json:"until,omitzero"` // the end of a state
	Workload workload  `json:"workload"`
	Object   string    `json:"object,omitempty"`
	From     int       `json:"from,omitempty"` // replicas
	To       int       `json:"to,omitempty"`
	Records  []string  `json:"records"` // log.record.uid
}

// cause is a change before a problem.
type cause struct {
	change
	SecondsBefore float64 `json:"seconds_before"`
	Where         string  `json:"where"` // what connects them
}

// problem is a problem of a workload.
type problem struct {
	Workload   workload    `json:"workload"`
	Class      string      `json:"class"`
	Reason     string      `json:"reason"`
	Container  string      `json:"container,omitempty"`
	Since      time.Time   `json:"since"`
	Last       time.Time   `json:"last"`
	Over       time.Time   `json:"over,omitzero"` // missing: it goes on
	Because    string      `json:"because,omitempty"`
	Count      int64       `json:"count"`
	Scope      []string    `json:"scope,omitempty"`
	Message    string      `json:"message"`
	Causes     []cause     `json:"causes"`
	Unknown    string      `json:"unknown,omitempty"` // why no cause is known
	LastChange *cause      `json:"last_change,omitempty"`
	Earlier    []time.Time `json:"earlier,omitempty"`
	Revisions  []string    `json:"revisions,omitempty"`
	Pods       []string    `json:"pods,omitempty"`
	Nodes      []string    `json:"nodes,omitempty"`
	Record     string      `json:"record"`  // of the message
	Records    []string    `json:"records"` // that show the problem
}

// event is an Event in its newest state.
type event struct {
	Record    string    `json:"record"`
	Workload  workload  `json:"workload"`
	Object    string    `json:"object"`
	Container string    `json:"container,omitempty"`
	Node      string    `json:"node,omitempty"`
	Type      string    `json:"type"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	Reporter  string    `json:"reporter,omitempty"`
	Count     int64     `json:"count"`
	First     time.Time `json:"first,omitzero"`
	Last      time.Time `json:"last"`

	Warning bool              `json:"-"`
	chain   []incident.Object // from the workload down
}

// summary has the events of a workload.
type summary struct {
	Workload    workload  `json:"workload"`
	Occurrences int64     `json:"occurrences"`
	Warnings    int64     `json:"warnings"`
	Last        time.Time `json:"last"`
	LastWarning time.Time `json:"last_warning,omitzero"`
	Reasons     []reason  `json:"reasons"`
	Manifests   []string  `json:"manifests,omitempty"`
}

type reason struct {
	Reason      string `json:"reason"`
	Warning     bool   `json:"warning,omitempty"`
	Occurrences int64  `json:"occurrences"`
}

func (v *view) head(q incident.Query) head {
	until := v.now
	if !q.Until.IsZero() && q.Until.Before(until) {
		until = q.Until
	}
	oldest := v.now.Add(-incident.Horizon)
	if q.From.After(oldest) {
		oldest = q.From
	}
	h := head{From: oldest, Until: until, RecordsSince: v.model.Since(v.now), Standby: v.standby}
	lost := v.model.Dropped(q.Namespace)
	if all := (dropped{lost.Workloads, lost.Facts, v.missed}); all != (dropped{}) {
		h.Dropped = &all
	}
	return h
}

func workloadOf(k incident.Key) workload {
	return workload{k.ID(), k.Cluster, k.Namespace, k.Top.Kind, k.Top.Group, k.Top.Name}
}

// each returns what f makes of each value. It is never nil, so that JSON has an empty list.
func each[T, R any](all []T, f func(T) R) []R {
	made := make([]R, 0, len(all))
	for _, one := range all {
		made = append(made, f(one))
	}
	return made
}

func changeOf(c incident.Change) change {
	return change{c.Kind, c.Text, c.At, c.Until, workloadOf(c.Key), c.Object, c.From, c.To, c.Records}
}

func causeOf(c incident.Cause) cause { return cause{changeOf(c.Change), c.Before.Seconds(), c.Where} }

func problemOf(p incident.Problem) problem {
	shown := problem{
		Workload: workloadOf(p.Key), Class: p.Class, Reason: p.Reason, Container: p.Container, Since: p.Onset, Last: p.Last, Over: p.Over,
		Because: p.Because, Count: p.Count, Scope: p.Scope, Message: p.Message, Causes: each(p.Causes, causeOf), Unknown: p.Unknown,
		Earlier: p.Earlier, Revisions: p.Revisions, Pods: p.Pods, Nodes: p.Nodes, Record: p.Record, Records: p.Records,
	}
	if p.LastChange != nil {
		last := causeOf(*p.LastChange)
		shown.LastChange = &last
	}
	return shown
}

func eventOf(f *incident.Fact) event {
	return event{
		Record: f.Record, Workload: workloadOf(f.Key), Object: f.Object().String(), Container: f.Container, Node: f.Node, Type: f.Type,
		Reason: f.Reason, Message: f.Message, Reporter: f.Reporter, Count: f.Count, First: f.First, Last: f.Last,
		Warning: f.IsWarning(), chain: f.Chain,
	}
}

func summaryOf(s incident.Summary) summary {
	return summary{
		workloadOf(s.Key), s.All, s.Warnings, s.Last, s.LastWarning,
		each(s.Reasons, func(c incident.Counted) reason { return reason{c.Value, c.Warning, c.N} }), s.Manifests,
	}
}

func (v *view) problems(q incident.Query) []problem {
	return each(v.model.Problems(q, v.now), problemOf)
}

func (v *view) changes(q incident.Query) []change { return each(v.model.Changes(q, v.now), changeOf) }

// events returns the newest events.
func (v *view) events(q incident.Query, limit int) []event {
	var all []*incident.Fact
	for _, s := range v.model.Workloads(q, v.now) {
		all = append(all, s.Facts...)
	}
	slices.SortFunc(all, func(a, b *incident.Fact) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Record, b.Record), cmp.Compare(a.Event, b.Event))
	})
	return each(all[:min(limit, len(all))], eventOf)
}
