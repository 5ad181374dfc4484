// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/fakeapi"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// pair are two replicas with leader election, each with a network of its own.
type pair struct {
	*fixture
	proxies map[string]*fakeapi.TCPProxy
	// before is how many records were delivered before both replicas were started last. A replica
	// has the same name in each of its lives.
	before int
}

// newPair starts two replicas, and the load once one of them delivers. A standby watches nothing.
func newPair(t *testing.T, settings ...setting) *pair {
	t.Helper()
	c := ownCluster(t, controlplane.Options{})
	p := startPair(t, c, c.Kubeconfig(), settings...)
	p.begin(t)
	return p
}

// startPair starts them with the permissions of a kubeconfig.
func startPair(t *testing.T, c *cluster, kubeconfig string, settings ...setting) *pair {
	t.Helper()
	p := &pair{fixture: newFixture(t, c), proxies: map[string]*fakeapi.TCPProxy{}}
	for range 2 {
		proxy := fakeapi.NewTCPProxy(t, kubeconfig)
		p.proxies[p.watchedBy(t, proxy.Kubeconfig, append(settings, withElections)...).name] = proxy
	}
	for _, c := range p.replicas {
		c.isReady(t)
	}
	return p
}

// roles are who leads and who does not.
func (p *pair) roles(t *testing.T) (leader, other *collector) {
	t.Helper()
	if p.awaitDelivery(t) == p.replicas[0].name {
		return p.replicas[0], p.replicas[1]
	}
	return p.replicas[1], p.replicas[0]
}

// takesOver waits until a replica delivers that did not.
func (p *pair) takesOver(t *testing.T, c *collector) {
	t.Helper()
	seen := len(p.sink.allRecords())
	harness.Eventually(t, func() bool {
		for _, r := range p.sink.allRecords()[seen:] {
			if r.replica == c.name {
				return true
			}
		}
		return false
	}, "records from %s", c.name)
}

// concludeInTerms concludes, and checks that the last leader's sums are those of the records of its
// last term.
func (p *pair) concludeInTerms(t *testing.T) row {
	t.Helper()
	r := p.conclude(t)
	records := p.sink.allRecords()
	began, last := len(records), records[len(records)-1].replica
	for began > p.before && records[began-1].replica == last {
		began--
	}
	points := slices.DeleteFunc(pointsIn(p.namespace, p.sink.allPoints()), func(point point) bool {
		return point.replica != last || point.after <= began
	})
	assert.Equal(t, occurrencesIn(recordsIn(p.namespace, records[began:])), total(points), "the metric of the last leader")
	return r
}

func leaderKilled(t *testing.T) row {
	p := newPair(t)
	p.delivers(t, 100)
	leader, other := p.roles(t)
	leader.kill()
	p.takesOver(t, other)
	p.delivers(t, 100)
	return p.concludeInTerms(t)
}

// etcdRestoredUnderReplicas replaces etcd's data by a backup, with the lease and the progress, and
// kills the leader later.
func etcdRestoredUnderReplicas(t *testing.T) row {
	p := newPair(t)
	kept := p.load
	p.delivers(t, 100)
	kept.Hold()
	p.awaitAll(t)
	backup := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, p.cluster.BackUp(backup))
	p.add(t, named("gone-"), quick)
	p.load.Grows(t, 4000)
	p.load.End()
	p.awaitAll(t)
	p.restored = true
	require.NoError(t, p.cluster.Restore(t.Context(), backup))
	kept.Release()
	p.add(t, named("new-"))
	p.delivers(t, 100)
	leader, other := p.roles(t)
	leader.kill()
	p.takesOver(t, other)
	p.delivers(t, 100)
	return p.concludeInTerms(t)
}

// leaderStopped ends leaders in an orderly way, and then both replicas. Nothing is repeated.
func leaderStopped(t *testing.T) row {
	p := newPair(t)
	for range 2 {
		p.delivers(t, 50)
		leader, other := p.roles(t)
		leader.terminate(t)
		p.takesOver(t, other)
		leader.start(t)
		leader.isReady(t)
	}
	p.delivers(t, 50)
	leader, other := p.roles(t)
	other.terminate(t)
	leader.terminate(t)
	p.load.Grows(t, 200)
	other.start(t)
	leader.start(t)
	p.delivers(t, 50)
	p.remark = "three times; the last time both replicas"
	r := p.conclude(t)
	assert.Zero(t, r.Repeated, "repeated records")
	return r
}

// bothKilled kills both replicas, and starts them after much longer than a lease. They continue
// from the progress in the ConfigMap.
func bothKilled(t *testing.T) row {
	p := newPair(t)
	for range 2 {
		p.killBoth(t)
		p.startBoth(t)
		p.delivers(t, 300)
	}
	p.remark = "twice"
	return p.concludeInTerms(t)
}

// bothKilledAndCompacted does the same, and the API server no longer has the state at the progress.
func bothKilledAndCompacted(t *testing.T) row {
	p := newPair(t)
	p.memoryIsLost = true
	p.killBoth(t)
	p.cluster.Compact(t)
	p.startBoth(t)
	p.delivers(t, 300)
	p.remark = "the counts at the progress are not known: an event that is newer is emitted with all its occurrences"
	return p.conclude(t)
}

func (p *pair) killBoth(t *testing.T) {
	t.Helper()
	p.delivers(t, 200)
	for _, c := range p.replicas {
		c.kill()
	}
	p.load.Grows(t, 1000)
}

func (p *pair) startBoth(t *testing.T) {
	t.Helper()
	p.before = len(p.sink.allRecords())
	for _, c := range p.replicas {
		c.start(t)
	}
}

// progressForbidden has replicas that may do everything but read and write the progress. Without it, a
// leader emits nothing, since it could lose something; with it, nothing is lost.
func progressForbidden(t *testing.T) row {
	c, account := ownCluster(t, controlplane.Options{}), "no-configmaps"
	kubeconfig, err := c.RestrictedKubeconfig(t.Context(), account,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "pods"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}})
	require.NoError(t, err)
	p := startPair(t, c, kubeconfig, "receivers::kube_events::start_at: beginning")
	p.add(t)
	p.load.Grows(t, 200)
	harness.Eventually(t, func() bool {
		return slices.ContainsFunc(p.replicas, func(c *collector) bool { return withoutProgress.MatchString(c.output.String()) })
	}, "a message that names the missing rules")
	assert.Empty(t, p.sink.allRecords(), "records without progress")

	role, err := c.RbacV1().ClusterRoles().Get(t.Context(), account, metav1.GetOptions{})
	require.NoError(t, err)
	configMaps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update"}}
	role.Rules = append(role.Rules, configMaps)
	_, err = c.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	p.delivers(t, 200)
	p.remark = "the log names the missing rules, and the receiver emits nothing without them"
	return p.concludeInTerms(t)
}

var withoutProgress = regexp.MustCompile(`Cannot read the progress.*resources: \[configmaps\], verbs: \[create\].*` +
	`resources: \[configmaps\], resourceNames: \[[^]]+\], verbs: \[get, update\]`)

// leaderPaused pauses the leader until the other leads, continues it, and then kills the other: the
// paused replica ends its term before that, and has to emit afterwards.
func leaderPaused(t *testing.T) row {
	p := newPair(t)
	p.leadersOverlap = true
	p.delivers(t, 100)
	leader, other := p.roles(t)
	leader.signal(t, syscall.SIGSTOP)
	p.takesOver(t, other)
	p.delivers(t, 200)
	resumed := p.now()
	leader.signal(t, syscall.SIGCONT)
	p.load.Grows(t, 2000) // many leases
	p.assertEnded(t, leader, resumed)

	other.kill()
	p.takesOver(t, leader)
	p.delivers(t, 100)
	return p.concludeInTerms(t)
}

// moment is how many records and points of the metric the sink has.
type moment struct{ records, points int }

func (p *pair) now() moment { return moment{len(p.sink.allRecords()), len(p.sink.allPoints())} }

// assertEnded checks that a replica that has not led since a moment emits nothing any more. Before,
// for some seconds, it may have emitted what the other emits as well, with the same log.record.uid.
func (p *pair) assertEnded(t *testing.T, c *collector, since moment) {
	t.Helper()
	ended := p.now()
	p.delivers(t, 500)
	known, own := map[string]bool{}, map[string]bool{}
	for i, r := range p.sink.allRecords() {
		switch {
		case r.replica != c.name || i < since.records:
			known[r.UID] = true
		default:
			assert.Less(t, i, ended.records, "a record of %s after its term", c.name)
			own[r.UID] = true
		}
	}
	for uid := range own {
		assert.True(t, known[uid], "a record of %s that no leader has emitted: %s", c.name, uid)
	}
	for _, point := range p.sink.allPoints()[since.points:] {
		assert.NotEqual(t, c.name, point.replica, "a point of the metric from a replica that does not lead")
	}
}

// leaderPartitioned takes the API server away from the leader, which still reaches the sink.
func leaderPartitioned(t *testing.T) row {
	p := newPair(t)
	p.leadersOverlap = true
	for range 2 {
		p.delivers(t, 100)
		leader, other := p.roles(t)
		p.proxies[leader.name].Set(fakeapi.Cut)
		p.takesOver(t, other)
		cut := p.now()
		p.delivers(t, 200)
		p.assertEnded(t, leader, cut)
		p.proxies[leader.name].Set(fakeapi.Open)
		p.load.Grows(t, 500)
		p.assertEnded(t, leader, cut)
	}
	return p.concludeInTerms(t)
}
