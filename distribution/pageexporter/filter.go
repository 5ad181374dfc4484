// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"maps"
	"net/url"
	"time"
)

// filter is what somebody wants to see, as the page's address says it.
type filter struct {
	traits   traits // those that are not empty have to be the same
	Workload string // an id; empty: all workloads
	Minutes  string // how far back
}

// spans are how far back one can look.
var spans = map[string]time.Duration{"10": 10 * time.Minute, "60": horizon}

const defaultMinutes = "10"

// bars is how many of them a chart has, whatever its span.
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

// Address is that of the page with this filter.
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

// AddressOf is that of the page with one workload, or with all if it is empty, and otherwise the same filter.
func (f filter) AddressOf(workload string) string {
	f.Workload = workload
	return f.Address()
}

// Chosen says whether anything is left out.
func (f filter) Chosen() bool { return f.traits != traits{} || f.Workload != "" }

// Everything is the address of the page with nothing left out, for the same time.
func (f filter) Everything() string { return filter{Minutes: f.Minutes}.Address() }

func (f filter) admits(of traits) bool {
	for i, wanted := range f.traits {
		if wanted != "" && wanted != of[i] {
			return false
		}
	}
	return true
}

// barLength is the time that a bar of the chart stands for.
func (f filter) barLength() time.Duration { return spans[f.Minutes] / bars }

// start is the beginning of the first bar if the last one is that of now.
func (f filter) start(now time.Time) time.Time {
	return now.Truncate(f.barLength()).Add(-(bars - 1) * f.barLength())
}
