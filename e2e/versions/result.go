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
	Kubernetes string
	Commit     string          // that was tested
	Date       string          // of the test
	Store      string          // what keeps the cluster's data, if it is not etcd
	Features   map[string]bool // by their names
	Tests      counts
	Failed     []string
	Skipped    []string
	// Repeated has the tests that passed only when they ran again.
	Repeated []string
}

// counts are numbers of tests. Each case of a table counts as one test.
type counts struct{ Passed, Failed, Skipped int }

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

// count counts the tests.
func (r *result) count(ran ran) {
	r.Repeated = ran.repeated
	for _, name := range slices.Sorted(maps.Keys(ran.outcomes)) {
		switch {
		case ran.hasSubtests(name):
		case ran.outcomes[name] == "pass":
			r.Tests.Passed++
		case ran.outcomes[name] == "skip":
			r.Tests.Skipped++
			r.Skipped = append(r.Skipped, name)
		default:
			r.Tests.Failed++
			r.Failed = append(r.Failed, name)
		}
	}
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
