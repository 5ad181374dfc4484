// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	overviewUID = "kube-events-overview"
	workloadUID = "kube-events-workload"
	nodeUID     = "kube-events-node"
	receiverUID = "kube-events-receiver"
)

// troubleshooting returns the page of the version of the checkout, in which this program runs.
func troubleshooting() string {
	version, err := os.ReadFile(filepath.Join("..", "..", "VERSION"))
	if err != nil {
		panic(err)
	}
	return "https://github.com/kubeevents/kubeeventsreceiver/blob/v" + strings.TrimSpace(string(version)) + "/docs/troubleshooting.md"
}

// link is one above the panels. The builder of the SDK would hide it in a menu.
type link dashboard.DashboardLink

var _ cog.Builder[dashboard.DashboardLink] = link{}

// Build returns the link.
func (l link) Build() (dashboard.DashboardLink, error) { return dashboard.DashboardLink(l), nil }

// linksBetween returns links from a dashboard to all others, with the time range.
func linksBetween(v variant, from string) (links []link) {
	for _, to := range []struct{ uid, title string }{
		{overviewUID, "Overview"}, {workloadUID, "Workload"}, {nodeUID, "Node"}, {receiverUID, "Receiver"},
	} {
		if to.uid != from {
			target := "/d/" + to.uid + "?" + strings.Join(kept(v, from, to.uid), "&")
			links = append(links, link{Title: to.title, Type: dashboard.DashboardLinkTypeLink, Icon: "dashboard", Url: &target, Tags: []string{}, KeepTime: true})
		}
	}
	return append(links, link{
		Title: "Troubleshooting", Type: dashboard.DashboardLinkTypeLink, Icon: "doc", Url: new(troubleshooting()), Tags: []string{}, TargetBlank: true,
	})
}

// kept returns the parameters of a link that keep what two dashboards both have.
func kept(v variant, from, to string) []string {
	all := []string{same("metrics")}
	if from == receiverUID || to == receiverUID {
		return all
	}
	if v.loki {
		all = append(all, same("logs"), same("selector"))
	}
	return append(all, same("cluster"))
}

// cellLink is a link of the cells of a column of a table.
type cellLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// open returns a link from a row of a table to a dashboard of events. Its parameters are variables of
// the dashboard and values of the row.
func open(v variant, title, uid string, parameters ...string) cellLink {
	return cellLink{title, "/d/" + uid + "?" + strings.Join(slices.Concat([]string{"${__url_time_range}"}, kept(v, "", uid), parameters), "&")}
}

// inCluster returns a link to the overview of the cluster in a row.
func inCluster(v variant) cellLink {
	l := open(v, "Overview of this cluster", overviewUID)
	l.URL = strings.Replace(l.URL, same("cluster"), value("cluster", "Cluster"), 1)
	return l
}

// value returns a parameter of a link with the value that a row of a table has in a column.
func value(variable, column string) string {
	return "var-" + variable + "=${__data.fields." + column + "}"
}

// same returns a parameter of a link with the present value of a variable.
func same(variable string) string { return "${" + variable + ":queryparam}" }

// The selectors of a query in a link. With the format pipe, several values are a|b, which needs no
// escapes in the JSON of the link.
const (
	linkRecords = "${selector}"
	linkCluster = `k8s_cluster_name=~"${cluster:pipe}|"`
	linkReason  = `k8s_event_reason="${__data.fields.Reason}"`
)

// explore returns a link to Grafana's page for queries, with a query of logs. There is none without
// Loki.
func explore(v variant, title, query string) []cellLink {
	if !v.loki {
		return nil
	}
	pane, err := json.Marshal(map[string]any{"events": map[string]any{
		"datasource": "${logs}",
		"queries": []map[string]any{{
			"refId": "A", "expr": query, "queryType": "range", "datasource": map[string]string{"type": "loki", "uid": "${logs}"},
		}},
		"range": map[string]string{"from": "${__from}", "to": "${__to}"},
	}})
	if err != nil {
		panic(err) // Strings and maps of strings always have a JSON form.
	}
	return []cellLink{{title, "/explore?schemaVersion=1&panes=" + escape(string(pane))}}
}

// placeholder is a variable that Grafana replaces in a link, and then escapes.
var placeholder = regexp.MustCompile(`\$\{[^}]+\}`)

// escape escapes text for a URL, except the variables in it.
func escape(text string) string {
	var escaped strings.Builder
	for {
		place := placeholder.FindStringIndex(text)
		if place == nil {
			return escaped.String() + encode(text)
		}
		escaped.WriteString(encode(text[:place[0]]) + text[place[0]:place[1]])
		text = text[place[1]:]
	}
}

// encode writes a space as %20, because Grafana's router does not read a + as a space.
func encode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
