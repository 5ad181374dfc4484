// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// some returns a part of a story, in its order: a connector that starts late, kubelets that drop
// Events, and lookups that fail hide any of its records.
func (s story) some(random *rand.Rand) (chosen story) {
	share := random.Float64()
	for _, logs := range s[random.IntN(len(s)):] {
		if random.Float64() < share {
			chosen = append(chosen, logs)
		}
	}
	return chosen
}

// TestEachPodHasATrace: whatever records are missing, each pod that the model knows has a span, and
// each trace with the start of a pod has the span of its rollout, unless a scaling shows that the
// rollout is older. No span ends before it starts.
func TestEachPodHasATrace(t *testing.T) {
	t.Parallel()
	for name, s := range allStories(t) {
		for seed := range uint64(100) {
			m := modelOf(s.records.some(rand.New(rand.NewPCG(seed, 0))))
			spans := spansOf(m, late)
			check := func(ok bool, problem string) {
				if !ok {
					t.Fatalf("%s, seed %d: %s:\n%s", name, seed, problem, tree(spans))
				}
			}
			roots, pods := map[pcommon.TraceID]bool{}, map[any]bool{}
			for _, span := range spans {
				roots[span.Trace] = roots[span.Trace] || span.Parent.IsEmpty()
				pods[span.Attributes["k8s.pod.uid"]] = true
				check(span.Start <= span.End, span.Name+" ends before it starts")
			}
			scaled := map[any]bool{}
			for _, w := range m.Workloads {
				for _, r := range w.Revisions {
					for uid := range r.Pods {
						check(pods[uid], uid+" has no span")
						scaled[uid] = len(r.Steps) > 0
					}
				}
			}
			for _, span := range spans {
				hasRoot := roots[span.Trace] || scaled[span.Attributes["k8s.pod.uid"]]
				check(strings.HasPrefix(span.Name, "stop ") || hasRoot, span.Name+" has no rollout")
			}
		}
	}
}

// TestWrongClocks: the records of kubelets are hours away from those of the control plane. No span
// ends before it starts.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	for name, s := range allStories(t) {
		for _, hours := range []int{-30, 5} {
			var shifted story
			for _, logs := range s.records {
				kind, _ := logs.ResourceLogs().At(0).Resource().Attributes().Get("k8s.object.kind")
				other := story{logs}.changed(func(_, _ pcommon.Map) {})[0]
				if record := other.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0); kind.Str() == "Pod" {
					record.SetTimestamp(pcommon.Timestamp(int64(record.Timestamp()) + int64(hours)*3600e9))
				}
				shifted = append(shifted, other)
			}
			for _, span := range spansOf(modelOf(shifted), s.options) {
				assert.LessOrEqual(t, span.Start, span.End, "%s: %s", name, span.Name)
			}
		}
	}
}

// TestBounds: what the model keeps of many entries does not depend on the order of records.
func TestBounds(t *testing.T) {
	t.Parallel()
	var s story
	for i := range 90 {
		label := func(resource, _ pcommon.Map) { resource.PutStr(fmt.Sprint("label.", i), "x") }
		again := fmt.Sprintf("%dh0m0s Deployment/shop ScalingReplicaSet x%d/0s: Scaled up replica set shop-aaa from 0 to 1", i, i+1)
		s = append(s, storyOf(again).changed(label)...)
	}
	reversed := slices.Clone(s)
	slices.Reverse(reversed)
	m := modelOf(s)
	assert.Equal(t, bytesOf(t, m), bytesOf(t, modelOf(reversed)))
	for _, w := range m.Workloads {
		assert.Len(t, w.Activations, 64, "each night, a Deployment is scaled up from zero")
	}
}

// TestEvictIsOfTheLargestNamespace: a namespace displaces only what is its own.
func TestEvictIsOfTheLargestNamespace(t *testing.T) {
	t.Parallel()
	m := modelOf(read(t, "a first rollout"))
	for i := range 1000 {
		m.Join(modelOf(storyOf(fmt.Sprintf("0s Pod/shop-aaa-x%d starts namespace=other", i))))
	}
	var forgotten []string
	m.Evict(100_000, func(key rollout.Key, _ *rollout.Revision) { forgotten = append(forgotten, key.Workload) })
	assert.Equal(t, []string{"cluster/other/uid-shop"}, forgotten)
	assert.Less(t, m.Size(), 100_000)
	assert.Positive(t, m.Size())
	for key, w := range m.Workloads {
		for name := range w.Revisions {
			m.Forget(rollout.Key{Workload: key, Revision: name})
		}
	}
	assert.Zero(t, m.Size())
}

// TestWhatIsForgottenFirst: what has no revision, then what was delivered, then what had no news for longest.
func TestWhatIsForgottenFirst(t *testing.T) {
	t.Parallel()
	m := modelOf(storyOf("0s StatefulSet/db SuccessfulCreate: create Pod db-0 in StatefulSet db successful"))
	for i, name := range []string{"late", "early", "delivered-late", "delivered-early"} {
		in := modelOf(storyOf(fmt.Sprintf("0s Pod/%s-aaa-1 starts", name)))
		in.ReceivedAt(int64(10 - i))
		m.Join(in)
		if _, r := m.Revision(rollout.Key{Workload: "cluster/shop/uid-" + name, Revision: "replicaset.apps/" + name + "-aaa"}); i > 1 {
			r.Closed = true
		}
	}
	require.NotNil(t, m.Workloads["cluster/shop/uid-db"])
	var order []string
	forgotten := func(key rollout.Key, _ *rollout.Revision) {
		order = append(order, strings.TrimPrefix(key.Workload, "cluster/shop/uid-"))
	}
	m.Evict(m.Size(), forgotten)
	assert.Len(t, m.Workloads, 5, "there is room")
	m.Evict(m.Size()-1, forgotten)
	assert.NotContains(t, m.Workloads, "cluster/shop/uid-db")
	assert.LessOrEqual(t, len(order), 1, "a bit more than what is too much")
	m.Forget(rollout.Key{Workload: "unknown"})
	m.Evict(0, forgotten)
	assert.Equal(t, []string{"delivered-early", "delivered-late", "early", "late"}, order)
	assert.Empty(t, m.Workloads)
	assert.Zero(t, m.Size())
}

// TestManyRevisions: a workload that has more than 256 loses an eighth of that, the oldest.
func TestManyRevisions(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]int{256: 0, 257: 32} {
		m := &rollout.Model{}
		for i := range count {
			in := modelOf(storyOf(fmt.Sprintf("0s Deployment/web ScalingReplicaSet event=%d: Scaled up replica set web-r%d from 0 to 1", i, i)))
			in.ReceivedAt(int64(i + 1))
			m.Join(in)
		}
		var forgotten []string
		m.Evict(m.Size(), func(key rollout.Key, _ *rollout.Revision) { forgotten = append(forgotten, nameOf(key.Revision)) })
		assert.Len(t, forgotten, want)
		assert.Equal(t, count-want, m.Revisions())
		for i, name := range forgotten {
			assert.Equal(t, fmt.Sprint("web-r", i), name)
		}
	}
}

// TestForgottenRevision: the pods of another revision can have the same names, and still need the
// times at which they were created. Names that no other revision uses are forgotten.
func TestForgottenRevision(t *testing.T) {
	t.Parallel()
	m := modelOf(append(read(t, "a StatefulSet"), storyOf(`20m0s StatefulSet/db SuccessfulCreate: create Pod db-1 in StatefulSet db successful
20m0s Pod/db-1<statefulset.apps/db starts uid=uid-3 hash=hash-3`)...))
	for key, w := range m.Workloads {
		m.Forget(rollout.Key{Workload: key, Revision: "hash-3"})
		assert.Contains(t, w.Names.Created, "db-0")
		assert.NotContains(t, w.Names.Created, "db-1")
		before := w.Spans("hash-2", late)
		m.Forget(rollout.Key{Workload: key, Revision: "hash-1"})
		assert.Equal(t, before[1:], w.Spans("hash-2", late)[1:], "the pod and its phases")
		m.Forget(rollout.Key{Workload: key, Revision: "hash-2"})
		assert.Empty(t, m.Workloads)
	}
}

// TestForgottenBetween: a rollback is one, also after the revision between is forgotten.
func TestForgottenBetween(t *testing.T) {
	t.Parallel()
	m := modelOf(read(t, "a rollback is another trace"))
	starts := func(w *rollout.Workload) (ids []string) {
		for _, part := range w.Spans("replicaset.apps/shop-aaa", late) {
			if !strings.HasPrefix(part.Key, "s/") {
				ids = append(ids, fmt.Sprint(part.Key, part.Spans[0].Trace, part.Spans[0].ID))
			}
		}
		return ids
	}
	for key, w := range m.Workloads {
		before := starts(w)
		m.Forget(rollout.Key{Workload: key, Revision: "replicaset.apps/shop-bbb"})
		assert.Equal(t, before, starts(w))
	}
}

// TestRollbackIsNews: the first record of a rollback can be an Event that is known, and that occurs
// again.
func TestRollbackIsNews(t *testing.T) {
	t.Parallel()
	const first = "replicaset.apps/shop-aaa"
	update := read(t, "an update")
	m := modelOf(update)
	for _, w := range m.Workloads {
		w.Revisions[first].Closed = true
	}
	again, _ := rollout.Read(record.Read(read(t, "a rollback is another trace")[len(update)]), &rollout.Model{})
	for _, key := range m.Join(again) {
		assert.Equal(t, first, key.Revision)
	}
	for _, w := range m.Workloads {
		assert.False(t, w.Revisions[first].Closed)
	}
}

// TestHarmlessReasons: a warning that a user calls harmless fails no rollout.
func TestHarmlessReasons(t *testing.T) {
	t.Parallel()
	s := storyOf("0s Deployment/shop ScalingReplicaSet: Scaled up replica set shop-aaa from 0 to 1\n0s Pod/shop-aaa-1 starts\n9s Pod/shop-aaa-1 !AuditOnly: no limits")
	for want, reasons := range map[string][]string{rollout.Failed: nil, rollout.Complete: {"AuditOnly"}} {
		m := &rollout.Model{}
		for _, logs := range s {
			read, _ := rollout.Read(record.Read(logs, reasons...), m)
			m.Join(read)
		}
		for _, w := range m.Workloads {
			rollouts, _ := w.States(late)
			assert.Equal(t, want, rollouts[0].Outcome)
		}
	}
}
