// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// The selectors of a workload's events, which are the same in Prometheus and in Loki, except for its name.
const (
	ofNamespace = `k8s_namespace_name="$namespace"`
	ofKind      = `k8s_workload_kind=~"$kind"`
	ofWorkload  = `k8s_workload_name=~"$workload"`
	ofReason    = `k8s_event_reason=~"$reason"`
)

// The metric has metadata.generateName as the name of an object with a generated name. Records, and the metrics
// of agents, have the whole name: with the five characters that Kubernetes appends.
const (
	generated        = `(-?[bcdfghjklmnpqrstvwxz2456789]{5})?`
	ofWholeName      = `k8s_workload_name=~"($workload)` + generated + `"`
	linkWorkloadLogs = `k8s_workload_name=~"(${workload:pipe})` + generated + `"`
)

// workload returns the dashboard for people who look at the events of their workloads.
func workload(v variant) layout {
	d := newDashboard(v, workloadUID, "Kubernetes events: workload",
		"What Kubernetes reports about a workload and about all objects that it owns, down to the pods.", "now-6h").
		WithVariable(cluster()).
		WithVariable(choice("namespace", "Namespace", "", "k8s_namespace_name", series(ofCluster))).
		WithVariable(choices("kind", "Kind", "", "k8s_workload_kind", series(ofCluster, ofNamespace))).
		WithVariable(choices("workload", "Workload", "An object with a generated name has the prefix of its name. The metric does not have the names of pods without an owner: choose All.",
			"k8s_workload_name", series(ofCluster, ofNamespace, ofKind))).
		WithVariable(reasons(ofCluster, ofNamespace, ofKind, ofWorkload))
	if v.loki {
		d.WithVariable(search())
	}
	chosen := []string{ofCluster, ofNamespace, ofKind, ofWorkload, ofReason}
	marks := []annotation{rollouts(ofCluster, ofNamespace, ofKind, ofWorkload), firstWarnings(chosen...)}
	return layout{name: "workload", builder: d, annotations: marks, sections: []section{
		{lines: []line{
			{4, workloadNumbers(chosen)},
			{8, []cell{{12, barsOfReasons("Warnings by reason", append(chosen, warnings))}, {12, barsOfReasons("Normal events by reason", append(chosen, normal))}}},
			{8, []cell{{12, reasonsOfWorkload(v, chosen)}, {12, workloadsOfNamespace(v, chosen)}}},
			{6, []cell{{24, endsOfContainers(chosen)}}},
		}},
		{title: "CPU and restarts of the same workload", lines: []line{{8, []cell{{12, cpuOfWorkload()}, {12, restartsOfWorkload()}}}}},
		{title: "Objects and messages", lines: []line{
			{8, []cell{{24, objectsOfWorkload(v)}}},
			{16, []cell{{24, messages("Messages", "The messages of the chosen events, the newest first.", searched(printed(recordsOfWorkload(ofReason))))}}},
		}},
	}}
}

// recordsOfWorkload returns a LogQL query of the records of the chosen workload.
func recordsOfWorkload(filters ...string) string {
	return records(ofReceiver, append([]string{ofCluster, ofNamespace, ofKind, ofWholeName}, filters...)...)
}

func workloadNumbers(chosen []string) []cell {
	return []cell{
		{6, number("Warnings", "Occurrences of warnings in the time range.", units.Short, total(append(chosen, warnings)...), problems())},
		{6, number("Normal events", "Occurrences of Normal events in the time range.", units.Short, total(append(chosen, normal)...), happens())},
		{6, number("Reasons of warnings", "Different reasons of warnings in the time range.", units.Short,
			groups(during("k8s_event_reason", append(chosen, warnings)...)), problems())},
		{6, numberOfLogs("Objects with warnings", "Pods and other objects with a warning in the time range.",
			"count("+counted("k8s_object_kind, k8s_object_name, k8s_object_uid", recordsOfWorkload(ofReason, warnings), "$__range")+")", problems())},
	}
}

// barsOfReasons returns the ten most frequent reasons over time.
func barsOfReasons(title string, matchers []string) cog.Builder[dashboard.Panel] {
	return bars(title, "Occurrences within the time of a bar, of the ten most frequent reasons. One event may have many occurrences.",
		most("k8s_event_reason", matchers...), "{{k8s_event_reason}}")
}

// endsOfContainers returns why containers ended, over time. Each start after an end says so once; other events
// say it again.
func endsOfContainers(chosen []string) cog.Builder[dashboard.Panel] {
	return bars("Ends of containers that started again", "Why they ended, such as OOMKilled, Error or Completed. Ends without another start are in the records only.",
		most(lastTerminated, append(chosen, `k8s_event_reason="Started"`, lastTerminated+`!=""`)...), "{{"+lastTerminated+"}}")
}

const lastTerminated = "k8s_container_status_last_terminated_reason"

const byWorkload = "sum by (k8s_workload_kind, k8s_workload_name) "

// measured returns a selector of a metric of pods or containers that went through the processor kube_owners.
func measured(metric string) string {
	return metric + "{" + join(ofCluster, ofNamespace, ofKind, ofWholeName) + "}"
}

func cpuOfWorkload() cog.Builder[dashboard.Panel] {
	usage := measured("k8s_pod_cpu_usage")
	return lines("CPU", "Cores that the pods use, of the ten workloads with the highest use: k8s.pod.cpu.usage of contrib's kubeletstats, behind kube_owners.", units.Short, target{
		byWorkload + "(" + usage + ") and topk(10, " + byWorkload + "(max_over_time(" + usage + "[$__range] @ end())))", workloadLegend,
	})
}

func restartsOfWorkload() cog.Builder[dashboard.Panel] {
	restarts := measured("k8s_container_restarts")
	return bars("Restarts", "Restarts of containers within the time of a bar, of the ten workloads with the most: k8s.container.restarts of contrib's k8s_cluster, behind kube_owners.",
		byWorkload+"(increase("+restarts+"[$__rate_interval])) and topk(10, "+byWorkload+"(increase("+restarts+"[$__range] @ end())) > 0)", workloadLegend)
}

const workloadLegend = "{{k8s_workload_kind}} {{k8s_workload_name}}"

func reasonsOfWorkload(v variant, chosen []string) cog.Builder[dashboard.Panel] {
	return rows("Reasons", "In the time range, by the kind of the object that the events are about.",
		during("k8s_event_type, k8s_event_reason, k8s_object_kind", chosen...),
		column{"k8s_event_type", typeColumn, nil},
		column{"k8s_event_reason", "Reason", append([]cellLink{
			open(v, "Only this reason", workloadUID, same("namespace"), same("kind"), same("workload"), value("reason", "Reason")),
		}, explore(v, "Messages with this reason", printed(records(linkRecords, `k8s_namespace_name="${namespace}"`,
			linkCluster, `k8s_workload_kind=~"${kind:pipe}"`, linkWorkloadLogs, linkReason)))...)},
		column{"k8s_object_kind", "Object", nil})
}

func workloadsOfNamespace(v variant, chosen []string) cog.Builder[dashboard.Panel] {
	return rows("Workloads", "The chosen workloads, by the number of their events. With All, these are the workloads of the namespace."+aboutAll,
		allUnnamed(topk(100, duringByCluster("k8s_workload_kind, k8s_workload_name, k8s_event_type", chosen...))),
		clusterColumn(v), column{"k8s_workload_kind", "Kind", nil},
		column{"k8s_workload_name", "Name", []cellLink{
			open(v, "Only this workload", workloadUID, same("namespace"), value("kind", "Kind"), value("workload", "Name")),
		}},
		column{"k8s_event_type", typeColumn, nil})
}

func objectsOfWorkload(v variant) cog.Builder[dashboard.Panel] {
	return rowsOfLogs("Objects", "The objects of the events, and their owners up to the workload.",
		topk(100, counted("k8s_event_type, k8s_event_reason, k8s_object_kind, k8s_object_name, k8s_node_name, k8s_owner_chain", recordsOfWorkload(ofReason), "$__range")),
		column{"k8s_object_kind", "Kind", nil}, column{"k8s_object_name", "Name", nil},
		column{"k8s_event_type", typeColumn, nil}, column{"k8s_event_reason", "Reason", nil},
		column{"k8s_node_name", "Node", []cellLink{open(v, "Events of this node", nodeUID, "var-kind=Node", value("object", "Node"))}},
		column{"k8s_owner_chain", "Owners", nil})
}
