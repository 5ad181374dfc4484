// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// occurrences is the metric of events, as Prometheus names it.
const occurrences = "k8s_event_occurrences_total"

const (
	warnings = `k8s_event_type="Warning"`
	normal   = `k8s_event_type="Normal"`
)

// A Normal event is expected, so only warnings have a color that attracts attention.
const (
	warningColor = "orange"
	normalColor  = "blue"
)

// series returns a selector of the metric of events.
func series(matchers ...string) string { return occurrences + "{" + join(matchers...) + "}" }

// inNamed and inUnnamed select the series of the chosen clusters, those with a name and the others. Without the
// option cluster_name, the name of a cluster is the label of the scrape, as in the alerts.
const (
	inNamed   = `k8s_cluster_name!="", k8s_cluster_name=~"$cluster"`
	inUnnamed = `k8s_cluster_name="", cluster=~"$cluster"`
)

// of returns matchers with another one for the cluster.
func of(cluster string, matchers []string) string {
	replaced := slices.Clone(matchers)
	replaced[slices.Index(matchers, ofCluster)] = cluster
	return series(replaced...)
}

// increased returns a query of the occurrences in the chosen clusters, over a range such as [1h].
func increased(over string, matchers ...string) string {
	return fmt.Sprintf("(increase(%s%s) or increase(%s%s))", of(inNamed, matchers), over, of(inUnnamed, matchers), over)
}

// during returns a query of the occurrences in the time range, for one number per group. Prometheus
// estimates increases, so the numbers are rounded. Groups in which nothing happened are left out.
func during(by string, matchers ...string) string {
	return fmt.Sprintf("round(sum by (%s) (%s)) > 0", by, increased("[$__range]", matchers...))
}

// duringByCluster returns the same, also by cluster.
func duringByCluster(by string, matchers ...string) string {
	return fmt.Sprintf("round(sum by (cluster, %s) (%s or sum by (cluster, %s) (increase(%s[$__range])))) > 0", by,
		clusterNamed(fmt.Sprintf("sum by (k8s_cluster_name, %s) (increase(%s[$__range]))", by, of(inNamed, matchers))), by, of(inUnnamed, matchers))
}

// clusterNamed returns a query whose results have the name of the cluster as the label cluster.
func clusterNamed(query string) string {
	return fmt.Sprintf(`label_replace(%s, "cluster", "$1", "k8s_cluster_name", "(.+)")`, query)
}

// total returns a query of the occurrences in the time range, for one number. It returns 0 if nothing
// happened.
func total(matchers ...string) string {
	return fmt.Sprintf("round(sum(%s) or vector(0))", increased("[$__range]", matchers...))
}

// groups returns a query of the number of results of a query.
func groups(query string) string { return "count(" + query + ") or vector(0)" }

// each returns a query of the occurrences over time, by a label.
func each(by string, matchers ...string) string {
	return fmt.Sprintf("sum by (%s) (%s)", by, increased("[$__rate_interval]", matchers...))
}

// most returns the same for the groups with the most occurrences in the time range. Without @ end(),
// there would be other groups at each time.
func most(by string, matchers ...string) string {
	return fmt.Sprintf("%s and topk(10, sum by (%s) (%s) > 0)", each(by, matchers...), by, increased("[$__range] @ end()", matchers...))
}

func topk(n int, query string) string { return fmt.Sprintf("topk(%d, %s)", n, query) }

// named returns a query whose results have a label with a value where they have none.
func named(query, label, value string) string {
	return fmt.Sprintf("label_replace(%s, %q, %q, %q, %q)", query, label, value, label, "")
}

// allUnnamed is for results about pods without an owner, whose names the metric does not have, and
// about objects whose owners are not known. All is also what a link then selects.
func allUnnamed(query string) string {
	return named(named(query, "k8s_workload_name", "All"), "k8s_workload_kind", "All")
}

// newReasons returns a query of the reasons that occurred in the time range, and that the chosen
// clusters did not have in the week before. The rule that records the reasons is in the chart.
func newReasons(matchers ...string) string {
	const by = "k8s_event_type, k8s_event_reason"
	return fmt.Sprintf("%s unless on (%s) present_over_time(reason_type:k8s_event_occurrences:sum{%s}[7d] offset $__range)",
		during(by, matchers...), by, ofScraped)
}

// records returns a LogQL query of records of events. In Loki, only the labels in braces are index
// labels. The cluster and the namespace are among them: other clusters and namespaces are not read.
func records(stream string, filters ...string) string {
	others := ` | k8s_event_name!=""`
	for _, filter := range filters {
		if strings.HasPrefix(filter, "k8s_cluster_name") || strings.HasPrefix(filter, "k8s_namespace_name") {
			stream = join(stream, filter)
		} else {
			others += " | " + filter
		}
	}
	return "{" + stream + "}" + others
}

// selector selects the streams of the receiver by the index label that docs/queries.md gives them. The
// chart can replace it.
const selector = "log_source=`kube_events`"

// ofReceiver is what the user chose instead. The format raw keeps its backticks.
const ofReceiver = "${selector:raw}"

// counted returns a LogQL query of the occurrences that records have, over a duration.
func counted(by, query, over string) string {
	return fmt.Sprintf("sum by (%s) (sum_over_time(%s | unwrap k8s_event_occurrences [%s]))", by, query, over)
}

// printed returns a LogQL query of log lines that name the object and the reason.
func printed(query string) string {
	return query + ` | line_format "{{.k8s_event_type}} {{.k8s_event_reason}} {{.k8s_object_kind}} {{with .k8s_namespace_name}}{{.}}/{{end}}{{.k8s_object_name}}: {{__line__}}"`
}

// searched returns a LogQL query of the log lines that have the text that the user looks for.
func searched(query string) string { return query + ` |~ "(?i)$search"` }
