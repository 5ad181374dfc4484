// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

func files(t *testing.T, pattern ...string) []string {
	t.Helper()
	paths, err := filepath.Glob(harness.InRepository(pattern...))
	require.NoError(t, err)
	require.NotEmpty(t, paths, pattern)
	return paths
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), path)
}

// TestTheRulesAsPromtoolTestsThem runs deploy/chart/rules/tests, over simulated hours and days.
func TestTheRulesAsPromtoolTestsThem(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{
		append([]string{"check", "rules", "--lint-fatal"}, files(t, "deploy", "chart", "rules", "*.yaml")...),
		append([]string{"test", "rules"}, files(t, "deploy", "chart", "rules", "tests", "*.yaml")...),
	} {
		report, err := exec.Command(backend("promtool"), arguments...).CombinedOutput()
		require.NoError(t, err, "%s", report)
	}
}

// alert is a rule that alerts.
type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// alerts are those of deploy/chart/rules.
func alerts(t *testing.T) (all []alert) {
	t.Helper()
	for _, path := range files(t, "deploy", "chart", "rules", "*.yaml") {
		var file struct {
			Groups []struct{ Rules []alert }
		}
		decode(t, path, &file)
		for _, group := range file.Groups {
			for _, rule := range group.Rules {
				if rule.Alert != "" {
					all = append(all, rule)
				}
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// TestEachAlertIsExplained: it has a description, a severity, and a section in
// docs/troubleshooting.md, and docs/queries.md lists it.
func TestEachAlertIsExplained(t *testing.T) {
	t.Parallel()
	troubleshooting, queries := harness.Read(t, "docs", "troubleshooting.md"), harness.Read(t, "docs", "queries.md")
	for _, a := range alerts(t) {
		assert.NotEmpty(t, a.Annotations["summary"], a.Alert)
		assert.NotEmpty(t, a.Annotations["description"], a.Alert)
		assert.Equal(t, "https://github.com/kubeevents/kubeeventsreceiver/blob/main/docs/troubleshooting.md#"+strings.ToLower(a.Alert),
			a.Annotations["runbook_url"], a.Alert)
		assert.Contains(t, troubleshooting, "\n### "+a.Alert+"\n")
		assert.Contains(t, queries, "| `"+a.Alert+"` |")
		assert.Contains(t, []string{"info", "warning"}, a.Labels["severity"], a.Alert)
	}
}

// ofNodes are alerts on objects without a namespace.
var ofNodes = map[string]bool{"KubeEventsEvictionThresholdMet": true, "KubeEventsSystemOOM": true}

// TestEachAlertIsTested: for what it fires, and for what not. Some test has it fire with both labels
// that alerts are routed by, and no label is ever empty.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	fires, routed, silent := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, path := range files(t, "deploy", "chart", "rules", "tests", "*.yaml") {
		var file struct {
			Tests []struct {
				Alerts []struct {
					Name   string `json:"alertname"`
					Alerts []struct {
						Labels map[string]string `json:"exp_labels"`
					} `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			}
		}
		decode(t, path, &file)
		for _, test := range file.Tests {
			for _, tested := range test.Alerts {
				silent[tested.Name] = silent[tested.Name] || len(tested.Alerts) == 0
				for _, expected := range tested.Alerts {
					fires[tested.Name] = true
					routed[tested.Name] = routed[tested.Name] ||
						expected.Labels["cluster"] != "" && (expected.Labels["namespace"] != "") != ofNodes[tested.Name]
					assert.NotContains(t, slices.Collect(maps.Values(expected.Labels)), "", tested.Name)
				}
			}
		}
	}
	for _, a := range alerts(t) {
		assert.True(t, fires[a.Alert], "no test has %s fire", a.Alert)
		assert.True(t, routed[a.Alert], "no test has %s fire with the labels cluster and, if there is one, namespace", a.Alert)
		assert.True(t, silent[a.Alert], "no test has %s keep silent", a.Alert)
	}
}

// TestTheRulesOnRealMetrics: each can be evaluated, and each that records has something to record.
func TestTheRulesOnRealMetrics(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*prometheus{"scraped": all.scraped, "pushed": all.pushed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eventually(t, server.evaluatesItsRules)
		})
	}
}

// metricInRule is the name of a metric of the receiver or of the Collector, without the suffix that it
// has only if it is pushed.
var metricInRule = regexp.MustCompile(`\botelcol_\w+|\bk8s_event_occurrences_total\b`)

// doNotExist are metrics of problems that no Collector here has.
var doNotExist = map[string]bool{
	"otelcol_kube_events_checkpoint_failures":     true,
	"otelcol_kube_events_owner_lookups_forbidden": true,
}

// TestTheMetricsOfTheRulesExist: a rule about a metric with a wrong name would never alert.
func TestTheMetricsOfTheRulesExist(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, a := range alerts(t) {
		for _, name := range metricInRule.FindAllString(a.Expr, -1) {
			names[name] = true
		}
	}
	require.Greater(t, len(names), 10)
	for name := range names {
		if doNotExist[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eventually(t, func() error {
				found, err := all.scraped.series(name)
				if err == nil && len(found) == 0 {
					err = fmt.Errorf("%s does not exist", name)
				}
				return err
			})
		})
	}
}

// evaluatesItsRules returns an error unless all rules are well.
func (p *prometheus) evaluatesItsRules() error {
	rules, err := p.rules()
	if err != nil {
		return err
	}
	if len(rules) == 0 {
		return fmt.Errorf("%s has no rules", p.url)
	}
	for _, r := range rules {
		if r.Health != "ok" {
			return fmt.Errorf("%s: %s: %s", r.Name, r.Health, r.LastError)
		}
		if r.Type != "recording" {
			continue
		}
		recorded, err := p.series(r.Name)
		if err != nil {
			return err
		}
		if len(recorded) == 0 {
			return fmt.Errorf("nothing is recorded as %s", r.Name)
		}
	}
	return nil
}
