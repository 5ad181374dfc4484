// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// How much of the board is shown at once. With a single workload, all that is known of it is.
const (
	cardsShown   = 50
	eventsShown  = 5 // of a workload
	objectsShown = 5 // of a workload
)

// view is what somebody sees of the board.
type view struct {
	Filter        filter
	Facets        []facet
	All, Warnings int64
	Chart         chart
	Cards         []card
	Hidden        int // cards
}

// facet is a trait that can be filtered by, with its values.
type facet struct {
	Name    string // in the page's address
	Options []option
}

type option struct {
	Value    string
	Count    int64
	Selected bool
}

// card is a workload.
type card struct {
	ID, Address   string
	Top           object
	Namespace     string
	Manifests     []string
	All, Warnings int64
	Reasons       []reason
	Chart         chart
	Tree          *branch
	HiddenObjects int
	Events        []row
	HiddenEvents  int

	order int
}

type reason struct {
	Name    string
	Warning bool
	Count   int64
}

// row is an event in its newest state.
type row struct {
	ID, Type, Reason, Object, Container, Message string
	Warning                                      bool
	At                                           time.Time
	Count, Taken                                 int64
}

// see shows the board through a filter.
func (b *board) see(f filter) view {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	now := b.now()
	v := view{Filter: f}
	shown, whole := b.workloadsShown(f)
	v.Facets = facetsOf(whole, f, now)
	v.All, v.Warnings = whole.total(f.start(now), f)
	v.Chart = chartOf(whole, f, now)
	for _, w := range shown {
		if c, ok := cardOf(w, f, now); ok {
			v.Cards = append(v.Cards, c)
		}
	}
	// Those with warnings come first. Among them, a card keeps its place until a workload appears that was not there.
	slices.SortFunc(v.Cards, func(a, b card) int {
		return cmp.Or(cmp.Compare(min(b.Warnings, 1), min(a.Warnings, 1)), cmp.Compare(b.order, a.order))
	})
	v.Hidden = max(0, len(v.Cards)-cardsShown)
	v.Cards = v.Cards[:len(v.Cards)-v.Hidden]
	return v
}

// workloadsShown are those that the filter may show, and what happened to all of them.
func (b *board) workloadsShown(f filter) ([]*workload, *timeline) {
	if f.Workload == "" {
		return slices.Collect(maps.Values(b.workloads)), &b.overall
	}
	for _, w := range b.workloads {
		if w.id == f.Workload {
			return []*workload{w}, &w.timeline
		}
	}
	return nil, &timeline{}
}

// facetsOf lists what can be chosen of each trait while the choices of the others stay.
func facetsOf(t *timeline, f filter, now time.Time) (facets []facet) {
	for i, name := range traitNames {
		others := f
		others.traits[i] = ""
		counts := map[string]int64{f.traits[i]: 0} // What was chosen can be seen even where nothing is of that kind.
		for _, c := range t.since(f.start(now), others) {
			counts[c.of[i]] += c.n
		}
		delete(counts, "")
		shown := facet{Name: name}
		for _, value := range sortedByCount(counts) {
			shown.Options = append(shown.Options, option{value, counts[value], value == f.traits[i]})
		}
		facets = append(facets, shown)
	}
	return facets
}

// cardOf shows a workload. ok is false if nothing of it passes the filter.
func cardOf(w *workload, f filter, now time.Time) (c card, ok bool) {
	start := f.start(now)
	c = card{ID: w.id, Address: f.AddressOf(w.id), Top: w.top, Namespace: w.namespace, Chart: chartOf(&w.timeline, f, now), order: w.order}
	reasons, warnings, manifests := map[string]int64{}, map[string]bool{}, map[string]int64{}
	for _, counted := range w.timeline.since(start, f) {
		name := counted.of[traitReason]
		reasons[name] += counted.n
		warnings[name] = warnings[name] || counted.of.isWarning()
		manifests[counted.of[traitManifest]] += counted.n
	}
	if len(reasons) == 0 {
		return card{}, false
	}
	delete(manifests, "")
	c.All, c.Warnings = w.timeline.total(start, f)
	c.Manifests = sortedByCount(manifests)
	for _, name := range sortedByCount(reasons) {
		c.Reasons = append(c.Reasons, reason{name, warnings[name], reasons[name]})
	}
	c.Tree, c.HiddenObjects = treeOf(w, f, start)
	c.Events, c.HiddenEvents = rowsOf(w, f, start)
	return c, true
}

// rowsOf shows a workload's events, the newest first.
func rowsOf(w *workload, f filter, start time.Time) (rows []row, hidden int) {
	for _, e := range slices.Backward(w.events) {
		if e.at.Before(start) || !f.admits(e.of) {
			continue
		}
		if f.Workload == "" && len(rows) == eventsShown {
			hidden++
			continue
		}
		rows = append(rows, row{
			ID: e.id, Type: e.of[traitType], Reason: e.of[traitReason], Warning: e.of.isWarning(), Message: e.message,
			Object: e.chain[len(e.chain)-1].String(), Container: e.container, At: e.at, Count: e.count, Taken: e.taken,
		})
	}
	return rows, hidden
}
