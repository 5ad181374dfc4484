// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// The selectors of the events of a node, or of another object without a namespace. In both stores, a
// chain of owners ends at a node: it is its own workload, whatever has created it.
const (
	ofObjectKind = `k8s_object_kind="$kind"`
	ofObject     = `k8s_workload_name=~"$object"`
)

// onNode selects records of pods by the node of the kubelet that reports. The label format lets
// through nothing if the user looks at another kind of object.
const onNode = `k8s_node_name=~"$object" | k8s_node_name!="" | k8s_object_kind="Pod" | label_format chosen_kind="$kind" | chosen_kind="Node"`

// node returns the dashboard for people who run the nodes of a cluster.
func node(v variant) layout {
	d := newDashboard(v, nodeUID, "Kubernetes events: node",
		"What Kubernetes reports about a node, or about another object without a namespace, such as a PersistentVolume.", "now-6h").
		WithVariable(cluster()).
		WithVariable(choice("kind", "Kind", "The kinds of objects without a namespace that have events.", "k8s_object_kind", series(ofCluster, clusterScoped)).
			Current(option("Node", "Node"))).
		WithVariable(choices("object", "Name", "", "k8s_workload_name", series(ofCluster, clusterScoped, ofObjectKind))).
		WithVariable(reasons(ofCluster, clusterScoped, ofObjectKind, ofObject))
	if v.loki {
		d.WithVariable(search())
	}
	chosen := []string{ofCluster, clusterScoped, ofObjectKind, ofObject, ofReason}
	return layout{name: "node", builder: d, sections: []section{
		{lines: []line{
			{4, nodeNumbers(chosen)},
			{8, []cell{
				{8, bars("Warnings by object", "Occurrences within the time of a bar, of the ten objects with the most warnings.",
					most("k8s_workload_name", append(chosen, warnings)...), "{{k8s_workload_name}}")},
				{8, barsOfReasons("Warnings by reason", append(chosen, warnings))},
				{8, barsOfReasons("Normal events by reason", append(chosen, normal))},
			}},
			{9, []cell{{24, objectsWithoutNamespace(v, chosen)}}},
		}},
		{title: "Messages", lines: []line{
			{10, []cell{{24, messages("Messages of the object", "The messages of the chosen events, the newest first.",
				searched(printed(records(ofReceiver, chosen...))))}}},
		}},
		{title: "Pods on the node", lines: podsOnNode(v)},
	}}
}

func nodeNumbers(chosen []string) []cell {
	return []cell{
		{6, number("Warnings", "Occurrences of warnings in the time range.", units.Short, total(append(chosen, warnings)...), problems())},
		{6, number("Normal events", "Occurrences of Normal events in the time range.", units.Short, total(append(chosen, normal)...), happens())},
		{6, number("Objects with warnings", "Objects with a warning in the time range.", units.Short,
			groups(duringByCluster("k8s_workload_name", append(chosen, warnings)...)), problems())},
		{6, numberOfLogs("Pods with warnings", "Pods on the chosen nodes with a warning of the kubelet in the time range.",
			"count("+counted("k8s_namespace_name, k8s_object_name, k8s_object_uid", records(ofReceiver, ofCluster, warnings, onNode), "$__range")+")", problems())},
	}
}

func objectsWithoutNamespace(v variant, chosen []string) cog.Builder[dashboard.Panel] {
	return rows("Objects and reasons", "The chosen objects in the time range. The name All stands for objects whose owners are not known.",
		named(topk(100, duringByCluster("k8s_workload_name, k8s_event_type, k8s_event_reason", chosen...)), "k8s_workload_name", "All"),
		clusterColumn(v),
		column{"k8s_workload_name", "Name", []cellLink{open(v, "Only this object", nodeUID, same("kind"), value("object", "Name"))}},
		column{"k8s_event_type", typeColumn, nil},
		column{"k8s_event_reason", "Reason", append([]cellLink{
			open(v, "Only this reason", nodeUID, same("kind"), same("object"), value("reason", "Reason")),
		}, explore(v, "Messages with this reason", printed(records(linkRecords, linkCluster,
			clusterScoped, `k8s_object_kind="${kind}"`, `k8s_workload_name=~"${object:pipe}"`, linkReason)))...)})
}

// podsOnNode returns what the kubelets of the chosen nodes report about pods. The metric does not have
// the nodes of pods, so all of it comes from Loki.
func podsOnNode(v variant) []line {
	pods := records(ofReceiver, ofCluster, onNode)
	return []line{
		{9, []cell{
			{10, barsOfLogs("Events of pods by reason", "Occurrences within the time of a bar, of events about pods that the kubelet reports.",
				counted("k8s_event_reason", pods, "$__auto"), "{{k8s_event_reason}}")},
			{14, rowsOfLogs("Workloads with pods on the node", "The workloads of these pods, in the time range.",
				topk(100, counted("k8s_namespace_name, k8s_workload_kind, k8s_workload_name, k8s_event_type, k8s_event_reason", pods, "$__range")),
				namespaceColumn(v), column{"k8s_workload_kind", "Kind", nil},
				column{"k8s_workload_name", "Name", []cellLink{
					open(v, "Events of this workload", workloadUID, value("namespace", "Namespace"), value("kind", "Kind"), value("workload", "Name")),
				}},
				column{"k8s_event_type", typeColumn, nil}, column{"k8s_event_reason", "Reason", nil})},
		}},
		{12, []cell{{24, messages("Messages of pods on the node", "The messages about these pods, the newest first.", searched(printed(pods)))}}},
	}
}
