// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// scene is where a fault happens: a cluster with a load, replicas that watch it, and a sink.
type scene struct {
	cluster   *cluster
	namespace string
	sink      *sink
	load      *load   // the last one
	loads     []*load // all of them
	replicas  []*collector

	saves         bool // the replicas have storage: a repeated record is the same as the first
	unsaved       bool // storage could not be written: a repeat may combine records
	metricDiffers bool // leaders begin sums of their own, or the sums start from scratch
	memoryIsLost  bool // what the receiver remembered is lost, so that it emits again what it had emitted
	remark        string
	probes        int
}

// newScene makes one in a namespace of its own, without replicas and load.
func newScene(t *testing.T, c *cluster) *scene {
	t.Helper()
	return &scene{cluster: c, namespace: c.newNamespace(t), sink: newSink(t)}
}

// watchedBy adds a replica that watches the scene's namespace, and starts it.
func (s *scene) watchedBy(t *testing.T, kubeconfig string, settings ...setting) *collector {
	t.Helper()
	name := fmt.Sprintf("replica-%d", len(s.replicas))
	c := newCollector(t, name, kubeconfig, s.sink, append(settings, "receivers::kube_events::namespaces: ["+s.namespace+"]")...)
	s.saves = s.saves || slices.Contains(settings, withStorage)
	s.replicas = append(s.replicas, c)
	c.start(t)
	return c
}

// begin starts the load once a replica delivers, so that nothing belongs to the time before its first start.
func (s *scene) begin(t *testing.T, options ...func(*load)) {
	t.Helper()
	s.awaitDelivery(t)
	s.add(t, options...)
}

// add starts one more load.
func (s *scene) add(t *testing.T, options ...func(*load)) {
	t.Helper()
	s.load = startLoad(t, s.cluster, s.namespace, options...)
	s.loads = append(s.loads, s.load)
}

// truth is how many occurrences of each event there were, in all loads.
func (s *scene) truth() map[string]int64 {
	all := map[string]int64{}
	for _, l := range s.loads {
		made := l.truth()
		if l.vanishes {
			came := coveredBy(recordsIn(s.namespace, s.sink.took()))
			for name := range made {
				if made[name] = came[name].size(); made[name] == 0 {
					delete(made, name)
				}
			}
		}
		maps.Copy(all, made)
	}
	return all
}

// awaitDelivery waits until something that happens now is delivered, and returns by whom.
func (s *scene) awaitDelivery(t *testing.T) (replica string) {
	t.Helper()
	var made []string
	last := time.Time{}
	harness.Eventually(t, func() bool {
		for _, c := range s.replicas {
			require.True(t, c.runs(), "replica %s has ended", c.name)
		}
		// One that was made before the first listing is not delivered, so it takes several.
		if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			made = append(made, s.probe(t))
		}
		for _, name := range made {
			if replica = s.sink.proberOf(name); replica != "" {
				return true
			}
		}
		return false
	}, "the delivery of a new event")
	return replica
}

func (s *scene) probe(t *testing.T) string {
	t.Helper()
	s.probes++
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("probe-%d", s.probes), Namespace: s.namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: s.namespace, Name: "probe"},
		Reason:         probeReason, Type: corev1.EventTypeNormal, Source: corev1.EventSource{Component: "faults"},
		Count: 1, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}
	_, err := s.cluster.CoreV1().Events(s.namespace).Create(t.Context(), e, metav1.CreateOptions{})
	require.NoError(t, err)
	return e.Name
}

// delivers waits until so many more records have come.
func (s *scene) delivers(t *testing.T, more int) {
	t.Helper()
	goal := len(s.sink.took()) + more
	harness.Eventually(t, func() bool { return len(s.sink.took()) >= goal }, "%d more records", more)
}

// conclude ends the load, waits for what is still under way, ends the replicas, and checks that nothing is lost, that
// every repeat can be recognised, and that the metric is right.
func (s *scene) conclude(t *testing.T) row {
	t.Helper()
	s.settle(t)
	for _, c := range s.replicas {
		if c.runs() {
			c.terminate(t)
		}
	}
	points := pointsIn(s.namespace, s.sink.metered())
	r := judge(s.truth(), recordsIn(s.namespace, s.sink.took()), points)
	r.remark, r.ownSums, r.saves = s.remark, s.metricDiffers, s.saves
	assert.Positive(t, r.made)
	assert.Zero(t, r.lost, "lost occurrences")
	if !s.memoryIsLost && !s.unsaved {
		assert.Zero(t, r.surplus, "occurrences that come twice without the same log.record.uid")
		if s.saves {
			assert.Zero(t, r.altered, "repeated records that are not the same as the first")
		}
	}
	if !s.metricDiffers && !s.memoryIsLost {
		assert.Equal(t, r.made, r.metric, "the metric's total")
		assertSteady(t, points)
	}
	return r
}
