// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// requirement is what Grafana needs for a dashboard, as in its own exports.
type requirement struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// panelNames are Grafana's names of the types of panels.
var panelNames = map[string]string{"logs": "Logs", "stat": "Stat", "table": "Table", "timeseries": "Time series"}

// requirements returns what a dashboard requires. docs/queries.md names the version of Grafana.
func requirements(v variant, d dashboard.Dashboard) []requirement {
	all := []requirement{
		{"grafana", "grafana", "Grafana", "11.5.0"},
		{"datasource", *metricsSource.Type, "Prometheus", "1.0.0"},
	}
	if v.loki && *d.Uid != receiverUID {
		all = append(all, requirement{"datasource", *logsSource.Type, "Loki", "1.0.0"})
	}
	for _, p := range d.Panels {
		if p.Panel == nil {
			continue
		}
		needed := requirement{"panel", p.Panel.Type, panelNames[p.Panel.Type], ""}
		if !slices.Contains(all, needed) {
			all = append(all, needed)
		}
	}
	return all
}
