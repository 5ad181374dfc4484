// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The data sources are variables, because their names differ between installations of Grafana.
var (
	metricsSource = common.DataSourceRef{Type: new("prometheus"), Uid: new("${metrics}")}
	logsSource    = common.DataSourceRef{Type: new("loki"), Uid: new("${logs}")}
)

// anySource is for the names of data sources. The chart replaces it by dashboards.dataSourceRegex.
const anySource = "/.*/"

// newDashboard returns a dashboard with links to the others, and with the variables that choose
// where the events are stored.
func newDashboard(v variant, uid, title, description, from string) *dashboard.DashboardBuilder {
	d := dashboard.NewDashboardBuilder(title).Uid(uid).Description(description).Tags([]string{"kubernetes", "kube_events"}).
		Time(from, "now").Refresh("5m").Tooltip(dashboard.DashboardCursorSyncCrosshair).Editable()
	d.WithVariable(dashboard.NewDatasourceVariableBuilder("metrics").Label("Prometheus").Type("prometheus").Regex(anySource))
	if v.loki && uid != receiverUID {
		d.WithVariable(dashboard.NewDatasourceVariableBuilder("logs").Label("Loki").Type("loki").Regex(anySource))
		d.WithVariable(textbox("selector", "Events in Loki", selector,
			"Matchers of index labels that select the receiver's records. Write values between backticks: double quotes would end the text in a link."))
	}
	for _, link := range linksBetween(v, uid) {
		d.Link(link)
	}
	return d
}

func textbox(name, label, value, description string) *dashboard.TextBoxVariableBuilder {
	return dashboard.NewTextBoxVariableBuilder(name).Label(label).Description(description).
		DefaultValue(dashboard.StringOrMap{String: &value}).Current(option(value, value))
}

// choice returns a variable to choose one value of a label.
func choice(name, label, description, from, series string) *dashboard.QueryVariableBuilder {
	query := "label_values(" + series + ", " + from + ")"
	return dashboard.NewQueryVariableBuilder(name).Label(label).Description(description).Datasource(metricsSource).
		Query(dashboard.StringOrMap{String: &query}).Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
}

// choices returns a variable to choose several values or all. All includes series without the
// label.
func choices(name, label, description, from, series string) *dashboard.QueryVariableBuilder {
	return choice(name, label, description, from, series).Multi(true).IncludeAll(true).AllValue(".*").Current(option("All", "$__all"))
}

func option(text, value string) dashboard.VariableOption {
	return dashboard.VariableOption{
		Text:  dashboard.StringOrArrayOfString{String: &text},
		Value: dashboard.StringOrArrayOfString{String: &value},
	}
}

// The cluster is a variable of all dashboards of events. In the choices of other variables and in logs,
// which do not have the label of the scrape, clusters without the option cluster_name are always included.
const ofCluster = `k8s_cluster_name=~"$cluster|"`

func cluster() *dashboard.QueryVariableBuilder {
	query := fmt.Sprintf("query_result(group by (cluster) (%s or group by (cluster) (%s)))",
		clusterNamed("group by (k8s_cluster_name) ("+series(`k8s_cluster_name!=""`)+")"), series(`k8s_cluster_name=""`, `cluster!=""`))
	return choices("cluster", "Cluster", "The option cluster_name of the receiver, or the label cluster of the scrape. The messages of clusters without the option are always shown.",
		"cluster", series()).Query(dashboard.StringOrMap{String: &query}).Definition(query).Regex(`/cluster="([^"]*)"/`)
}

// reasons returns a variable for the reasons of the selected events.
func reasons(matchers ...string) *dashboard.QueryVariableBuilder {
	return choices("reason", "Reason", "", "k8s_event_reason", series(matchers...))
}

// search returns a variable to find messages.
func search() *dashboard.TextBoxVariableBuilder {
	return textbox("search", "Message contains", "", "A regular expression. Upper and lower case are the same.")
}

// join returns what the variables, matchers and labels have in common: lists with commas.
func join(parts ...string) string { return strings.Join(parts, ", ") }
