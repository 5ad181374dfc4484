// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unique"
)

// The page shows at most this much of the store at once. A page of a single workload shows
// everything about it.
const (
	cardsShown   = 50
	eventsShown  = 5   // of a workload
	objectsShown = 5   // of a workload
	valuesShown  = 100 // of a trait
)

// view is the content of the page.
type view struct {
	Filter        filter
	Facets        []facet
	All, Warnings int64
	Chart         chart
	Cards         []card
	Hidden        int // cards
}

// facet is a trait that a filter can select, with its values.
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

// see returns what the page shows with this filter.
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

// arranged returns the workloads with something that passes the filter. Workloads with warnings
// come first. A workload keeps its place until a new workload appears.
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

// workloadsShown returns the workloads that the filter may show, and the timeline of all of them.
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

// facetsOf returns, for each trait, the values that can be chosen while the choices of the other
// traits stay.
func facetsOf(t *timeline, f filter, now time.Time) (facets []facet) {
	occurred := map[unique.Handle[traits]]int64{}
	for _, c := range t.since(f.start(now), filter{}) {
		occurred[c.of] += c.n
	}
	for i, name := range traitNames {
		others := f
		others.traits[i] = ""
		// The chosen value is shown even if it has no occurrence.
		counts := map[string]int64{f.traits[i]: 0}
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

// facetOf returns the most frequent values, and the chosen one.
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

// cardOf returns the card of a workload.
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

// rowsOf returns a workload's events, the newest first.
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
