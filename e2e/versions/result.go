// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// result is what was found out about one version of Kubernetes.
type result struct {
	Kubernetes string            `json:"kubernetes"`
	Store      string            `json:"store,omitempty"` // what keeps the cluster's data, if it is not etcd
	Commit     string            `json:"commit"`          // of the receiver
	Date       string            `json:"date"`
	Features   map[string]bool   `json:"features"` // by their names
	Areas      map[string]counts `json:"areas"`    // by their titles
	Failed     []string          `json:"failed,omitempty"`
	Skipped    []string          `json:"skipped,omitempty"`
	// Repeated has the tests that passed only when they ran again.
	Repeated []string `json:"repeated,omitempty"`
}

// counts are numbers of tests. Each case of a table counts as one test.
type counts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed,omitempty"`
	Skipped int `json:"skipped,omitempty"`
}

// String returns a cell of the page.
func (c counts) String() string {
	text := fmt.Sprint(c.Passed, " passed")
	if c.Failed > 0 {
		text += fmt.Sprintf(", **%d failed**", c.Failed)
	}
	if c.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", c.Skipped)
	}
	return text
}

// count counts the tests of each area. It returns an error if a test did not run.
func (r *result) count(ran ran, areas map[string]string) error {
	for name := range areas {
		if ran.outcomes[name] == "" {
			return fmt.Errorf("the test %s did not run", name)
		}
	}
	r.Areas, r.Repeated = map[string]counts{}, ran.repeated
	for _, name := range slices.Sorted(maps.Keys(ran.outcomes)) {
		if ran.hasSubtests(name) {
			continue
		}
		top, _, _ := strings.Cut(name, "/")
		c := r.Areas[areas[top]]
		switch ran.outcomes[name] {
		case "pass":
			c.Passed++
		case "skip":
			c.Skipped++
			r.Skipped = append(r.Skipped, name)
		default:
			c.Failed++
			r.Failed = append(r.Failed, name)
		}
		r.Areas[areas[top]] = c
	}
	return nil
}

// hasSubtests reports whether the test is a table of others. A table that failed although all its
// cases passed counts as one test.
func (o outcomes) hasSubtests(name string) bool {
	var subtests []string
	for other := range o {
		if strings.HasPrefix(other, name+"/") {
			subtests = append(subtests, o[other])
		}
	}
	return len(subtests) > 0 && (o[name] != "fail" || slices.Contains(subtests, "fail"))
}

// failure returns an error if a test failed.
func (r *result) failure() error {
	if len(r.Failed) == 0 {
		return nil
	}
	return fmt.Errorf("with Kubernetes %s, these tests fail: %s", r.Title(), strings.Join(r.Failed, ", "))
}

// Title returns the title of the column.
func (r *result) Title() string {
	if r.Store == "" {
		return r.Kubernetes
	}
	return r.Kubernetes + " with " + r.Store
}

// replaces reports whether the result is a newer one of the same minor version and program.
func (r *result) replaces(other result) bool {
	minor := func(version string) string { return version[:strings.LastIndex(version, ".")] }
	program := func(store string) string { name, _, _ := strings.Cut(store, " "); return name }
	return minor(r.Kubernetes) == minor(other.Kubernetes) && program(r.Store) == program(other.Store)
}

// All returns the counts of all areas together.
func (r *result) All() (all counts) {
	for _, c := range r.Areas {
		all.Passed += c.Passed
		all.Failed += c.Failed
		all.Skipped += c.Skipped
	}
	return all
}
