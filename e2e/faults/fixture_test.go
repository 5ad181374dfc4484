// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/load"
)

// fixture is where a fault happens: a cluster with a load, replicas that watch it, and a sink.
type fixture struct {
	cluster   *cluster
	namespace string
	also      string // a namespace that the replicas watch, too
	sink      *sink
	load      *load.Load   // the last one
	loads     []*load.Load // all of them
	replicas  []*collector

	// regroups: what a crash repeats comes in other groups, because windows began at other times, or
	// because etcd no longer has each state.
	regroups       bool
	restored       bool // with an elector, records around a restore of etcd may be missing or repeated
	leadersOverlap bool // two replicas may have led at the same time: both count
	isQueued       bool // the exporter has a queue, which may deliver points in another order
	memoryIsLost   bool // what the receiver remembered is lost, so that it emits again what it had emitted
	remark         string
	probes         int
}

// newFixture makes one in a namespace of its own, without replicas and load.
func newFixture(t *testing.T, c *cluster) *fixture {
	t.Helper()
	return &fixture{cluster: c, namespace: c.newNamespace(t), sink: newSink(t)}
}

// watchedBy adds a replica that watches the fixture's namespace, and starts it.
func (f *fixture) watchedBy(t *testing.T, kubeconfig string, settings ...setting) *collector {
	t.Helper()
	name := fmt.Sprintf("replica-%d", len(f.replicas))
	c := newCollector(t, name, kubeconfig, f.sink, append(settings, "receivers::kube_events::namespaces: ["+strings.Trim(f.namespace+","+f.also, ",")+"]")...)
	f.replicas = append(f.replicas, c)
	c.start(t)
	return c
}

// begin starts the load once a replica delivers, so that nothing belongs to the time before its
// first start.
func (f *fixture) begin(t *testing.T, options ...func(*load.Load)) {
	t.Helper()
	f.awaitDelivery(t)
	f.add(t, options...)
}

// add starts one more load.
func (f *fixture) add(t *testing.T, options ...func(*load.Load)) {
	t.Helper()
	f.load = load.Start(t, f.cluster, f.namespace, options...)
	f.loads = append(f.loads, f.load)
}

// truth is how many occurrences of each event there were, in all loads.
func (f *fixture) truth() map[string]int64 {
	all := map[string]int64{}
	for _, l := range f.loads {
		made := l.Truth()
		if l.Vanishes {
			came := account.CoveredBy(accounts(recordsIn(f.namespace, f.sink.allRecords())))
			for name := range made {
				if made[name] = came[name].Size(); made[name] == 0 {
					delete(made, name)
				}
			}
		}
		maps.Copy(all, made)
	}
	return all
}

// awaitDelivery waits until something that happens now is delivered, and returns by whom.
func (f *fixture) awaitDelivery(t *testing.T) (replica string) {
	t.Helper()
	var made []string
	last := time.Time{}
	harness.Eventually(t, func() bool {
		for _, c := range f.replicas {
			require.True(t, c.runs(), "replica %s has ended", c.name)
		}
		// One that was made before the first listing is not delivered, so it takes several.
		if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			made = append(made, f.probe(t))
		}
		for _, name := range made {
			if replica = f.sink.proberOf(name); replica != "" {
				return true
			}
		}
		return false
	}, "the delivery of a new event")
	return replica
}

func (f *fixture) probe(t *testing.T) string {
	t.Helper()
	f.probes++
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("probe-%d", f.probes), Namespace: f.namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: f.namespace, Name: "probe"},
		Reason:         probeReason, Type: corev1.EventTypeNormal, Source: corev1.EventSource{Component: "faults"},
		Count: 1, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}
	_, err := f.cluster.CoreV1().Events(f.namespace).Create(t.Context(), e, metav1.CreateOptions{})
	require.NoError(t, err)
	return e.Name
}

// delivers waits until n more records have come.
func (f *fixture) delivers(t *testing.T, more int) {
	t.Helper()
	goal := len(f.sink.allRecords()) + more
	harness.Eventually(t, func() bool { return len(f.sink.allRecords()) >= goal }, "%d more records", more)
}

// conclude ends the load, waits for what is still under way, ends the replicas, and checks that
// nothing is lost, that every repeat can be recognised, and that the metric is right.
func (f *fixture) conclude(t *testing.T) row {
	t.Helper()
	f.settle(t)
	for _, c := range f.replicas {
		if c.runs() {
			c.terminate(t)
		}
	}
	points := pointsIn(f.namespace, f.sink.allPoints())
	r := judge(f.truth(), recordsIn(f.namespace, f.sink.allRecords()), points)
	r.remark = f.remark
	assert.Positive(t, r.Made)
	if !f.restored {
		assert.Zero(t, r.Lost, "lost occurrences")
	}
	if !f.memoryIsLost && !f.regroups && !f.restored {
		assert.Zero(t, r.Surplus, "occurrences that come twice without the same log.record.uid")
	}
	if f.countsAll() {
		assert.Equal(t, r.Made, r.metric, "the metric's total")
	} else {
		assert.LessOrEqual(t, r.metric, occurrencesIn(recordsIn(f.namespace, f.sink.allRecords())), "the metric's total")
	}
	if !f.isQueued {
		assertSteady(t, points)
	}
	return r
}

// countsAll reports whether the metric has each occurrence once. A kill loses what was counted after the
// last collection, and the next process counts again what it repeats.
func (f *fixture) countsAll() bool {
	for _, c := range f.replicas {
		if c.kills > 0 {
			return false
		}
	}
	return !f.leadersOverlap && !f.memoryIsLost
}
