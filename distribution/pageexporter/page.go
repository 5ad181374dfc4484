// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// The page shows at most this much at once. The page of a single workload shows more of it.
const (
	problemsShown  = 50
	workloadsShown = 50
	valuesShown    = 100
	changesShown   = 50
	messageShown   = 120 // bytes, in the list of workloads
)

// page is the content of the page.
type page struct {
	head
	Error     string // instead of all that follows
	Filter    filter
	Partial   bool // records are complete for a part of the time only
	Selects   []selection
	Chart     chart
	Current   []incident.Problem // those that go on
	Over      []incident.Problem
	Workloads []incident.Summary // without a problem
	Hidden    totals             // how many problems and workloads are not shown
	One       *workloadPage
	Chains    map[string][]incident.Object // by record: from the workload down to the object of its message
	Weeks     []*week                      // of what a connector remembers, the newest first; only the page of 30 days has them

	view *view
}

// Remembers reports whether a connector remembers problems.
func (p *page) Remembers() bool { return p.view != nil && p.view.incidents != nil }

// week has the problems that began in a week, and counts its changes.
type week struct {
	From     time.Time // a Monday
	Problems []remembered
	All      int // problems, of which some may not be shown
	Changes  int
}

// Before returns what was before a problem; nil: nothing that is remembered.
func (p *page) Before(of incident.Problem) *earlier {
	_, before := p.view.remember(&of)
	return before
}

// selection is a list from which a viewer chooses a value.
type selection struct {
	Name, Label, Chosen string
	Values              []string
}

// shown is a part of the page with the page, whose filter its links keep.
type shown struct {
	Page *page
	It   any
}

// workloadPage has the parts that only the page of a single workload has.
type workloadPage struct {
	Key      incident.Key
	Changes  []incident.Change
	Rollouts []*span
	Events   []event
}

// The page has all times in UTC. Its script shows them in the viewer's time zone.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"day":     func(t time.Time) string { return t.UTC().Format("2 January") },
	"clock":   func(t time.Time) string { return t.UTC().Format(time.TimeOnly) },
	"moment":  timeIn,
	"field":   func(t time.Time) string { return strings.TrimSuffix(timeIn(t), ":00Z") },
	"between": func(from, until time.Time) string { return incident.InWords(until.Sub(from)) },
	"before":  func(d incident.Before) string { return before(time.Duration(d)) },
	"on":      func(p *page, it any) shown { return shown{p, it} },
	"newest":  func(facts []*incident.Fact) []event { return each(first(facts, 3), eventOf) },
	"short":   func(message string) string { return record.Cut(message, messageShown) },
	"offered": func() []int { return minutesOffered },
}).ParseFS(files, "page.html.tmpl"))

// cutting is how much of a list the page shows: all that it may, or a power of 2 less.
type cutting uint

func (s cutting) of(most int) int { return max(1, most>>s) }

// inHTML is the format of a template.
func inHTML(template string) format {
	return format{"text/html; charset=utf-8", func(err error) ([]byte, error) {
		var html bytes.Buffer
		broken := templates.ExecuteTemplate(&html, template, &page{Error: err.Error(), Filter: filter{Minutes: minutesOffered[0]}})
		return html.Bytes(), broken
	}}
}

// render returns the HTML of a template. If it is too long, its lists are shorter.
func (v *view) render(name string) ([]byte, error) {
	made := v.page
	if name == "days" {
		made = v.pageOfDays
		if v.incidents == nil {
			return nil, errNoHistory
		}
	}
	if err := v.resolve(); err != nil {
		return nil, err
	}
	for less := cutting(0); ; less += 2 {
		var html bytes.Buffer
		err := templates.ExecuteTemplate(&html, name, made(less))
		if err != nil || html.Len() <= maxAnswer || less.of(maxLimit) == 1 {
			return html.Bytes(), err
		}
	}
}

// pageOfDays returns what a connector remembers of 30 days, by week.
func (v *view) pageOfDays(less cutting) *page {
	p := &page{Filter: v.filter, view: v}
	since, weeks := v.now.Add(-problem.KeptFor), map[time.Time]*week{}
	of := func(at time.Time) *week {
		monday := at.UTC().Truncate(24*time.Hour).AddDate(0, 0, -(int(at.UTC().Weekday())+6)%7)
		if weeks[monday] == nil {
			weeks[monday] = &week{From: monday}
			p.Weeks = append(p.Weeks, weeks[monday])
		}
		return weeks[monday]
	}
	for _, one := range v.incidents.Problems(since) {
		if w := of(one.Onset); v.isChosen(one.Key) {
			if w.All++; len(w.Problems) < less.of(valuesShown) {
				w.Problems = append(w.Problems, rememberedOf(one))
			}
		}
	}
	for _, one := range v.incidents.Changes(since) {
		if w := of(one.At); v.isChosen(one.Key) {
			w.Changes++
		}
	}
	slices.SortFunc(p.Weeks, func(a, b *week) int { return b.From.Compare(a.From) })
	return p
}

func (v *view) page(less cutting) *page {
	at, f := v.at(), v.filter
	p := &page{
		head: v.head(), Filter: f, Selects: selections(at.Values(), f, less.of(valuesShown)),
		Chart: chartOf(at.Counts(bars)), Chains: map[string][]incident.Object{}, Hidden: totals{}, view: v,
	}
	p.Partial = p.RecordsSince.After(p.From) || !p.Gap.From.IsZero()
	workloads, troubled := at.Workloads(), map[string]bool{}
	for _, s := range workloads {
		for _, fact := range s.Facts {
			p.Chains[fact.ID] = fact.Chain
		}
	}
	for _, found := range at.Problems() {
		troubled[found.Key.ID()] = true
		switch {
		case len(p.Current)+len(p.Over) == less.of(problemsShown):
			p.Hidden["problems"]++
		case found.Over.IsZero():
			p.Current = append(p.Current, found)
		default:
			p.Over = append(p.Over, found)
		}
	}
	for _, s := range workloads {
		switch {
		case f.Workload != "":
			p.One = &workloadPage{
				Key: s.Key, Changes: first(at.Changes(), less.of(changesShown)),
				Rollouts: first(v.rollouts(less.of(podsShown)), less.of(rolloutsShown)), Events: each(first(s.Facts, less.of(maxLimit)), eventOf),
			}
		case troubled[s.Key.ID()]:
		case len(p.Workloads) == less.of(workloadsShown):
			p.Hidden["workloads"]++
		default:
			p.Workloads = append(p.Workloads, s)
		}
	}
	return p
}

// selections returns the lists with the most frequent values, and the chosen ones.
func selections(values incident.Values, f filter, most int) (all []selection) {
	add := func(name, label, chosen string, counted []incident.Counted) {
		offered := each(first(counted, most), func(c incident.Counted) string { return c.Value })
		if chosen != "" {
			offered = append(offered, chosen)
		}
		slices.Sort(offered)
		all = append(all, selection{name, label, chosen, slices.Compact(offered)})
	}
	add("namespace", "Namespace", f.Namespace, values.Namespaces)
	add("reason", "Reason", f.Reason, values.Reasons)
	add("type", "Type", f.Type, each(types, func(name string) incident.Counted { return incident.Counted{Value: name} }))
	add("manifest", "Tilt manifest", f.Manifest, values.Manifests)
	return all
}

// before says how long before a problem its cause was.
func before(d time.Duration) string {
	if d < time.Second {
		return "in the same second"
	}
	return incident.InWords(d) + " before"
}

// bars is the number of bars of a chart.
const bars = 60

// chart shows occurrences over time, as bars in a square of 100 by 100.
type chart struct {
	Bars []chartBar
	Peak int64 // the highest bar's occurrences
}

// chartBar shows the occurrences of a part of the time. Warnings are above normal occurrences.
type chartBar struct {
	incident.Slot
	Until                   time.Time
	X, Width                float64
	NormalY, NormalHeight   float64
	WarningY, WarningHeight float64
}

func chartOf(slots []incident.Slot) (drawn chart) {
	length := slots[1].From.Sub(slots[0].From)
	for _, s := range slots {
		drawn.Peak = max(drawn.Peak, s.Normal+s.Warnings)
	}
	for i, s := range slots {
		if s.Normal+s.Warnings == 0 {
			continue
		}
		share := 100 / float64(drawn.Peak)
		b := chartBar{Slot: s, Until: s.From.Add(length), X: float64(i) * 100 / bars, Width: 90. / bars}
		b.NormalHeight, b.WarningHeight = float64(s.Normal)*share, float64(s.Warnings)*share
		b.NormalY = 100 - b.NormalHeight
		b.WarningY = max(0, b.NormalY-b.WarningHeight)
		drawn.Bars = append(drawn.Bars, b)
	}
	return drawn
}
