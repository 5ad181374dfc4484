// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// dashboard is what is needed of Grafana's.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct {
			Expr       string
			Datasource struct{ Type string }
		}
	}
	Templating struct {
		List []struct{ Type, Name, Query string }
	}
}

// chosen are the variables of a user who looks at the workload shop of the demo and at all
// Collectors.
var chosen = strings.NewReplacer(
	"$cluster", ".*", "$namespace", "demo", "$kind", "Deployment", "$workload", "shop", "$instance", ".*",
	"$__rate_interval", "1m", "$__range", "1h", "$__auto", "1m",
)

// mayBeEmpty are metrics of problems that no Collector here has.
var mayBeEmpty = set("otelcol_kube_events_checkpoint_failures", "otelcol_kube_events_owner_lookups_forbidden")

func set(values ...string) map[string]bool {
	all := map[string]bool{}
	for _, value := range values {
		all[value] = true
	}
	return all
}

// TestTheDashboards asks each query of the dashboards, those that fill its variables included.
func TestTheDashboards(t *testing.T) {
	t.Parallel()
	for _, path := range files(t, "deploy", "chart", "dashboards", "*.json") {
		var d dashboard
		decode(t, path, &d)
		require.NotEmpty(t, d.Panels)
		for _, variable := range d.Templating.List {
			if variable.Type == "query" {
				isAnswered(t, path, variable.Name, "prometheus", valuesOf(t, variable.Query))
			}
		}
		for _, panel := range d.Panels {
			require.NotEmpty(t, panel.Targets, panel.Title)
			for _, target := range panel.Targets {
				isAnswered(t, path, panel.Title, target.Datasource.Type, target.Expr)
			}
		}
	}
}

// labelValues is Grafana's own function for variables.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// valuesOf is the PromQL that has a series for each value that a variable may take.
func valuesOf(t *testing.T, query string) string {
	t.Helper()
	match := labelValues.FindStringSubmatch(query)
	require.NotNil(t, match, query)
	return "group by (" + match[2] + ") (" + match[1] + ")"
}

// isAnswered asks a query of all that it is for.
func isAnswered(t *testing.T, path, title, source, query string) {
	t.Helper()
	query = chosen.Replace(query)
	require.NotContains(t, query, "$", "%s has a variable without a value", title)
	asked := map[string]ask{"scraped": linesOf(all.scraped.series), "pushed": linesOf(all.pushed.series)}
	if source == "loki" {
		asked = map[string]ask{"loki": linesOf(all.loki.series)}
		if strings.HasPrefix(query, "{") {
			asked = map[string]ask{"loki": all.loki.messages}
		}
	}
	for name, ask := range asked {
		t.Run(filepath.Base(path)+" "+title+" "+name, func(t *testing.T) {
			t.Parallel()
			eventually(t, func() error {
				lines, err := ask(query)
				if err == nil && !mentions(query, mayBeEmpty) {
					err = hasAll(lines, query)
				}
				return err
			})
		})
	}
}

// labelsBy are the labels that a query sums by.
var labelsBy = regexp.MustCompile(`by \(([\w, ]+)\)`)

// hasAll returns an error unless there is an answer, with all labels that were asked for. The
// bounds of a histogram's buckets go into its quantile.
func hasAll(lines []string, query string) error {
	if len(lines) == 0 {
		return fmt.Errorf("%s returns nothing", query)
	}
	if match := labelsBy.FindStringSubmatch(query); match != nil {
		for _, label := range strings.Split(match[1], ", ") {
			if label != "le" && !strings.Contains(strings.Join(lines, "\n"), label+"=") {
				return fmt.Errorf("%s returns nothing that has the label %s:\n%s", query, label, strings.Join(lines, "\n"))
			}
		}
	}
	return nil
}

func mentions(query string, metrics map[string]bool) bool {
	for metric := range metrics {
		if strings.Contains(query, metric) {
			return true
		}
	}
	return false
}

// TestTheReceiversDashboardShowsAll: each of the receiver's own metrics is on it.
func TestTheReceiversDashboardShowsAll(t *testing.T) {
	t.Parallel()
	documentation, err := os.ReadFile(harness.InRepository("documentation.md"))
	require.NoError(t, err)
	shown, err := os.ReadFile(harness.InRepository("deploy", "chart", "dashboards", "receiver.json"))
	require.NoError(t, err)
	metrics := regexp.MustCompile(`(?m)^### (otelcol_\w+)$`).FindAllStringSubmatch(string(documentation), -1)
	require.NotEmpty(t, metrics)
	for _, metric := range metrics {
		assert.Regexp(t, metric[1]+`(_bucket)?\{`, string(shown))
	}
}
