// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// shifted returns the records as they are if the clocks of some nodes differ from those of the control
// plane.
func (s story) shifted(t *testing.T, by time.Duration, isOn func(pod string) bool) (all story) {
	t.Helper()
	for _, logs := range s {
		of := plog.NewLogs()
		logs.CopyTo(of)
		rl := of.ResourceLogs().At(0)
		kind, _ := rl.Resource().Attributes().Get("k8s.object.kind")
		name, _ := rl.Resource().Attributes().Get("k8s.object.name")
		record := rl.ScopeLogs().At(0).LogRecords().At(0)
		reason, _ := record.Attributes().Get("k8s.event.reason")
		if kind.Str() == "Pod" && !slices.Contains([]string{"Scheduled", "FailedScheduling"}, reason.Str()) && isOn(name.Str()) {
			record.SetTimestamp(pcommon.NewTimestampFromTime(record.Timestamp().AsTime().Add(by)))
			if since, ok := record.Attributes().Get("k8s.event.start_time"); ok {
				at, err := time.Parse(time.RFC3339Nano, since.Str())
				require.NoError(t, err)
				since.SetStr(at.Add(by).Format(time.RFC3339Nano))
			}
		}
		all = append(all, of)
	}
	return all
}

// withDeletions adds the records of ReplicaSets that delete pods: stories have only those of kubelets.
func (s story) withDeletions() (all story) {
	for _, logs := range s {
		rl := logs.ResourceLogs().At(0)
		owners, _ := rl.Resource().Attributes().Get("k8s.owner.chain")
		name, _ := rl.Resource().Attributes().Get("k8s.object.name")
		record := rl.ScopeLogs().At(0).LogRecords().At(0)
		if strings.HasPrefix(record.Body().Str(), "Stopping container") && strings.HasPrefix(owners.Slice().At(0).Str(), "replicaset.apps/") {
			of := pod(name.Str())
			at := record.Timestamp().AsTime().Sub(epoch).String()
			about := replicaSet(strings.TrimPrefix(of.chain[0], "replicaset.apps/"))
			deleted := occurrence{at: at, about: about, reason: "SuccessfulDelete", message: "Deleted pod: " + name.Str()}
			if owners.Slice().Len() > 2 {
				deleted = ofMarket(deleted)[0]
			}
			all.add(deleted)
		}
		all = append(all, logs)
	}
	return all
}

// idsOf returns the ids of all spans, with their names.
func idsOf(m *rollout.Model) (ids []string) {
	for _, s := range spansOf(m, late) {
		ids = append(ids, fmt.Sprint(s.Trace, s.ID, s.Parent, s.Name))
	}
	slices.Sort(ids)
	return ids
}

// TestClocksOfNodes: they decide neither to which trace a span belongs, nor which traces there are.
func TestClocksOfNodes(t *testing.T) {
	t.Parallel()
	nodes := map[string]func(pod string) bool{
		"all nodes":             func(string) bool { return true },
		"the node of some pods": func(pod string) bool { return pod[len(pod)-1]%2 == 0 },
		"the node of others":    func(pod string) bool { return pod[len(pod)-1]%2 == 1 },
	}
	for name, s := range stories {
		s = s.withDeletions()
		expected := idsOf(modelOf(s))
		for _, by := range []time.Duration{-30 * time.Hour, -5 * time.Hour, -15 * time.Minute, -time.Minute, time.Minute, 15 * time.Minute, 5 * time.Hour} {
			for of, isOn := range nodes {
				assert.Equal(t, expected, idsOf(modelOf(s.shifted(t, by, isOn))), "%s, %v on %s", name, by, of)
			}
		}
	}
}

// TestStartsDoNotDependOnClocksOfNodes is about what the control plane knows: when rollouts and pods began,
// and what kept pods from starting.
func TestStartsDoNotDependOnClocksOfNodes(t *testing.T) {
	t.Parallel()
	var unplaced story
	unplaced.add(scale("0s", "shop-aaa", 0, 1), create("0s", "shop-aaa-1"))
	unplaced.add(occurrence{at: "1s", about: pod("shop-aaa-1"), reason: "FailedScheduling", message: "no node"})
	unplaced.add(startOf("10s", pod("shop-aaa-1"))...)
	unplaced.add(stop("10m0s", pod("shop-aaa-1")))
	startsOf := func(s story) (starts []string) {
		for _, span := range spansOf(modelOf(s), late) {
			if strings.HasPrefix(span.Name, "rollout ") || strings.HasPrefix(span.Name, "pod ") || span.Name == "schedule" {
				inferred, _ := span.Attributes["k8s.rollout.inferred"].([]string)
				starts = append(starts, fmt.Sprint(span.ID, span.Name, span.Start, len(span.Warnings), slices.Contains(inferred, "start")))
			}
		}
		slices.Sort(starts)
		return starts
	}
	for name, s := range map[string]story{"rollbacks": stories["a rollback is another trace"], "a StatefulSet": statefulRollout(), "a pod that waits for a node": unplaced} {
		for _, by := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
			assert.Equal(t, startsOf(s), startsOf(s.shifted(t, by, func(string) bool { return true })), "%s, %v", name, by)
		}
	}
}

// TestDeletionOfALaterPod: a StatefulSet uses a name again. The records of the first deletions are missing.
func TestDeletionOfALaterPod(t *testing.T) {
	t.Parallel()
	set := statefulSet("db")
	s := story{}
	for i, hash := range []string{"hash-1", "hash-2", "hash-3"} {
		at := fmt.Sprint(10*i, "m30s")
		s.add(occurrence{at: at, about: set, reason: "SuccessfulCreate", message: "create Pod db-0 in StatefulSet db successful", count: int64(i + 1), since: "30s"})
		s.add(startOf(at, member("db-0", "uid-"+hash, hash))...)
	}
	s.add(occurrence{at: "25m0s", about: set, reason: "SuccessfulDelete", message: "delete Pod db-0 in StatefulSet db successful"})
	s.add(stop("10m20s", member("db-0", "uid-hash-1", "hash-1")))
	traces := map[string]string{}
	for _, span := range spansOf(modelOf(s), late) {
		traces[fmt.Sprint(span.Name, span.Attributes["k8s.rollout.revision"])] = span.Trace.String()
	}
	assert.Equal(t, traces["rollout statefulset/dbhash-2"], traces["stop db-0hash-1"])
}

// TestRollbackToWhatOnlyAKubeletKnew: the record of a kubelet does not show that a revision is older than
// another one, but the scale-down does.
func TestRollbackToWhatOnlyAKubeletKnew(t *testing.T) {
	t.Parallel()
	unhealthy := func(at, name string) (s story) {
		s.add(occurrence{at: at, about: pod(name), reason: "Unhealthy", container: "app", message: "Readiness probe failed"})
		return s
	}
	var again story
	again.add(scale("20m0s", "shop-aaa", 0, 2))
	forgotten := join(firstRollout("0s"), secondRollout()[1:])
	forgotten.add(scale("20m0s", "shop-bbb", 2, 0), scale("30m0s", "shop-bbb", 0, 1))
	for name, c := range map[string]struct {
		story    story
		revision string
		traces   int
	}{
		"a rollback":                                                   {join(unhealthy("5m0s", "shop-aaa-1"), secondRollout(), again), "shop-aaa", 2},
		"a first rollout, with a clock behind":                         {join(secondRollout()[:2], unhealthy("-5h0m0s", "shop-aaa-3"), again), "shop-aaa", 1},
		"the scale-down of the first rollout":                          {join(again, fromZero()), "shop-aaa", 1},
		"from zero again, after an update whose scale-up is not known": {forgotten, "shop-bbb", 1},
		"nothing but the scale-up is known":                            {again, "shop-aaa", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roots := map[string]bool{}
			for _, s := range spansOf(modelOf(c.story), late) {
				if s.Attributes["k8s.rollout.revision"] == "replicaset.apps/"+c.revision && s.Parent.IsEmpty() {
					roots[s.Trace.String()] = true
				}
			}
			assert.Len(t, roots, c.traces)
		})
	}
}
