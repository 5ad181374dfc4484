// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/load"
)

const wentBack = "resource versions of the cluster have gone back"

// etcdRestored replaces etcd's data by a backup. Some events are as they were at the backup and go
// on from there; others no longer exist.
func etcdRestored(t *testing.T) row {
	f, c, kept, backup := backedUp(t)
	require.NoError(t, f.cluster.Restore(t.Context(), backup))
	kept.Release()
	f.add(t, named("new-"))
	c.waitForLog(t, wentBack)
	f.delivers(t, 100)
	c.kill()
	f.load.Grows(t, 50)
	c.start(t)
	f.delivers(t, 100)
	return f.conclude(t)
}

func etcdRestoredWhileDown(t *testing.T) row {
	f, c, kept, backup := backedUp(t)
	f.leaveUnconfirmed(t)
	c.kill()
	require.NoError(t, f.cluster.Restore(t.Context(), backup))
	f.sink.answers(accept)
	kept.Release()
	f.add(t, named("new-"))
	f.load.Grows(t, 100)
	c.start(t)
	c.waitForLog(t, wentBack)
	f.delivers(t, 100)
	return f.conclude(t)
}

// backedUp makes a backup of etcd, and then many changes that a restore of it takes back. The load
// that the backup has is held. All is delivered.
func backedUp(t *testing.T) (f *fixture, c *collector, kept *load.Load, backup string) {
	t.Helper()
	f = newFixture(t, ownCluster(t, controlplane.Options{}))
	c = f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	kept = f.load
	f.delivers(t, 100)
	kept.Hold()
	f.awaitAll(t)
	backup = filepath.Join(t.TempDir(), "backup")
	require.NoError(t, f.cluster.BackUp(backup))
	f.add(t, named("gone-"), quick)
	f.load.Grows(t, 4000)
	f.load.End()
	f.awaitAll(t)
	return f, c, kept, backup
}

// leaveUnconfirmed makes changes whose records the sink takes and does not confirm. What else has
// changed is not delivered and does not count: the cluster loses it.
func (f *fixture) leaveUnconfirmed(t *testing.T) {
	t.Helper()
	f.sink.answers(acceptWithoutAnswer)
	f.add(t, named("hung-"))
	f.delivers(t, 1)
	f.load.End()
	f.load.Vanishes = true
}

func named(prefix string) func(*load.Load) { return func(l *load.Load) { l.Prefix = prefix } }

func quick(l *load.Load) { l.Pause /= 4 }

const otherCluster = "The checkpoint is of another cluster"

// clusterReplacedWhileDown makes another cluster answer at the address of the first while the receiver
// is down, until the resource versions of the new cluster are above those of the old one.
func clusterReplacedWhileDown(t *testing.T) row {
	f := newFixture(t, ownCluster(t, controlplane.Options{}))
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage, "receivers::kube_events::start_at: beginning")
	f.begin(t)
	f.delivers(t, 50)
	f.load.End()
	f.awaitAll(t)
	f.leaveUnconfirmed(t)

	c.kill()
	before := f.cluster.resourceVersion(t)
	f.replace(t)
	f.sink.answers(accept)
	f.add(t, named("new-"), quick)
	f.cluster.awaitResourceVersion(t, before+100)
	c.start(t)
	c.waitForLog(t, otherCluster)
	f.delivers(t, 100)
	c.kill()
	f.regroups = true // It may list again what it did not note, and a list has the newest states only.
	f.load.Grows(t, 50)
	c.start(t)
	f.delivers(t, 100)
	f.remark = "makes a first start (here with start_at: beginning)"
	return f.conclude(t)
}

// replace makes an empty cluster answer, with a namespace of the same name.
func (f *fixture) replace(t *testing.T) {
	t.Helper()
	require.NoError(t, f.cluster.Restore(t.Context(), ""))
	_, err := f.cluster.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
}
