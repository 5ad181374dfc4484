// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestWhatEventsSayOfTheirObject: k8s.object.* is what the event contains; an empty api_version or
// uid is filled from what was found, which is found all the same.
func TestWhatEventsSayOfTheirObject(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	pod, rs, deployment := c.makeShop(t, ns)
	hpa := c.make(t, ns, "autoscaling/v2", "HorizontalPodAutoscaler", "fe")
	cron := c.make(t, ns, "batch/v1", "CronJob", "nightly")
	ingress := c.make(t, ns, "networking.k8s.io/v1", "Ingress", "fe")
	policy := c.make(t, ns, "networking.k8s.io/v1", "NetworkPolicy", "fe")

	for name, test := range map[string]struct {
		of     *object
		owners []*object
		change func(*corev1.ObjectReference)
	}{
		"everything":                         {pod, []*object{rs, deployment}, func(*corev1.ObjectReference) {}},
		"no API version":                     {pod, []*object{rs, deployment}, func(ref *corev1.ObjectReference) { ref.APIVersion = "" }},
		"no UID":                             {pod, []*object{rs, deployment}, func(ref *corev1.ObjectReference) { ref.UID = "" }},
		"neither":                            {pod, []*object{rs, deployment}, func(ref *corev1.ObjectReference) { ref.APIVersion, ref.UID = "", "" }},
		"a Deployment without API version":   {deployment, nil, func(ref *corev1.ObjectReference) { ref.APIVersion = "" }},
		"an HPA without API version or UID":  {hpa, nil, func(ref *corev1.ObjectReference) { ref.APIVersion, ref.UID = "", "" }},
		"a ReplicaSet of extensions/v1beta1": {rs, []*object{deployment}, func(ref *corev1.ObjectReference) { ref.APIVersion = "extensions/v1beta1" }},
		"a ReplicaSet of extensions":         {rs, []*object{deployment}, func(ref *corev1.ObjectReference) { ref.APIVersion = "extensions" }},
		"a ReplicaSet of extensions, no UID": {rs, []*object{deployment}, func(ref *corev1.ObjectReference) { ref.APIVersion, ref.UID = "extensions", "" }},
		"a Deployment of apps/v1beta1":       {deployment, nil, func(ref *corev1.ObjectReference) { ref.APIVersion = "apps/v1beta1" }},
		"a Deployment of apps":               {deployment, nil, func(ref *corev1.ObjectReference) { ref.APIVersion = "apps" }},
		"an HPA of autoscaling/v2beta2":      {hpa, nil, func(ref *corev1.ObjectReference) { ref.APIVersion = "autoscaling/v2beta2" }},
		"a CronJob of batch/v1beta1":         {cron, nil, func(ref *corev1.ObjectReference) { ref.APIVersion = "batch/v1beta1" }},
		"an Ingress of extensions/v1beta1":   {ingress, nil, func(ref *corev1.ObjectReference) { ref.APIVersion = "extensions/v1beta1" }},
		"a NetworkPolicy of extensions":      {policy, nil, func(ref *corev1.ObjectReference) { ref.APIVersion = "extensions/v1beta1" }},
		"a Deployment of a made-up version":  {deployment, nil, func(ref *corev1.ObjectReference) { ref.APIVersion = "apps/v999" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			involved := referenceTo(test.of)
			test.change(&involved)
			rec := r.of(t, c.makeEvent(t, ns, eventAbout("Referred", involved)).Name)

			want := completeChainOf(append([]*object{test.of}, test.owners...)...)
			if involved.APIVersion != "" {
				want["k8s.object.api_version"] = involved.APIVersion
			}
			if want["k8s.workload.name"] == "fe" && rec.text("k8s.deployment.name") == "fe" {
				want["tilt.manifest"] = "shop"
			}
			resourceIs(t, rec, want)
			assert.Equal(t, "complete", rec.resolution())
		})
	}
}

// TestWhatIsKnownWithoutFinding: the reference itself is knowledge.
func TestWhatIsKnownWithoutFinding(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	for name, test := range map[string]struct {
		involved corev1.ObjectReference
		want     map[string]any
	}{
		"a pod with UID": {
			corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"},
			map[string]any{"k8s.object.api_version": "v1", "k8s.object.kind": "Pod", "k8s.object.name": "p", "k8s.object.uid": "u", "k8s.pod.name": "p", "k8s.pod.uid": "u"},
		},
		"a pod without API version or UID": {
			corev1.ObjectReference{Kind: "Pod", Name: "p"},
			map[string]any{"k8s.object.kind": "Pod", "k8s.object.name": "p", "k8s.pod.name": "p"},
		},
		"a ReplicaSet of a version that was served once": {
			corev1.ObjectReference{APIVersion: "extensions/v1beta1", Kind: "ReplicaSet", Name: "r"},
			map[string]any{"k8s.object.api_version": "extensions/v1beta1", "k8s.object.kind": "ReplicaSet", "k8s.object.name": "r", "k8s.replicaset.name": "r"},
		},
		"a kind of another group that shares its name": {
			corev1.ObjectReference{APIVersion: "serving.knative.dev/v1", Kind: "Service", Name: "s", UID: "u"},
			map[string]any{"k8s.object.api_version": "serving.knative.dev/v1", "k8s.object.kind": "Service", "k8s.object.name": "s", "k8s.object.uid": "u"},
		},
		"no kind": {
			corev1.ObjectReference{Name: "n"},
			map[string]any{"k8s.object.name": "n"},
		},
		"no name": {
			corev1.ObjectReference{APIVersion: "v1", Kind: "Pod"},
			map[string]any{"k8s.object.api_version": "v1", "k8s.object.kind": "Pod"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := r.of(t, c.makeEvent(t, ns, eventAbout("Unfound", test.involved)).Name)
			resourceIs(t, rec, merge(map[string]any{"k8s.namespace.name": ns}, test.want))
			assert.Equal(t, "not_found", rec.resolution())
		})
	}
}

// TestEventsInDefault: the events of cluster-scoped objects are in the namespace default, and
// k8s.namespace.name is left out of them, whether the event names a namespace or not.
func TestEventsInDefault(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	r := c.run(t, in("default"), "include_reasons: [InDefault]")
	node := c.make(t, "", "v1", "Node", unique("node"))
	pod := c.make(t, "default", "v1", "Pod", unique("pod"))
	for name, test := range map[string]struct {
		of        *object
		namespace string
	}{
		"a Node":                               {node, ""},
		"a Node in namespace default":          {node, "default"},
		"a pod":                                {pod, "default"},
		"a pod of which no namespace is named": {pod, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			involved := referenceTo(test.of)
			involved.Namespace = test.namespace
			rec := r.of(t, c.makeEvent(t, "default", eventAbout("InDefault", involved)).Name)
			resourceIs(t, rec, completeChainOf(test.of))
		})
	}
}

// TestConventionalKinds: each kind that the conventions name has its k8s.<kind>.name and uid.
func TestConventionalKinds(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns, "default"), "include_reasons: [Conventional]")
	for name, test := range map[string]struct {
		apiVersion, kind, namespace string
		more                        []option
	}{
		"Pod":                     {"v1", "Pod", ns, nil},
		"ReplicationController":   {"v1", "ReplicationController", ns, nil},
		"ResourceQuota":           {"v1", "ResourceQuota", ns, nil},
		"Service":                 {"v1", "Service", ns, nil},
		"PersistentVolumeClaim":   {"v1", "PersistentVolumeClaim", ns, nil},
		"PersistentVolume":        {"v1", "PersistentVolume", "", nil},
		"Node":                    {"v1", "Node", "", nil},
		"StorageClass":            {"storage.k8s.io/v1", "StorageClass", "", []option{with("provisioner", "example.com/any")}},
		"DaemonSet":               {"apps/v1", "DaemonSet", ns, nil},
		"Deployment":              {"apps/v1", "Deployment", ns, nil},
		"ReplicaSet":              {"apps/v1", "ReplicaSet", ns, nil},
		"StatefulSet":             {"apps/v1", "StatefulSet", ns, nil},
		"Job":                     {"batch/v1", "Job", ns, nil},
		"CronJob":                 {"batch/v1", "CronJob", ns, nil},
		"HorizontalPodAutoscaler": {"autoscaling/v2", "HorizontalPodAutoscaler", ns, nil},
		// Kinds that the conventions do not name are just k8s.object.* and k8s.workload.*.
		"ConfigMap": {"v1", "ConfigMap", ns, nil},
		"Ingress":   {"networking.k8s.io/v1", "Ingress", ns, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := c.make(t, test.namespace, test.apiVersion, test.kind, unique("any"), test.more...)
			rec := r.of(t, c.makeEvent(t, eventNamespace(o), eventAbout("Conventional", referenceTo(o))).Name)
			resourceIs(t, rec, completeChainOf(o))
			assert.Equal(t, "complete", rec.resolution())
		})
	}
}

func TestANamespacesEvents(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in("default"), "include_reasons: [OfNamespace]")
	o := c.awaitObject(t, "", "v1", "Namespace", func(o *object) bool { return o.GetName() == ns })
	rec := r.of(t, c.makeEvent(t, "default", eventAbout("OfNamespace", referenceTo(o))).Name)
	resourceIs(t, rec, completeChainOf(o))
}

// TestAKubeletsNodeEvent: kubelets write the Node's name in place of its UID, and no API version.
func TestAKubeletsNodeEvent(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	r := c.run(t, in("default"), "include_reasons: [NodeNotReady]")
	node := c.make(t, "", "v1", "Node", unique("node"), labelled("tilt-manifest", "machines"))
	ev := eventAbout("NodeNotReady", corev1.ObjectReference{Kind: "Node", Name: node.GetName(), UID: types.UID(node.GetName())})
	ev.Source = corev1.EventSource{Component: "kubelet", Host: node.GetName()}
	rec := r.of(t, c.makeEvent(t, "default", ev).Name)
	resourceIs(t, rec, merge(completeChainOf(node), map[string]any{"k8s.object.uid": node.GetName(), "tilt.manifest": "machines"}))
	assert.Equal(t, "complete", rec.resolution())

	// A UID that does not match is no proof of another Node.
	other := referenceTo(node)
	other.UID = "some-machine-id"
	rec = r.of(t, c.makeEvent(t, "default", eventAbout("NodeNotReady", other)).Name)
	resourceIs(t, rec, merge(completeChainOf(node), map[string]any{"k8s.object.uid": "some-machine-id", "tilt.manifest": "machines"}))

	unknown := eventAbout("NodeNotReady", corev1.ObjectReference{Kind: "Node", Name: "never", UID: "never"})
	rec = r.of(t, c.makeEvent(t, "default", unknown).Name)
	resourceIs(t, rec, map[string]any{
		"k8s.object.kind": "Node", "k8s.object.name": "never", "k8s.object.uid": "never", "k8s.node.name": "never",
	})
}

// TestANodeThatWasMadeAgain: kubelets up to 1.36 write the name as the UID, later ones the real
// UID, and those that have not restarted since then an old one. All mean the Node that has the name
// now.
func TestANodeThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	r := c.run(t, in("default"), "include_reasons: [NodeAgain]")
	name := unique("node")
	resolve := func(r *running, uid types.UID) record {
		ev := eventAbout("NodeAgain", corev1.ObjectReference{Kind: "Node", Name: name, UID: uid})
		ev.Source = corev1.EventSource{Component: "kubelet", Host: name}
		return r.of(t, c.makeEvent(t, "default", ev).Name)
	}
	is := func(t *testing.T, rec record, node *object, uid types.UID) {
		t.Helper()
		resourceIs(t, rec, merge(completeChainOf(node), map[string]any{"k8s.object.uid": string(uid), "tilt.manifest": node.GetLabels()["tilt-manifest"]}))
		assert.Equal(t, "complete", rec.resolution())
	}
	before := c.make(t, "", "v1", "Node", name, labelled("tilt-manifest", "old-machines"))
	for _, uid := range []types.UID{types.UID(name), before.GetUID()} {
		is(t, resolve(r, uid), before, uid)
	}
	c.remove(t, before)
	after := c.make(t, "", "v1", "Node", name, labelled("tilt-manifest", "new-machines"))
	// The new UID shows that what the receiver remembers is another Node.
	for _, uid := range []types.UID{after.GetUID(), types.UID(name), before.GetUID()} {
		is(t, resolve(r, uid), after, uid)
	}

	stranger := c.run(t, in("default"), "include_reasons: [NodeAgain]")
	for _, uid := range []types.UID{before.GetUID(), types.UID(name), after.GetUID()} {
		is(t, resolve(stranger, uid), after, uid)
	}
}

// TestAStaticPod: a kubelet's events have the hash of the pod's manifest as the UID. The mirror pod
// has another UID, and the hash in an annotation; its owner is the Node.
func TestAStaticPod(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	const hash = "6f7a4c1be24a7d4f1f3a2b0c9d8e7f60"
	node := c.make(t, "", "v1", "Node", unique("node"), labelled("tilt-manifest", "machines"))
	mirror := c.make(t, ns, "v1", "Pod", "etcd-"+node.GetName(), controlledBy(node), onNode(node),
		annotated("kubernetes.io/config.hash", hash, "kubernetes.io/config.mirror", hash, "kubernetes.io/config.source", "file"))
	resolve := func(uid types.UID) record {
		ev := eventAbout("Pulled", corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: mirror.GetName(), UID: uid, FieldPath: "spec.containers{app}",
		})
		ev.Source = corev1.EventSource{Component: "kubelet", Host: node.GetName()}
		ev.ReportingController, ev.ReportingInstance = "kubelet", node.GetName()
		return r.of(t, c.makeEvent(t, ns, ev).Name)
	}
	want := merge(completeChainOf(mirror, node), map[string]any{"k8s.container.name": "app", "tilt.manifest": "machines"})
	for name, uid := range map[string]types.UID{"the kubelet's UID": hash, "the mirror pod's UID": mirror.GetUID()} {
		t.Run(name, func(t *testing.T) {
			rec := resolve(uid)
			resourceIs(t, rec, merge(want, map[string]any{"k8s.object.uid": string(uid)}))
			assert.Equal(t, "complete", rec.resolution())
		})
	}
	t.Run("another hash is another pod", func(t *testing.T) {
		rec := resolve("00000000000000000000000000000000")
		assert.Equal(t, "not_found", rec.resolution())
		assert.NotContains(t, rec.resource, "k8s.owner.name")
		assert.Equal(t, "00000000000000000000000000000000", rec.resource["k8s.pod.uid"])
	})
}

// onNode binds a pod to a Node, as mirror pods are.
func onNode(node *object) option {
	return func(pod *object) { pod.Object["spec"].(map[string]any)["nodeName"] = node.GetName() }
}

func TestTheNodeOfAPodEvent(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns))
	pod := c.make(t, ns, "v1", "Pod", "any")
	for name, test := range map[string]struct {
		source               corev1.EventSource
		controller, instance string
		involved             corev1.ObjectReference
		node                 any
	}{
		"a kubelet reports":                  {corev1.EventSource{Component: "kubelet", Host: "node-7"}, "kubelet", "node-7", referenceTo(pod), "node-7"},
		"an old kubelet reports":             {corev1.EventSource{Component: "kubelet", Host: "node-7"}, "", "", referenceTo(pod), "node-7"},
		"a kubelet of the new API reports":   {corev1.EventSource{}, "kubelet", "node-7", referenceTo(pod), "node-7"},
		"the scheduler reports":              {corev1.EventSource{Component: "default-scheduler", Host: "master-1"}, "", "", referenceTo(pod), nil},
		"a controller on some host reports":  {corev1.EventSource{Component: "replicaset-controller", Host: "master-1"}, "", "", referenceTo(pod), nil},
		"a kubelet reports of another kind":  {corev1.EventSource{Component: "kubelet", Host: "node-7"}, "", "", corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c"}, nil},
		"a kubelet reports of a pod unknown": {corev1.EventSource{Component: "kubelet", Host: "node-7"}, "", "", corev1.ObjectReference{Kind: "Pod", Name: "never"}, "node-7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := eventAbout("Pulled", test.involved)
			ev.Source, ev.ReportingController, ev.ReportingInstance = test.source, test.controller, test.instance
			rec := r.of(t, c.makeEvent(t, ns, ev).Name)
			assert.Equal(t, test.node, rec.resource["k8s.node.name"])
			assert.NotContains(t, rec.resource, "k8s.node.uid")
		})
	}
}

func TestTheContainerOfAnEvent(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	for path, container := range map[string]any{
		"spec.containers{app}":            "app",
		"spec.initContainers{migrate}":    "migrate",
		"spec.ephemeralContainers{debug}": "debug",
		"spec.containers{a-b.c}":          "a-b.c",
		"spec.containers{}":               nil,
		"spec.containers{app":             nil,
		"spec.volumes{data}":              nil,
		"implicitly required container":   nil,
		"":                                nil,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			ev := eventOf("Contained", "pod")
			ev.InvolvedObject.FieldPath = path
			rec := r.of(t, kube.makeEvent(t, ns, ev).Name)
			assert.Equal(t, container, rec.resource["k8s.container.name"])
			assert.Equal(t, path, rec.text("k8s.object.fieldpath"))
		})
	}
}

// TestOneResourceForEachObject: all records about one object in one batch are under one resource.
func TestOneResourceForEachObject(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(i int, pod corev1.ObjectReference) corev1.ObjectReference{
		"named in one way": func(_ int, pod corev1.ObjectReference) corev1.ObjectReference {
			return pod
		},
		"named in several ways": func(i int, pod corev1.ObjectReference) corev1.ObjectReference {
			if i%2 == 0 {
				pod.UID = ""
			}
			if i%3 == 0 {
				pod.APIVersion = ""
			}
			return pod
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := kube.newNamespace(t)
			pods := []*object{kube.make(t, ns, "v1", "Pod", "a"), kube.make(t, ns, "v1", "Pod", "b")}
			kube.makeEvents(t, ns, 30, func(i int) *corev1.Event {
				ev := eventAbout("Grouped", test(i, referenceTo(pods[i%2])))
				ev.Name = unique("grouped")
				return ev
			})
			r := kube.run(t, in(ns)) // It lists them all at once.
			r.await(30, about(ns, "Grouped"))
			for _, batch := range r.logs.AllLogs() {
				assert.LessOrEqual(t, batch.ResourceLogs().Len(), len(pods))
			}
		})
	}
}
