// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/logs"
	"github.com/grafana/grafana-foundation-sdk/go/loki"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// target is a query of metrics over time, with the legend of its results.
type target struct{ query, legend string }

// lines returns a panel of metrics over time.
func lines(title, description, unit string, targets ...target) *timeseries.PanelBuilder {
	panel := timeseries.NewPanelBuilder().Title(title).Description(description).Datasource(metricsSource).
		Unit(unit).Min(0).FillOpacity(10).Tooltip(ofAllSeries()).ColorScheme(byName())
	for i, t := range targets {
		panel.WithTarget(prometheus.NewDataqueryBuilder().Expr(t.query).LegendFormat(t.legend).RefId(refID(i)).Range().Datasource(metricsSource))
	}
	return panel
}

// bars returns a panel of occurrences over time. A bar is for at least a minute, which has several
// scrapes.
func bars(title, description, query, legend string) *timeseries.PanelBuilder {
	return stacked(lines(title, description, units.Short, target{query, legend})).Interval("1m")
}

// barsOfLogs returns the same, counted from logs.
func barsOfLogs(title, description, query, legend string) *timeseries.PanelBuilder {
	return stacked(lines(title, description, units.Short)).Datasource(logsSource).WithTarget(ofLogs(query, "range").LegendFormat(legend))
}

func stacked(panel *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return panel.Decimals(0).DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).LineWidth(0).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// ofAllSeries returns a tooltip with the series that have occurrences, the largest first.
func ofAllSeries() *common.VizTooltipOptionsBuilder {
	return common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending).HideZeros(true)
}

// byName gives a series its color by its name, so that a reason has the same color everywhere.
func byName() *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassicByName)
}

// refID returns Grafana's name of a query in a panel: A, B, …
func refID(i int) string { return string(rune('A' + i)) }

// limit is a value from which on a number has a color.
type limit struct {
	from  float64
	color string
}

func thresholds(base string, limits ...limit) *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{{Color: base}}
	for _, l := range limits {
		steps = append(steps, dashboard.Threshold{Value: &l.from, Color: l.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// number returns a panel with one number for the time range.
func number(title, description, unit, query string, colors *dashboard.ThresholdsConfigBuilder) *stat.PanelBuilder {
	return newNumber(title, description, unit, colors).Datasource(metricsSource).
		WithTarget(prometheus.NewDataqueryBuilder().Expr(query).RefId(refID(0)).Instant().Datasource(metricsSource))
}

// numberOfLogs returns the same, counted from logs.
func numberOfLogs(title, description, query string, colors *dashboard.ThresholdsConfigBuilder) *stat.PanelBuilder {
	return newNumber(title, description, units.Short, colors).Datasource(logsSource).NoValue("0").WithTarget(ofLogs(query, "instant"))
}

func newNumber(title, description, unit string, colors *dashboard.ThresholdsConfigBuilder) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Description(description).Unit(unit).Thresholds(colors).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).TextMode(common.BigValueTextModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// problems is for numbers that should be 0, and happens for numbers that need no attention.
func problems() *dashboard.ThresholdsConfigBuilder {
	return thresholds("green", limit{1, warningColor})
}
func happens() *dashboard.ThresholdsConfigBuilder { return thresholds(normalColor) }

// column is a column of a table, with the label whose values it has. A click on a cell opens a menu
// of its links.
type column struct {
	label, title string
	links        []cellLink
}

const (
	countColumn = "Occurrences"
	typeColumn  = "Type"
)

// rows returns a table with a row for each result of a query of metrics, those with the most
// occurrences first.
func rows(title, description, query string, columns ...column) *table.PanelBuilder {
	return newTable(title, description, columns).Datasource(metricsSource).
		WithTarget(prometheus.NewDataqueryBuilder().Expr(query).RefId(refID(0)).Instant().Format(prometheus.PromQueryFormatTable).Datasource(metricsSource)).
		WithTransformation(organized(columns))
}

// rowsOfLogs returns the same for a query of logs.
func rowsOfLogs(title, description, query string, columns ...column) *table.PanelBuilder {
	return newTable(title, description, columns).Datasource(logsSource).WithTarget(ofLogs(query, "instant")).
		WithTransformation(dashboard.DataTransformerConfig{Id: "labelsToFields", Options: map[string]any{"mode": "columns"}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(organized(columns))
}

func newTable(title, description string, columns []column) *table.PanelBuilder {
	panel := table.NewPanelBuilder().Title(title).Description(description).Unit(units.Short).Decimals(0).
		Footer(common.NewTableFooterOptionsBuilder().Reducer([]string{})). // Grafana does not accept null.
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName(countColumn).Desc(true)}).
		OverrideByName(countColumn, []dashboard.DynamicConfigValue{{Id: "custom.width", Value: 120}}).
		OverrideByName(typeColumn, colorOfType())
	for _, c := range columns {
		if len(c.links) > 0 {
			panel.OverrideByName(c.title, []dashboard.DynamicConfigValue{{Id: "links", Value: c.links}})
		}
	}
	return panel
}

// colorOfType is for the cells of a column of types.
func colorOfType() []dashboard.DynamicConfigValue {
	color := func(index int, name string) map[string]any { return map[string]any{"color": name, "index": index} }
	return []dashboard.DynamicConfigValue{
		{Id: "custom.width", Value: 90},
		{Id: "custom.cellOptions", Value: map[string]string{"type": "color-text"}},
		{Id: "mappings", Value: []map[string]any{{
			"type": "value", "options": map[string]any{"Warning": color(0, warningColor), "Normal": color(1, normalColor)},
		}}},
	}
}

// organized names the columns, and puts them into their order, before the occurrences.
func organized(columns []column) dashboard.DataTransformerConfig {
	names, places := map[string]string{"Value #A": countColumn, "Value": countColumn}, map[string]int{}
	for i, c := range columns {
		names[c.label], places[c.label] = c.title, i
	}
	places["Value #A"], places["Value"] = len(columns), len(columns)
	return dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": map[string]bool{"Time": true}, "renameByName": names, "indexByName": places,
	}}
}

// paint is the color of the series of a name.
type paint struct{ name, color string }

func colored(panel *timeseries.PanelBuilder, paints ...paint) *timeseries.PanelBuilder {
	for _, p := range paints {
		panel.OverrideByName(p.name, []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": p.color}}})
	}
	return panel
}

// messages returns a panel with log lines.
func messages(title, description, query string) *logs.PanelBuilder {
	return logs.NewPanelBuilder().Title(title).Description(description).Datasource(logsSource).
		ShowTime(true).WrapLogMessage(true).EnableLogDetails(true).SortOrder(common.LogsSortOrderDescending).
		WithTarget(ofLogs(query, "range"))
}

func ofLogs(query, kind string) *loki.DataqueryBuilder {
	return loki.NewDataqueryBuilder().Expr(query).QueryType(kind).RefId(refID(0)).Datasource(logsSource)
}
