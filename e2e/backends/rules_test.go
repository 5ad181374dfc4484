// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
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
		{"check", "config", harness.InRepository("examples", "backends", "prometheus.yaml")},
	} {
		report, err := exec.Command(backend("promtool"), arguments...).CombinedOutput()
		require.NoError(t, err, "%s", report)
	}
}

// alert is a rule that alerts, or that records.
type alert struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

// alerts are those of files below deploy/chart/rules.
func alerts(t *testing.T, pattern ...string) (all []alert) {
	t.Helper()
	for _, path := range files(t, append([]string{"deploy", "chart", "rules"}, pattern...)...) {
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

// rulesInGroup returns the rules of a group of Prometheus.
func rulesInGroup(t *testing.T, group string) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	decode(t, harness.InRepository("deploy", "chart", "rules", "kube-events.yaml"), &file)
	for _, g := range file.Groups {
		if g.Name == group {
			return g.Rules
		}
	}
	require.Fail(t, "no group "+group)
	return nil
}

// runbooks is the page with a section for each alert.
const runbooks = "https://github.com/kubeevents/kubeeventsreceiver/blob/main/docs/troubleshooting.md#"

// TestEachAlertIsExplained: it has a description, a severity, and a section in docs/troubleshooting.md. An
// alert of Loki leads to the section of the same problem, and docs/queries.md lists it.
func TestEachAlertIsExplained(t *testing.T) {
	t.Parallel()
	troubleshooting, queries := strings.ToLower(harness.Read(t, "docs", "troubleshooting.md")), harness.Read(t, "docs", "queries.md")
	ofPrometheus, ofLoki := alerts(t, "*.yaml"), alerts(t, "loki", "*.yaml")
	for _, a := range ofPrometheus {
		assert.Equal(t, runbooks+strings.ToLower(a.Alert), a.Annotations["runbook_url"])
	}
	for _, a := range ofLoki {
		assert.Contains(t, queries, "| `"+a.Alert+"` |")
	}
	for _, a := range append(ofPrometheus, ofLoki...) {
		assert.NotEmpty(t, a.Annotations["summary"], a.Alert)
		assert.NotEmpty(t, a.Annotations["description"], a.Alert)
		assert.Contains(t, troubleshooting, "\n### "+strings.TrimPrefix(a.Annotations["runbook_url"], runbooks)+"\n", a.Alert)
		assert.Contains(t, []string{"info", "warning"}, a.Labels["severity"], a.Alert)
	}
}

// TestNoQueryReadsATenant: each query of Loki selects streams by a value. The generator of the dashboards
// tests theirs.
func TestNoQueryReadsATenant(t *testing.T) {
	t.Parallel()
	queries := map[string]string{}
	for _, a := range alerts(t, "loki", "*.yaml") {
		queries[a.Alert] = a.Expr
	}
	for _, q := range all.page.queries {
		if q.language == "logql" {
			queries[q.text] = q.text
		}
	}
	for name, text := range queries {
		for _, selector := range streamSelector.FindAllString(text, -1) {
			assert.Regexp(t, "\\w=[\"`]", selector, name)
		}
		assert.Regexp(t, streamSelector, text, name)
	}
}

// streamSelector is what selects streams in a query of Loki.
var streamSelector = regexp.MustCompile(`\{\s*\w+\s*(?:=|!)[^{}]*\}`)

// TestEachAlertIsTested: promtool checks when it fires, and that it has the labels by which alerts are
// routed. No label is empty.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	for _, path := range files(t, "deploy", "chart", "rules", "tests", "*.yaml") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		tests.Write(text)
	}
	for _, a := range alerts(t, "*.yaml") {
		assert.Regexp(t, `\{alertname: `+a.Alert+`, eval_time: \w+\}`, tests.String(), "no test has it keep silent")
		assert.Regexp(t, `- alertname: `+a.Alert+`\n +eval_time: \w+\n +exp_alerts:(?: &\w+)?\n +- exp_labels: \{severity: \w+, cluster: `, tests.String())
	}
	assert.NotContains(t, tests.String(), `: ""`)
}

// reasonsInRule are the reasons of a matcher of a rule.
var reasonsInRule = regexp.MustCompile(`k8s_event_reason(?:=~?|!~)"([^"]*)"`)

// reasonsOf returns the reasons that a rule names.
func reasonsOf(expr string) (reasons []string) {
	for _, match := range reasonsInRule.FindAllStringSubmatch(expr, -1) {
		reasons = append(reasons, strings.Split(match[1], "|")...)
	}
	return reasons
}

// ofProgress are Normal reasons with which a problem ends.
var ofProgress = []string{"ProvisioningSucceeded", "Scheduled", "Started", "SuccessfulCreate"}

// TestTheGenericAlertLeavesOutWhatOthersKnow: KubeEventsWarningPersists is about all warnings except those
// that another alert names, those that the page does not count as problems, and Unhealthy.
func TestTheGenericAlertLeavesOutWhatOthersKnow(t *testing.T) {
	t.Parallel()
	var expected, actual []string
	for _, rule := range rulesInGroup(t, "kube-events-workloads") {
		if rule.Alert == "KubeEventsWarningPersists" {
			actual = append(actual, reasonsOf(rule.Expr)...)
		} else {
			expected = append(expected, reasonsOf(rule.Expr)...)
		}
	}
	expected = slices.DeleteFunc(expected, func(reason string) bool { return slices.Contains(ofProgress, reason) })
	for _, rule := range rulesInGroup(t, "kube-events") {
		if rule.Record == "workload_reason_object:k8s_event_occurrences:increase5m" {
			actual = append(actual, reasonsOf(rule.Expr)...)
		}
	}
	expected = append(expected, "Unhealthy")
	_, harmless, found := strings.Cut(harness.Read(t, "docs", "problems.md"), "No problem: ")
	require.True(t, found)
	harmless, _, _ = strings.Cut(harmless, ", and what ")
	for _, match := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(harmless, -1) {
		expected = append(expected, match[1])
	}
	slices.Sort(expected)
	slices.Sort(actual)
	assert.Equal(t, slices.Compact(expected), slices.Compact(actual))
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

// metricInRule is the name of a metric of the receiver or of the Collector, with the part that it has only
// if it is pushed as a group.
var metricInRule = regexp.MustCompile(`\botelcol_\w+(?:\(_\w+\)\?(?:_sum|_count)?)?|\bk8s_event_occurrences_total\b`)

// doNotExist are metrics of problems that no Collector here has.
var doNotExist = map[string]bool{
	"otelcol_exporter_enqueue_failed_log_records(_total)?": true,
	"otelcol_kube_events_checkpoint_failures(_total)?":     true,
	"otelcol_kube_events_owner_lookups_forbidden(_total)?": true,
	"otelcol_kube_incidents_records_dropped(_total)?":      true,
}

// TestTheMetricsOfTheRulesExist: a rule about a metric with a wrong name would never alert.
func TestTheMetricsOfTheRulesExist(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, a := range alerts(t, "*.yaml") {
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
				found, err := all.scraped.series(fmt.Sprintf("{__name__=~%q}", name))
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
