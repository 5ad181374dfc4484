// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/trial"
)

// pair are two replicas without a shared storage, each with a wire of its own.
type pair struct {
	*scene
	wires map[string]*wire
}

// newPair starts two replicas, and the load once both watch.
func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{scene: newScene(t, ownCluster(t, controlplane.Options{})), wires: map[string]*wire{}}
	p.metricDiffers = true
	for range 2 {
		w := newWire(t, p.cluster.Kubeconfig())
		p.wires[p.watchedBy(t, w.kubeconfig, withElections).name] = w
	}
	p.bothWatch(t)
	p.begin(t)
	return p
}

func (p *pair) bothWatch(t *testing.T) {
	t.Helper()
	trial.Eventually(t, func() bool { return p.cluster.eventWatches(t) == 2 }, "two watches")
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
	seen := len(p.sink.took())
	trial.Eventually(t, func() bool {
		for _, r := range p.sink.took()[seen:] {
			if r.replica == c.name {
				return true
			}
		}
		return false
	}, "records from %s", c.name)
}

// concludeInTerms concludes, and checks that the last leader's sums are those of the records of its last term.
func (p *pair) concludeInTerms(t *testing.T) row {
	t.Helper()
	r := p.conclude(t)
	records := recordsIn(p.namespace, p.sink.took())
	last := records[len(records)-1].replica
	var occurrences int64
	for i := len(records) - 1; i >= 0 && records[i].replica == last; i-- {
		occurrences += records[i].occurrences
	}
	points := lastTerm(last, pointsIn(p.namespace, p.sink.metered()))
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

// leaderPaused pauses the leader until the other leads, lets it go on, and then kills the other: who was paused must not
// emit before that, and has to afterwards.
func leaderPaused(t *testing.T) row {
	p := newPair(t)
	p.delivers(t, 100)
	leader, other := p.roles(t)
	leader.signal(t, syscall.SIGSTOP)
	p.takesOver(t, other)
	p.delivers(t, 200)
	resumed, metered := len(p.sink.took()), len(p.sink.metered())
	leader.signal(t, syscall.SIGCONT)
	p.load.grows(t, 2000) // many leases
	p.assertSilent(t, leader, resumed, metered)

	p.bothWatch(t)
	other.kill()
	p.takesOver(t, leader)
	p.delivers(t, 100)
	return p.concludeInTerms(t)
}

// assertSilent checks that a replica has emitted nothing since, but what the other had emitted before.
func (p *pair) assertSilent(t *testing.T, c *collector, records, points int) {
	t.Helper()
	known := map[string]bool{}
	for i, r := range p.sink.took() {
		if r.replica == c.name && i >= records {
			assert.True(t, known[r.uid], "a record of %s that no leader had emitted", c.name)
		}
		known[r.uid] = true
	}
	for _, point := range p.sink.metered()[points:] {
		assert.NotEqual(t, c.name, point.replica, "a point of the metric from a replica that does not lead")
	}
}

// leaderPartitioned takes the API server away from the leader, which still reaches the sink.
func leaderPartitioned(state wireState) func(*testing.T) row {
	return func(t *testing.T) row {
		p := newPair(t)
		for range 2 {
			p.delivers(t, 100)
			leader, other := p.roles(t)
			p.wires[leader.name].becomes(state)
			p.takesOver(t, other)
			resumed, metered := len(p.sink.took()), len(p.sink.metered())
			p.delivers(t, 200)
			p.assertSilent(t, leader, resumed, metered)
			p.wires[leader.name].becomes(sound)
			p.bothWatch(t)
			p.load.grows(t, 500)
			p.assertSilent(t, leader, resumed, metered)
		}
		return p.concludeInTerms(t)
	}
}

// leadersWithoutAPIServer takes the API server away from both, for about as long as the lease lasts.
func leadersWithoutAPIServer(t *testing.T) row {
	p := newPair(t)
	p.delivers(t, 100)
	require.NoError(t, p.cluster.KillAPIServer())
	require.NoError(t, p.cluster.StartAPIServer(t.Context()))
	p.delivers(t, 200)
	return p.conclude(t)
}
