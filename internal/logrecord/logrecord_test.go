// SPDX-License-Identifier: Apache-2.0

package logrecord

import (
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

var seenAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// of returns an observation of an event whose involved object has no owners.
func of(ev *corev1.Event) observation.Observation {
	return observation.Observation{
		Event: ev, Occurrences: 1, SeenAt: seenAt,
		Chain: resolver.Chain{Objects: []*resolver.Object{event.Involved(ev).Object()}, Resolution: resolver.ResolutionComplete},
	}
}

func podEvent(name, pod string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: pod},
	}
}

func convert(o ...observation.Observation) plog.Logs {
	return Converter{}.Convert(semconv.Cluster{}, o)
}

func TestOneResourceForEachInvolvedObject(t *testing.T) {
	a1, b, a2 := of(podEvent("1", "a")), of(podEvent("2", "b")), of(podEvent("3", "a"))
	a2.Chain = a1.Chain
	logs := convert(a1, b, a2)
	require.Equal(t, 2, logs.ResourceLogs().Len())
	records := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	require.Equal(t, 2, records.Len())
	for i, want := range []string{"1", "3"} {
		name, _ := records.At(i).Attributes().Get("k8s.event.name")
		assert.Equal(t, want, name.Str(), "in their order")
	}
}

func TestContainersOfAPodAreResourcesOfTheirOwn(t *testing.T) {
	first, second := podEvent("1", "a"), podEvent("2", "a")
	first.InvolvedObject.FieldPath = "spec.containers{app}"
	second.InvolvedObject.FieldPath = "spec.initContainers{setup}"
	logs := convert(of(first), of(second))
	require.Equal(t, 2, logs.ResourceLogs().Len())
	for i, want := range []string{"app", "setup"} {
		name, _ := logs.ResourceLogs().At(i).Resource().Attributes().Get("k8s.container.name")
		assert.Equal(t, want, name.Str())
	}
}

// TestOnlyAKubeletNamesTheNodeOfAPod: a record gets no node from another record about the same pod, and
// none from a reporter that is no kubelet, or whose event is about something else.
func TestOnlyAKubeletNamesTheNodeOfAPod(t *testing.T) {
	reported := func(name, kind, component, host string) observation.Observation {
		ev := podEvent(name, "a")
		ev.InvolvedObject.Kind, ev.Source = kind, corev1.EventSource{Component: component, Host: host}
		return of(ev)
	}
	logs := convert(
		reported("kubelet", "Pod", "kubelet", "node-1"), reported("scheduler", "Pod", "default-scheduler", "node-2"),
		reported("kubelet of another node", "Pod", "kubelet", "node-3"), reported("claim", "PersistentVolumeClaim", "kubelet", "node-4"),
	)
	nodes := map[string]string{}
	for _, resource := range logs.ResourceLogs().All() {
		for _, record := range resource.ScopeLogs().At(0).LogRecords().All() {
			nodes[valueOf(record.Attributes(), "k8s.event.name")] = valueOf(resource.Resource().Attributes(), "k8s.node.name")
		}
	}
	assert.Equal(t, map[string]string{"kubelet": "node-1", "scheduler": "", "kubelet of another node": "node-3", "claim": ""}, nodes)
}

func TestTheNamespaceOfAnEventOutsideThatOfItsObject(t *testing.T) {
	object := func(kind, namespace, name string) *resolver.Object {
		return &resolver.Object{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name}
	}
	for name, tt := range map[string]struct {
		stored    string
		chain     resolver.Chain
		namespace string // k8s.namespace.name
		want      string // k8s.event.namespace
	}{
		"an object of the same one": {"shop", resolver.Chain{Objects: []*resolver.Object{object("Pod", "shop", "fe")}}, "shop", ""},
		"a Node":                    {"default", resolver.Chain{Objects: []*resolver.Object{object("Node", "", "n")}}, "", "default"},
		"a Namespace":               {"default", resolver.Chain{Objects: []*resolver.Object{object("Namespace", "", "shop")}}, "shop", "default"},
		"a foreign event": {
			"tenant-b", resolver.Chain{Objects: []*resolver.Object{{Namespace: "tenant-b"}}, Resolution: observation.Foreign}, "tenant-b", "tenant-b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := of(podEvent("1", "a"))
			o.Event.Namespace, o.Chain = tt.stored, tt.chain
			resource := convert(o).ResourceLogs().At(0)
			assert.Equal(t, tt.namespace, valueOf(resource.Resource().Attributes(), "k8s.namespace.name"))
			assert.Equal(t, tt.want, valueOf(resource.ScopeLogs().At(0).LogRecords().At(0).Attributes(), "k8s.event.namespace"))
		})
	}
}

// TestARecordOfAForeignEvent has what the event says, and nothing of the object that it names.
func TestARecordOfAForeignEvent(t *testing.T) {
	ev := podEvent("1", "worker-1")
	ev.Namespace = "tenant-b"
	ev.InvolvedObject.Kind, ev.InvolvedObject.UID = "Node", "forged"
	ev.Source = corev1.EventSource{Component: "kubelet", Host: "worker-1"}
	o := of(ev)
	o.Chain = resolver.Chain{Objects: []*resolver.Object{{Namespace: "tenant-b"}}, Resolution: observation.Foreign}
	resource := convert(o).ResourceLogs().At(0)
	assert.Equal(t, map[string]any{
		"k8s.namespace.name": "tenant-b", "k8s.object.api_version": "v1", "k8s.object.kind": "Node",
		"k8s.object.name": "worker-1", "k8s.object.uid": "forged",
	}, resource.Resource().Attributes().AsRaw())
	assert.Equal(t, "foreign", valueOf(resource.ScopeLogs().At(0).LogRecords().At(0).Attributes(), "k8s.owner.resolution"))
}

// valueOf returns an attribute; empty: there is none.
func valueOf(attributes pcommon.Map, name string) string {
	if value, ok := attributes.Get(name); ok {
		return value.Str()
	}
	return ""
}

func TestSeverity(t *testing.T) {
	for eventType, want := range map[string]plog.SeverityNumber{
		"Normal": plog.SeverityNumberInfo, "Warning": plog.SeverityNumberWarn, "Audit": plog.SeverityNumberUnspecified, "": plog.SeverityNumberUnspecified,
	} {
		ev := podEvent("1", "a")
		ev.Type = eventType
		record := convert(of(ev)).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		assert.Equal(t, want, record.SeverityNumber(), eventType)
		assert.Equal(t, eventType, record.SeverityText())
	}
}

func TestTheBodyIsTheMessage(t *testing.T) {
	ev := podEvent("1", "a")
	ev.Type, ev.Reason, ev.Message = "Warning", "BackOff", "Back-off restarting failed container"
	record := convert(of(ev)).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	assert.Equal(t, ev.Message, record.Body().Str())
	assert.Equal(t, "BackOff", valueOf(record.Attributes(), "k8s.event.reason"))
	assert.Equal(t, "Warning", valueOf(record.Attributes(), "k8s.event.type"))
}

func TestTheAnnotationTraceparentIsTheTraceContext(t *testing.T) {
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for name, tt := range map[string]struct {
		value, trace, span string
		flags              plog.LogRecordFlags
	}{
		"sampled":           {"00-" + traceID + "-" + spanID + "-01", traceID, spanID, 1},
		"not sampled":       {"00-" + traceID + "-" + spanID + "-00", traceID, spanID, 0},
		"a later version":   {"01-" + traceID + "-" + spanID + "-01-more", traceID, spanID, 1},
		"no annotation":     {value: ""},
		"a trace of zeros":  {value: "00-00000000000000000000000000000000-" + spanID + "-01"},
		"a span of zeros":   {value: "00-" + traceID + "-0000000000000000-01"},
		"too short":         {value: "00-" + traceID[1:] + "-" + spanID + "-01"},
		"capital letters":   {value: "00-" + strings.ToUpper(traceID) + "-" + spanID + "-01"},
		"something else":    {value: "deployment"},
		"an invalid number": {value: "00-" + traceID + "-" + spanID + "-zz"},
	} {
		t.Run(name, func(t *testing.T) {
			ev := podEvent("1", "a")
			ev.Annotations = map[string]string{"traceparent": tt.value}
			record := convert(of(ev)).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
			assert.Equal(t, tt.trace, record.TraceID().String())
			assert.Equal(t, tt.span, record.SpanID().String())
			assert.Equal(t, tt.flags, record.Flags())
		})
	}
}

func TestTheTraceContextOfTheNearestObject(t *testing.T) {
	const spanID, key = "00f067aa0ba902b7", "tracing.k8s.io/traceparent"
	traced := func(digit string) map[string]string {
		return map[string]string{key: "00-" + strings.Repeat(digit, 32) + "-" + spanID + "-01"}
	}
	for name, tt := range map[string]struct {
		event      string
		pod, owner map[string]string
		trace      string // its digit; empty: there is none
	}{
		"the event's own comes first": {event: traced("a")[key], pod: traced("b"), owner: traced("c"), trace: "a"},
		"the involved object":         {pod: traced("b"), owner: traced("c"), trace: "b"},
		"its owner":                   {owner: traced("c"), trace: "c"},
		"one that is not valid":       {event: "x", pod: map[string]string{key: "y"}, owner: traced("c"), trace: "c"},
		"another annotation":          {pod: map[string]string{"traceparent": traced("b")[key]}},
		"nobody has one":              {},
	} {
		t.Run(name, func(t *testing.T) {
			ev := podEvent("1", "a")
			ev.Annotations = map[string]string{"traceparent": tt.event}
			o := of(ev)
			o.Chain.Objects = []*resolver.Object{
				{APIVersion: "v1", Kind: "Pod", Name: "a", Annotations: tt.pod},
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a"},
				{APIVersion: "apps/v1", Kind: "Deployment", Name: "a", Annotations: tt.owner},
			}
			record := convert(o).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
			assert.Equal(t, strings.Repeat(tt.trace, 32), record.TraceID().String())
			assert.Equal(t, tt.trace != "", record.SpanID().String() == spanID)
		})
	}
}

func TestTheClusterIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		cluster semconv.Cluster
		want    map[string]any
	}{
		"both are known":     {semconv.Cluster{UID: "uid", Name: "east"}, map[string]any{"k8s.cluster.uid": "uid", "k8s.cluster.name": "east"}},
		"only a name is set": {semconv.Cluster{Name: "east"}, map[string]any{"k8s.cluster.name": "east"}},
		"neither":            {semconv.Cluster{}, map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Converter{}.Convert(tt.cluster, []observation.Observation{of(podEvent("1", "a"))}).ResourceLogs().At(0).Resource().Attributes().AsRaw()
			maps.DeleteFunc(got, func(key string, _ any) bool { return !strings.HasPrefix(key, "k8s.cluster.") })
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestTheNodeIsNotTheReportersHost(t *testing.T) {
	byScheduler := podEvent("1", "a")
	byScheduler.Source = corev1.EventSource{Component: "default-scheduler", Host: "control-plane"}
	byKubelet := podEvent("2", "b")
	byKubelet.Source = corev1.EventSource{Component: "kubelet", Host: "node-1"}
	logs := convert(of(byScheduler), of(byKubelet))
	_, ok := logs.ResourceLogs().At(0).Resource().Attributes().Get("k8s.node.name")
	assert.False(t, ok)
	node, _ := logs.ResourceLogs().At(1).Resource().Attributes().Get("k8s.node.name")
	assert.Equal(t, "node-1", node.Str())
}

func TestWhatTheEventLeavesOpenIsFilledFromWhatWasFound(t *testing.T) {
	o := of(&corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Name: "d"}})
	o.Chain.Objects = []*resolver.Object{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "d", UID: "found"}}
	got := convert(o).ResourceLogs().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, "apps/v1", got["k8s.object.api_version"])
	assert.Equal(t, "found", got["k8s.object.uid"])
	assert.Equal(t, "default", got["k8s.namespace.name"])
	assert.Equal(t, "d", got["k8s.deployment.name"])

	o.Event.InvolvedObject.APIVersion, o.Event.InvolvedObject.UID = "extensions/v1beta1", "said"
	got = convert(o).ResourceLogs().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, "extensions/v1beta1", got["k8s.object.api_version"], "what the event says comes first")
	assert.Equal(t, "said", got["k8s.object.uid"])
}

func TestATagDoesNotReplaceAnAttributeOfOurs(t *testing.T) {
	o := of(podEvent("1", "a"))
	o.Tags.Resource = []extract.Tag{{Name: "k8s.pod.name", Value: "forged"}, {Name: "team", Value: "web"}}
	got := convert(o).ResourceLogs().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, "a", got["k8s.pod.name"])
	assert.Equal(t, "web", got["team"])
}

func TestTagsOfTheEventAreAttributesOfTheRecord(t *testing.T) {
	o := of(podEvent("1", "a"))
	o.Tags.Record = []extract.Tag{{Name: "k8s.event.name", Value: "forged"}, {Name: "pipe\xffline", Value: "4\xfe2"}, {Name: "empty", Value: ""}}
	logs := convert(o)
	attributes := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes()
	requireSound(t, attributes)
	got := attributes.AsRaw()
	assert.Equal(t, "1", got["k8s.event.name"])
	assert.Equal(t, "4\uFFFD2", got["pipe\uFFFDline"])
	for key := range logs.ResourceLogs().At(0).Resource().Attributes().All() {
		assert.NotContains(t, key, "pipe")
	}
}

// TestOtherTagsMakeAnotherResource: a label may change between two events that are in one batch,
// because dedup_interval holds records back.
func TestOtherTagsMakeAnotherResource(t *testing.T) {
	before, after := of(podEvent("1", "a")), of(podEvent("2", "a"))
	before.Tags.Resource = []extract.Tag{{Name: "team", Value: "web"}}
	after.Tags.Resource = []extract.Tag{{Name: "team", Value: "shop"}}
	logs := convert(before, after)
	require.Equal(t, 2, logs.ResourceLogs().Len())
	for i, want := range []string{"web", "shop"} {
		team, _ := logs.ResourceLogs().At(i).Resource().Attributes().Get("team")
		assert.Equal(t, want, team.Str())
	}
}

func TestANamespaceIsItsOwnNamespace(t *testing.T) {
	o := of(&corev1.Event{InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "shop"}})
	got := convert(o).ResourceLogs().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, "shop", got["k8s.namespace.name"])

	owned := of(podEvent("1", "a"))
	owned.Chain.Objects = append(owned.Chain.Objects, &resolver.Object{APIVersion: "v1", Kind: "Namespace", Name: "owner"})
	got = convert(owned).ResourceLogs().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, "ns", got["k8s.namespace.name"], "a namespace that owns something is another")
}

func FuzzConvert(f *testing.F) {
	f.Add("name", "uid", "Reason", "Warning", "message", "Pod", "v1", "pod", "spec.containers{a}", int32(3), int32(0), int64(1_700_000_000))
	f.Add("", "", "", "", "", "", "", "", "", int32(-1), int32(-1), int64(-1))
	f.Add("n\xff", "u", "r\xfe", "t\xfd", strings.Repeat("m\xfc", 100), "K", "a/b/c", "\xfb", "spec.containers{", int32(1), int32(9), int64(1)<<62)
	f.Fuzz(func(t *testing.T, name, uid, reason, eventType, message, kind, apiVersion, object, path string, count, series int32, seconds int64) {
		ev := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)},
			Reason:     reason, Type: eventType, Message: message, Count: count, Series: &corev1.EventSeries{Count: series},
			LastTimestamp:  metav1.Unix(seconds, 0),
			InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: object, FieldPath: path},
			Related:        &corev1.ObjectReference{Kind: kind, Name: object},
		}
		event.Normalize(ev)
		logs := convert(of(ev))
		require.Equal(t, 1, logs.LogRecordCount())
		rl := logs.ResourceLogs().At(0)
		requireSound(t, rl.Resource().Attributes())
		record := rl.ScopeLogs().At(0).LogRecords().At(0)
		requireSound(t, record.Attributes())
		require.True(t, utf8.ValidString(record.Body().Str()))
		_, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
		require.NoError(t, err)
	})
}

func requireSound(t *testing.T, attributes pcommon.Map) {
	for key, value := range attributes.All() {
		require.NotEmpty(t, value.AsString(), key)
		require.True(t, utf8.ValidString(key) && utf8.ValidString(value.AsString()), key)
	}
}

// kubelets is an observation of a kubelet's event about a pod of a Deployment.
func kubelets() observation.Observation {
	now := metav1.NewTime(seenAt)
	pod := &resolver.Object{APIVersion: "v1", Kind: "Pod", Namespace: "team-1", Name: "app-6f5c9d7b4-xk2lp", UID: "uid-pod"}
	replicaSet := &resolver.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "team-1", Name: "app-6f5c9d7b4", UID: "uid-rs"}
	deployment := &resolver.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "team-1", Name: "app", UID: "uid-app"}
	return observation.Observation{
		Event: &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-1", Name: "app-6f5c9d7b4-xk2lp.18a2f1c3d4e5f607", UID: "uid-event", CreationTimestamp: now},
			InvolvedObject: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Pod", Namespace: "team-1", Name: pod.Name, UID: pod.UID,
				FieldPath: "spec.containers{app}", ResourceVersion: "4711",
			},
			Reason: "Unhealthy", Message: "Readiness probe failed", Type: "Warning", Count: 1,
			Source: corev1.EventSource{Component: "kubelet", Host: "node-1"}, FirstTimestamp: now, LastTimestamp: now,
		},
		Occurrences: 1, SeenAt: seenAt,
		Chain: resolver.Chain{Objects: []*resolver.Object{pod, replicaSet, deployment}, Resolution: resolver.ResolutionComplete},
		Tags:  extract.Tags{Resource: []extract.Tag{{Name: "tilt.manifest", Value: "app"}}},
	}
}

// pdata makes an allocation for each attribute: 23 of the resource and 13 of the record, one of them
// a list of two names. The others are the lists and structs of attributes, records, scopes and
// resources, and strings that are put together: the names of owners, the UID of the record, its
// start time, and the key of the resource.
func TestAllocationsOfConverting(t *testing.T) {
	records := []observation.Observation{kubelets()}
	memorytest.Allocations(t, 61, func() { convert(records...) })
}

// Another record of the same resource.
func TestAllocationsOfConvertingAnotherRecord(t *testing.T) {
	one, two := []observation.Observation{kubelets()}, []observation.Observation{kubelets(), kubelets()}
	first := testing.AllocsPerRun(1000, func() { convert(one...) })
	memorytest.Allocations(t, first+21, func() { convert(two...) })
}

// The bytes.
func TestAllocationsOfMarshalling(t *testing.T) {
	logs, marshaler := convert(kubelets()), &plog.ProtoMarshaler{}
	memorytest.Allocations(t, 1, func() {
		_, err := marshaler.MarshalLogs(logs)
		require.NoError(t, err)
	})
}

// Records of one resource may name one workload only.
func TestChainsThatEndElsewhereAreResourcesOfTheirOwn(t *testing.T) {
	end := resolver.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web", UID: "1"}
	for name, change := range map[string]func(*resolver.Object){
		"another API version": func(o *resolver.Object) { o.APIVersion = "apps/v2" },
		"another kind":        func(o *resolver.Object) { o.Kind = "StatefulSet" },
		"another namespace":   func(o *resolver.Object) { o.Namespace = "other" },
		"another name":        func(o *resolver.Object) { o.Name = "api" },
		"another UID":         func(o *resolver.Object) { o.UID = "2" },
		"none":                nil,
	} {
		t.Run(name, func(t *testing.T) {
			one, two, other := of(podEvent("1", "a")), of(podEvent("2", "a")), end
			one.Chain.Objects = append(one.Chain.Objects, &end)
			want := 1
			if change != nil {
				change(&other)
				want = 2
			}
			two.Chain.Objects = append(two.Chain.Objects, &other)
			assert.Equal(t, want, convert(one, two).ResourceLogs().Len())
		})
	}
}

// attributesOf returns those of the record of an observation whose names begin so.
func attributesOf(o observation.Observation, beginning string) map[string]any {
	all := convert(o).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw()
	maps.DeleteFunc(all, func(name string, _ any) bool { return !strings.HasPrefix(name, beginning) })
	return all
}

func TestTheObjectThatAnEventIsRelatedTo(t *testing.T) {
	o := of(podEvent("1", "a"))
	o.Event.Related = &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Name: "fe", UID: "fe-uid"}
	assert.Equal(t, map[string]any{
		"k8s.event.related.api_version": "apps/v1", "k8s.event.related.kind": "ReplicaSet", "k8s.event.related.namespace": "shop",
		"k8s.event.related.name": "fe", "k8s.event.related.uid": "fe-uid",
	}, attributesOf(o, "k8s.event.related."))
}

func TestHowAContainerEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		ended observation.Termination
		want  map[string]any
	}{
		"by a signal": {
			observation.Termination{Reason: "OOMKilled", ExitCode: 137, Signal: 9, Restarts: 3, StartedAt: seenAt, FinishedAt: seenAt.Add(time.Minute), MemoryLimit: 64 << 20},
			map[string]any{
				"k8s.container.status.last_terminated_reason": "OOMKilled", "k8s.container.restart_count": int64(3), "k8s.container.last_terminated.signal": int64(9),
				"k8s.container.last_terminated.started_at": "2026-01-02T03:04:05Z", "k8s.container.last_terminated.finished_at": "2026-01-02T03:05:05Z",
				"k8s.container.memory.limit": int64(64 << 20), "process.exit.code": int64(137),
			},
		},
		"by itself, without a limit": {
			observation.Termination{Reason: "Error", ExitCode: 2, FinishedAt: seenAt},
			map[string]any{
				"k8s.container.status.last_terminated_reason": "Error", "k8s.container.restart_count": int64(0),
				"k8s.container.last_terminated.finished_at": "2026-01-02T03:04:05Z", "process.exit.code": int64(2),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := of(podEvent("1", "a"))
			o.Details = &observation.Details{Ended: &tt.ended}
			got := attributesOf(o, "k8s.container.")
			maps.Copy(got, attributesOf(o, "process."))
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestWhatARolloutChanged(t *testing.T) {
	o := of(podEvent("1", "a"))
	o.Details = &observation.Details{
		Resolution: resolver.ResolutionForbidden, ConfigMaps: []string{"configmap a changed"}, Changes: []string{"image app: a → b"},
		DeployedBy: "helm/web", ChangedBy: "kubectl-edit", ChangedAt: seenAt,
	}
	got := attributesOf(o, "k8s.")
	for name, want := range map[string]any{
		"k8s.details.resolution": "forbidden", "k8s.config_map.changes": []any{"configmap a changed"}, "k8s.rollout.changes": []any{"image app: a → b"},
		"k8s.workload.deployed_by": "helm/web", "k8s.workload.changed_by": "kubectl-edit", "k8s.workload.changed_at": "2026-01-02T03:04:05Z",
	} {
		assert.Equal(t, want, got[name], name)
	}
}

func TestARecordOfAnEventThatSaysNothing(t *testing.T) {
	ev := podEvent("1", "a")
	ev.UID = ""
	record := convert(of(ev)).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	assert.Equal(t, EventName, record.EventName())
	for _, name := range []string{"log.record.uid", "k8s.event.start_time"} {
		_, has := record.Attributes().Get(name)
		assert.False(t, has, name)
	}
}
