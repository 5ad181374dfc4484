// SPDX-License-Identifier: Apache-2.0

package event

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

func TestCount(t *testing.T) {
	tests := map[string]struct {
		event corev1.Event
		want  int64
	}{
		"old recorder":                                  {corev1.Event{Count: 3}, 3},
		"new recorder, first write":                     {corev1.Event{}, 1},
		"new recorder, first update":                    {corev1.Event{Series: &corev1.EventSeries{Count: 2}}, 2},
		"both counts: the higher one":                   {corev1.Event{Count: 7, Series: &corev1.EventSeries{Count: 4}}, 7},
		"a negative count is one occurrence":            {corev1.Event{Count: -5}, 1},
		"a negative series count is one occurrence":     {corev1.Event{Series: &corev1.EventSeries{Count: -5}}, 1},
		"the largest count that the API can store fits": {corev1.Event{Count: math.MaxInt32}, math.MaxInt32},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, Count(&tt.event))
		})
	}
}

func TestTimes(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	seconds := func(minute int) metav1.Time { return metav1.NewTime(at(minute)) }
	micros := func(minute int) metav1.MicroTime { return metav1.NewMicroTime(at(minute)) }
	created := metav1.ObjectMeta{CreationTimestamp: seconds(1)}

	tests := map[string]struct {
		event         corev1.Event
		newest, first time.Time
	}{
		"a series' last observed time is the newest": {
			corev1.Event{ObjectMeta: created, EventTime: micros(2), Series: &corev1.EventSeries{LastObservedTime: micros(9)}},
			at(9), at(2),
		},
		"old recorder: lastTimestamp and firstTimestamp": {
			corev1.Event{ObjectMeta: created, FirstTimestamp: seconds(2), LastTimestamp: seconds(8)}, at(8), at(2),
		},
		"eventTime never replaces lastTimestamp": {
			corev1.Event{ObjectMeta: created, EventTime: micros(2), LastTimestamp: seconds(8)}, at(8), at(2),
		},
		"only firstTimestamp":        {corev1.Event{ObjectMeta: created, FirstTimestamp: seconds(5)}, at(5), at(5)},
		"no times at all: creation":  {corev1.Event{ObjectMeta: created}, at(1), at(1)},
		"not even a creation time":   {corev1.Event{}, time.Time{}, time.Time{}},
		"before 1970 is passed over": {corev1.Event{ObjectMeta: created, LastTimestamp: metav1.Unix(-5, 0), FirstTimestamp: metav1.Unix(-9, 0)}, at(1), at(1)},
		"after 2554 is passed over": {
			corev1.Event{ObjectMeta: created, LastTimestamp: metav1.NewTime(time.Date(2555, 1, 1, 0, 0, 0, 0, time.UTC)), FirstTimestamp: seconds(5)}, at(5), at(5),
		},
		"beyond 2262, where int64 nanoseconds end, is kept": {
			corev1.Event{ObjectMeta: created, LastTimestamp: metav1.NewTime(time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC))},
			time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC), at(1),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.newest, NewestOccurrence(&tt.event).UTC(), "newest")
			assert.Equal(t, tt.first, FirstOccurrence(&tt.event).UTC(), "first")
		})
	}
}

func TestUnixNanoReachesBeyond2262(t *testing.T) {
	assert.Equal(t, uint64(16725225600_000000007), UnixNano(time.Date(2500, 1, 1, 0, 0, 0, 7, time.UTC)))
	assert.Zero(t, UnixNano(time.Time{}))
}

func TestContainerName(t *testing.T) {
	for path, want := range map[string]string{
		"spec.containers{app}":             "app",
		"spec.initContainers{init-db}":     "init-db",
		"spec.ephemeralContainers{debug}":  "debug",
		"spec.containers{app":              "",
		"spec.containers":                  "",
		"spec.volumes{data}":               "",
		"":                                 "",
		"implicitly required container {}": "",
	} {
		assert.Equal(t, want, ContainerName(&corev1.Event{InvolvedObject: corev1.ObjectReference{FieldPath: path}}), path)
	}
}

func TestReporter(t *testing.T) {
	kubelet := corev1.Event{Source: corev1.EventSource{Component: "kubelet", Host: "node-1"}}
	assert.Equal(t, "kubelet", ReportingController(&kubelet), "combined events have only the source")
	assert.Equal(t, "node-1", ReportingInstance(&kubelet))
	assert.Equal(t, "node-1", KubeletNode(&kubelet))

	scheduler := corev1.Event{ReportingController: "default-scheduler", ReportingInstance: "default-scheduler-host"}
	assert.Equal(t, "default-scheduler", ReportingController(&scheduler))
	assert.Equal(t, "default-scheduler-host", ReportingInstance(&scheduler))
	assert.Empty(t, KubeletNode(&scheduler), "the reporter's host is not the pod's node")

	both := corev1.Event{ReportingController: "kubelet", ReportingInstance: "node-2", Source: corev1.EventSource{Component: "kubelet"}}
	assert.Equal(t, "node-2", KubeletNode(&both))
	both.Source.Host = "node-1"
	assert.Equal(t, "node-1", KubeletNode(&both), "the source comes first")
}

func TestIsForeign(t *testing.T) {
	object := func(kind, namespace, name string) *resolver.Object {
		return &resolver.Object{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name}
	}
	widget := &resolver.Object{APIVersion: "example.com/v1", Kind: "Node", Namespace: "shop", Name: "n"}
	for name, tt := range map[string]struct {
		stored string
		object *resolver.Object
		want   bool
	}{
		"a pod of the namespace":                        {"shop", object("Pod", "shop", "fe"), false},
		"a pod of another one":                          {"shop", object("Pod", "default", "fe"), true},
		"a pod of another one, from kube-system":        {"kube-system", object("Pod", "shop", "fe"), true},
		"a Node":                                        {"shop", object("Node", "", "n"), true},
		"a Node, from default":                          {"default", object("Node", "", "n"), false},
		"a Node, from kube-system":                      {"kube-system", object("Node", "", "n"), false},
		"a Node that was not looked up":                 {"shop", object("Node", "shop", "n"), true},
		"a Node of the same name":                       {"shop", object("Node", "", "shop"), true},
		"a Node of another group":                       {"shop", widget, false},
		"a PersistentVolume that was not looked up":     {"shop", object("PersistentVolume", "shop", "disk"), true},
		"a StorageClass that was not looked up":         {"shop", &resolver.Object{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Namespace: "shop", Name: "fast"}, true},
		"this Namespace":                                {"shop", object("Namespace", "", "shop"), false},
		"this Namespace, not looked up":                 {"shop", object("Namespace", "shop", "shop"), false},
		"another Namespace":                             {"shop", object("Namespace", "", "default"), true},
		"another Namespace, not looked up":              {"shop", object("Namespace", "shop", "default"), true},
		"another Namespace, from default":               {"default", object("Namespace", "", "shop"), false},
		"a namespace that only looks like kube-system":  {"kube-system-2", object("Node", "", "n"), true},
		"an object of an unknown kind, from default":    {"default", &resolver.Object{}, false},
		"an object of an unknown kind, from the tenant": {"shop", &resolver.Object{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, IsForeign(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: tt.stored}}, tt.object))
		})
	}
}

func TestNode(t *testing.T) {
	pod := &resolver.Object{APIVersion: "v1", Kind: "Pod", Name: "p"}
	node := &resolver.Object{APIVersion: "v1", Kind: "Node", Name: "n"}
	kubelet := &corev1.Event{Source: corev1.EventSource{Component: "kubelet", Host: "node-1"}}
	for name, tt := range map[string]struct {
		ev      *corev1.Event
		objects []*resolver.Object
		want    string
		found   *resolver.Object
	}{
		"a Node event":                       {kubelet, []*resolver.Object{node}, "n", node},
		"a pod that a Node owns":             {kubelet, []*resolver.Object{pod, node}, "n", node},
		"a pod's event of a kubelet":         {kubelet, []*resolver.Object{pod}, "node-1", nil},
		"a pod's event of another program":   {&corev1.Event{Source: corev1.EventSource{Component: "scheduler", Host: "node-1"}}, []*resolver.Object{pod}, "", nil},
		"a kubelet's event of another kind":  {kubelet, []*resolver.Object{{APIVersion: "v1", Kind: "PersistentVolume"}}, "", nil},
		"a Pod of another group":             {kubelet, []*resolver.Object{{APIVersion: "example.com/v1", Kind: "Pod"}}, "", nil},
		"a Node of another group is no Node": {kubelet, []*resolver.Object{{APIVersion: "example.com/v1", Kind: "Node", Name: "n"}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := Node(tt.ev, tt.objects)
			assert.Equal(t, tt.want, got)
			assert.Same(t, tt.found, found)
		})
	}
}
