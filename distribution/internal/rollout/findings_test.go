// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// slowUpdates replaces both pods of shop-aaa, one after another. The probe of each new pod fails until another pod is
// scaled down, minutes later.
func slowUpdates() (s story) {
	s = join(firstRollout("0s"), story{scale("10m0s", "shop-bbb", 0, 1).logs()})
	for i, name := range []string{"shop-bbb-1", "shop-bbb-2"} {
		at := fmt.Sprint(10+7*i, "m0s")
		s.add(create(at, name))
		s.add(startOf(at, pod(name))...)
		probe := occurrence{at: fmt.Sprint(15+7*i, "m0s"), about: pod(name), reason: "Unhealthy", container: "app", message: "Readiness probe failed", count: 12, since: at}
		s.add(probe, scale(fmt.Sprint(17+7*i, "m0s"), "shop-aaa", 2-i, 1-i))
		if i == 0 {
			s.add(scale("17m0s", "shop-bbb", 1, 2))
		}
	}
	return s
}

// paused is an update of four pods that stops after two.
func paused() (s story) {
	s.add(scale("0s", "shop-aaa", 0, 4), scale("10m0s", "shop-bbb", 0, 1), scale("10m0s", "shop-aaa", 4, 3), scale("10m0s", "shop-bbb", 1, 2))
	s.add(startOf("10m0s", pod("shop-bbb-1"))...)
	s.add(startOf("10m0s", pod("shop-bbb-2"))...)
	return s
}

// recreated stops all pods before the new ones are scaled up: nothing proves that they are available.
func recreated() (s story) {
	s.add(scale("0s", "shop-aaa", 0, 1), scale("10m0s", "shop-aaa", 1, 0), scale("10m5s", "shop-bbb", 0, 1))
	s.add(startOf("10m5s", pod("shop-bbb-1"))...)
	s.add(occurrence{at: "10m20s", about: pod("shop-bbb-1"), reason: "Unhealthy", container: "app", message: "Readiness probe failed", count: 30, since: "10m10s"})
	return s
}

// partitioned replaces one of two pods of a StatefulSet.
func partitioned() (s story) {
	for _, name := range []string{"db-0", "db-1"} {
		s.add(startOf("0s", member(name, "uid-old-"+name, "hash-1"))...)
	}
	s.add(stop("10m0s", member("db-1", "uid-old-db-1", "hash-1")))
	s.add(startOf("10m10s", member("db-1", "uid-db-1", "hash-2"))...)
	return s
}

// laterTrouble is what happens to a pod minutes after a complete rollout.
func laterTrouble() story {
	s := join(firstRollout("0s"), secondRollout())
	for _, reason := range []string{"FailedMount", "NodeNotReady", "Preempted"} {
		s.add(occurrence{at: "13m0s", about: pod("shop-bbb-2"), reason: reason, kind: "Warning", message: reason})
	}
	s.add(stop("13m1s", pod("shop-bbb-2")), create("13m2s", "shop-bbb-3"))
	return join(s, unplaced("13m2s", "shop-bbb-3"))
}

// evictedAgainAndAgain has a rollout of two pods whose pods fail, end and are replaced.
func evictedAgainAndAgain() (s story) {
	s.add(scale("0s", "shop-aaa", 0, 2))
	for i := range 4 {
		name, at := fmt.Sprint("shop-aaa-", i), fmt.Sprint(20*i, "s")
		s = join(s, unplaced(at, name))
		if i < 2 {
			s.add(stop(fmt.Sprint(20*i+15, "s"), pod(name)))
		}
	}
	return s
}

func TestOutcomesThatRecordsProve(t *testing.T) {
	t.Parallel()
	const second = "replicaset.apps/shop-bbb"
	soon := rollout.Options{Idle: late.Idle, Now: after("10m40s")}
	for name, c := range map[string]struct {
		story    story
		revision string
		o        rollout.Options
		want     string
	}{
		"a probe that fails while slow programs start": {slowUpdates(), second, late, "complete, 2 of 2 started, 0 failed"},
		"an update that is paused":                     {paused(), second, late, "incomplete, 2 of 2 started, 0 failed"},
		"a Deployment that recreates its pods":         {recreated(), second, soon, "incomplete, 1 of 1 started, 1 failed"},
		"a probe that fails for long":                  {recreated(), second, rollout.Options{Idle: late.Idle, Now: after("15m40s")}, "failed, 1 of 1 started, 1 failed"},
		"a partition":                                  {partitioned(), "hash-2", late, "incomplete, 1 of 1 started, 0 failed"},
		"trouble minutes later":                        {laterTrouble(), second, late, "complete, 2 of 2 started, 0 failed"},
		"pods that are replaced":                       {evictedAgainAndAgain(), "replicaset.apps/shop-aaa", late, "failed, 0 of 2 started, 2 failed"},
		"another update before the end":                {join(paused(), story{scale("12m0s", "shop-ccc", 0, 1).logs()}), second, late, "superseded, 2 of 2 started, 0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, outcomeOf(c.story, c.revision, c.o))
		})
	}
}

// TestNamespacesOfOneOwner: a cluster-scoped object owns a Deployment of the same name in two namespaces.
func TestNamespacesOfOneOwner(t *testing.T) {
	t.Parallel()
	in := func(namespace string, s story) story {
		return s.changed(func(resource, _ pcommon.Map) {
			resource.PutStr("k8s.namespace.name", namespace)
			resource.PutStr("k8s.workload.uid", "uid-tenant")
		})
	}
	traces := map[string]any{}
	for _, span := range spansOf(modelOf(join(in("a", firstRollout("0s")), in("b", firstRollout("0s")[:1]))), late) {
		if span.Parent.IsEmpty() {
			traces[span.Trace.String()] = span.Attributes["k8s.rollout.outcome"]
		}
	}
	assert.Len(t, traces, 2)
}

// TestOrderOfAttributes: which attributes the model keeps does not depend on the order of records.
func TestOrderOfAttributes(t *testing.T) {
	t.Parallel()
	var s story
	for i := range 90 {
		s = join(s, firstRollout("0s")[2:3].changed(func(resource, _ pcommon.Map) { resource.PutStr(fmt.Sprint("label.", i), "x") }))
	}
	reversed := slices.Clone(s)
	slices.Reverse(reversed)
	assert.Equal(t, bytesOf(t, modelOf(s)), bytesOf(t, modelOf(reversed)))
}

// TestEvictIsOfTheLargestNamespace: a namespace displaces only what is its own.
func TestEvictIsOfTheLargestNamespace(t *testing.T) {
	t.Parallel()
	m := modelOf(firstRollout("0s"))
	for i := range 1000 {
		for _, logs := range started("0s", fmt.Sprint("x", i)).changed(func(resource, _ pcommon.Map) { resource.PutStr("k8s.namespace.name", "other") }) {
			read, _ := rollout.Read(logs)
			m.Join(read)
		}
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
