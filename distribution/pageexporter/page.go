// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// The page shows at most this much at once. The page of a single workload shows more of it.
const (
	problemsShown  = 50
	workloadsShown = 50
	valuesShown    = 100
	changesShown   = 50
	messageShown   = 120 // characters, in the list of workloads
)

// page is the content of the page.
type page struct {
	head
	Filter     filter
	Partial    bool // records are complete for a part of the time only
	Selects    []selection
	Chart      chart
	Current    []card // problems that go on
	Over       []card
	Workloads  []summaryRow
	Hidden     int // workloads
	Overlooked int // problems
	One        *workloadPage
}

// selection is a list from which a viewer chooses a value.
type selection struct {
	Name, Label, Chosen string
	Values              []string
}

// card is a problem with the filter that its links keep.
type card struct {
	incident.Problem
	Filter filter
	Chain  []incident.Object // from the workload down to the object of its message
	Until  time.Time         // of the answer
}

// linked is a cause with the address of its records.
type linked struct {
	*incident.Cause
	Address string
}

// Link returns a cause with the address of the workload, node or other object that changed.
func (c card) Link(before *incident.Cause) linked {
	return linked{before, c.Filter.To(before.Key.ID())}
}

// Others returns how many pods have the problem, in addition to that of the message.
func (c card) Others() int { return c.PodCount - 1 }

// summaryRow is a workload without a problem.
type summaryRow struct {
	incident.Summary
	Filter filter
	Newest []event
}

// workloadPage has the parts that only the page of a single workload has.
type workloadPage struct {
	Key      incident.Key
	Filter   filter
	Changes  []incident.Change
	Rollouts []bar
	Events   []event
}

// The page has all times in UTC. Its script shows them in the viewer's time zone.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"clock":   func(t time.Time) string { return t.UTC().Format(time.TimeOnly) },
	"minute":  func(t time.Time) string { return t.UTC().Format("15:04") },
	"moment":  timeIn,
	"field":   func(t time.Time) string { return strings.TrimSuffix(timeIn(t), ":00Z") },
	"between": func(from, until time.Time) string { return incident.InWords(until.Sub(from)) },
	"before":  func(c linked) string { return before(time.Duration(c.Before)) },
	"short":   short,
	"offered": func() []int { return minutesOffered },
}).ParseFS(files, "page.html.tmpl"))

// render returns the HTML of a template.
func (v *view) render(name string, f filter) ([]byte, error) {
	var html bytes.Buffer
	err := templates.ExecuteTemplate(&html, name, v.page(f))
	return html.Bytes(), err
}

func (v *view) page(f filter) *page {
	q := f.at(v.now)
	at := v.model.At(v.now, q)
	p := &page{head: v.head(q), Filter: f, Selects: selections(at.Values(), f), Chart: chartOf(at.Counts(bars))}
	p.Partial = p.RecordsSince.After(p.From)
	summaries := at.Workloads()
	chains := map[string][]incident.Object{}
	for _, s := range summaries {
		for _, fact := range s.Facts {
			chains[fact.ID] = fact.Chain
		}
	}
	troubled := map[string]bool{}
	for _, shown := range v.problems(q) {
		troubled[shown.Key.ID()] = true
		c := card{shown, f, chains[shown.Record], p.Until}
		switch {
		case len(p.Current)+len(p.Over) == problemsShown:
			p.Overlooked++
		case shown.Over.IsZero():
			p.Current = append(p.Current, c)
		default:
			p.Over = append(p.Over, c)
		}
	}
	if f.Workload != "" {
		p.One = v.workloadPage(f, summaries)
		return p
	}
	for _, s := range summaries {
		if troubled[s.Key.ID()] {
			continue
		}
		if len(p.Workloads) == workloadsShown {
			p.Hidden++
			continue
		}
		p.Workloads = append(p.Workloads, summaryRow{s, f, each(s.Facts[:min(3, len(s.Facts))], eventOf)})
	}
	return p
}

func (v *view) workloadPage(f filter, found []incident.Summary) *workloadPage {
	if len(found) != 1 {
		return nil
	}
	q := f.at(v.now)
	events := each(found[0].Facts[:min(maxLimit, len(found[0].Facts))], eventOf)
	return &workloadPage{
		Key: found[0].Key, Filter: f, Changes: newest(v.changes(q), changesShown),
		Rollouts: barsOf(v.rollouts(q)), Events: events,
	}
}

// selections returns the lists with the most frequent values, and the chosen ones.
func selections(values incident.Values, f filter) (all []selection) {
	add := func(name, label, chosen string, counted []incident.Counted) {
		s := selection{Name: name, Label: label, Chosen: chosen}
		for _, c := range counted[:min(valuesShown, len(counted))] {
			if !slices.Contains(s.Values, c.Value) {
				s.Values = append(s.Values, c.Value)
			}
		}
		if chosen != "" && !slices.Contains(s.Values, chosen) {
			s.Values = append(s.Values, chosen)
		}
		slices.Sort(s.Values)
		all = append(all, s)
	}
	add("namespace", "Namespace", f.Namespace, values.Namespaces)
	add("reason", "Reason", f.Reason, values.Reasons)
	add("type", "Type", f.Type, values.Types)
	add("manifest", "Tilt manifest", f.Manifest, values.Manifests)
	return all
}

// short returns the beginning of a message.
func short(message string) string {
	if letters := []rune(message); len(letters) > messageShown {
		return string(letters[:messageShown]) + "…"
	}
	return message
}

// before says how long before a problem its cause was.
func before(d time.Duration) string {
	if d < time.Second {
		return "in the same second"
	}
	return incident.InWords(d) + " before"
}
