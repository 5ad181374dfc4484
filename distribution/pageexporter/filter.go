// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// filter is the selection in the page's address.
type filter struct {
	traits   traits // values that are not empty must match
	Warnings bool   // only warnings
	// Name is a part of the name of the object or of one of its owners, in lower case.
	Name     string
	Workload string // an id; empty: all workloads
	Minutes  string // how far back the page looks
}

// onlyWarnings is the value of the parameter `warnings` in the page's address.
const onlyWarnings = "only"

// choices are the traits that a viewer can choose, with their names in the page's address.
var choices = []struct {
	trait       int
	name, label string
}{
	{traitNamespace, "namespace", "Namespace"},
	{traitReason, "reason", "Reason"},
	{traitManifest, "manifest", "Tilt manifest"},
}

// spans are the times that the page can look back.
var spans = map[string]time.Duration{"10": 10 * time.Minute, "60": horizon}

const defaultMinutes = "10"

// bars is the number of bars of a chart, for each span.
const bars = 60

func filterFrom(query url.Values) (f filter) {
	for _, c := range choices {
		f.traits[c.trait] = query.Get(c.name)
	}
	f.Warnings = query.Get("warnings") == onlyWarnings
	f.Name = strings.ToLower(strings.TrimSpace(cut(query.Get("name"), maxName)))
	f.Workload = query.Get("workload")
	f.Minutes = query.Get("minutes")
	if spans[f.Minutes] == 0 {
		f.Minutes = defaultMinutes
	}
	return f
}

// Address returns the address of the page with this filter. It is relative: the page may be behind
// a proxy that serves it under a path.
func (f filter) Address() string {
	query := url.Values{}
	for _, c := range choices {
		query.Set(c.name, f.traits[c.trait])
	}
	if f.Warnings {
		query.Set("warnings", onlyWarnings)
	}
	query.Set("name", f.Name)
	query.Set("workload", f.Workload)
	if f.Minutes != defaultMinutes {
		query.Set("minutes", f.Minutes)
	}
	maps.DeleteFunc(query, func(name string, _ []string) bool { return query.Get(name) == "" })
	if len(query) == 0 {
		return "."
	}
	return "?" + query.Encode()
}

// AddressOf returns the address of the page with the same filter, but for one workload. An empty id
// means all workloads.
func (f filter) AddressOf(workload string) string {
	f.Workload = workload
	return f.Address()
}

// Chosen reports whether the filter excludes anything.
func (f filter) Chosen() bool { return f != filter{Minutes: f.Minutes} }

// Everything returns the address of the page without a filter, for the same span.
func (f filter) Everything() string { return filter{Minutes: f.Minutes}.Address() }

func (f filter) admits(of traits) bool {
	if f.Warnings && !of.isWarning() {
		return false
	}
	for i, wanted := range f.traits {
		if wanted != "" && wanted != of[i] {
			return false
		}
	}
	return true
}

// isNamed reports whether one of the objects has the name that the filter looks for.
func (f filter) isNamed(objects ...object) bool {
	return f.Name == "" || slices.ContainsFunc(objects, func(o object) bool {
		return strings.Contains(strings.ToLower(o.Name), f.Name)
	})
}

// barLength returns the time that one bar of the chart covers.
func (f filter) barLength() time.Duration { return spans[f.Minutes] / bars }

// start returns the beginning of the first bar. The last bar contains now.
func (f filter) start(now time.Time) time.Time {
	return now.Truncate(f.barLength()).Add(-(bars - 1) * f.barLength())
}
