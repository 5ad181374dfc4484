// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// rolloutOf returns the rollout in whose trace a span is: its revision, and when it began.
func rolloutOf(t *testing.T, s story, name string) string {
	t.Helper()
	all := spansOf(modelOf(s), late)
	for _, span := range all {
		if span.Name != name {
			continue
		}
		for _, root := range all {
			if root.Trace == span.Trace && root.Parent.IsEmpty() {
				return fmt.Sprint(root.Attributes["k8s.rollout.revision"], " at ", time.Unix(0, root.Start).UTC().Sub(epoch))
			}
		}
	}
	require.Fail(t, "no span in the trace of a rollout", name)
	return ""
}

// undone has a rollout of two pods, and an update whose first pod gets no node until it is undone.
func undone() (s story) {
	s = join(firstRollout("0s"), s)
	s.add(scale("10m0s", "shop-bbb", 0, 1))
	s = join(s, unplaced("10m0s", "shop-bbb-1"))
	s.add(scale("10m0s", "shop-aaa", 2, 1), stop("10m0s", pod("shop-aaa-1")))
	s.add(scale("15m0s", "shop-aaa", 1, 2), create("15m0s", "shop-aaa-3"))
	s.add(startOf("15m0s", pod("shop-aaa-3"))...)
	s.add(scale("15m0s", "shop-bbb", 1, 0))
	return s
}

// again has the same update once more. The Event of its scale-up is the old one, repeated.
func again() (s story) {
	scaled := scale("30m0s", "shop-bbb", 0, 1)
	scaled.count, scaled.since = 2, "10m0s"
	s.add(scaled, create("30m0s", "shop-bbb-2"))
	s.add(startOf("30m0s", pod("shop-bbb-2"))...)
	s.add(scale("30m6s", "shop-aaa", 2, 0), stop("30m6s", pod("shop-aaa-2")))
	return s
}

// TestUndoneUpdate: an update that was undone ended the pods that ended until then, and none later. The same update
// again is another rollout.
func TestUndoneUpdate(t *testing.T) {
	t.Parallel()
	drained := join(undone(), story{stop("1h0m0s", pod("shop-aaa-2")).logs()})
	twice := join(undone(), again())
	for name, c := range map[string]struct {
		story      story
		span, want string
	}{
		"a pod that the update ended":               {drained, "stop shop-aaa-1", "replicaset.apps/shop-bbb at 10m0s"},
		"a drain an hour later":                     {drained, "stop shop-aaa-2", "replicaset.apps/shop-aaa at 0s"},
		"the first attempt":                         {twice, "pod shop-bbb-1", "replicaset.apps/shop-bbb at 10m0s"},
		"the same update again":                     {twice, "pod shop-bbb-2", "replicaset.apps/shop-bbb at 30m0s"},
		"a pod that the second attempt ended":       {twice, "stop shop-aaa-2", "replicaset.apps/shop-bbb at 30m0s"},
		"a pod that the first attempt ended before": {twice, "stop shop-aaa-1", "replicaset.apps/shop-bbb at 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, rolloutOf(t, c.story, c.span))
		})
	}
}

// TestManyScalesFromZero: a workload that is scaled to zero each night keeps the ids of its rollback.
func TestManyScalesFromZero(t *testing.T) {
	t.Parallel()
	const rolledBack = "replicaset.apps/shop-aaa at 20m0s"
	s := join(firstRollout("0s"), secondRollout(), rollback())
	for day := range 30 {
		night := fmt.Sprint(24*(day+1), "h0m0s")
		down, up := scale(night, "shop-aaa", 2, 0), scale(night, "shop-aaa", 0, 2)
		down.event, up.event = "down-"+night, "up-"+night
		s.add(down, up)
		if day%10 == 0 {
			assert.Equal(t, rolledBack, rolloutOf(t, s, "pod shop-aaa-3"), "day %d", day)
		}
	}
	s = join(s, started("800h0m0s", "100"))
	assert.Equal(t, rolledBack, rolloutOf(t, s, "pod shop-aaa-100"))
}

// TestForgottenBetween: a rollback is one, also after the revision between is forgotten.
func TestForgottenBetween(t *testing.T) {
	t.Parallel()
	m := modelOf(join(firstRollout("0s"), secondRollout(), rollback()))
	for key, w := range m.Workloads {
		before := idsIn(w.Spans("replicaset.apps/shop-aaa", late))
		m.Forget(rollout.Key{Workload: key, Revision: "replicaset.apps/shop-bbb"})
		assert.Equal(t, before, idsIn(w.Spans("replicaset.apps/shop-aaa", late)))
	}
}
