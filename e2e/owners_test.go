// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	assert.Equal(t, want, withoutService(r.resource))
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

// conventional are the kinds that OpenTelemetry's conventions name, with their prefixes.
var conventional = map[string]string{
	"v1 Namespace":                           "k8s.namespace",
	"v1 Node":                                "k8s.node",
	"v1 PersistentVolume":                    "k8s.persistentvolume",
	"v1 PersistentVolumeClaim":               "k8s.persistentvolumeclaim",
	"v1 Pod":                                 "k8s.pod",
	"v1 ReplicationController":               "k8s.replicationcontroller",
	"v1 ResourceQuota":                       "k8s.resourcequota",
	"v1 Service":                             "k8s.service",
	"apps/v1 DaemonSet":                      "k8s.daemonset",
	"apps/v1 Deployment":                     "k8s.deployment",
	"apps/v1 ReplicaSet":                     "k8s.replicaset",
	"apps/v1 StatefulSet":                    "k8s.statefulset",
	"autoscaling/v2 HorizontalPodAutoscaler": "k8s.hpa",
	"batch/v1 CronJob":                       "k8s.cronjob",
	"batch/v1 Job":                           "k8s.job",
	"storage.k8s.io/v1 StorageClass":         "k8s.storageclass",
}

// hasNoUID are the prefixes for which the conventions have a name alone.
var hasNoUID = set("k8s.namespace", "k8s.storageclass")

// chainOf is what a resource contains of a chain of which each object owns the one before it.
func chainOf(objects ...*object) map[string]any {
	resource := objectAttributes("k8s.object", objects[0])
	if ns := objects[0].GetNamespace(); ns != "" {
		resource["k8s.namespace.name"] = ns
	}
	for _, o := range objects {
		if prefix := conventional[o.GetAPIVersion()+" "+o.GetKind()]; prefix != "" {
			resource[prefix+".name"] = o.GetName()
			if !hasNoUID[prefix] {
				resource[prefix+".uid"] = string(o.GetUID())
			}
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

func TestADeploymentsEventsSayWhoOwnsThem(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	fe := kube.make(t, ns, "apps/v1", "Deployment", "fe", labelled("tilt-manifest", "shop"))
	rs := kube.awaitObject(t, ns, "apps/v1", "ReplicaSet", ownedByUID(fe.GetUID()))
	pod := kube.awaitObject(t, ns, "v1", "Pod", ownedByUID(rs.GetUID()))

	scheduled := r.await(1, about(ns, "Scheduled"))[0]
	assert.Equal(t, "complete", scheduled.resolution())
	resourceIs(t, scheduled, map[string]any{
		"k8s.namespace.name":       ns,
		"k8s.object.api_version":   "v1",
		"k8s.object.kind":          "Pod",
		"k8s.object.name":          pod.GetName(),
		"k8s.object.uid":           string(pod.GetUID()),
		"k8s.pod.name":             pod.GetName(),
		"k8s.pod.uid":              string(pod.GetUID()),
		"k8s.replicaset.name":      rs.GetName(),
		"k8s.replicaset.uid":       string(rs.GetUID()),
		"k8s.deployment.name":      "fe",
		"k8s.deployment.uid":       string(fe.GetUID()),
		"k8s.owner.api_version":    "apps/v1",
		"k8s.owner.kind":           "ReplicaSet",
		"k8s.owner.name":           rs.GetName(),
		"k8s.owner.uid":            string(rs.GetUID()),
		"k8s.owner.chain":          []any{"replicaset.apps/" + rs.GetName(), "deployment.apps/fe"},
		"k8s.workload.api_version": "apps/v1",
		"k8s.workload.kind":        "Deployment",
		"k8s.workload.name":        "fe",
		"k8s.workload.uid":         string(fe.GetUID()),
		"tilt.manifest":            "shop",
	})

	scaling := r.await(1, about(ns, "ScalingReplicaSet"))[0]
	resourceIs(t, scaling, merge(completeChainOf(fe), map[string]any{"tilt.manifest": "shop"}))

	created := r.await(1, about(ns, "SuccessfulCreate"))[0]
	resourceIs(t, created, merge(completeChainOf(rs, fe), map[string]any{"tilt.manifest": "shop"}))
}

func TestWhatOtherControllersMake(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	for name, test := range map[string]struct{ apiVersion, kind string }{
		"a StatefulSet's pod": {"apps/v1", "StatefulSet"},
		"a DaemonSet's pod":   {"apps/v1", "DaemonSet"},
		"a controller's pod":  {"v1", "ReplicationController"},
		"a Job's pod":         {"batch/v1", "Job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := kube.make(t, ns, test.apiVersion, test.kind, strings.ToLower(test.kind))
			pod := kube.awaitObject(t, ns, "v1", "Pod", ownedByUID(owner.GetUID()))
			scheduled := r.await(1, func(r record) bool {
				return r.text("k8s.event.reason") == "Scheduled" && r.text("k8s.object.uid") == string(pod.GetUID())
			})[0]
			resourceIs(t, scheduled, completeChainOf(pod, owner))
		})
	}
	t.Run("a CronJob's pod", func(t *testing.T) {
		t.Parallel()
		cron := kube.make(t, ns, "batch/v1", "CronJob", "nightly", labelled("tilt-manifest", "jobs"))
		job := kube.make(t, ns, "batch/v1", "Job", "nightly-1", controlledBy(cron))
		pod := kube.awaitObject(t, ns, "v1", "Pod", ownedByUID(job.GetUID()))
		scheduled := r.await(1, func(r record) bool {
			return r.text("k8s.event.reason") == "Scheduled" && r.text("k8s.object.uid") == string(pod.GetUID())
		})[0]
		resourceIs(t, scheduled, merge(completeChainOf(pod, job, cron), map[string]any{"tilt.manifest": "jobs"}))
	})
}

// TestChains makes objects by hand, in a cluster without a garbage collector, which would remove
// half of them.
func TestChains(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	// It runs before the kinds of custom resources are made.
	r := c.run(t, in(ns, "default"), "include_reasons: [Chained]")

	for name, test := range map[string]func(t *testing.T) (involved *object, resource map[string]any, resolution string){
		"nothing owns it": func(t *testing.T) (*object, map[string]any, string) {
			pod := c.make(t, ns, "v1", "Pod", unique("bare"))
			return pod, completeChainOf(pod), "complete"
		},
		"a custom resource owns a Deployment and alone carries Tilt's label": func(t *testing.T) (*object, map[string]any, string) {
			bakery := c.make(t, ns, c.define(t, "Bakery", "Namespaced"), "Bakery", "corner", labelled("tilt-manifest", "bread"))
			deployment := c.make(t, ns, "apps/v1", "Deployment", "oven", controlledBy(bakery))
			rs := c.make(t, ns, "apps/v1", "ReplicaSet", "oven-1", controlledBy(deployment))
			pod := c.make(t, ns, "v1", "Pod", "oven-1-a", controlledBy(rs))
			return pod, merge(completeChainOf(pod, rs, deployment, bakery), map[string]any{"tilt.manifest": "bread"}), "complete"
		},
		"a custom resource is the involved object": func(t *testing.T) (*object, map[string]any, string) {
			rollout := c.make(t, ns, c.define(t, "Rollout", "Namespaced"), "Rollout", "canary")
			return rollout, completeChainOf(rollout), "complete"
		},
		"a cluster-scoped custom resource owns a Deployment": func(t *testing.T) (*object, map[string]any, string) {
			tenant := c.make(t, "", c.define(t, "Tenant", "Cluster"), "Tenant", "acme", labelled("tilt-manifest", "tenants"))
			deployment := c.make(t, ns, "apps/v1", "Deployment", unique("tenant"), controlledBy(tenant))
			return deployment, merge(completeChainOf(deployment, tenant), map[string]any{"tilt.manifest": "tenants"}), "complete"
		},
		"a cluster-scoped custom resource is the involved object": func(t *testing.T) (*object, map[string]any, string) {
			tenant := c.make(t, "", c.define(t, "Tenant", "Cluster"), "Tenant", "acme")
			return tenant, completeChainOf(tenant), "complete"
		},
		"a kind of another group has the name of a conventional one": func(t *testing.T) (*object, map[string]any, string) {
			service := c.make(t, ns, c.define(t, "Service", "Namespaced"), "Service", "knative")
			deployment := c.make(t, ns, c.define(t, "Deployment", "Namespaced"), "Deployment", "other", controlledBy(service))
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), controlledBy(deployment))
			return pod, completeChainOf(pod, deployment, service), "complete"
		},
		"the controller is not the first of several owners": func(t *testing.T) (*object, map[string]any, string) {
			other := c.make(t, ns, "v1", "ConfigMap", unique("other"))
			owner := c.make(t, ns, "apps/v1", "StatefulSet", unique("db"))
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), ownedBy(ownerReference(other, false), ownerReference(owner, true)))
			return pod, completeChainOf(pod, owner), "complete"
		},
		"a single owner is no controller": func(t *testing.T) (*object, map[string]any, string) {
			owner := c.make(t, ns, "v1", "ConfigMap", unique("single"))
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), ownedBy(ownerReference(owner, false)))
			return pod, completeChainOf(pod, owner), "complete"
		},
		"none of several owners is the controller": func(t *testing.T) (*object, map[string]any, string) {
			first, second := c.make(t, ns, "v1", "ConfigMap", unique("first")), c.make(t, ns, "v1", "ConfigMap", unique("second"))
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), ownedBy(ownerReference(first, false), ownerReference(second, false)))
			return pod, completeChainOf(pod, first), "ambiguous"
		},
		"the chain is ambiguous further up": func(t *testing.T) (*object, map[string]any, string) {
			first, second := c.make(t, ns, "v1", "ConfigMap", unique("first")), c.make(t, ns, "v1", "ConfigMap", unique("second"))
			rs := c.make(t, ns, "apps/v1", "ReplicaSet", unique("rs"), ownedBy(ownerReference(first, false), ownerReference(second, false)))
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), controlledBy(rs))
			return pod, completeChainOf(pod, rs, first), "ambiguous"
		},
		"the owner does not exist": func(t *testing.T) (*object, map[string]any, string) {
			owner := gone("apps/v1", "ReplicaSet", "gone")
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), controlledBy(owner))
			return pod, chainOf(pod, owner), "not_found"
		},
		"the owner's owner does not exist": func(t *testing.T) (*object, map[string]any, string) {
			deployment := gone("apps/v1", "Deployment", "gone")
			rs := c.make(t, ns, "apps/v1", "ReplicaSet", unique("rs"), controlledBy(deployment))
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), controlledBy(rs))
			return pod, chainOf(pod, rs, deployment), "not_found"
		},
		"another object has the owner's name": func(t *testing.T) (*object, map[string]any, string) {
			c.make(t, ns, "apps/v1", "ReplicaSet", "reborn", labelled("tilt-manifest", "not-ours"))
			owner := gone("apps/v1", "ReplicaSet", "reborn")
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), controlledBy(owner))
			return pod, chainOf(pod, owner), "not_found"
		},
		"the owner's kind is not served": func(t *testing.T) (*object, map[string]any, string) {
			owner := gone("nowhere.example.com/v1", "Nothing", "gone")
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), controlledBy(owner))
			return pod, chainOf(pod, owner), "not_found"
		},
		"the owner is of an API version that is no longer served": func(t *testing.T) (*object, map[string]any, string) {
			owner := c.make(t, ns, "apps/v1", "ReplicaSet", unique("old"))
			reference := ownerReference(owner, true)
			reference.APIVersion = "extensions/v1beta1"
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), ownedBy(reference))
			return pod, completeChainOf(pod, owner), "complete"
		},
		// The cycles are of kinds of their own: no list that another case causes may catch one
		// before it is closed, since what was read is remembered.
		"two objects own each other": func(t *testing.T) (*object, map[string]any, string) {
			apiVersion := c.define(t, "Loop", "Namespaced")
			a := c.make(t, ns, apiVersion, "Loop", unique("a"))
			b := c.make(t, ns, apiVersion, "Loop", unique("b"), controlledBy(a))
			controlledBy(b)(a)
			a = c.store(t, a)
			return a, chainOf(a, b), "cycle"
		},
		"an object owns itself": func(t *testing.T) (*object, map[string]any, string) {
			a := c.make(t, ns, c.define(t, "Loop", "Namespaced"), "Loop", unique("a"))
			controlledBy(a)(a)
			a = c.store(t, a)
			return a, chainOf(a), "cycle"
		},
		"a cycle above the involved object": func(t *testing.T) (*object, map[string]any, string) {
			apiVersion := c.define(t, "Loop", "Namespaced")
			a := c.make(t, ns, apiVersion, "Loop", unique("a"))
			b := c.make(t, ns, apiVersion, "Loop", unique("b"), controlledBy(a))
			controlledBy(b)(a)
			a = c.store(t, a)
			pod := c.make(t, ns, "v1", "Pod", unique("pod"), controlledBy(a))
			return pod, chainOf(pod, a, b), "cycle"
		},
		"a chain of ten owners": func(t *testing.T) (*object, map[string]any, string) {
			chain := c.makeChain(t, ns, 11)
			return chain[0], completeChainOf(chain...), "complete"
		},
		"a chain of eleven owners is longer than max_depth": func(t *testing.T) (*object, map[string]any, string) {
			chain := c.makeChain(t, ns, 12)
			return chain[0], chainOf(chain[:11]...), "depth"
		},
		"a static pod's owner is its Node": func(t *testing.T) (*object, map[string]any, string) {
			node := c.make(t, "", "v1", "Node", unique("node"))
			// As kubelets refer to it.
			pod := c.make(t, ns, "v1", "Pod", unique("static"), controlledBy(node))
			return pod, completeChainOf(pod, node), "complete"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			involved, resource, resolution := test(t)
			rec := r.of(t, c.makeEvent(t, eventNamespace(involved), eventAbout("Chained", referenceTo(involved))).Name)
			resourceIs(t, rec, resource)
			assert.Equal(t, resolution, rec.resolution())
		})
	}
}

// makeChain makes a chain of objects, of which the first is owned by the second and so on.
func (c *cluster) makeChain(t *testing.T, ns string, length int) []*object {
	t.Helper()
	chain := make([]*object, length)
	for i := length - 1; i >= 0; i-- {
		var owner []option
		if i < length-1 {
			owner = []option{controlledBy(chain[i+1])}
		}
		chain[i] = c.make(t, ns, "v1", "ConfigMap", unique(fmt.Sprint("link-", i)), owner...)
	}
	return chain
}

// eventNamespace is where the events of an object are.
func eventNamespace(o *object) string {
	if o.GetNamespace() == "" {
		return metav1.NamespaceDefault
	}
	return o.GetNamespace()
}

func TestMaxDepthCountsOwners(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	chain := c.makeChain(t, ns, 4)
	for depth, want := range map[int]struct {
		resource   map[string]any
		resolution string
	}{
		1: {chainOf(chain[:2]...), "depth"},
		2: {chainOf(chain[:3]...), "depth"},
		3: {completeChainOf(chain...), "complete"},
	} {
		t.Run(fmt.Sprint("max_depth ", depth), func(t *testing.T) {
			t.Parallel()
			r := c.run(t, in(ns), fmt.Sprintf("owners: {max_depth: %d}", depth))
			rec := r.of(t, c.makeEvent(t, ns, eventAbout("Deep", referenceTo(chain[0]))).Name)
			resourceIs(t, rec, want.resource)
			assert.Equal(t, want.resolution, rec.resolution())
		})
	}
}

func TestEventsOfADeletedPodKeepItsChain(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	pod, rs, deployment := c.makeShop(t, ns)
	want := merge(completeChainOf(pod, rs, deployment), map[string]any{"tilt.manifest": "shop"})

	resourceIs(t, r.of(t, c.makeEvent(t, ns, eventAbout("Created", referenceTo(pod))).Name), want)
	for _, o := range []*object{pod, rs, deployment} {
		c.remove(t, o)
		rec := r.of(t, c.makeEvent(t, ns, eventAbout("Killing", referenceTo(pod))).Name)
		resourceIs(t, rec, want)
		assert.Equal(t, "complete", rec.resolution())
	}
}

// TestADeletedChainStaysKnownWhileItIsUsed: for cache_ttl after its last use, that is, and not
// after it was read.
func TestADeletedChainStaysKnownWhileItIsUsed(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	const ttl = 2 * time.Second
	r := c.run(t, in(ns), "owners: {cache_ttl: 2s}")
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "fe-1")
	pod := c.make(t, ns, "v1", "Pod", "fe-1-a", controlledBy(rs))
	used := time.Now()
	ask := func() record {
		rec := r.of(t, c.makeEvent(t, ns, eventAbout("Killing", referenceTo(pod))).Name)
		if time.Since(used) > ttl {
			t.Skip("this machine is too slow to use it often enough")
		}
		used = time.Now()
		return rec
	}
	ask()
	c.remove(t, pod)
	c.remove(t, rs)
	for removed := time.Now(); time.Since(removed) < 2*ttl; {
		resourceIs(t, ask(), completeChainOf(pod, rs))
	}
}

func TestAPodThatWasGoneBeforeItWasSeen(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	pod := c.make(t, ns, "v1", "Pod", "brief")
	c.remove(t, pod)
	rec := r.of(t, c.makeEvent(t, ns, eventAbout("Killing", referenceTo(pod))).Name)
	resourceIs(t, rec, chainOf(pod)) // The reference is knowledge.
	assert.Equal(t, "not_found", rec.resolution())
}

func TestUIDsDecideBetweenBearersOfAName(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	resolve := func(pod *object) record {
		return r.of(t, c.makeEvent(t, ns, eventAbout("Asked", referenceTo(pod))).Name)
	}
	oldOwner, newOwner := c.make(t, ns, "apps/v1", "StatefulSet", "old"), c.make(t, ns, "apps/v1", "StatefulSet", "new")
	first := c.make(t, ns, "v1", "Pod", "web-0", controlledBy(oldOwner))
	resourceIs(t, resolve(first), completeChainOf(first, oldOwner))
	c.remove(t, first)

	second := c.make(t, ns, "v1", "Pod", "web-0", controlledBy(newOwner))
	resourceIs(t, resolve(second), completeChainOf(second, newOwner))
	resourceIs(t, resolve(first), completeChainOf(first, oldOwner)) // Known from before.

	stranger := second.DeepCopy()
	stranger.SetUID(gone("v1", "Pod", "").GetUID())
	rec := resolve(stranger)
	resourceIs(t, rec, chainOf(stranger))
	assert.Equal(t, "not_found", rec.resolution(), "its owners are not those of the pod that has its name")
}

func TestKindsComeAndGo(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns, "default"), "include_reasons: [Changing]")
	group := unique("changing") + ".example.com"
	resolve := func(involved corev1.ObjectReference) record {
		return r.of(t, c.makeEvent(t, eventNamespaceOf(involved), eventAbout("Changing", involved)).Name)
	}
	early := corev1.ObjectReference{APIVersion: group + "/v1", Kind: "Shape", Namespace: ns, Name: "one"}
	assert.Equal(t, "not_found", resolve(early).resolution(), "no such kind yet")

	c.defineIn(t, group, "Shape", "Namespaced")
	one := c.make(t, ns, group+"/v1", "Shape", "one")
	var rec record
	eventually(t, func() bool {
		rec = resolve(referenceTo(one))
		return rec.resolution() == "complete"
	}, "the kind is found without a restart")
	resourceIs(t, rec, completeChainOf(one))

	// The same kind comes back as a cluster-scoped one.
	c.undefine(t, group, "Shape")
	c.defineIn(t, group, "Shape", "Cluster")
	two := c.make(t, "", group+"/v1", "Shape", "two")
	eventually(t, func() bool {
		rec = resolve(referenceTo(two))
		return rec.resolution() == "complete"
	}, "the kind is found in its new scope")
	resourceIs(t, rec, completeChainOf(two))
}

func eventNamespaceOf(involved corev1.ObjectReference) string {
	if involved.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return involved.Namespace
}
