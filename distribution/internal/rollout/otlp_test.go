// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	stories "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// withEverything has what a span can show: images, a change of the template, who made it, the end of a container, and warnings.
const withEverything = `0s Deployment/shop ScalingReplicaSet: Scaled up replica set shop-aaa from 0 to 1
0s Pod/shop-aaa-1 starts node=worker-1
10m0s Deployment/shop ScalingReplicaSet changes=memory_limit_app:_256Mi_→_128Mi;image_app:_shop:2_→_shop:3 tool=application.argoproj.io/shop by=argocd: Scaled up replica set shop-bbb from 0 to 1
10m0s ReplicaSet/shop-bbb SuccessfulCreate: Created pod: shop-bbb-1
10m0s Pod/shop-bbb-1 starts node=worker-2
10m20s Pod/shop-bbb-1 !BackOff{app} node=worker-2 ended=OOMKilled/137/134217728/10m19s x3/10m10s: Back-off restarting failed container app in pod shop-bbb-1
10m21s Pod/shop-bbb-1 Started{app} node=worker-2 event=again x4/10m4s: Container started
10m22s Pod/shop-bbb-1 !BackOff{app} node=worker-2 event=late: Back-off restarting failed container app in pod shop-bbb-1
10m30s Pod/shop-bbb-1 !FailedMount node=worker-2: no such secret`

// TestSpansAsOTLP: testdata/otlp.json has all that is written of a rollout. Ids never change: a
// Collector that delivered a part of a trace before an upgrade delivers the rest after it.
func TestSpansAsOTLP(t *testing.T) {
	t.Parallel()
	s := storyOf(withEverything).changed(func(resource, _ pcommon.Map) { resource.PutStr("team", "checkout") })
	var got bytes.Buffer
	for _, w := range modelOf(s).Workloads {
		for _, name := range slices.Sorted(maps.Keys(w.Revisions)) {
			encoded, err := (&ptrace.JSONMarshaler{}).MarshalTraces(w.Revisions[name].Write(w.Spans(name, late), "scope", "1.2.3"))
			require.NoError(t, err)
			require.NoError(t, json.Indent(&got, encoded, "", " "))
			got.WriteString("\n")
		}
	}
	file := filepath.Join("testdata", "otlp.json")
	if *update {
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -args -update")
	assert.Equal(t, string(want), got.String())
}

// TestRecordsGetTheIdsOfTheirSpans: those of the pod, or else of the rollout. What has a trace already keeps it.
func TestRecordsGetTheIdsOfTheirSpans(t *testing.T) {
	t.Parallel()
	rollback := read(t, "a rollback is another trace")
	m := modelOf(append(rollback, storyOf("0s Pod/api-aaa-1 starts\n0s Pod/db-0<statefulset.apps/db starts hash=h")...))
	spans := map[string]string{}
	for _, w := range m.Workloads {
		for revision := range w.Revisions {
			for _, part := range w.Spans(revision, late) {
				span := part.Spans[0]
				spans[span.ID.String()] = strings.TrimSpace(span.Name + " " + nameOf(revision))
				require.NotEmpty(t, span.Trace)
			}
		}
	}
	stamp := func(logs plog.Logs) string {
		m.Stamp(logs)
		return spans[logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SpanID().String()]
	}
	for line, want := range map[string]string{
		"1s Pod/shop-aaa-1 Odd: odd":      "pod shop-aaa-1 shop-aaa",
		"1s Pod/shop-aaa-9 Odd: odd":      "rollout deployment/shop shop-aaa",
		"1s ReplicaSet/shop-aaa Odd: odd": "rollout deployment/shop shop-aaa",
		"1s Deployment/shop ScalingReplicaSet: Scaled up replica set shop-bbb from 1 to 2": "rollout deployment/shop shop-bbb",
		"1s Deployment/shop Odd: odd":                                "",
		"1s Deployment/other Odd: odd":                               "",
		"1s Pod/shop-ccc-1 Odd: odd":                                 "",
		"1s Node/worker-1 Odd: odd":                                  "",
		"1s Pod/db-0<statefulset.apps/db Odd hash=h: odd":            "pod db-0 h",
		"1s Pod/db-1<statefulset.apps/db Odd hash=h uid=other: odd":  "rollout statefulset/db h",
		"1s Pod/db-0<statefulset.apps/db Odd namespace=other: odd":   "",
		"1s Pod/shop-aaa-1 Odd: Scaled up replica set shop-bbb to 3": "pod shop-aaa-1 shop-aaa",
	} {
		assert.Equal(t, want, stamp(stories.Logs(line)[0]), line)
	}
	// The records of one revision are of its rollout at their time.
	first, second := plog.NewLogs(), plog.NewLogs()
	rollback[0].CopyTo(first)
	stories.Logs("20m30s ReplicaSet/shop-aaa Odd: odd")[0].CopyTo(second)
	assert.NotEmpty(t, stamp(first))
	assert.NotEmpty(t, stamp(second))
	of := func(logs plog.Logs) plog.LogRecord {
		return logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	}
	assert.NotEqual(t, of(first).TraceID(), of(second).TraceID())

	own := stories.Logs("1s Pod/shop-aaa-1 Odd: odd")[0]
	of(own).SetTraceID(pcommon.TraceID{1})
	assert.Empty(t, stamp(own))
	assert.Equal(t, pcommon.TraceID{1}, of(own).TraceID())
	other := stories.Logs("1s Pod/shop-aaa-1 Odd: odd")[0]
	of(other).SetEventName("another")
	assert.Empty(t, stamp(other))
	assert.Empty(t, of(other).TraceID())
}

// TestACopyStaysAsItIs: the spans of a copy do not change while the model gets more records.
func TestACopyStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, s := range allStories(t) {
		m := modelOf(s.records[:len(s.records)/2])
		copies := &rollout.Model{Workloads: map[string]*rollout.Workload{}}
		for key, w := range m.Workloads {
			copies.Workloads[key] = w.Clone()
			for _, r := range w.Revisions {
				r.MarkSent("before")
			}
		}
		before, sent := bytesOf(t, copies), string(saved(t, copies))
		m.Join(modelOf(s.records))
		m.Join(modelOf(storyOf(withEverything)))
		for _, w := range m.Workloads {
			for _, r := range w.Revisions {
				r.MarkSent("later")
				r.Closed = true
			}
		}
		assert.Equal(t, before, bytesOf(t, copies), name)
		assert.Equal(t, sent, string(saved(t, copies)), name)
	}
}

// TestWhatWasDelivered is all that is saved of it: the rest is known from the records.
func TestWhatWasDelivered(t *testing.T) {
	t.Parallel()
	m := modelOf(storyOf(withEverything))
	key := rollout.Key{Workload: "cluster/shop/uid-shop", Revision: "replicaset.apps/shop-bbb"}
	w, r := m.Revision(key)
	require.NotNil(t, r)
	r.MarkSent("r/")
	r.Closed = true
	marked := w.Mark(key)
	assert.JSONEq(t, `{"w":{"cluster/shop/uid-shop":{"c":"cluster","s":"shop","u":"uid-shop","k":"Deployment","n":"shop","r":{
		"replicaset.apps/shop-bbb":{"s":{"r/":true},"x":true}}}}}`, string(saved(t, marked)))
	fresh := modelOf(storyOf(withEverything))
	assert.Empty(t, fresh.Join(marked), "it is no news")
	_, r = fresh.Revision(key)
	assert.True(t, r.Closed)
	assert.Equal(t, map[string]bool{"r/": true}, r.Sent)
	assert.Equal(t, []rollout.Key{key}, fresh.Join(modelOf(storyOf("11m0s Pod/shop-bbb-2 starts"))))
	assert.False(t, r.Closed, "news open it again")
}
