// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
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
	Standby       bool // the receiver emits nothing, because another replica leads
	Filter        filter
	Span          string // how far back the page looks
	Facets        []facet
	All, Warnings int64
	Chart         chart
	// The numbers of workloads with and without warnings.
	Troubled, Others int
	Cards            []card // those with warnings first
	Urgent           int    // cards with warnings
	Hidden           int    // cards
}

// facet is a trait that a viewer can choose, with its values.
type facet struct {
	Name    string // in the page's address
	Label   string
	Options []option
	Hidden  int // values
}

// ID returns the id of the facet's element.
func (f facet) ID() string { return "facet-" + f.Name }

type option struct {
	Value    string
	Count    int64
	Selected bool
}

// card is a workload.
type card struct {
	ID, Address   string
	Filter        filter
	Top           object
	Namespace     string
	Cluster       string // its name, or its UID if this is not known; empty: there is only one
	Manifests     []string
	All, Warnings int64
	LastWarning   time.Time // zero if its event was dropped
	Reasons       []reason
	HiddenReasons int
	Chart         chart
	Tree          *branch
	HiddenObjects int
	Events        []row
	HiddenEvents  int
	Changed       *answer  // nil: there is no warning
	Rollouts      rollouts // only on the page of a single workload
	Records       []record // of the answer; likewise
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
	now, unlock := s.read()
	defer unlock()
	v := view{Standby: s.standby.Load(), Filter: f}
	f.oldest = s.overall.start()
	start := f.start(now)
	v.Span = f.span(now)
	selections, whole := s.selected(f)
	v.Facets = facetsOf(whole, f, start)
	v.All, v.Warnings = total(whole.since(start, f))
	v.Chart = chartOf(whole.since(start, f), f, now)
	shown, troubled := arranged(selections, f, now)
	v.Troubled, v.Others = troubled, len(shown)-troubled
	fits := fitting(shown)
	v.Hidden = len(shown) - len(fits)
	several := s.hasClusters()
	for _, of := range fits {
		c := cardOf(of, f, now)
		if c.Warnings > 0 {
			v.Urgent++
		}
		if several {
			c.Cluster = cmp.Or(of.clusterName, of.cluster)
		}
		s.describe(&c, of.workload, f, now)
		v.Cards = append(v.Cards, c)
	}
	return v
}

// hasClusters reports whether the page has workloads of several clusters.
func (s *store) hasClusters() bool {
	clusters := map[string]bool{}
	for key := range s.workloads {
		if key.cluster != "" {
			clusters[key.cluster] = true
		}
	}
	return len(clusters) > 1
}

// facetsOf returns, for each trait that a viewer can choose, the values that can be chosen while the
// other choices stay.
func facetsOf(whole timelines, f filter, start time.Time) (facets []facet) {
	occurred := map[unique.Handle[traits]]int64{}
	for _, c := range whole.since(start, filter{From: f.From, Until: f.Until}) {
		occurred[c.of] += c.n
	}
	for _, c := range choices {
		others := f
		others.traits[c.trait] = ""
		// The chosen value is shown even if it has no occurrence.
		counts := map[string]int64{f.traits[c.trait]: 0}
		for of, n := range occurred {
			if others.admits(of.Value()) {
				counts[of.Value()[c.trait]] += n
			}
		}
		delete(counts, "")
		values := facetOf(counts, f.traits[c.trait])
		values.Name, values.Label = c.name, c.label
		facets = append(facets, values)
	}
	return facets
}

// facetOf returns the most frequent values, and the chosen one.
func facetOf(counts map[string]int64, chosen string) facet {
	values, _ := mostFrequent(counts, valuesShown)
	if chosen != "" && !slices.Contains(values, chosen) {
		values = append(values, chosen)
	}
	shown := facet{Hidden: len(counts) - len(values)}
	for _, value := range values {
		shown.Options = append(shown.Options, option{value, counts[value], value == chosen})
	}
	return shown
}

// cardOf returns the card of a workload.
func cardOf(s selection, f filter, now time.Time) card {
	start := f.start(now)
	c := card{
		ID: s.id, Address: f.AddressOf(s.id), Filter: f, Top: s.top, Namespace: s.namespace, All: s.all, Warnings: s.warnings,
		Chart: chartOf(s.timelines.since(start, f), f, now),
	}
	reasons, warnings, manifests := map[string]int64{}, map[string]bool{}, map[string]int64{}
	for _, counted := range s.timelines.since(start, f) {
		of := counted.of.Value()
		reasons[of[traitReason]] += counted.n
		if of.isWarning() {
			warnings[of[traitReason]] = true
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
	slices.SortStableFunc(c.Reasons, func(a, b reason) int { return warningsFirst(a.Warning, b.Warning) })
	c.Tree, c.HiddenObjects = treeOf(s, f, start)
	events := s.eventsSince(start, f)
	if i := slices.IndexFunc(events, func(e *eventState) bool { return e.of.isWarning() }); i >= 0 {
		c.LastWarning = events[i].at
	}
	c.Events, c.HiddenEvents = rowsOf(events, f)
	return c
}

// rowsOf returns a workload's events, the newest first.
func rowsOf(events []*eventState, f filter) (rows []row, hidden int) {
	shown := events
	if f.Workload == "" {
		shown = mostUrgent(events, eventsShown)
	}
	for _, e := range shown {
		rows = append(rows, row{
			ID: e.id, Type: e.of[traitType], Reason: e.of[traitReason], Warning: e.of.isWarning(), Message: e.message,
			Object: e.chain[len(e.chain)-1].String(), Container: e.container, At: e.at, Count: e.count, Taken: e.taken,
		})
	}
	return rows, len(events) - len(shown)
}

func warningsFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
