// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// The selectors of the overview. Namespaced events have a namespace, others have none.
const (
	ofNamespaces  = `k8s_namespace_name=~"$namespaces"`
	namespaced    = `k8s_namespace_name!=""`
	clusterScoped = `k8s_namespace_name=""`
)

// overview returns the first dashboard: what is wrong in the clusters now, with links to the others.
func overview(v variant) layout {
	d := newDashboard(v, overviewUID, "Kubernetes events: overview", "What Kubernetes warns about, by namespace, workload and reason.", "now-6h").
		WithVariable(cluster()).
		WithVariable(choices("namespaces", "Namespaces", "All includes the objects without a namespace.", "k8s_namespace_name", series(ofCluster)))
	return layout{name: "overview", builder: d, sections: []section{{lines: []line{
		{4, overviewNumbers()},
		{8, []cell{{12, byType("Events by type", ofCluster, ofNamespaces)}, {12, bars("Warnings by namespace", "The ten namespaces with the most warnings.",
			named(most("k8s_namespace_name", ofCluster, ofNamespaces, warnings), "k8s_namespace_name", "(no namespace)"), "{{k8s_namespace_name}}")}}},
		{9, []cell{{10, topWorkloads(v)}, {7, topReasons(v)}, {7, rowsOfNewReasons(v)}}},
		{10, []cell{{24, allWarnings(v)}}},
		{8, []cell{{24, clusterScopedWarnings(v)}}},
		{12, []cell{{24, messages("Latest warnings", "The messages of the warnings, the newest first.",
			printed(records(ofReceiver, warnings, ofCluster, ofNamespaces)))}}},
	}}}}
}

func overviewNumbers() []cell {
	const inRange = " in the time range."
	return []cell{
		{4, number("Warnings", "Occurrences of warnings"+inRange, units.Short, total(ofCluster, ofNamespaces, warnings), problems())},
		{4, number("Normal events", "Occurrences of Normal events"+inRange, units.Short, total(ofCluster, ofNamespaces, normal), happens())},
		{4, number("Namespaces with warnings", "Namespaces with a warning"+inRange, units.Short,
			groups(duringByCluster("k8s_namespace_name", ofCluster, ofNamespaces, namespaced, warnings)), problems())},
		{4, number("Workloads with warnings", "Workloads with a warning"+inRange+" All pods without an owner in a namespace count as one.", units.Short,
			groups(duringByCluster(workloadLabels, ofCluster, ofNamespaces, namespaced, warnings)), problems())},
		{4, number("Cluster-scoped objects with warnings", "Nodes and other objects without a namespace that have a warning"+inRange, units.Short,
			groups(duringByCluster("k8s_object_kind, k8s_workload_name", ofCluster, clusterScoped, warnings)), problems())},
		{4, number("New reasons", "Reasons in the time range that the cluster did not have in the week before. Needs the rules of the chart.", units.Short,
			groups(newReasons(ofCluster, ofNamespaces)), problems())},
	}
}

// workloadLabels identify a workload of a cluster.
const workloadLabels = "k8s_namespace_name, k8s_workload_kind, k8s_workload_name"

// byType returns the occurrences over time, with the color of each type.
func byType(title string, matchers ...string) cog.Builder[dashboard.Panel] {
	return colored(bars(title, "Occurrences within the time of a bar. One event may have many occurrences.",
		named(each("k8s_event_type", matchers...), "k8s_event_type", "(no type)"), "{{k8s_event_type}}"),
		paint{"Warning", warningColor}, paint{"Normal", normalColor})
}

// The columns of tables of workloads.
func clusterColumn(v variant) column {
	return column{"cluster", "Cluster", []cellLink{inCluster(v)}}
}

func namespaceColumn(v variant) column {
	return column{"k8s_namespace_name", "Namespace", []cellLink{
		open(v, "Only this namespace", overviewUID, value("namespaces", "Namespace")),
		open(v, "All workloads of this namespace", workloadUID, value("namespace", "Namespace")),
	}}
}

func workloadColumns(v variant) []column {
	return []column{clusterColumn(v), namespaceColumn(v), {"k8s_workload_kind", "Kind", nil}, {"k8s_workload_name", "Name", []cellLink{
		open(v, "Events of this workload", workloadUID, value("namespace", "Namespace"), value("kind", "Kind"), value("workload", "Name")),
	}}}
}

const aboutAll = " The name All stands for all pods without an owner, and for workloads of a kind that has too many. The kind All stands for objects whose owners are not known."

func topWorkloads(v variant) cog.Builder[dashboard.Panel] {
	return rows("Top workloads", "The 20 workloads with the most warnings."+aboutAll,
		allUnnamed(topk(20, duringByCluster(workloadLabels, ofCluster, ofNamespaces, namespaced, warnings))), workloadColumns(v)...)
}

func topReasons(v variant) cog.Builder[dashboard.Panel] {
	const by = "k8s_event_reason, k8s_object_kind"
	return rows("Top reasons", "The 20 most frequent reasons of warnings.", topk(20, during(by, ofCluster, ofNamespaces, warnings)),
		column{"k8s_event_reason", "Reason", explore(v, "Messages with this reason", printed(records(linkRecords, linkCluster, warnings, linkReason)))},
		column{"k8s_object_kind", "Object", nil})
}

func rowsOfNewReasons(v variant) cog.Builder[dashboard.Panel] {
	return rows("New reasons", "Reasons in the time range that the cluster did not have in the week before. Needs the rules of the chart, for a week.",
		newReasons(ofCluster, ofNamespaces),
		column{"k8s_event_type", typeColumn, nil},
		column{"k8s_event_reason", "Reason", explore(v, "Messages with this reason", printed(records(linkRecords, linkCluster, linkReason)))})
}

func allWarnings(v variant) cog.Builder[dashboard.Panel] {
	const namespaceOfRow = `k8s_namespace_name="${__data.fields.Namespace}"`
	columns := workloadColumns(v)
	columns[3].links = append(columns[3].links, open(v, "Only this reason of this workload", workloadUID,
		value("namespace", "Namespace"), value("kind", "Kind"), value("workload", "Name"), value("reason", "Reason")))
	return rows("Warnings", "The 100 most frequent warnings, with the kind of the object that each is about. Click on a cell for links."+aboutAll,
		allUnnamed(topk(100, duringByCluster(workloadLabels+", k8s_object_kind, k8s_event_reason", ofCluster, ofNamespaces, namespaced, warnings))),
		append(columns, column{"k8s_object_kind", "Object", nil}, column{"k8s_event_reason", "Reason",
			explore(v, "Messages with this reason in this namespace", printed(records(linkRecords, namespaceOfRow, linkCluster, warnings, linkReason)))})...)
}

func clusterScopedWarnings(v variant) cog.Builder[dashboard.Panel] {
	return rows("Nodes and other cluster-scoped objects", "The 20 most frequent warnings about objects without a namespace. The choice of namespaces does not apply.",
		named(topk(20, duringByCluster("k8s_object_kind, k8s_workload_name, k8s_event_reason", ofCluster, clusterScoped, warnings)), "k8s_workload_name", "All"),
		clusterColumn(v), column{"k8s_object_kind", "Kind", nil},
		column{"k8s_workload_name", "Name", []cellLink{open(v, "Events of this object", nodeUID, value("kind", "Kind"), value("object", "Name"))}},
		column{"k8s_event_reason", "Reason", explore(v, "Messages with this reason", printed(records(linkRecords, linkCluster, warnings, clusterScoped, linkReason)))})
}
