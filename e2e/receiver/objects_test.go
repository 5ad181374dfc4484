// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var made atomic.Int64

// unique makes a name that no other test has.
func unique(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, made.Add(1))
}

var noName = regexp.MustCompile("[^a-z0-9]+")

// newNamespace makes a namespace for one test.
func (c *cluster) newNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("t%d-%s", made.Add(1), noName.ReplaceAllString(strings.ToLower(t.Name()), "-"))
	if len(name) > 50 {
		name = name[:50]
	}
	name = strings.TrimRight(name, "-")
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return name
}

// eventOf is a hand-made event about a pod of the given name that need not exist.
func eventOf(reason, pod string) *corev1.Event {
	return eventAbout(reason, corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod})
}

func eventAbout(reason string, involved corev1.ObjectReference) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		Reason: reason, Message: "message of " + reason, Type: corev1.EventTypeNormal, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source:         corev1.EventSource{Component: "e2e"},
		InvolvedObject: involved,
	}
}

// makeEvent creates the event, with a name of its own unless it has one. An involved object without
// a namespace is taken to be in that of the event, except in the namespace default, where the
// events of cluster-scoped objects are.
func (c *cluster) makeEvent(t *testing.T, namespace string, ev *corev1.Event) *corev1.Event {
	t.Helper()
	if ev.Name == "" {
		ev.Name = unique("event")
	}
	ev.Namespace = namespace
	if ev.InvolvedObject.Namespace == "" && namespace != "default" {
		ev.InvolvedObject.Namespace = namespace
	}
	created, err := c.CoreV1().Events(namespace).Create(t.Context(), ev, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

// makeEvents makes many events, several at a time.
func (c *cluster) makeEvents(t *testing.T, namespace string, n int, event func(i int) *corev1.Event) {
	t.Helper()
	makeMany(t, n, func(i int) {
		ev := event(i)
		ev.Namespace, ev.InvolvedObject.Namespace = namespace, namespace
		if _, err := c.CoreV1().Events(namespace).Create(t.Context(), ev, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// makeMany does something many times, several at a time.
func makeMany(t *testing.T, n int, makeOne func(i int)) {
	t.Helper()
	const makers = 8
	var making sync.WaitGroup
	for m := range makers {
		making.Go(func() {
			for i := m; i < n && !t.Failed(); i += makers {
				makeOne(i)
			}
		})
	}
	making.Wait()
}

// updateEvent stores a new state of the event, whatever its resource version.
func (c *cluster) updateEvent(t *testing.T, ev *corev1.Event) *corev1.Event {
	t.Helper()
	ev = ev.DeepCopy()
	ev.ResourceVersion = ""
	updated, err := c.CoreV1().Events(ev.Namespace).Update(t.Context(), ev, metav1.UpdateOptions{})
	require.NoError(t, err)
	return updated
}

func (c *cluster) deleteEvent(t *testing.T, ev *corev1.Event) {
	t.Helper()
	require.NoError(t, c.CoreV1().Events(ev.Namespace).Delete(t.Context(), ev.Name, metav1.DeleteOptions{}))
}

// withCount is the event with another count.
func withCount(ev *corev1.Event, count int32) *corev1.Event {
	ev = ev.DeepCopy()
	ev.Count = count
	return ev
}

// podTemplate is a part of the specs of several kinds.
const podTemplate = `{metadata: {labels: {app: any}}, spec: {restartPolicy: Always, containers: [{name: app, image: app}]}}`

// specs are the least that the API server takes of each kind that has to have a spec.
var specs = map[string]string{
	"Pod":                     `{schedulerName: nobody, containers: [{name: app, image: app}]}`,
	"ReplicaSet":              `{selector: {matchLabels: {app: any}}, template: ` + podTemplate + `}`,
	"ReplicationController":   `{selector: {app: any}, template: ` + podTemplate + `}`,
	"Deployment":              `{selector: {matchLabels: {app: any}}, template: ` + podTemplate + `}`,
	"DaemonSet":               `{selector: {matchLabels: {app: any}}, template: ` + podTemplate + `}`,
	"StatefulSet":             `{serviceName: any, selector: {matchLabels: {app: any}}, template: ` + podTemplate + `}`,
	"Job":                     `{template: {spec: {restartPolicy: Never, containers: [{name: app, image: app}]}}}`,
	"CronJob":                 `{schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: app}]}}}}}`,
	"HorizontalPodAutoscaler": `{maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: any}}`,
	"Ingress":                 `{defaultBackend: {service: {name: any, port: {number: 80}}}}`,
}

// object is anything that the API server stores.
type object = unstructured.Unstructured

// option changes an object before it is created.
type option func(*object)

func labelled(key, value string) option {
	return func(o *object) { o.SetLabels(map[string]string{key: value}) }
}

func with(field string, value any) option { return func(o *object) { o.Object[field] = value } }

func controlledBy(owner *object) option {
	return func(o *object) {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
}

// make creates an object of any kind; one without a namespace is cluster-scoped.
func (c *cluster) make(t *testing.T, namespace, apiVersion, kind, name string, options ...option) *object {
	t.Helper()
	o := &object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName(name)
	if spec, ok := specs[kind]; ok {
		parsed := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(spec), &parsed))
		o.Object["spec"] = parsed
	}
	for _, change := range options {
		change(o)
	}
	created, err := c.resource(o, namespace).Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

func (c *cluster) resource(o *object, namespace string) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if namespace == "" {
		return c.Dynamic.Resource(resource)
	}
	return c.Dynamic.Resource(resource).Namespace(namespace)
}

// referenceTo refers to the object as Kubernetes' own producers of events do.
func referenceTo(o *object) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
	}
}

// definition is that of a kind of custom resources, which accepts objects with any content.
func definition(group, kind, plural, scope, apiVersion string) *object {
	return &object{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": plural + "." + group,
			// The API server requires this in the groups of Kubernetes.
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a test"},
		},
		"spec": map[string]any{
			"group": group, "scope": scope,
			"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": strings.TrimPrefix(apiVersion, group+"/"), "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// define makes a kind of custom resources and waits until it is served.
func (c *cluster) define(t *testing.T, group, kind, scope string) {
	t.Helper()
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	crd := definition(group, kind, resource.Resource, scope, group+"/v1")
	_, err := c.resource(crd, "").Create(t.Context(), crd, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool {
		_, err := c.Dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, "the kind %s in %s", kind, group)
}

// awaitObject waits for an object of a kind that satisfies the test, and returns it.
func (c *cluster) awaitObject(t *testing.T, namespace, apiVersion, kind string, want func(*object) bool) *object {
	t.Helper()
	o := &object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	var found *object
	eventually(t, func() bool {
		list, err := c.resource(o, namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range list.Items {
			if want(&list.Items[i]) {
				found = &list.Items[i]
			}
		}
		return found != nil
	}, "a %s in %s", kind, namespace)
	return found
}

// ownedByUID picks objects that have an owner with the UID.
func ownedByUID(uid types.UID) func(*object) bool {
	return func(o *object) bool {
		for _, owner := range o.GetOwnerReferences() {
			if owner.UID == uid {
				return true
			}
		}
		return false
	}
}
