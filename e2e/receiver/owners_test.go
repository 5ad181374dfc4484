// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// withoutService is a resource without the cluster, and without the service: package service compares
// this one.
func withoutService(resource map[string]any) map[string]any {
	return without(resource, "k8s.cluster.uid", "service.name", "service.namespace")
}

// resourceIs compares a record's resource with what is expected besides the cluster and the service.
func resourceIs(t *testing.T, r record, want map[string]any) {
	t.Helper()
	assert.NotEmpty(t, r.text("k8s.cluster.uid"))
	assert.Equal(t, want, withoutService(r.Resource))
}

// objectAttributes are the attributes that a resource has of an object under a prefix such as
// k8s.workload.
func objectAttributes(prefix string, o *object) map[string]any {
	return map[string]any{
		prefix + ".api_version": o.GetAPIVersion(), prefix + ".kind": o.GetKind(), prefix + ".name": o.GetName(), prefix + ".uid": string(o.GetUID()),
	}
}

func merge(parts ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// conventional are the kinds of these tests that OpenTelemetry's conventions name, with their
// prefixes.
var conventional = map[string]string{
	"Pod": "k8s.pod", "ReplicationController": "k8s.replicationcontroller", "DaemonSet": "k8s.daemonset",
	"Deployment": "k8s.deployment", "ReplicaSet": "k8s.replicaset", "StatefulSet": "k8s.statefulset",
	"HorizontalPodAutoscaler": "k8s.hpa", "CronJob": "k8s.cronjob", "Job": "k8s.job",
}

// chainOf is what a resource contains of a chain of which each object owns the one before it.
func chainOf(objects ...*object) map[string]any {
	resource := objectAttributes("k8s.object", objects[0])
	if ns := objects[0].GetNamespace(); ns != "" {
		resource["k8s.namespace.name"] = ns
	}
	for _, o := range objects {
		if prefix := conventional[o.GetKind()]; prefix != "" {
			resource[prefix+".name"] = o.GetName()
		}
		if o.GetKind() == "Pod" { // The UIDs of others are off by default.
			resource["k8s.pod.uid"] = string(o.GetUID())
		}
	}
	if len(objects) > 1 {
		resource["k8s.owner.kind"], resource["k8s.owner.name"] = objects[1].GetKind(), objects[1].GetName()
		resource["k8s.owner.chain"] = qualifiedNames(objects[1:])
	}
	return resource
}

// completeChainOf is chainOf for a chain whose last object nothing owns, or may not be read.
func completeChainOf(objects ...*object) map[string]any {
	return merge(chainOf(objects...), objectAttributes("k8s.workload", objects[len(objects)-1]))
}

// qualifiedNames are kubectl's form: kind.group/name.
func qualifiedNames(objects []*object) (names []any) {
	for _, o := range objects {
		name := strings.ToLower(o.GetKind())
		if group := o.GroupVersionKind().Group; group != "" {
			name += "." + group
		}
		names = append(names, name+"/"+o.GetName())
	}
	return names
}

func TestWhatControllersMake(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	for kind, apiVersion := range map[string]string{
		"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicationController": "v1", "Job": "batch/v1", "CronJob": "batch/v1",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tag := map[string]any{"tilt.manifest": kind}
			owner := kube.make(t, ns, apiVersion, kind, "of-"+strings.ToLower(kind), labelled("tilt-manifest", kind))
			chain := []*object{owner}
			switch kind {
			case "Deployment":
				rs := kube.awaitObject(t, ns, "apps/v1", "ReplicaSet", ownedByUID(owner.GetUID()))
				chain = append([]*object{rs}, chain...)
				created := r.await(1, aboutObject("SuccessfulCreate", rs))[0]
				resourceIs(t, created, merge(completeChainOf(chain...), tag))
				resourceIs(t, r.await(1, aboutObject("ScalingReplicaSet", owner))[0], merge(completeChainOf(owner), tag))
			case "CronJob":
				chain = append([]*object{kube.make(t, ns, "batch/v1", "Job", "nightly-1", controlledBy(owner))}, chain...)
			}
			pod := kube.awaitObject(t, ns, "v1", "Pod", ownedByUID(chain[0].GetUID()))
			scheduled := r.await(1, aboutObject("Scheduled", pod))[0]
			resourceIs(t, scheduled, merge(completeChainOf(append([]*object{pod}, chain...)...), tag))
			assert.Equal(t, "complete", scheduled.resolution())
		})
	}
}

// aboutObject picks the records of a reason about an object.
func aboutObject(reason string, o *object) func(record) bool {
	return func(r record) bool {
		return r.text("k8s.event.reason") == reason && r.text("k8s.object.uid") == string(o.GetUID())
	}
}

// TestAKindIsDefinedLater: the receiver finds it without a restart.
func TestAKindIsDefinedLater(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	group := unique("changing") + ".example.com"
	resolve := func(involved corev1.ObjectReference) record {
		return r.recordOf(t, c.makeEvent(t, ns, eventAbout("Changing", involved)).Name)
	}
	early := corev1.ObjectReference{APIVersion: group + "/v1", Kind: "Shape", Namespace: ns, Name: "one"}
	assert.Equal(t, "not_found", resolve(early).resolution(), "no such kind yet")
	c.define(t, group, "Shape", "Namespaced")
	shape := c.make(t, ns, group+"/v1", "Shape", "one")
	var rec record
	eventually(t, func() bool {
		rec = resolve(referenceTo(shape))
		return rec.resolution() == "complete"
	}, "the kind")
	resourceIs(t, rec, completeChainOf(shape))
}
