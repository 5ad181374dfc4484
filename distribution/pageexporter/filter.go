// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"errors"
	"fmt"
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
	// Name is a part of the name of the object or of one of its owners, in lower case. Kind is the kind
	// of this object, with its group: deployment.apps.
	Name, Kind string
	Text       string // a part of the message, in lower case
	Workload   string // an id; empty: all workloads
	Minutes    string // how far back the page looks
	// From and Until are the zoom: the page shows the time between them. Both are zero without a zoom.
	From, Until time.Time
	// oldest is the time of the oldest record that the page has.
	oldest time.Time
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

const defaultMinutes = "60"

func filterFrom(query url.Values) (f filter) {
	for _, c := range choices {
		f.traits[c.trait] = query.Get(c.name)
	}
	f.Warnings = query.Get("warnings") == onlyWarnings
	f.Name = strings.ToLower(strings.TrimSpace(cut(query.Get("name"), maxName)))
	f.Text = strings.ToLower(strings.TrimSpace(cut(query.Get("text"), maxName)))
	f.Kind = query.Get("kind")
	f.From, f.Until = zoomFrom(query)
	f.Workload = query.Get("workload")
	f.Minutes = query.Get("minutes")
	if spans[f.Minutes] == 0 {
		f.Minutes = defaultMinutes
	}
	return f
}

// invalid says which parameter of the API's address has no meaning, and what it may be. The page
// shows its default then.
func invalid(query url.Values) error {
	known := parameters()
	for name := range query {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%q is no parameter; there are: %s", cut(name, maxName), strings.Join(known, ", "))
		}
	}
	if minutes := query.Get("minutes"); minutes != "" && spans[minutes] == 0 {
		return fmt.Errorf("minutes is %q: it may be 10 or 60", cut(minutes, maxName))
	}
	if _, until := zoomFrom(query); until.IsZero() && (query.Has("from") || query.Has("until")) {
		return errors.New("from and until are two times such as 2026-01-02T15:04:05Z, at most one hour apart: give both, the earlier one as from")
	}
	return nil
}

// parameters returns the names of all parameters of the page's address and of the API.
func parameters() []string {
	names := []string{"from", "kind", "minutes", "name", "text", "until", "warnings", "workload"}
	for _, c := range choices {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}

// Address returns the address of the page with this filter. It is relative: the page may be behind
// a proxy that serves it under a path.
func (f filter) Address() string { return addressOf(f.query()) }

// query returns the parameters of the page's address.
func (f filter) query() url.Values {
	query := url.Values{"name": {f.Name}, "kind": {f.Kind}, "text": {f.Text}, "workload": {f.Workload}}
	for _, c := range choices {
		query.Set(c.name, f.traits[c.trait])
	}
	if f.Warnings {
		query.Set("warnings", onlyWarnings)
	}
	if f.Zoomed() {
		query.Set("from", f.From.Format(time.RFC3339))
		query.Set("until", f.Until.Format(time.RFC3339))
	}
	if f.Minutes != defaultMinutes {
		query.Set("minutes", f.Minutes)
	}
	return query
}

func addressOf(query url.Values) string {
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
func (f filter) Chosen() bool { return f != filter{Minutes: f.Minutes, oldest: f.oldest} }

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

// isNamed reports whether one of the objects has the name and the kind that the filter looks for.
func (f filter) isNamed(objects ...object) bool {
	return f.Name == "" && f.Kind == "" || slices.ContainsFunc(objects, func(o object) bool {
		return (f.Kind == "" || f.Kind == o.kind()) && strings.Contains(strings.ToLower(o.Name), f.Name)
	})
}
