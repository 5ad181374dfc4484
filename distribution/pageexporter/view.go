// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unique"
)

// How much of the store is shown at once. With a single workload, all that is known of it is.
const (
	cardsShown   = 50
	eventsShown  = 5   // of a workload
	objectsShown = 5   // of a workload
	valuesShown  = 100 // of a trait
)

// view is what somebody sees of the store.
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
	Hidden  int // values
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
	HiddenReasons int
	Chart         chart
	Tree          *branch
	HiddenObjects int
	Events        []row
	HiddenEvents  int
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

// see shows the store through a filter.
func (s *store) see(f filter) view {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	now := s.now()
	v := view{Filter: f}
	shown, whole := s.workloadsShown(f)
	v.Facets = facetsOf(whole, f, now)
	v.All, v.Warnings = whole.total(f.start(now), f)
	v.Chart = chartOf(whole, f, now)
	shown = arranged(shown, f, now)
	v.Hidden = max(0, len(shown)-cardsShown)
	for _, w := range shown[:len(shown)-v.Hidden] {
		v.Cards = append(v.Cards, cardOf(w, f, now))
	}
	return v
}

// arranged are those workloads of which something passes the filter. Those with warnings come first. Among them, one keeps
// its place until another appears that was not there.
func arranged(workloads []*workload, f filter, now time.Time) (shown []*workload) {
	warns := map[*workload]int64{}
	for _, w := range workloads {
		if all, warnings := w.timeline.total(f.start(now), f); all > 0 {
			warns[w] = min(warnings, 1)
			shown = append(shown, w)
		}
	}
	slices.SortFunc(shown, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(warns[b], warns[a]), cmp.Compare(b.order, a.order))
	})
	return shown
}

// workloadsShown are those that the filter may show, and what happened to all of them.
func (s *store) workloadsShown(f filter) ([]*workload, *timeline) {
	if f.Workload == "" {
		return slices.Collect(maps.Values(s.workloads)), &s.overall
	}
	for _, w := range s.workloads {
		if w.id == f.Workload {
			return []*workload{w}, &w.timeline
		}
	}
	return nil, &timeline{}
}

// facetsOf lists what can be chosen of each trait while the choices of the others stay.
func facetsOf(t *timeline, f filter, now time.Time) (facets []facet) {
	occurred := map[unique.Handle[traits]]int64{}
	for _, c := range t.since(f.start(now), filter{}) {
		occurred[c.of] += c.n
	}
	for i, name := range traitNames {
		others := f
		others.traits[i] = ""
		counts := map[string]int64{f.traits[i]: 0} // What was chosen can be seen even where nothing is of that kind.
		for of, n := range occurred {
			if others.admits(of.Value()) {
				counts[of.Value()[i]] += n
			}
		}
		delete(counts, "")
		facets = append(facets, facetOf(name, counts, f.traits[i]))
	}
	return facets
}

// facetOf lists the most frequent values, and the one that was chosen.
func facetOf(name string, counts map[string]int64, chosen string) facet {
	values, _ := mostFrequent(counts, valuesShown)
	if chosen != "" && !slices.Contains(values, chosen) {
		values = append(values, chosen)
	}
	shown := facet{Name: name, Hidden: len(counts) - len(values)}
	for _, value := range values {
		shown.Options = append(shown.Options, option{value, counts[value], value == chosen})
	}
	return shown
}

// cardOf shows a workload.
func cardOf(w *workload, f filter, now time.Time) card {
	start := f.start(now)
	c := card{ID: w.id, Address: f.AddressOf(w.id), Top: w.top, Namespace: w.namespace, Chart: chartOf(&w.timeline, f, now)}
	reasons, warnings, manifests := map[string]int64{}, map[string]bool{}, map[string]int64{}
	for _, counted := range w.timeline.since(start, f) {
		of := counted.of.Value()
		name := of[traitReason]
		c.All += counted.n
		reasons[name] += counted.n
		if of.isWarning() {
			c.Warnings += counted.n
			warnings[name] = true
		}
		manifests[of[traitManifest]] += counted.n
	}
	delete(manifests, "")
	c.Manifests, _ = mostFrequent(manifests, valuesShown)
	names, hidden := mostFrequent(reasons, valuesShown)
	c.HiddenReasons = hidden
	for _, name := range names {
		c.Reasons = append(c.Reasons, reason{name, warnings[name], reasons[name]})
	}
	c.Tree, c.HiddenObjects = treeOf(w, f, start)
	c.Events, c.HiddenEvents = rowsOf(w, f, start)
	return c
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
