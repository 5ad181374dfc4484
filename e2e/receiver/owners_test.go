// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/deadwebhook"
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
			resource[prefix+".name"], resource[prefix+".uid"] = o.GetName(), string(o.GetUID())
		}
	}
	if len(objects) > 1 {
		maps.Copy(resource, objectAttributes("k8s.owner", objects[1]))
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

// TestAnAPIVersionThatIsNotServed: recorders name API versions that an API server no longer has, or
// leave out the version or the UID.
func TestAnAPIVersionThatIsNotServed(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "fe")
	hpa := c.make(t, ns, "autoscaling/v2", "HorizontalPodAutoscaler", "fe")
	cron := c.make(t, ns, "batch/v1", "CronJob", "nightly")
	ingress := c.make(t, ns, "networking.k8s.io/v1", "Ingress", "fe")
	for name, test := range map[string]struct {
		object     *object
		apiVersion string
		withoutUID bool
	}{
		"a ReplicaSet of extensions/v1beta1": {rs, "extensions/v1beta1", false},
		"a ReplicaSet of extensions, no UID": {rs, "extensions", true},
		"a ReplicaSet of a made-up version":  {rs, "apps/v999", false},
		"an HPA without API version or UID":  {hpa, "", true},
		"an HPA of autoscaling/v2beta2":      {hpa, "autoscaling/v2beta2", false},
		"a CronJob of batch/v1beta1":         {cron, "batch/v1beta1", false},
		"an Ingress of extensions/v1beta1":   {ingress, "extensions/v1beta1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			involved := referenceTo(test.object)
			involved.APIVersion = test.apiVersion
			if test.withoutUID {
				involved.UID = ""
			}
			rec := r.recordOf(t, c.makeEvent(t, ns, eventAbout("Referred", involved)).Name)
			want := completeChainOf(test.object)
			if test.apiVersion != "" {
				want["k8s.object.api_version"] = test.apiVersion
			}
			resourceIs(t, rec, want)
			assert.Equal(t, "complete", rec.resolution())
		})
	}
}

func TestEventsOfADeletedPodKeepItsChain(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "fe")
	pod := c.make(t, ns, "v1", "Pod", "fe-a", controlledBy(rs))
	want := completeChainOf(pod, rs)
	resourceIs(t, r.recordOf(t, c.makeEvent(t, ns, eventAbout("Created", referenceTo(pod))).Name), want)
	for _, o := range []*object{pod, rs} {
		c.remove(t, o)
		rec := r.recordOf(t, c.makeEvent(t, ns, eventAbout("Killing", referenceTo(pod))).Name)
		resourceIs(t, rec, want)
		assert.Equal(t, "complete", rec.resolution())
	}
}

func TestKindsComeAndGo(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns, "default"), "include_reasons: [Changing]")
	group := unique("changing") + ".example.com"
	resolve := func(involved corev1.ObjectReference) record {
		namespace := involved.Namespace
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		return r.recordOf(t, c.makeEvent(t, namespace, eventAbout("Changing", involved)).Name)
	}
	early := corev1.ObjectReference{APIVersion: group + "/v1", Kind: "Shape", Namespace: ns, Name: "one"}
	assert.Equal(t, "not_found", resolve(early).resolution(), "no such kind yet")

	// The same kind comes back as a cluster-scoped one.
	for _, namespace := range []string{ns, ""} {
		c.define(t, group, "Shape", map[bool]string{true: "Namespaced", false: "Cluster"}[namespace != ""])
		shape := c.make(t, namespace, group+"/v1", "Shape", "one")
		var rec record
		eventually(t, func() bool {
			rec = resolve(referenceTo(shape))
			return rec.resolution() == "complete"
		}, "the kind is found without a restart")
		resourceIs(t, rec, completeChainOf(shape))
		c.undefine(t, group, "Shape")
	}
}

func TestManyPodsCostFewRequests(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	const pods = 500
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "many", labelled("tilt-manifest", "many"))
	makeMany(t, pods, func(i int) { c.make(t, ns, "v1", "Pod", fmt.Sprint("many-", i), controlledBy(rs)) })
	c.makeEvents(t, ns, pods, func(i int) *corev1.Event {
		ev := eventOf("Started", fmt.Sprint("many-", i))
		ev.Name = fmt.Sprint("started-", i)
		return ev
	})
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	for _, rec := range r.await(pods, about(ns, "Started")) {
		assert.Equal(t, "complete", rec.resolution())
		assert.Equal(t, "many", rec.text("k8s.workload.name"))
	}
	assert.LessOrEqual(t, len(g.requests(isOn("pods"))), 20, "many unknown objects of one kind in one namespace become one list")
	r.awaitSum(t, pods, func(p point) bool { return p.attrs["tilt.manifest"] == "many" })
}

// TestAKindWhoseObjectsCannotBeRead: the conversion webhook of the owners' kind never answers. Chains of
// other kinds are complete, and the kind is used again when it works again.
func TestAKindWhoseObjectsCannotBeRead(t *testing.T) {
	t.Parallel()
	silent, err := deadwebhook.StartSilent()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, silent.Close()) })
	c := ownCluster(t) // Requests that hang in an API server must not be in the way of another test.
	kind, err := deadwebhook.Define(t.Context(), c.Dynamic, "dead.example.com", silent.URL)
	require.NoError(t, err)
	// More than the receiver sends requests at a time, and each in a namespace of its own, so that
	// no list in a namespace can serve two.
	const workloads = 40
	var dead, healthy [workloads][]*object
	makeMany(t, workloads, func(i int) {
		ns := c.newNamespace(t)
		release, err := kind.Create(t.Context(), ns, "tied", nil)
		if !assert.NoError(t, err) {
			return
		}
		dead[i] = []*object{c.make(t, ns, "v1", "Pod", "tied-a", controlledBy(release)), release}
		rs := c.make(t, ns, "apps/v1", "ReplicaSet", "healthy")
		healthy[i] = []*object{c.make(t, ns, "v1", "Pod", "healthy-a", controlledBy(rs)), rs}
	})
	r := c.run(t, "start_at: beginning", "include_reasons: [Dead, Healthy, Repaired]", "owners: {lookup_timeout: 10s}")
	emit := func(reason string, chain []*object) string {
		return c.makeEvent(t, chain[0].GetNamespace(), eventAbout(reason, referenceTo(chain[0]))).Name
	}
	// Those that cannot be resolved come first, so that their requests are in the way of the others'.
	var deadEvents, healthyEvents [workloads]string
	makeMany(t, workloads, func(i int) { deadEvents[i] = emit("Dead", dead[i]) })
	makeMany(t, workloads, func(i int) { healthyEvents[i] = emit("Healthy", healthy[i]) })
	for i := range workloads {
		resourceIs(t, r.recordOf(t, healthyEvents[i]), completeChainOf(healthy[i]...))
		assert.Contains(t, []string{"timeout", "unavailable"}, r.recordOf(t, deadEvents[i]).resolution())
	}

	require.NoError(t, kind.Repair(t.Context()))
	for _, repaired := range dead {
		eventually(t, func() bool { return r.recordOf(t, emit("Repaired", repaired)).resolution() == "complete" }, "the chain is complete again")
	}
}
