// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

// What follows is what the page, the JSON and the tools for agents have in common.

// view is the model as a request sees it. It is valid while the board computes the answer.
type view struct {
	model     *incident.Model
	now       time.Time
	filter    filter
	key       incident.Key // of the workload that the filter chooses, after resolve
	delivery  statusextension.Delivery
	arrived   time.Time                 // when the last records came
	incidents statusextension.Incidents // nil: no connector remembers problems
	missed    int64
	ctx       context.Context // of the viewer
}

// head is in each answer: what it is about, and what it cannot know.
type head struct {
	From         time.Time           `json:"from"`
	Until        time.Time           `json:"until"`
	RecordsSince time.Time           `json:"records_since,omitzero"` // from then on records are complete, but for the gap; zero: not yet
	Gap          statusextension.Gap `json:"gap,omitzero"`           // in what is chosen
	Incomplete   string              `json:"incomplete,omitempty"`   // why records are missing now; empty: none are
	NothingSince time.Time           `json:"nothing_since,omitzero"` // has arrived; only if records are missing now
	Dropped      dropped             `json:"dropped,omitzero"`
	Total        totals              `json:"total,omitempty"`
	Untrusted    []string            `json:"untrusted,omitempty"` // the fields whose text anybody can have written; only for agents
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
	h := head{
		From: from, Until: until, Incomplete: v.delivery.Failure, Total: totals{},
		Dropped: dropped{lost.Workloads, lost.Facts, v.missed},
	}
	if !v.delivery.Since.IsZero() {
		h.RecordsSince = v.model.Since(v.now)
	}
	if gap := v.delivery.Gap; !gap.From.After(until) && (gap.Until.IsZero() || gap.Until.After(from)) {
		h.Gap = gap
	}
	if h.Incomplete != "" {
		h.NothingSince = v.arrived
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

// reply is an answer in JSON: a head, and the lists that a question asks for. They end when the
// room does.
type reply struct {
	head
	*incident.Summary
	Workloads []json.RawMessage `json:"workloads,omitzero"`
	Problems  []json.RawMessage `json:"problems,omitzero"`
	Changes   []json.RawMessage `json:"changes,omitzero"`
	Rollouts  []json.RawMessage `json:"rollouts,omitzero"`
	Events    []json.RawMessage `json:"events,omitzero"`
	History   []json.RawMessage `json:"history,omitzero"` // what a connector remembers since a time

	*view
	style
	err error
}

// style is how much an answer says.
type style struct {
	below, room int    // values of a list in a value, and bytes of all values
	indent      string // of JSON
	untrusted   []string
}

var (
	forPrograms = style{below: 100, room: maxAnswer - 256<<10, indent: "  "}
	// An agent pays for each word, and may take the text of an Event for an instruction.
	forAgents = style{below: 3, room: 256 << 10, untrusted: []string{"message", "text", "scope", "reason", "name", "object", "container", "reporter"}}
)

// replyWith returns what makes an answer of these parts.
func replyWith(s style, parts ...func(*reply)) func(*view) ([]byte, error) {
	return func(v *view) ([]byte, error) {
		if err := v.resolve(); err != nil {
			return nil, err
		}
		r := &reply{head: v.head(), view: v, style: s}
		r.Untrusted = s.untrusted
		for _, add := range parts {
			add(r)
		}
		if r.err != nil {
			return nil, r.err
		}
		return encode(r, "", s.indent)
	}
}

// encode returns JSON that shows < as <, and not as six bytes.
func encode(value any, prefix, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, indent)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// fit returns the first values of a list, as many as have room. If it is cut, the head has its
// length.
func fit[T, S any](r *reply, name string, all []T, show func(T) S) []json.RawMessage {
	list := []json.RawMessage{}
	for _, value := range first(all, r.filter.Limit) {
		text, err := encode(show(value), strings.Repeat(r.indent, 2), r.indent)
		if r.err = cmp.Or(r.err, err); len(text) > r.room {
			break
		}
		list, r.room = append(list, text), r.room-len(text)
	}
	if len(list) < len(all) {
		r.Total[name] = len(all)
	}
	return list
}

func (r *reply) addProblems() { r.Problems = fit(r, "problems", r.at().Problems(), r.problem) }

// isChosen reports whether the filter chooses a workload.
func (v *view) isChosen(k incident.Key) bool {
	isOther := v.filter.Workload != "" && k.ID() != v.key.ID() || v.filter.Namespace != "" && k.Namespace != v.filter.Namespace
	return !isOther
}

var errNoHistory = requestError{errors.New("what was before the last hour needs the connector kube_incidents in the logs pipelines of event_page, with an output of logs or metrics, and the extension kube_events_status"), http.StatusBadRequest}

// remembers reports whether the filter asks for what a connector remembers.
func (r *reply) remembers() bool {
	if !r.filter.Since.IsZero() && r.incidents == nil {
		r.err = errNoHistory
	}
	return !r.filter.Since.IsZero() && r.incidents != nil
}

// addFormerProblems adds the problems since a time that the filter has.
func (r *reply) addFormerProblems() {
	if r.remembers() {
		all := slices.DeleteFunc(r.incidents.Problems(r.filter.Since), func(p problem.Problem) bool { return !r.isChosen(p.Key) })
		r.History = fit(r, "history", all, rememberedOf)
	}
}

// addFormerChanges adds the changes since a time that the filter has.
func (r *reply) addFormerChanges() {
	if r.remembers() {
		all := slices.DeleteFunc(r.incidents.Changes(r.filter.Since), func(c problem.Change) bool { return !r.isChosen(c.Key) })
		r.History = fit(r, "history", all, func(c problem.Change) problem.Change { return c })
	}
}

// remembered is a problem that a connector remembers.
type remembered struct {
	ID       string       `json:"id"`
	Key      incident.Key `json:"workload"`
	Class    string       `json:"class"`
	Sentence string       `json:"text"`
	Onset    time.Time    `json:"since"`
	Over     time.Time    `json:"over,omitzero"`
	Because  string       `json:"because,omitempty"`
}

func rememberedOf(p problem.Problem) remembered {
	return remembered{p.ID, p.Key, p.Class, p.Sentence, p.Onset, p.Over, p.Because}
}

// earlier are the same problems before.
type earlier struct {
	Times int        `json:"times"`
	Since time.Time  `json:"since"` // the first one
	Last  remembered `json:"last"`
}

// remember returns the id that records have of a problem, and what was before; nil: nothing, or no connector
// remembers it.
func (v *view) remember(p *incident.Problem) (id string, before *earlier) {
	if v.incidents == nil {
		return p.ID, nil
	}
	open, previous := v.incidents.Known(p.AllSeries())
	previous = slices.DeleteFunc(previous, func(one problem.Problem) bool { return !one.Over.Before(p.Onset) })
	if len(previous) > 0 {
		before = &earlier{len(previous), previous[len(previous)-1].Onset, rememberedOf(previous[0])}
	}
	if open != nil && p.Over.IsZero() {
		return open.ID, before
	}
	return p.ID, before
}

func (r *reply) addChanges() { r.Changes = fit(r, "changes", r.at().Changes(), r.change) }

func (r *reply) addWorkloads() { r.Workloads = fit(r, "workloads", r.at().Workloads(), r.summary) }

func (r *reply) addEvents() { r.Events = fit(r, "events", r.events(), eventOf) }

func (r *reply) addRollouts() {
	r.Rollouts = fit(r, "rollouts", r.rollouts(podsShown), func(s *span) *span { return s })
}

// addSummary adds what the workload did, which may be nothing in what is chosen.
func (r *reply) addSummary() {
	r.Summary = &incident.Summary{Key: r.key, Reasons: []incident.Counted{}}
	for _, s := range r.at().Workloads() {
		*r.Summary = r.summary(s)
	}
}

// shownProblem is a problem whose lists may be cut.
type shownProblem struct {
	incident.Problem
	Before *earlier `json:"before,omitempty"` // within 30 days
	Total  totals   `json:"total,omitempty"`
}

func (r *reply) problem(p incident.Problem) shownProblem {
	total := totals{}
	p.Earlier = cut(total, "earlier", p.Earlier, r.below)
	p.Revisions = cut(total, "revisions", p.Revisions, r.below)
	p.Pods = cut(total, "pods", p.Pods, r.below)
	p.Nodes = cut(total, "nodes", p.Nodes, r.below)
	p.Records = cut(total, "records", p.Records, r.below)
	p.Causes = each(p.Causes, func(c incident.Cause) incident.Cause {
		c.Change = r.change(c.Change)
		return c
	})
	id, before := r.remember(&p)
	p.ID = id
	return shownProblem{p, before, total}
}

// cut returns the first values of a list, and notes its length.
func cut[T any](total totals, name string, all []T, most int) []T {
	if len(all) > most {
		total[name] = len(all)
	}
	return first(all, most)
}

func (r *reply) change(c incident.Change) incident.Change {
	c.Records = first(c.Records, r.below)
	return c
}

func (r *reply) summary(s incident.Summary) incident.Summary {
	s.Manifests = first(s.Manifests, r.below)
	return s
}
