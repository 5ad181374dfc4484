// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubeevents/kubeeventsreceiver/internal/apitest"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// vote is a leader elector whose elections a test decides.
type vote struct {
	component.StartFunc
	component.ShutdownFunc
	config *voteConfig

	mu      sync.Mutex
	started []func(context.Context)
	stopped []func()
}

type voteConfig struct {
	LeaseDuration, RenewDuration        time.Duration
	AuthType, LeaseNamespace, LeaseName string
}

func (v *vote) SetCallBackFuncs(started func(context.Context), stopped func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.started, v.stopped = append(v.started, started), append(v.stopped, stopped)
}

func (v *vote) elect() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, started := range v.started {
		started(context.Background())
	}
}

func (v *vote) depose() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, stopped := range v.stopped {
		stopped()
	}
}

// votingHost has a leader elector called "vote", and a storage called "disk" unless that is nil.
type votingHost struct {
	vote *vote
	disk *disk
}

func (h *votingHost) GetExtensions() map[component.ID]component.Component {
	extensions := map[component.ID]component.Component{component.MustNewID("vote"): h.vote}
	if h.disk != nil {
		extensions[component.MustNewID("disk")] = h.disk
	}
	return extensions
}

// replica is one of several receivers of which one leads.
type replica struct {
	*vote
	logs    *consumertest.LogsSink
	metrics *consumertest.MetricsSink
	stop    func()
}

func newReplica(t *testing.T, api *apitest.Server, on *disk, more string) *replica {
	t.Helper()
	r := &replica{vote: &vote{}, logs: &consumertest.LogsSink{}, metrics: &consumertest.MetricsSink{}}
	cfg := configFor(t, api.URL, more)
	elector := component.MustNewID("vote")
	cfg.LeaderElector = &elector
	cfg.CollectionInterval = 10 * time.Millisecond
	if on != nil {
		storage := component.MustNewID("disk")
		cfg.Storage = &storage
	}
	r.stop = launchInto(t, cfg, receivertest.NewNopSettings(metadata.Type), &votingHost{r.vote, on}, r.logs, r.metrics)
	return r
}

func (r *replica) names() []string { return names(r.logs.AllLogs()) }

func TestOnlyTheLeaderEmits(t *testing.T) {
	api := apitest.New(t)
	a, b := newReplica(t, api, nil, "start_at: beginning"), newReplica(t, api, nil, "start_at: beginning")
	a.elect()
	api.Put(eventNamed("one", 2))
	awaitNames(t, a.logs, "one+2")
	require.Eventually(t, func() bool { return len(api.Requests()) == 2 }, patience, time.Millisecond, "the standby follows")
	assert.Empty(t, b.names())
	assert.Zero(t, b.metrics.DataPointCount())
}

func TestAStandbyEmitsWhatADeadLeaderCannotHave(t *testing.T) {
	api := apitest.New(t)
	b := newReplica(t, api, nil, "start_at: beginning")
	require.Eventually(t, func() bool { return len(api.Requests()) == 1 }, patience, time.Millisecond)
	api.Put(eventNamed("one", 2))
	api.Put(eventNamed("one", 5))
	b.elect()
	awaitNames(t, b.logs, "one+2", "one+3")
	api.Put(eventNamed("two", 1))
	awaitNames(t, b.logs, "one+2", "one+3", "two+1")
}

func TestLeadershipIsLostAndRegainedAnyNumberOfTimes(t *testing.T) {
	for name, on := range map[string]*disk{"without storage": nil, "with shared storage": newDisk()} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New(t)
			a, b := newReplica(t, api, on, "start_at: beginning"), newReplica(t, api, on, "start_at: beginning")
			leader, other := a, b
			var want []string
			for round := range 6 {
				leader.elect()
				event := fmt.Sprint("e", round)
				api.Put(eventNamed(event, 1))
				want = append(want, event+"+1")
				require.Eventually(t, func() bool {
					got := leader.names()
					return len(got) > 0 && got[len(got)-1] == event+"+1"
				}, patience, 2*time.Millisecond)
				leader.depose()
				leader, other = other, leader
			}
			_ = other
			all := append(a.names(), b.names()...)
			for _, event := range want {
				assert.Contains(t, all, event, "nothing is lost")
			}
			for _, record := range all {
				assert.Contains(t, want, record, "what is repeated is repeated as it was, with its log.record.uid")
			}
		})
	}
}

func TestTheMetricGoesOnAfterAFailOverWithSharedStorage(t *testing.T) {
	api, on := apitest.New(t), newDisk()
	a, b := newReplica(t, api, on, "start_at: beginning"), newReplica(t, api, on, "start_at: beginning")
	a.elect()
	api.Put(eventNamed("one", 2))
	(&process{metrics: a.metrics}).awaitSum(t, 2)
	a.depose()
	api.Put(eventNamed("one", 5))
	b.elect()
	(&process{metrics: b.metrics}).awaitSum(t, 5)
	assert.Equal(t, []string{"one+3"}, b.names())
}

func TestALeaderThatIsDeposedWhileThePipelineRefusesEmitsNoMore(t *testing.T) {
	api := apitest.New(t)
	pipeline := &refusing{}
	pipeline.refuseWith(errors.New("the queue is full"))
	elector := &vote{}
	cfg := configFor(t, api.URL, "start_at: beginning")
	id := component.MustNewID("vote")
	cfg.LeaderElector = &id
	launchInto(t, cfg, receivertest.NewNopSettings(metadata.Type), &votingHost{vote: elector}, pipeline, nil)
	elector.elect()
	api.Put(eventNamed("one", 1))
	require.Eventually(t, func() bool { return pipeline.attempts.Load() > 0 }, patience, time.Millisecond)
	elector.depose()
	attempts := pipeline.attempts.Load()
	pipeline.refuseWith(nil)
	api.Put(eventNamed("two", 1))
	time.Sleep(50 * time.Millisecond)
	assert.Equal(t, attempts, pipeline.attempts.Load())
	elector.elect()
	awaitNames(t, &pipeline.LogsSink, "one+1", "two+1")
}

func TestAStandbyHoldsALeasesWorth(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	seen := func(second int) observation.Observation {
		return observation.Observation{SeenAt: at(second), Occurrences: int64(second)}
	}
	s := standby{horizon: 10 * time.Second}
	s.hold([]observation.Observation{seen(0), seen(5)}, at(5))
	s.hold([]observation.Observation{seen(11)}, at(11))
	assert.Equal(t, []observation.Observation{seen(5), seen(11)}, s.release(at(12)), "nothing older")
	assert.Empty(t, s.release(at(12)))

	many := make([]observation.Observation, mostHeld)
	for i := range many {
		many[i] = seen(1)
	}
	s.hold(many, at(1))
	assert.True(t, s.full(at(11)), "what is held is bounded")
	assert.False(t, s.full(at(12)), "and time makes room")
}

func TestAStandbyThatIsFullWaitsAndLosesNothing(t *testing.T) {
	r := &eventsReceiver{leadership: newLeadership(time.Hour, time.Hour)}
	r.standby.horizon = time.Hour
	r.standby.hold(make([]observation.Observation, mostHeld), time.Time{})
	for i := range r.standby.held {
		r.standby.held[i].SeenAt = time.Now()
	}
	r.watchElections()
	passed := make(chan struct{})
	go func() {
		r.awaitRoom(t.Context())
		close(passed)
	}()
	select {
	case <-passed:
		require.Fail(t, "it went on while it was full")
	case <-time.After(20 * time.Millisecond):
	}
	r.leadership.started()
	<-passed
	assert.Len(t, r.standby.release(time.Now()), mostHeld)
}

func TestAfterAPauseNobodyKnowsWhoLeads(t *testing.T) {
	l := newLeadership(15*time.Second, 10*time.Second)
	l.started()
	now := l.lastBeat
	later := now.Add
	assert.Zero(t, l.certainIn(later(time.Second)))
	assert.Zero(t, l.certainIn(later(2*time.Second)))
	assert.Equal(t, 13*time.Second, l.certainIn(later(60*time.Second)), "as long as the elector may take to notice, and a little")
	l.noteBeat(later(61 * time.Second))
	l.noteBeat(later(62 * time.Second))
	assert.Equal(t, 11*time.Second, l.certainIn(later(62*time.Second)))
	for second := 63; second <= 73; second++ {
		l.noteBeat(later(time.Duration(second) * time.Second))
	}
	assert.Zero(t, l.certainIn(later(73*time.Second)))

	l.noteBeat(later(200 * time.Second))
	l.stopped()
	l.started()
	assert.Zero(t, l.certainIn(later(201*time.Second)), "an election settles it")
}

func TestTheLeaseIsReadFromTheElector(t *testing.T) {
	lease, patience := electorConfigOf(&vote{config: &voteConfig{LeaseDuration: time.Minute, RenewDuration: 40 * time.Second}}).lease()
	assert.Equal(t, time.Minute, lease)
	assert.Equal(t, 40*time.Second, patience)
	for _, other := range []component.Component{&vote{}, &noStorage{}, &vote{config: &voteConfig{}}} {
		lease, patience = electorConfigOf(other).lease()
		assert.Equal(t, 15*time.Second, lease)
		assert.Equal(t, 10*time.Second, patience)
	}
}

func TestAnElectorThatReachesTheAPIServerInItsOwnWay(t *testing.T) {
	api := apitest.New(t)
	cfg := configFor(t, api.URL, "start_at: beginning")
	elector := component.MustNewID("vote")
	cfg.LeaderElector = &elector
	core, said := observer.New(zap.WarnLevel)
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	v := &vote{config: &voteConfig{AuthType: "tls", LeaseNamespace: "observability", LeaseName: "kube-events"}}
	logs := &consumertest.LogsSink{}
	launchInto(t, cfg, settings, &votingHost{v, nil}, logs, &consumertest.MetricsSink{})
	v.elect()
	api.Put(eventNamed("one", 2))
	awaitNames(t, logs, "one+2")
	assert.Len(t, said.FilterMessageSnippet("The lease of the leader election cannot be looked at").All(), 1)
}

func TestALeaderElectorThatIsNotThere(t *testing.T) {
	api := apitest.New(t)
	for id, want := range map[string]string{
		"gone": `k8s_leader_elector: "gone" is not among the extensions that run; add it`,
		"disk": `k8s_leader_elector: "disk" is no leader elector`,
	} {
		cfg := configFor(t, api.URL, "")
		elector := component.MustNewID(id)
		cfg.LeaderElector = &elector
		r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, r.Start(t.Context(), &votingHost{&vote{}, newDisk()}), want)
		require.NoError(t, r.Shutdown(t.Context()))
	}
}
