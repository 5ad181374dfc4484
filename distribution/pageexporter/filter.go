// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"maps"
	"net/url"
	"time"
)

// filter is the selection in the page's address.
type filter struct {
	traits   traits // values that are not empty must match
	Workload string // an id; empty: all workloads
	Minutes  string // how far back the page looks
}

// spans are the times that the page can look back.
var spans = map[string]time.Duration{"10": 10 * time.Minute, "60": horizon}

const defaultMinutes = "10"

// bars is the number of bars of a chart, for each span.
const bars = 60

func filterFrom(query url.Values) (f filter) {
	for i, name := range traitNames {
		f.traits[i] = query.Get(name)
	}
	f.Workload = query.Get("workload")
	f.Minutes = query.Get("minutes")
	if spans[f.Minutes] == 0 {
		f.Minutes = defaultMinutes
	}
	return f
}

// Address returns the address of the page with this filter.
func (f filter) Address() string {
	query := url.Values{}
	for i, name := range traitNames {
		query.Set(name, f.traits[i])
	}
	query.Set("workload", f.Workload)
	if f.Minutes != defaultMinutes {
		query.Set("minutes", f.Minutes)
	}
	maps.DeleteFunc(query, func(name string, _ []string) bool { return query.Get(name) == "" })
	return "/?" + query.Encode()
}

// AddressOf returns the address of the page with the same filter, but for one workload. An empty id
// means all workloads.
func (f filter) AddressOf(workload string) string {
	f.Workload = workload
	return f.Address()
}

// Chosen reports whether the filter excludes anything.
func (f filter) Chosen() bool { return f.traits != traits{} || f.Workload != "" }

// Everything returns the address of the page without a filter, for the same span.
func (f filter) Everything() string { return filter{Minutes: f.Minutes}.Address() }

func (f filter) admits(of traits) bool {
	for i, wanted := range f.traits {
		if wanted != "" && wanted != of[i] {
			return false
		}
	}
	return true
}

// barLength returns the time that one bar of the chart covers.
func (f filter) barLength() time.Duration { return spans[f.Minutes] / bars }

// start returns the beginning of the first bar. The last bar contains now.
func (f filter) start(now time.Time) time.Time {
	return now.Truncate(f.barLength()).Add(-(bars - 1) * f.barLength())
}
