// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
)

const wentBack = "resource versions of the cluster have gone back"

// etcdRestored replaces etcd's data by a backup. Some events are as they were at the backup and go on from there; others
// no longer exist.
func etcdRestored(t *testing.T) row {
	s, c, kept, backup := backedUp(t)
	require.NoError(t, s.cluster.RestoreEtcd(t.Context(), backup))
	kept.release()
	s.add(t, named("new-"))
	c.says(t, wentBack)
	s.delivers(t, 100)
	c.kill()
	s.load.grows(t, 50)
	c.start(t)
	s.delivers(t, 100)
	return s.conclude(t)
}

func etcdRestoredWhileDown(t *testing.T) row {
	s, c, kept, backup := backedUp(t)
	s.fillOutbox(t)
	c.kill()
	require.NoError(t, s.cluster.RestoreEtcd(t.Context(), backup))
	s.sink.answers(takeIt)
	kept.release()
	s.add(t, named("new-"))
	s.load.grows(t, 100)
	c.start(t)
	c.says(t, wentBack)
	s.delivers(t, 100)
	r := s.conclude(t)
	assert.Positive(t, r.repeated, "the outbox was delivered")
	return r
}

// backedUp makes a backup of etcd, and then many changes that a restore of it takes back. The load that the backup has is
// held. All is delivered.
func backedUp(t *testing.T) (s *scene, c *collector, kept *load, backup string) {
	t.Helper()
	s = newScene(t, ownCluster(t, controlplane.Options{}))
	c = s.watchedBy(t, s.cluster.Kubeconfig(), withStorage)
	s.begin(t)
	kept = s.load
	s.delivers(t, 100)
	kept.hold()
	s.awaitAll(t)
	backup = filepath.Join(t.TempDir(), "backup")
	require.NoError(t, s.cluster.BackUpEtcd(backup))
	s.add(t, named("gone-"), quick)
	s.load.grows(t, 4000)
	s.load.end()
	s.awaitAll(t)
	return s, c, kept, backup
}

// fillOutbox makes changes whose records the sink takes and does not confirm: they stay in the outbox. What else has
// changed is not delivered and does not count.
func (s *scene) fillOutbox(t *testing.T) {
	t.Helper()
	s.sink.answers(takeSayNothing)
	s.add(t, named("hung-"))
	s.delivers(t, 1)
	s.load.end()
	s.load.vanishes = true
}

func named(prefix string) func(*load) { return func(l *load) { l.prefix = prefix } }

func quick(l *load) { l.pause /= 4 }

const otherCluster = "The checkpoint is of another cluster"

// clusterReplaced lets another cluster answer at the address of the first.
func clusterReplaced(t *testing.T) row {
	return replaced(t, func(s *scene, _ *collector) {
		s.replace(t)
		s.sink.answers(takeIt)
		s.add(t, named("new-"))
	})
}

// clusterReplacedWhileDown does so while the receiver is down, until the resource versions of the new cluster are above
// those of the old one.
func clusterReplacedWhileDown(t *testing.T) row {
	return replaced(t, func(s *scene, c *collector) {
		c.kill()
		before := s.cluster.resourceVersion(t)
		s.replace(t)
		s.sink.answers(takeIt)
		s.add(t, named("new-"), quick)
		s.cluster.awaitResourceVersion(t, before+100)
		c.start(t)
	})
}

func replaced(t *testing.T, replace func(*scene, *collector)) row {
	s := newScene(t, ownCluster(t, controlplane.Options{}))
	c := s.watchedBy(t, s.cluster.Kubeconfig(), withStorage, "receivers::kube_events::start_at: beginning")
	s.begin(t)
	s.delivers(t, 50)
	s.load.end()
	s.awaitAll(t)
	s.fillOutbox(t)
	s.metricDiffers = true

	replace(s, c)
	c.says(t, otherCluster)
	s.delivers(t, 100)
	c.kill()
	s.load.grows(t, 50)
	c.start(t)
	s.delivers(t, 100)
	s.remark = "delivers the outbox, then makes a first start with new sums (here with start_at: beginning)"
	r := s.conclude(t)
	assert.Positive(t, r.repeated, "the outbox was delivered")
	points := s.pointsOf(s.cluster.UID(t))
	assert.Equal(t, s.load.total(), total(points), "the sums of the new cluster")
	assertSteady(t, points)
	return r
}

// replace lets an empty cluster answer, with a namespace of the same name.
func (s *scene) replace(t *testing.T) {
	t.Helper()
	require.NoError(t, s.cluster.RestoreEtcd(t.Context(), ""))
	_, err := s.cluster.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// pointsOf are those of a cluster.
func (s *scene) pointsOf(uid string) (found []point) {
	for _, p := range pointsIn(s.namespace, s.sink.metered()) {
		if strings.Contains(p.series, uid) {
			found = append(found, p)
		}
	}
	return found
}
