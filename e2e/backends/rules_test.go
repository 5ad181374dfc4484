// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// TestEachAlertIsTested: for what it fires, and for what not.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, path := range files(t, "deploy", "chart", "rules", "tests", "*.yaml") {
		var file struct {
			Tests []struct {
				Alerts []struct {
					Name   string           `json:"alertname"`
					Alerts []map[string]any `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			}
		}
		decode(t, path, &file)
		for _, test := range file.Tests {
			for _, alert := range test.Alerts {
				fires[alert.Name] = fires[alert.Name] || len(alert.Alerts) > 0
				silent[alert.Name] = silent[alert.Name] || len(alert.Alerts) == 0
			}
		}
	}
	for _, path := range files(t, "deploy", "chart", "rules", "*.yaml") {
		var file struct {
			Groups []struct{ Rules []struct{ Alert string } }
		}
		decode(t, path, &file)
		for _, group := range file.Groups {
			for _, rule := range group.Rules {
				if rule.Alert != "" {
					assert.True(t, fires[rule.Alert], "no test has %s fire", rule.Alert)
					assert.True(t, silent[rule.Alert], "no test has %s keep silent", rule.Alert)
				}
			}
		}
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
