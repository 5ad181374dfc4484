// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/fakeapi"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// pair are two replicas without a shared storage, each with a network of its own.
type pair struct {
	*fixture
	proxies map[string]*fakeapi.TCPProxy
	// before is how many records were delivered before both replicas were started last. A replica
	// has the same name in each of its lives.
	before int
}

// newPair starts two replicas, and the load once both watch.
func newPair(t *testing.T, settings ...setting) *pair {
	t.Helper()
	c := ownCluster(t, controlplane.Options{})
	return newPairAs(t, c, c.Kubeconfig(), settings...)
}

// newPairAs starts them with the permissions of a kubeconfig.
func newPairAs(t *testing.T, c *cluster, kubeconfig string, settings ...setting) *pair {
	t.Helper()
	p := &pair{fixture: newFixture(t, c), proxies: map[string]*fakeapi.TCPProxy{}}
	p.metricDiffers = true
	for range 2 {
		proxy := fakeapi.NewTCPProxy(t, kubeconfig)
		p.proxies[p.watchedBy(t, proxy.Kubeconfig, append(settings, withElections)...).name] = proxy
	}
	p.bothWatch(t)
	p.begin(t)
	return p
}

func (p *pair) bothWatch(t *testing.T) {
	t.Helper()
	harness.Eventually(t, func() bool { return p.cluster.eventWatches(t) == 2 }, "two watches")
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
	records := recordsIn(p.namespace, p.sink.allRecords()[p.before:])
	last := records[len(records)-1].replica
	var occurrences int64
	for i := len(records) - 1; i >= 0 && records[i].replica == last; i-- {
		occurrences += records[i].Occurrences
	}
	points := lastTerm(last, pointsIn(p.namespace, p.sink.allPoints()))
	assert.Equal(t, occurrences, total(points), "the metric of the last leader")
	assertSteady(t, points)
	return r
}

// lastTerm are the points of a replica with the newest start time.
func lastTerm(replica string, all []point) (points []point) {
	for _, p := range slices.Backward(all) {
		if p.replica == replica && (len(points) == 0 || p.start == points[0].start) {
			points = append(points, p)
		}
	}
	slices.Reverse(points)
	return points
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

// leaderKilledWithWindows kills a leader that holds occurrences in windows. The next leader repeats
// up to one interval, in other groups.
func leaderKilledWithWindows(t *testing.T) row {
	p := newPair(t, "receivers::kube_events::dedup_interval: 2s")
	p.unsaved = true
	p.delivers(t, 100)
	leader, other := p.roles(t)
	leader.kill()
	p.takesOver(t, other)
	p.delivers(t, 100)
	p.remark = "repeats up to one interval, also in other records"
	return p.concludeInTerms(t)
}

// etcdRestoredUnderReplicas replaces etcd's data by a backup, with the lease and the position, and
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
	require.NoError(t, p.cluster.Restore(t.Context(), backup))
	kept.Release()
	p.add(t, named("new-"))
	for _, c := range p.replicas {
		c.waitForLog(t, wentBack)
	}
	p.delivers(t, 100)
	leader, other := p.roles(t)
	leader.kill()
	p.takesOver(t, other)
	p.delivers(t, 100)
	return p.concludeInTerms(t)
}

// leaderKilledWhileRefused has a leader that delivers nothing for longer than the status waits
// before it reports that, and for much longer than a lease.
func leaderKilledWhileRefused(t *testing.T) row {
	p := newPair(t)
	p.delivers(t, 100)
	leader, other := p.roles(t)
	p.sink.answers(rejectRetryable)
	time.Sleep(70 * time.Second)
	leader.kill()
	p.sink.answers(accept)
	p.takesOver(t, other)
	p.delivers(t, 100)
	return p.concludeInTerms(t)
}

// leaderStopped ends leaders in an orderly way, and then both replicas. Nothing is repeated.
func leaderStopped(settings ...setting) func(*testing.T) row {
	return func(t *testing.T) row {
		p := newPair(t, settings...)
		for range 2 {
			p.delivers(t, 50)
			leader, other := p.roles(t)
			leader.terminate(t)
			p.takesOver(t, other)
			leader.start(t)
			p.bothWatch(t)
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
}

// bothKilled kills both replicas, and starts them after much longer than a lease. They continue
// from the published position.
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

// bothKilledAndCompacted does the same, and the API server no longer has the position.
func bothKilledAndCompacted(t *testing.T) row {
	p := newPair(t)
	p.memoryIsLost = true
	p.killBoth(t)
	p.cluster.Compact(t)
	p.startBoth(t)
	p.delivers(t, 300)
	p.remark = "the counts at the position are not known: an event that is newer is emitted with all its occurrences"
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

// positionForbidden has replicas that may do everything but what the position needs.
func positionForbidden(t *testing.T) row {
	p := newPairWithout(t)
	p.delivers(t, 200)
	for _, c := range p.replicas {
		c.waitForLog(t, missingRules)
	}
	return p.repeatsMore(t)
}

// positionReadOnly has replicas that may read the position, but not publish it.
func positionReadOnly(t *testing.T) row {
	p := newPairWithout(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	p.delivers(t, 200)
	leader, _ := p.roles(t)
	leader.waitForLog(t, missingRules)
	return p.repeatsMore(t)
}

const missingRules = `position of the leader.*resources: \[configmaps\], verbs: \[create\].*resources: \[configmaps\], resourceNames: \[[^]]+\], verbs: \[get, update\]`

// newPairWithout starts replicas that have no permission for the ConfigMap, but those that are
// given.
func newPairWithout(t *testing.T, given ...rbacv1.PolicyRule) *pair {
	t.Helper()
	c := ownCluster(t, controlplane.Options{})
	kubeconfig, err := c.RestrictedKubeconfig(t.Context(), "no-configmaps", append(given, eventsRule,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "pods"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}})...)
	require.NoError(t, err)
	return newPairAs(t, c, kubeconfig)
}

// repeatsMore kills the leader. What it delivered is not known to have been delivered.
func (p *pair) repeatsMore(t *testing.T) row {
	t.Helper()
	leader, other := p.roles(t)
	leader.kill()
	p.takesOver(t, other)
	p.delivers(t, 100)
	p.remark = "the log names the missing rules"
	r := p.concludeInTerms(t)
	assert.Positive(t, r.Repeated, "repeated records")
	return r
}

// leaderPaused pauses the leader until the other leads, continues it, and then kills the other: the
// paused replica must not emit before that, and has to afterwards.
func leaderPaused(t *testing.T) row {
	p := newPair(t)
	p.delivers(t, 100)
	leader, other := p.roles(t)
	leader.signal(t, syscall.SIGSTOP)
	p.takesOver(t, other)
	p.delivers(t, 200)
	resumed, metered := len(p.sink.allRecords()), len(p.sink.allPoints())
	leader.signal(t, syscall.SIGCONT)
	p.load.Grows(t, 2000) // many leases
	p.assertSilent(t, leader, resumed, metered)

	p.bothWatch(t)
	other.kill()
	p.takesOver(t, leader)
	p.delivers(t, 100)
	return p.concludeInTerms(t)
}

// assertSilent checks that a replica has emitted nothing since, but what the other had emitted
// before.
func (p *pair) assertSilent(t *testing.T, c *collector, records, points int) {
	t.Helper()
	known := map[string]bool{}
	for i, r := range p.sink.allRecords() {
		if r.replica == c.name && i >= records {
			assert.True(t, known[r.UID], "a record of %s that no leader had emitted", c.name)
		}
		known[r.UID] = true
	}
	for _, point := range p.sink.allPoints()[points:] {
		assert.NotEqual(t, c.name, point.replica, "a point of the metric from a replica that does not lead")
	}
}

// leaderPartitioned takes the API server away from the leader, which still reaches the sink.
func leaderPartitioned(state fakeapi.State) func(*testing.T) row {
	return func(t *testing.T) row {
		p := newPair(t)
		for range 2 {
			p.delivers(t, 100)
			leader, other := p.roles(t)
			p.proxies[leader.name].Set(state)
			p.takesOver(t, other)
			resumed, metered := len(p.sink.allRecords()), len(p.sink.allPoints())
			p.delivers(t, 200)
			p.assertSilent(t, leader, resumed, metered)
			p.proxies[leader.name].Set(fakeapi.Open)
			p.bothWatch(t)
			p.load.Grows(t, 500)
			p.assertSilent(t, leader, resumed, metered)
		}
		return p.concludeInTerms(t)
	}
}

// leadersWithoutAPIServer takes the API server away from both, for about as long as the lease
// lasts.
func leadersWithoutAPIServer(t *testing.T) row {
	p := newPair(t)
	p.delivers(t, 100)
	require.NoError(t, p.cluster.KillAPIServer())
	require.NoError(t, p.cluster.StartAPIServer(t.Context()))
	p.delivers(t, 200)
	return p.conclude(t)
}
