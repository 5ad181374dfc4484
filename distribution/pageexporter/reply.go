// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// The answers of the API, and of the tools for agents.
type (
	problemsAnswer struct {
		head
		Problems []json.RawMessage `json:"problems"`
	}
	changesAnswer struct {
		head
		Changes []json.RawMessage `json:"changes"`
	}
	workloadsAnswer struct {
		head
		Workloads []json.RawMessage `json:"workloads"`
	}
	eventsAnswer struct {
		head
		Events []json.RawMessage `json:"events"`
	}
	workloadAnswer struct {
		head
		incident.Summary
		Problems []json.RawMessage `json:"problems"`
		Changes  []json.RawMessage `json:"changes"`
		Rollouts []json.RawMessage `json:"rollouts"`
		Events   []json.RawMessage `json:"events"`
	}
)

// style is how much an answer says.
type style struct {
	maxProblems int
	below       int    // values of a list in a value
	room        int    // bytes of all values
	indent      string // of JSON
}

var (
	forPrograms = style{maxProblems: maxLimit, below: 100, room: maxAnswer - 64<<10, indent: "  "}
	// An agent pays for each word.
	forAgents = style{maxProblems: 10, below: 3, room: 256 << 10}
)

// reasonsShown is how many reasons of a workload an answer has. The others are one.
const reasonsShown = 20

// reply is an answer in JSON. Its lists end when the room does.
type reply struct {
	*view
	style
	total totals
	err   error
}

// reply returns an answer.
func (v *view) reply(s style, answer func(*reply) any) ([]byte, error) {
	r := &reply{view: v, style: s, total: totals{}}
	made := answer(r)
	if r.err != nil {
		return nil, r.err
	}
	return encode(made, "", s.indent)
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

// fit returns the first values of a list, as many as have room. If it is cut, the head has its length.
func fit[T, S any](r *reply, name string, all []T, most int, show func(T) S) []json.RawMessage {
	list := []json.RawMessage{}
	for _, value := range first(all, most) {
		text, err := encode(show(value), strings.Repeat(r.indent, 2), r.indent)
		if r.err = cmp.Or(r.err, r.left(), err); r.err != nil || len(text) > r.room {
			break
		}
		list, r.room = append(list, text), r.room-len(text)
	}
	if len(list) < len(all) {
		r.total[name] = len(all)
	}
	return list
}

func (r *reply) head() head {
	h := r.view.head()
	h.Total = r.total // The lists that follow write into it.
	return h
}

func (r *reply) problemList() []json.RawMessage {
	return fit(r, "problems", r.problems(), min(r.maxProblems, r.filter.Limit), r.problem)
}

func (r *reply) changeList() []json.RawMessage {
	return fit(r, "changes", r.changes(), r.filter.Limit, r.change)
}

func (r *reply) workloadList() []json.RawMessage {
	return fit(r, "workloads", r.workloads(), r.filter.Limit, summary)
}

func (r *reply) eventList() []json.RawMessage {
	return fit(r, "events", r.events(), r.filter.Limit, eventOf)
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

// summary returns a workload with its first reasons, and the sum of the others.
func summary(s incident.Summary) incident.Summary {
	if len(s.Reasons) > reasonsShown {
		others := incident.Counted{Value: "(others)"}
		for _, c := range s.Reasons[reasonsShown:] {
			others.N, others.Warning = others.N+c.N, others.Warning || c.Warning
		}
		s.Reasons = append(slices.Clip(s.Reasons[:reasonsShown]), others)
	}
	s.Manifests = first(s.Manifests, reasonsShown)
	return s
}

// workload returns everything about a workload, which may be nothing in what is chosen.
func (r *reply) workload() workloadAnswer {
	s := incident.Summary{Key: r.key, Reasons: []incident.Counted{}}
	if found := r.workloads(); len(found) == 1 {
		s = found[0]
	}
	a := workloadAnswer{head: r.head(), Summary: summary(s), Problems: r.problemList(), Changes: r.changeList(), Events: r.eventList()}
	a.Rollouts = fit(r, "rollouts", r.rollouts(), r.filter.Limit, shownSpan) // They are the largest: last.
	return a
}
