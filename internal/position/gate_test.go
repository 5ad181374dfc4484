// SPDX-License-Identifier: Apache-2.0

package position

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// elector begins and ends the terms of a replica.
type elector struct {
	elect  func(context.Context)
	depose func()
}

func (e *elector) SetCallBackFuncs(started func(context.Context), stopped func()) {
	e.elect, e.depose = started, stopped
}

// versions is a History of a cluster with this newest version.
type versions struct {
	ctx    context.Context
	end    context.CancelFunc
	seen   uint64
	newest atomic.Uint64
	err    error // of each question
}

func (v *versions) Context() context.Context { return v.ctx }
func (v *versions) End()                     { v.end() }
func (v *versions) Highest() uint64          { return v.seen }

func (v *versions) CheckVersions(_ context.Context, known uint64) (wentBack bool, err error) {
	if v.err != nil {
		return false, v.err
	}
	newest := v.newest.Load()
	if wentBack = newest < max(v.seen, known); wentBack {
		v.end()
	}
	v.seen = max(v.seen, newest)
	return wentBack, nil
}

// replica is a process with its gate.
type replica struct {
	*Gate
	elector
	positions *process
	history   *versions
	logs      *observer.ObservedLogs
}

// newReplica returns a standby that knows events up to version 60, as does the cluster.
func newReplica(t *testing.T, api *scriptedAPI) *replica {
	r := &replica{positions: newProcess(t, api), history: &versions{seen: 60}}
	r.history.newest.Store(60)
	r.history.ctx, r.history.end = context.WithCancel(t.Context())
	core, logs := observer.New(zap.DebugLevel)
	l, leave := leadership.Join(&r.elector, leadership.ElectorConfig{}, nil)
	t.Cleanup(leave)
	r.Gate, r.logs = NewGate(l, r.positions.Positions, zap.New(core)), logs
	return r
}

// result is what Pass returned.
type result struct {
	versions []uint64
	term     leadership.Term
	ok       bool
}

// pass begins to pass events of these versions. It returns nil while they wait.
func (r *replica) pass(events ...uint64) (now func() *result) {
	ctx := r.history.ctx
	done := make(chan *result, 1)
	go func() {
		rest, term, ok := r.Pass(ctx, ctx, r.history, observed(events...))
		done <- &result{versionsOf(rest), term, ok}
	}()
	return func() *result {
		synctest.Wait()
		select {
		case result := <-done:
			return result
		default:
			return nil
		}
	}
}

func observed(events ...uint64) (all []observation.Observation) {
	for _, version := range events {
		meta := metav1.ObjectMeta{Namespace: "ns", ResourceVersion: strconv.FormatUint(version, 10)}
		all = append(all, observation.Observation{Event: &corev1.Event{ObjectMeta: meta}})
	}
	return all
}

func versionsOf(observations []observation.Observation) (all []uint64) {
	for i := range observations {
		all = append(all, event.ResourceVersion(observations[i].Event))
	}
	return all
}

// deliver passes events in a term, and delivers all that passes.
func (r *replica) deliver(t *testing.T, events ...uint64) (delivered []uint64) {
	t.Helper()
	passed := r.pass(events...)()
	require.NotNil(t, passed)
	require.True(t, passed.ok)
	r.Delivered(nil, func() map[string]uint64 { return map[string]uint64{"": 60} })
	return passed.versions
}

func TestAStandbyKeepsEventsUntilThePositionHasReachedThem(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		r := newReplica(t, api)
		passed := r.pass(5, 7)
		assert.Nil(t, passed())
		api.set(cluster(5))
		pass(interval)
		assert.Nil(t, passed(), "the leader has delivered one of the two")
		api.set(cluster(7))
		pass(interval)
		assert.Equal(t, &result{}, passed(), "nothing is left to deliver")
		assert.Equal(t, &result{}, r.pass()(), "and nothing to wait for")
		assert.False(t, r.HasEnded(), "there was no term")
		r.Publish()()
		r.End(nil)

		passed = r.pass(8)
		r.elect(t.Context())
		began := passed()
		assert.Equal(t, []uint64{8}, began.versions)
		assert.True(t, began.term.Begins)
		assert.False(t, r.HasEnded())
		assert.False(t, r.pass(9)().term.Begins)
	})
}

func TestANewLeaderDropsWhatTheLastOneHasDelivered(t *testing.T) {
	for name, tt := range map[string]struct {
		position, newest uint64
		err              error
		want             []uint64
	}{
		"all up to the position":                         {position: 55, newest: 60, want: []uint64{58, 62}},
		"also what it has not seen yet":                  {position: 70, newest: 80},
		"nothing, since etcd was restored from a backup": {position: 100, newest: 90, want: []uint64{54, 58, 62}},
		"nothing above what it has seen, since the cluster does not answer": {
			position: 100, err: errors.New("broken"), want: []uint64{62},
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				r := newReplica(t, api)
				r.history.newest.Store(tt.newest)
				r.history.err = tt.err
				api.set(cluster(tt.position)) // r has not read it yet.
				r.elect(t.Context())
				passed := r.pass()
				pass(refreshFor)
				require.True(t, passed().ok)
				assert.Equal(t, tt.want, r.pass(54, 58, 62)().versions)
			})
		})
	}
}

// A stream may be behind another one: what this leader has delivered of another stream does not count.
func TestALeaderDeliversAllThatItsTermDidNotBeginWith(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		r := newReplica(t, api)
		api.set(cluster(5))
		r.elect(t.Context())
		r.deliver(t, 60)
		assert.Equal(t, []uint64{7}, r.deliver(t, 4, 7))
		pass(interval)
		api.took()
		pass(confirmInterval / 2)
		assert.Empty(t, api.took(), "only a standby reads the position all the time")
	})
}

func TestTheGateKeepsWhatATermDoesNotDeliver(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		r := newReplica(t, api)
		r.elect(t.Context())
		assert.Equal(t, []uint64{5, 7, 9}, r.pass(5, 7, 9)().versions)
		stopped := make(chan struct{})
		go func() {
			r.depose()
			close(stopped)
		}()
		synctest.Wait()
		assert.True(t, isChanged(r.Changed()))
		assert.True(t, r.HasEnded())
		assert.False(t, isChanged(r.Changed()), "the end was noticed")
		r.Delivered(observed(7, 9), func() map[string]uint64 { return map[string]uint64{"": 9} })
		r.Publish()()
		assert.Nil(t, api.object(), "not all is delivered up to a version")
		assert.False(t, isChanged(stopped), "the elector waits")
		r.End(observed(8)) // A dedup window held it.
		<-stopped

		api.set(cluster(7)) // By the next leader.
		passed := r.pass()
		pass(interval)
		assert.Nil(t, passed())
		assert.Equal(t, cluster(7), r.positions.Latest().Position, "a standby reads it")
		r.elect(t.Context())
		assert.Equal(t, []uint64{8, 9}, passed().versions)
	})
}

func TestTheEndOfATermPublishesWhatItHasDelivered(t *testing.T) {
	for name, tt := range map[string]struct {
		upTo     map[string]uint64
		fails    bool
		want     Position
		warnings int
	}{
		"all":                       {upTo: map[string]uint64{"": 60}, want: cluster(60)},
		"no stream has been listed": {},
		"the API server fails":      {upTo: map[string]uint64{"": 60}, fails: true, warnings: 1},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				r := newReplica(t, api)
				r.elect(t.Context())
				r.pass(60)()
				r.Delivered(nil, func() map[string]uint64 { return tt.upTo })
				if tt.fails {
					api.onRequest(func(string) error { return errors.New("broken") })
				}
				r.Publish()()
				assert.Equal(t, tt.want, api.stored())
				assert.Equal(t, tt.warnings, r.logs.FilterMessageSnippet("the next leader repeats more").Len())
			})
		})
	}
}

func TestWhatWaitsAtTheGateOverARestore(t *testing.T) {
	noticed := Position{History: 1, Streams: map[string]uint64{"": 3}}
	for name, tt := range map[string]struct {
		happens func(api *scriptedAPI, r *replica)
		after   time.Duration
	}{
		"another process has noticed the restore": {
			happens: func(api *scriptedAPI, _ *replica) { api.set(noticed) }, after: interval,
		},
		"this one is elected, and learns that another one has noticed it": {
			happens: func(api *scriptedAPI, r *replica) {
				api.set(noticed)
				r.elect(context.Background())
			},
		},
		"the versions have gone back, and the standby has no connection": {
			happens: func(_ *scriptedAPI, r *replica) { r.history.newest.Store(30) }, after: checkVersionsEvery,
		},
		"the streams have noticed it": {
			happens: func(_ *scriptedAPI, r *replica) { r.history.End() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				r := newReplica(t, api)
				passed := r.pass(58, 60)
				assert.Nil(t, passed())
				tt.happens(api, r)
				pass(tt.after)
				assert.Equal(t, &result{}, passed())
				assert.Error(t, r.history.ctx.Err(), "the history ends")
				assert.Equal(t, &result{}, r.pass(62)(), "the history has ended")
				assert.Equal(t, []uint64{58, 60, 62}, versionsOf(r.EndHistory()), "a list shows them again, if the cluster has them")
				assert.Empty(t, r.EndHistory())
				r.End(nil)
				r.depose() // It waits for the end of the term, if there was one.
			})
		})
	}
}

// Nobody else delivers what a leader has read before it learns of a restore.
func TestALeaderThatLearnsOfARestoreDeliversWhatItHasRead(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		r := newReplica(t, api)
		r.elect(t.Context())
		r.deliver(t, 60)
		pass(interval)
		api.set(Position{History: 1, Streams: map[string]uint64{"": 3}}) // By a standby.
		pass(confirmInterval)
		r.history.newest.Store(30)
		r.deliver(t)
		assert.Error(t, r.history.ctx.Err())
		r.EndHistory()
		r.history.ctx, r.history.end = context.WithCancel(t.Context())
		assert.Equal(t, []uint64{4}, r.deliver(t, 2, 4))
		assert.NoError(t, r.history.ctx.Err(), "it is in the new history")
		r.Publish()()
		assert.Equal(t, Position{History: 1, Streams: map[string]uint64{"": 60}}, api.stored())
	})
}

func TestATermThatWasOverBeforeTheGateOpenedIsNoTerm(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		r := newReplica(t, api)
		r.elect(t.Context())
		r.depose()
		assert.True(t, isChanged(r.Changed()))
		passed := r.pass(60)
		assert.Nil(t, passed())
		assert.False(t, isChanged(r.Changed()), "the gate has noticed it")
		api.set(cluster(60))
		pass(interval)
		assert.Equal(t, &result{}, passed())
	})
}
