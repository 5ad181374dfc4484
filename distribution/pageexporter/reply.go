// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

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

	*view
	style
	err error
}

// style is how much an answer says.
type style struct {
	below, room int    // values of a list in a value, and bytes of all values
	indent      string // of JSON
}

var (
	forPrograms = style{below: 100, room: maxAnswer - 256<<10, indent: "  "}
	forAgents   = style{below: 3, room: 256 << 10} // An agent pays for each word.
)

// replyWith returns what makes an answer of these parts.
func replyWith(s style, parts ...func(*reply)) func(*view) ([]byte, error) {
	return func(v *view) ([]byte, error) {
		if err := v.resolve(); err != nil {
			return nil, err
		}
		r := &reply{head: v.head(), view: v, style: s}
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

// problem is a problem whose lists may be cut.
type problem struct {
	incident.Problem
	Total totals `json:"total,omitempty"`
}

func (r *reply) problem(p incident.Problem) problem {
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
	return problem{p, total}
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
