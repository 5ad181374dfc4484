// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/logs"
	"github.com/grafana/grafana-foundation-sdk/go/loki"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The data sources are variables, because their names differ between installations of Grafana.
var (
	metricsSource = common.DataSourceRef{Type: new("prometheus"), Uid: new("${metrics}")}
	logsSource    = common.DataSourceRef{Type: new("loki"), Uid: new("${logs}")}
)

const (
	height = 8
	whole  = 24 // columns
	half   = whole / 2
	third  = whole / 3
)

// newDashboard returns a dashboard with a variable for each data source.
func newDashboard(uid, title, description string, sources ...common.DataSourceRef) *dashboard.DashboardBuilder {
	d := dashboard.NewDashboardBuilder(title).Uid(uid).Description(description).Tags([]string{"kubernetes", "kube_events"}).
		Time("now-1h", "now").Refresh("30s").Tooltip(dashboard.DashboardCursorSyncCrosshair).Editable()
	for _, source := range sources {
		name := strings.Trim(*source.Uid, "${}")
		d.WithVariable(dashboard.NewDatasourceVariableBuilder(name).Label("Data source of " + name).Type(*source.Type))
	}
	return d
}

// choice returns a variable to choose one value of a label of a metric.
func choice(name, label, metric, from string) *dashboard.QueryVariableBuilder {
	query := "label_values(" + metric + ", " + from + ")"
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(metricsSource).
		Query(dashboard.StringOrMap{String: new(query)}).Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
}

// choices returns a variable to choose several values or all. All includes series without the
// label.
func choices(name, label, metric, from string) *dashboard.QueryVariableBuilder {
	return choice(name, label, metric, from).Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{String: new("All")},
			Value: dashboard.StringOrArrayOfString{String: new("$__all")},
		})
}

// target is a query with the legend of its results.
type target struct{ query, legend string }

// lines returns a panel of metrics over time.
func lines(title, description, unit string, width uint32, targets ...target) *timeseries.PanelBuilder {
	panel := timeseries.NewPanelBuilder().Title(title).Description(description).Datasource(metricsSource).
		Unit(unit).Min(0).Height(height).Span(width).FillOpacity(10)
	for i, t := range targets {
		panel.WithTarget(prometheus.NewDataqueryBuilder().Expr(t.query).LegendFormat(t.legend).RefId(refID(i)).Range().Datasource(metricsSource))
	}
	return panel
}

// refID returns Grafana's name of a query in a panel: A, B, …
func refID(i int) string { return string(rune('A' + i)) }

// bars returns a panel of counted logs over time.
func bars(title, description, query, legend string) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().Title(title).Description(description).Datasource(logsSource).
		Unit("short").Decimals(0).Height(height).Span(whole).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).
		WithTarget(ofLogs(query, "range").LegendFormat(legend))
}

// rows returns a panel with a row for each result of a query of logs, and a column for each label.
func rows(title, description, query string, columns ...column) *table.PanelBuilder {
	names, places := map[string]string{"Value #A": "Occurrences", "Value": "Occurrences"}, map[string]int{}
	for i, c := range columns {
		names[c.label], places[c.label] = c.title, i
	}
	return table.NewPanelBuilder().Title(title).Description(description).Datasource(logsSource).
		Height(height).Span(half).
		WithTarget(ofLogs(query, "instant")).
		WithTransformation(dashboard.DataTransformerConfig{Id: "labelsToFields", Options: map[string]any{"mode": "columns"}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true}, "renameByName": names, "indexByName": places,
		}})
}

type column struct{ label, title string }

// messages returns a panel with log lines.
func messages(title, description, query string) *logs.PanelBuilder {
	return logs.NewPanelBuilder().Title(title).Description(description).Datasource(logsSource).
		Height(2 * height).Span(whole).ShowTime(true).WrapLogMessage(true).EnableLogDetails(true).
		SortOrder(common.LogsSortOrderDescending).
		WithTarget(ofLogs(query, "range"))
}

func ofLogs(query, kind string) *loki.DataqueryBuilder {
	return loki.NewDataqueryBuilder().Expr(query).QueryType(kind).RefId(refID(0)).Datasource(logsSource)
}
