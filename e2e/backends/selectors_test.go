// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var (
	streamSelector = regexp.MustCompile(`\{\s*\w+\s*(?:=|!)[^{}]*\}`)
	streamMatcher  = regexp.MustCompile("(\\w+)\\s*(=~|!~|!=|=)\\s*(?:\"([^\"]*)\"|`([^`]*)`)")
)

// readsATenant reports whether a selector lets all streams through that have its labels.
func readsATenant(selector string) bool {
	matchers := streamMatcher.FindAllStringSubmatch(selector, -1)
	return !slices.ContainsFunc(matchers, func(m []string) bool {
		return strings.HasPrefix(m[2], "=") && !slices.Contains([]string{"", ".+", ".*"}, m[3]+m[4])
	})
}

func TestSelectorsThatReadATenant(t *testing.T) {
	t.Parallel()
	for selector, expected := range map[string]bool{
		`{service_name=~".+"}`:                               true,
		`{service_name=~".+", k8s_namespace_name!="demo"}`:   true,
		`{log_source="kube_events"}`:                         false,
		"{log_source=`kube_events`, k8s_cluster_name=~`.*`}": false,
		`{service_name=~".+", k8s_namespace_name="demo"}`:    false,
	} {
		assert.Equal(t, expected, readsATenant(selector), selector)
	}
}

// TestNoQueryReadsATenant: each query of the dashboards, their links, the rules and the pages selects
// streams by a value.
func TestNoQueryReadsATenant(t *testing.T) {
	t.Parallel()
	for place, queries := range queriesOfLoki(t) {
		require.NotEmpty(t, queries, place)
		for _, query := range queries {
			selectors := streamSelector.FindAllString(query, -1)
			require.NotEmpty(t, selectors, query)
			for _, selector := range selectors {
				assert.False(t, readsATenant(selector), "%s: %s", place, query)
			}
		}
	}
}

// queriesOfLoki are those of the repository, by what has them.
func queriesOfLoki(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, q := range all.page.queries {
		if q.language == "logql" {
			found["docs/queries.md"] = append(found["docs/queries.md"], q.text)
		}
	}
	for _, rule := range lokiAlerts(t) {
		found["deploy/chart/rules/loki"] = append(found["deploy/chart/rules/loki"], rule.Expr)
	}
	for _, line := range strings.Split(harness.Read(t, "examples", "backends", "README.md"), "\n") {
		if _, query, isQuery := strings.Cut(line, "'query="); isQuery {
			found["examples/backends"] = append(found["examples/backends"], query)
		}
	}
	for _, path := range files(t, "deploy", "chart", "dashboards", "*.json") {
		if name := filepath.Base(path); name != "receiver.json" {
			found[name] = queriesOfDashboard(t, path)
		}
	}
	return found
}

// queriesOfDashboard are the LogQL of its panels and their links, with the defaults of its variables.
func queriesOfDashboard(t *testing.T, path string) (found []string) {
	t.Helper()
	var d dashboard
	decode(t, path, &d)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if target.Datasource.Type == "loki" {
				found = append(found, d.interpolate(target.Expr, "loki", nil))
			}
		}
		links, err := p.explored()
		require.NoError(t, err)
		for _, query := range links {
			found = append(found, d.interpolate(ofRow.ReplaceAllString(query, "row"), "loki", nil))
		}
	}
	return found
}
