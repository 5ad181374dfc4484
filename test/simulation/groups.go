// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// groups are the events that dedup_interval sums: of one involved object, reason and type. Each is named
// after one of its events. Without dedup_interval, each event is a group of its own.
type groups struct {
	of    map[types.NamespacedName]types.NamespacedName
	names map[types.NamespacedName]int // how many events a group has
	// mixed are those whose events have had several objects, reasons or types.
	mixed map[types.NamespacedName]bool
}

func newGroups(e *environment) *groups {
	g := &groups{
		of: map[types.NamespacedName]types.NamespacedName{}, names: map[types.NamespacedName]int{},
		mixed: map[types.NamespacedName]bool{},
	}
	if e.plan.Dedup == 0 {
		return g
	}
	first := map[string]types.NamespacedName{}
	for _, w := range e.server.History() {
		name, window := nameOf(w.Event), windowOf(w.Event)
		if _, known := first[window]; !known {
			first[window] = name
		}
		g.join(name, first[window])
	}
	for name := range g.of {
		g.names[g.groupOf(name)]++
	}
	return g
}

// windowOf names the window of an event, with texts as they are where they are compared.
func windowOf(ev *corev1.Event) string {
	o := ev.InvolvedObject
	var parts []string
	for _, text := range []string{o.Kind, o.Namespace, o.Name, string(o.UID), ev.Reason, ev.Type} {
		parts = append(parts, attributeOf(text))
	}
	return strings.Join(parts, "\n")
}

// join puts two events into one group.
func (g *groups) join(a, b types.NamespacedName) {
	_, isKnown := g.of[a]
	from, to := g.groupOf(a), g.groupOf(b)
	if g.of[a] = to; from != to {
		g.of[from] = to
		g.mixed[to] = g.mixed[to] || g.mixed[from] || isKnown
	}
}

// groupOf returns the group of an event.
func (g *groups) groupOf(name types.NamespacedName) types.NamespacedName {
	for {
		next, ok := g.of[name]
		if !ok || next == name {
			return name
		}
		name = next
	}
}

// sum adds up what an observer counts, by group.
func (g *groups) sum(counts map[types.NamespacedName]*expected) map[types.NamespacedName]*expected {
	sums := map[types.NamespacedName]*expected{}
	for name, c := range counts {
		group := g.groupOf(name)
		if sums[group] == nil {
			sums[group] = &expected{}
		}
		sums[group].total, sums[group].steps = sums[group].total+c.total, append(sums[group].steps, c.steps...)
	}
	return sums
}
