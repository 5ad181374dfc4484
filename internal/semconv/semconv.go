// SPDX-License-Identifier: Apache-2.0

// Package semconv has the names of OpenTelemetry's semantic conventions (1.43) for Kubernetes
// objects.
package semconv

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemaURL is the version of the conventions.
const SchemaURL = "https://opentelemetry.io/schemas/1.43.0"

// These kinds are those of Kubernetes itself. Other groups may have kinds with these names.
var (
	Pod       = schema.GroupKind{Kind: "Pod"}
	Node      = schema.GroupKind{Kind: "Node"}
	Namespace = schema.GroupKind{Kind: "Namespace"}
	Job       = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// IsClusterScoped reports whether objects of a kind that the conventions name are in no namespace.
func IsClusterScoped(kind schema.GroupKind) bool {
	switch kind {
	case Namespace, Node, schema.GroupKind{Kind: "PersistentVolume"}, schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}:
		return true
	default:
		return false
	}
}

// Names are the resource attributes that name an object of one kind.
type Names struct {
	Name string
	UID  string // empty if the conventions have none
}

// names maps a kind with its API group, because other groups have kinds of the same name: a Service
// of serving.knative.dev is not a k8s.service.
var names = map[schema.GroupKind]Names{
	Namespace:                            {"k8s.namespace.name", ""},
	Node:                                 {"k8s.node.name", "k8s.node.uid"},
	{Kind: "PersistentVolume"}:           {"k8s.persistentvolume.name", "k8s.persistentvolume.uid"},
	{Kind: "PersistentVolumeClaim"}:      {"k8s.persistentvolumeclaim.name", "k8s.persistentvolumeclaim.uid"},
	Pod:                                  {"k8s.pod.name", "k8s.pod.uid"},
	{Kind: "ReplicationController"}:      {"k8s.replicationcontroller.name", "k8s.replicationcontroller.uid"},
	{Kind: "ResourceQuota"}:              {"k8s.resourcequota.name", "k8s.resourcequota.uid"},
	{Kind: "Service"}:                    {"k8s.service.name", "k8s.service.uid"},
	{Group: "apps", Kind: "DaemonSet"}:   {"k8s.daemonset.name", "k8s.daemonset.uid"},
	{Group: "apps", Kind: "Deployment"}:  {"k8s.deployment.name", "k8s.deployment.uid"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"k8s.replicaset.name", "k8s.replicaset.uid"},
	{Group: "apps", Kind: "StatefulSet"}: {"k8s.statefulset.name", "k8s.statefulset.uid"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {"k8s.hpa.name", "k8s.hpa.uid"},
	{Group: "batch", Kind: "CronJob"}:                       {"k8s.cronjob.name", "k8s.cronjob.uid"},
	Job:                                                     {"k8s.job.name", "k8s.job.uid"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}: {"k8s.storageclass.name", ""},
	// Old producers still write the former group of these kinds. The objects are the same.
	{Group: "extensions", Kind: "DaemonSet"}:  {"k8s.daemonset.name", "k8s.daemonset.uid"},
	{Group: "extensions", Kind: "Deployment"}: {"k8s.deployment.name", "k8s.deployment.uid"},
	{Group: "extensions", Kind: "ReplicaSet"}: {"k8s.replicaset.name", "k8s.replicaset.uid"},
}

// record has the attributes that the receiver itself writes on records.
var record = map[string]bool{
	"k8s.event.name": true, "k8s.event.namespace": true, "k8s.event.uid": true,
	"k8s.event.reason": true, "k8s.event.type": true, "k8s.event.action": true,
	"k8s.event.count": true, "k8s.event.occurrences": true, "k8s.event.start_time": true,
	"k8s.event.reporting_controller": true, "k8s.event.reporting_instance": true,
	"k8s.event.related.api_version": true, "k8s.event.related.kind": true, "k8s.event.related.namespace": true,
	"k8s.event.related.name": true, "k8s.event.related.uid": true,
	"k8s.object.fieldpath": true, "k8s.object.resource_version": true, "k8s.owner.resolution": true, "log.record.uid": true,
	LastTerminatedReason: true, "process.exit.code": true, "k8s.container.restart_count": true,
	"k8s.container.last_terminated.signal": true, "k8s.container.last_terminated.started_at": true,
	"k8s.container.last_terminated.finished_at": true, "k8s.container.memory.limit": true, "k8s.config_map.changes": true,
	"k8s.rollout.changes": true, "k8s.workload.deployed_by": true, "k8s.workload.changed_by": true,
	"k8s.workload.changed_at": true, "k8s.details.resolution": true,
}

// LastTerminatedReason is why a container ended, on records and points.
const LastTerminatedReason = "k8s.container.status.last_terminated_reason"

// own has the attributes that the receiver itself writes on resources, for any object, and on points.
var own = ownNames()

func ownNames() map[string]bool {
	all := map[string]bool{
		"k8s.cluster.uid": true, "k8s.cluster.name": true, "k8s.container.name": true, "k8s.owner.chain": true,
		"otel.metric.overflow": true,
	}
	for _, role := range []Identity{identity("k8s.object"), Owner, Workload} {
		for _, name := range []string{role.apiVersion, role.kind, role.name, role.uid} {
			all[name] = true
		}
	}
	for _, n := range names {
		all[n.Name] = true
		if n.UID != "" {
			all[n.UID] = true
		}
	}
	return all
}

// Own reports whether the receiver itself writes an attribute of this name on a record, a resource or
// a point, perhaps for other objects. A label with this name would be mistaken for it.
func Own(attribute string) bool { return own[attribute] || record[attribute] }

// Of returns the names for a kind, matched by group and kind; ok is false for a kind that the
// conventions do not name.
func Of(gk schema.GroupKind) (n Names, ok bool) {
	n, ok = names[gk]
	return n, ok
}

// Group returns the API group of a bare kind, in any case, as kubectl does: "service" is of the
// core group. ok is false for a kind that the conventions do not name, which may be of any group.
func Group(kind string) (group string, ok bool) {
	for gk := range names {
		if gk.Group != "extensions" && strings.EqualFold(gk.Kind, kind) {
			return gk.Group, true
		}
	}
	return "", false
}
