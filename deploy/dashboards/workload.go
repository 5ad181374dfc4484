// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// The selectors of a workload's events. In Loki, only the namespace is an index label.
const (
	ofWorkload     = `k8s_cluster_uid=~"$cluster", k8s_namespace_name="$namespace", k8s_workload_kind="$kind", k8s_workload_name="$workload"`
	logsOfWorkload = `{k8s_namespace_name="$namespace"} | k8s_cluster_uid=~"$cluster" | k8s_workload_kind="$kind" | k8s_workload_name="$workload"`
)

// workload returns the dashboard for people who look at the events of their workloads.
func workload() *dashboard.DashboardBuilder {
	const metric = "k8s_event_occurrences_total"
	return newDashboard("kube-events-workload", "Events of a workload",
		"What Kubernetes says of a workload and of all that it owns, down to the pods.", metricsSource, logsSource).
		WithVariable(choices("cluster", "Cluster", metric, "k8s_cluster_uid")).
		WithVariable(choice("namespace", "Namespace", metric+`{k8s_cluster_uid=~"$cluster"}`, "k8s_namespace_name")).
		WithVariable(choice("kind", "Kind", metric+`{k8s_cluster_uid=~"$cluster", k8s_namespace_name="$namespace"}`, "k8s_workload_kind")).
		WithVariable(choice("workload", "Workload",
			metric+`{k8s_cluster_uid=~"$cluster", k8s_namespace_name="$namespace", k8s_workload_kind="$kind"}`, "k8s_workload_name")).
		WithPanel(bars("Timeline", "Occurrences, not messages: one message may have many occurrences.",
			`sum by (k8s_event_reason) (sum_over_time(`+logsOfWorkload+` | unwrap k8s_event_occurrences [$__auto]))`, "{{k8s_event_reason}}")).
		WithPanel(rows("Reasons", "In the selected time range.",
			`sum by (k8s_event_type, k8s_event_reason) (sum_over_time(`+logsOfWorkload+` | unwrap k8s_event_occurrences [$__range]))`,
			column{"k8s_event_type", "Type"}, column{"k8s_event_reason", "Reason"})).
		WithPanel(lines("Occurrences so far", "The metric, since the receiver began to count.", "short", half,
			target{`sum by (k8s_event_reason) (` + metric + `{` + ofWorkload + `})`, "{{k8s_event_reason}}"})).
		WithPanel(rows("Chain", "The objects of the events and their owners, up to the workload.",
			`topk(100, sum by (k8s_object_kind, k8s_object_name, k8s_owner_chain) (`+
				`sum_over_time(`+logsOfWorkload+` | unwrap k8s_event_occurrences [$__range])))`,
			column{"k8s_object_kind", "Kind"}, column{"k8s_object_name", "Name"}, column{"k8s_owner_chain", "Owners"}).Span(whole)).
		WithPanel(messages("Messages", "",
			logsOfWorkload+` | line_format "{{.k8s_event_type}} {{.k8s_event_reason}} {{.k8s_object_kind}}/{{.k8s_object_name}}: {{__line__}}"`))
}
