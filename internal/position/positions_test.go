// SPDX-License-Identifier: Apache-2.0

package position

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// health is an Observer that keeps the last report.
type health struct {
	mu     sync.Mutex
	err    error
	failed int
	works  int
}

func (h *health) PositionFailed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	h.failed++
}

func (h *health) PositionWorks() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = nil
	h.works++
}

func (h *health) ElectionFailed(error) {}
func (h *health) ElectionWorks()       {}

func (h *health) last() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// process is a process whose Positions run.
type process struct {
	*Positions
	health *health
	stop   func() // ends Run
}

func newProcess(t *testing.T, api *scriptedAPI) *process {
	h := &health{}
	p := &process{Positions: NewPositions(api.store(), h), health: h}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	p.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(p.stop)
	synctest.Wait() // for the first request
	return p
}

// lead begins a term as the receiver does.
func (p *process) lead(t *testing.T) {
	t.Helper()
	p.Lead()
	require.NoError(t, p.Refresh(t.Context()))
}

// simulate runs the test with a simulated clock.
func simulate(t *testing.T, test func(t *testing.T, api *scriptedAPI)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newScriptedAPI(t)) })
}

// pass lets time pass, and ends just after whatever is due at its end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func isChanged(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func cluster(version uint64) Position { return at(map[string]uint64{"": version}) }

func TestAStandbyReadsThePositionEveryTwoSeconds(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.hang("get")
		p := newProcess(t, api)
		assert.Equal(t, Latest{at(map[string]uint64{}), Unknown}, p.Latest())
		changed := p.Changed()
		api.hang("") // The first request still gets no response.
		pass(requestTimeout)
		assert.True(t, isChanged(changed))
		assert.Equal(t, Latest{at(map[string]uint64{}), Missing}, p.Latest())

		changed = p.Changed()
		pass(interval)
		assert.False(t, isChanged(changed), "nothing changed")
		api.took()
		api.set(Position{"the-uid", 0, map[string]uint64{"a": 7}})
		pass(interval)
		assert.True(t, isChanged(changed))
		assert.Equal(t, Latest{Position{"the-uid", 0, map[string]uint64{"a": 7}}, Known}, p.Latest())
		assert.True(t, p.Latest().Reached("a", 7))
		pass(4 * interval)
		assert.Equal(t, []string{"get", "get", "get", "get", "get"}, api.took())

		// The stored position is a fact. If another process lowers it, then it was void.
		api.set(cluster(3))
		pass(interval)
		assert.Equal(t, Latest{cluster(3), Known}, p.Latest())
		api.remove()
		pass(interval)
		assert.Equal(t, Latest{at(map[string]uint64{}), Missing}, p.Latest())
	})
}

func TestALeaderPublishesWithinTwoSecondsWhatAdvanced(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		p := newProcess(t, api)
		p.SetCluster("the-uid")
		p.lead(t)
		api.took()
		pass(2 * confirmInterval)
		assert.Empty(t, api.took(), "a leader that has nothing to publish makes no requests")

		p.Advance(cluster(10))
		assert.Equal(t, Latest{Position{"the-uid", 0, map[string]uint64{"": 10}}, Known}, p.Latest(), "this process has led")
		pass(interval)
		assert.Equal(t, Position{"the-uid", 0, map[string]uint64{"": 10}}, api.stored())
		assert.Equal(t, []string{"get 404", "create"}, api.took())
		for version := uint64(11); version < 100; version++ {
			p.Advance(cluster(version))
			pass(100 * time.Millisecond)
			assert.GreaterOrEqual(t, api.stored().Streams[""]+20, version)
		}
		assert.LessOrEqual(t, len(api.took()), 10, "a GET and a PUT every 2 s")

		pass(interval)
		api.took()
		p.Advance(cluster(50))
		pass(interval)
		assert.Empty(t, api.took(), "it never goes back")
		assert.Equal(t, cluster(99).Streams, p.Latest().Streams)
		assert.NoError(t, p.health.last())
	})
}

func TestTheEndOfATermAndOfTheProcessPublish(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		p := newProcess(t, api)
		p.lead(t)
		p.Advance(cluster(10))
		require.NoError(t, p.Flush(t.Context()))
		assert.Equal(t, cluster(10), api.stored())
		p.Follow()
		assert.Equal(t, Latest{cluster(10), Known}, p.Latest())

		api.took()
		require.NoError(t, p.Flush(t.Context()))
		assert.Empty(t, api.took(), "nothing to publish")

		p.lead(t)
		p.stop()
		p.Advance(cluster(11))
		require.NoError(t, p.Flush(t.Context()), "Run has ended")
		assert.Equal(t, cluster(11), api.stored())
	})
}

func TestATermBeginsWithWhatTheLastLeaderPublished(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		p := newProcess(t, api)
		api.set(cluster(10))
		assert.Equal(t, Missing, p.Latest().State)
		p.lead(t)
		assert.Equal(t, Latest{cluster(10), Known}, p.Latest())
		p.Advance(cluster(10))
		pass(interval)
		assert.Equal(t, []string{"get 404", "try create", "get"}, api.took(), "nothing to publish")
	})
}

func TestNobodyPublishesBeforeThePositionWasRead(t *testing.T) {
	for name, fail := range map[string]func(*scriptedAPI){
		"forbidden":  func(api *scriptedAPI) { api.forbid("get") },
		"error":      func(api *scriptedAPI) { api.onRequest(func(string) error { return errors.New("broken") }) },
		"unreadable": func(api *scriptedAPI) { api.put(nil, map[string]string{"streams": "?"}) },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				fail(api)
				p := newProcess(t, api)
				p.Lead()
				assert.Error(t, p.Refresh(t.Context()))
				p.Advance(cluster(10))
				pass(time.Minute)
				assert.Error(t, p.Flush(t.Context()))
				assert.Error(t, p.health.last())
				assert.Equal(t, Latest{cluster(10), Unknown}, p.Latest())
				for _, request := range api.took() {
					assert.Contains(t, request, "get")
				}
				// Once it can be read, the higher version counts.
				api.set(cluster(30))
				api.onRequest(nil)
				pass(maxPause)
				assert.NoError(t, p.health.last())
				assert.Equal(t, cluster(30), api.stored())
				assert.Equal(t, Latest{cluster(30), Known}, p.Latest())
			})
		})
	}
}

func TestALeaderReadsThePositionUntilItIsKnown(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(cluster(10))
		api.forbid("get")
		p := newProcess(t, api)
		p.Lead()
		pass(time.Minute)
		var permission *PermissionError
		assert.ErrorAs(t, p.health.last(), &permission)
		api.onRequest(nil)
		pass(maxPause)
		assert.Equal(t, Latest{cluster(10), Known}, p.Latest())
		assert.NoError(t, p.health.last())
	})
}

func TestAwaitEndsWhenThePositionIsReadOrSomebodyHasToAct(t *testing.T) {
	broken := func(api *scriptedAPI) { api.onRequest(func(string) error { return errors.New("broken") }) }
	for name, tt := range map[string]struct {
		fail     func(*scriptedAPI)
		worksIn  time.Duration // 0: never
		waits    time.Duration
		succeeds bool
	}{
		"nothing fails":                     {fail: func(*scriptedAPI) {}, succeeds: true},
		"it may not be read":                {fail: func(api *scriptedAPI) { api.forbid("get") }, succeeds: true},
		"it cannot be decoded":              {fail: func(api *scriptedAPI) { api.put(nil, map[string]string{"streams": "?"}) }, succeeds: true},
		"the API server fails for a while":  {fail: broken, worksIn: 2500 * time.Millisecond, waits: 3 * time.Second, succeeds: true},
		"the API server fails all the time": {fail: broken, waits: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				tt.fail(api)
				if tt.worksIn > 0 {
					time.AfterFunc(tt.worksIn, func() { api.onRequest(nil) })
				}
				p := NewPositions(api.store(), &health{})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				assert.Equal(t, tt.succeeds, p.Await(ctx))
				assert.Equal(t, tt.waits, time.Since(began))
			})
		})
	}
}

func TestANewLeaderDoesNotWaitForThePausesOfAStandby(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(cluster(10))
		api.forbid("get")
		p := newProcess(t, api)
		pass(45 * time.Second)
		api.onRequest(nil)
		p.Lead()
		pass(interval)
		assert.Equal(t, Latest{cluster(10), Known}, p.Latest())
	})
}

func TestAMissingPermissionIsReportedAndRetried(t *testing.T) {
	for _, verb := range []string{"get", "create", "update"} {
		t.Run(verb, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				if verb == "update" {
					api.set(cluster(1))
				}
				p := newProcess(t, api)
				p.lead(t)
				p.Advance(cluster(10))
				api.forbid(verb)
				pass(interval)
				var permission *PermissionError
				require.ErrorAs(t, p.health.last(), &permission)
				assert.Equal(t, verb, permission.Verb)

				pass(2 * time.Minute)
				api.took()
				pass(5 * time.Minute)
				requests := len(api.took())
				assert.GreaterOrEqual(t, requests, 10)
				assert.LessOrEqual(t, requests, 20, "once or twice in 30 s")

				api.onRequest(nil)
				pass(maxPause)
				assert.NoError(t, p.health.last())
				assert.Equal(t, cluster(10), api.stored())
			})
		})
	}
}

func TestAStandbyReadsOnIfItMayNotWrite(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(cluster(1))
		p := newProcess(t, api)
		p.lead(t)
		api.forbid("update", "create")
		p.Advance(cluster(10))
		assert.Error(t, p.Flush(t.Context()))
		pass(5 * time.Minute) // The pauses are long now.
		p.Follow()
		api.set(cluster(5))
		pass(3 * interval)
		assert.Equal(t, Latest{cluster(5), Known}, p.Latest())
		api.set(cluster(20))
		pass(interval)
		assert.Equal(t, Latest{cluster(20), Known}, p.Latest())
		var permission *PermissionError
		require.ErrorAs(t, p.health.last(), &permission, "the standby reports it, too")
		api.onRequest(nil)
		pass(maxPause)
		assert.NoError(t, p.health.last())
	})
}

// A standby reports that a permission is missing, so that a rollout waits before the old leader ends.
func TestAStandbyReportsThatItMayNotPublish(t *testing.T) {
	for verb, stored := range map[string]Position{"create": {}, "update": cluster(10)} {
		t.Run(verb, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				if verb == "update" {
					api.set(stored)
				}
				api.forbid(verb)
				p := newProcess(t, api)
				var permission *PermissionError
				require.ErrorAs(t, p.health.last(), &permission, "before the process starts to watch")
				assert.Equal(t, verb, permission.Verb)
				pass(10 * time.Minute)
				assert.ErrorAs(t, p.health.last(), &permission)
				tries := 0
				for _, request := range api.took() {
					if request == "try "+verb+" 403" {
						tries++
					} else {
						require.Contains(t, request, "get")
					}
				}
				assert.InDelta(t, 20, tries, 1, "every 30 s")

				api.onRequest(nil)
				pass(maxPause)
				assert.NoError(t, p.health.last())
				assert.Equal(t, stored, api.stored(), "nothing was written")
				api.took()
				pass(10 * time.Minute)
				assert.NotContains(t, api.took(), "try "+verb, "once is enough")
			})
		})
	}
}

func TestAStandbyTriesAgainWhenThePositionExists(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.forbid("update")
		p := newProcess(t, api)
		assert.NoError(t, p.health.last(), "it may create the ConfigMap")
		api.set(cluster(10))
		pass(maxPause)
		var permission *PermissionError
		require.ErrorAs(t, p.health.last(), &permission)
		assert.Equal(t, "update", permission.Verb)
		p.lead(t)
		assert.ErrorAs(t, p.health.last(), &permission, "the new leader does not report that it works before it has published")
		api.onRequest(nil)
		p.Advance(cluster(20))
		pass(interval)
		assert.NoError(t, p.health.last())
	})
}

// A standby that may update, but not create: an administrator makes the ConfigMap again.
func TestAStandbyThatMayNotCreateWorksOnceThePositionExistsAgain(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(cluster(10))
		api.forbid("create")
		p := newProcess(t, api)
		require.NoError(t, p.health.last(), "it may update the ConfigMap")
		api.remove()
		pass(maxPause + interval)
		var permission *PermissionError
		require.ErrorAs(t, p.health.last(), &permission)
		assert.Equal(t, "create", permission.Verb)
		api.set(cluster(10))
		pass(maxPause + interval)
		assert.NoError(t, p.health.last())
	})
}

// An answer that is no missing permission says nothing about permissions, and a new leader does not
// wait for long.
func TestATryThatFailsOtherwiseIsNoMissingPermission(t *testing.T) {
	for name, fail := range map[string]func(*scriptedAPI){
		"broken": func(api *scriptedAPI) {
			api.onRequest(func(verb string) error {
				if verb == "create" {
					return errors.New("a webhook that does not support dry runs")
				}
				return nil
			})
		},
		"hanging": func(api *scriptedAPI) { api.hang("create") },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				fail(api)
				p := newProcess(t, api)
				began := time.Now()
				p.lead(t)
				assert.LessOrEqual(t, time.Since(began), tryTimeout)
				assert.NoError(t, p.health.last())
			})
		})
	}
}

func TestAFailedReadKeepsTheLastPosition(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(cluster(10))
		p := newProcess(t, api)
		changed := p.Changed()
		api.onRequest(func(string) error { return errors.New("broken") })
		pass(interval)
		assert.NoError(t, p.health.last(), "a single failure is not reported")
		pass(interval)
		assert.ErrorContains(t, p.health.last(), "cannot get ConfigMap")
		assert.Error(t, p.Refresh(t.Context()))
		pass(time.Minute)
		assert.Equal(t, Latest{cluster(10), Known}, p.Latest())
		assert.False(t, isChanged(changed))
		api.onRequest(nil)
		api.set(cluster(11))
		pass(interval)
		assert.Equal(t, Latest{cluster(11), Known}, p.Latest(), "only after forbidden requests there are pauses")

		api.forbid("get")
		pass(45 * time.Second)
		assert.Equal(t, Latest{cluster(11), Known}, p.Latest())
		api.onRequest(nil)
		require.NoError(t, p.Refresh(t.Context()))
		assert.NoError(t, p.health.last())
		api.set(cluster(12))
		pass(interval)
		assert.Equal(t, Latest{cluster(12), Known}, p.Latest(), "the pauses have ended, too")
	})
}

func TestWhatCouldNotBePublishedInTheTermIsPublishedLater(t *testing.T) {
	for name, fail := range map[string]func(*scriptedAPI){
		"the API server fails":         func(api *scriptedAPI) { api.onRequest(func(string) error { return errors.New("broken") }) },
		"the position may not be read": func(api *scriptedAPI) { api.forbid("get") },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				api.set(cluster(1))
				p := newProcess(t, api)
				p.lead(t)
				fail(api)
				p.Advance(cluster(10))
				assert.Error(t, p.Flush(t.Context()))
				p.Follow()
				pass(interval)
				assert.Equal(t, Latest{cluster(10), Known}, p.Latest())
				api.onRequest(nil)
				api.set(at(map[string]uint64{"": 5, "a": 7}))
				pass(2 * interval)
				want := at(map[string]uint64{"": 10, "a": 7})
				assert.Equal(t, want, api.stored())
				assert.Equal(t, Latest{want, Known}, p.Latest())
				api.took()
				pass(interval)
				assert.Equal(t, []string{"get"}, api.took())
			})
		})
	}
}

func TestALeaderThatHasNoticedARestoreReplacesAHigherPosition(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(cluster(10_000))
		leader, standby := newProcess(t, api), newProcess(t, api)
		leader.lead(t)
		// Both have delivered before the cluster was restored, and could not publish it.
		api.onRequest(func(verb string) error {
			if verb == "update" {
				return errors.New("broken")
			}
			return nil
		})
		standby.Advance(cluster(10_001))
		leader.Advance(cluster(10_002))
		pass(interval)

		changed := leader.Changed()
		leader.EndHistory()
		assert.True(t, isChanged(changed))
		assert.Equal(t, Latest{Position{"", 1, map[string]uint64{}}, Missing}, leader.Latest(), "what is stored is void")
		leader.Advance(cluster(10_003))
		assert.Equal(t, Missing, leader.Latest().State, "nor does a late delivery of the old history count")
		restored := Position{"", 1, map[string]uint64{"": 500}}
		leader.Advance(restored)
		assert.Equal(t, Latest{restored, Known}, leader.Latest())
		changed = standby.Changed()
		api.onRequest(nil)
		require.NoError(t, leader.Flush(t.Context()))
		assert.Equal(t, restored, api.stored())
		pass(3 * interval)
		assert.Equal(t, restored, api.stored(), "the standby does not raise it again")

		assert.True(t, isChanged(changed))
		assert.True(t, standby.IsBehind())
		standby.EndHistory()
		assert.False(t, standby.IsBehind())
		assert.Equal(t, Latest{restored, Known}, standby.Latest())
	})
}

func TestTheEndOfAHistoryIsNoticedWithoutAHigherPosition(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		p := newProcess(t, api)
		p.Advance(cluster(10))
		pass(interval)
		changed := p.Changed()
		api.set(Position{"", 1, map[string]uint64{"": 5}})
		pass(interval)
		assert.True(t, isChanged(changed))
		assert.True(t, p.IsBehind())
	})
}

// While its pipeline rejects everything, a leader does not ask for the cluster's version.
func TestAStandbyPublishesThatItHasNoticedARestore(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(at(map[string]uint64{"a": 100, "b": 200}))
		leader, standby := newProcess(t, api), newProcess(t, api)
		leader.lead(t)
		leader.Advance(at(map[string]uint64{"a": 101}))
		pass(2 * interval)
		standby.EndHistory()
		pass(2 * interval)
		assert.Equal(t, Position{"", 1, map[string]uint64{"a": 1, "b": 1}}, api.stored(), "a receiver that starts now begins with what exists")
		leader.Advance(at(map[string]uint64{"a": 102}))
		pass(2 * interval)
		assert.True(t, leader.IsBehind())
		assert.Equal(t, Position{"", 1, map[string]uint64{"a": 1, "b": 1}}, api.stored())
		leader.EndHistory()
		leader.Advance(Position{"", 1, map[string]uint64{"a": 50}})
		pass(2 * interval)
		assert.Equal(t, Position{"", 1, map[string]uint64{"a": 50, "b": 1}}, api.stored())
		api.took()
		pass(interval)
		assert.Equal(t, []string{"get"}, api.took(), "the standby only reads again")
	})
}

func TestAStandbyPublishesARestoreOnlyInThePositionOfItsCluster(t *testing.T) {
	for name, stored := range map[string]Position{
		"there is none":            {},
		"it is of another cluster": {"another", 0, map[string]uint64{"": 100}},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				if stored.Cluster != "" {
					api.set(stored)
				}
				p := newProcess(t, api)
				p.SetCluster("mine")
				p.EndHistory()
				pass(2 * interval)
				assert.Equal(t, stored, api.stored())
			})
		})
	}
}

// Two processes number a history alike, however often each of them has noticed a restore since a leader
// published.
func TestHistoriesHaveTheSameNumbers(t *testing.T) {
	for name, tt := range map[string]struct {
		stored       uint64
		leader, both int // how often the versions have gone back: for the leader alone, and for both
		want         uint64
	}{
		"both notice":                         {0, 0, 1, 1},
		"the leader notices one more":         {0, 1, 1, 1},
		"both notice two":                     {0, 0, 2, 1},
		"after earlier restores":              {7, 1, 1, 8},
		"only the leader notices, and is far": {7, 3, 0, 8},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				api.set(Position{"", tt.stored, map[string]uint64{"": 100}})
				leader, standby := newProcess(t, api), newProcess(t, api)
				leader.Begin()
				standby.Begin()
				leader.lead(t)
				for range tt.leader + tt.both {
					leader.EndHistory()
				}
				for range tt.both {
					standby.EndHistory()
				}
				leader.Advance(Position{"", leader.History(), map[string]uint64{"": 5}})
				pass(2 * interval)
				if standby.IsBehind() {
					standby.EndHistory()
				}
				assert.Equal(t, tt.want, leader.History())
				assert.Equal(t, Latest{Position{"", tt.want, map[string]uint64{"": 5}}, Known}, standby.Latest())
			})
		})
	}
}

func TestANewSessionBeginsInTheHistoryOfThePosition(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		p := newProcess(t, api)
		p.SetCluster("x")
		p.Advance(cluster(10))
		p.EndHistory()
		api.set(Position{"y", 5, map[string]uint64{"": 7}})
		require.NoError(t, p.Refresh(t.Context()))
		assert.False(t, p.IsBehind(), "the position is of another cluster")
		p.SetCluster("y")
		assert.Equal(t, Position{"y", 5, map[string]uint64{"": 7}}, p.Begin())
		p.Advance(Position{"", 5, map[string]uint64{"": 9}})
		p.SetCluster("z")
		assert.Equal(t, Position{"z", 0, map[string]uint64{}}, p.Begin(), "nothing is stored of it")
	})
}

func TestThePositionOfAnotherClusterIsMissing(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(Position{"another", 0, map[string]uint64{"": 10_000}})
		p := newProcess(t, api)
		p.lead(t)
		assert.Equal(t, Known, p.Latest().State)
		p.Advance(at(map[string]uint64{"a": 5}))
		pass(interval)
		assert.Equal(t, Position{"another", 0, map[string]uint64{"": 10_000, "a": 5}}, api.stored())

		changed := p.Changed()
		p.SetCluster("mine")
		assert.True(t, isChanged(changed))
		mine := Position{"mine", 0, map[string]uint64{"a": 5}}
		assert.Equal(t, Latest{mine, Known}, p.Latest())
		pass(interval)
		assert.Equal(t, mine, api.stored())

		standby := newProcess(t, api)
		standby.SetCluster("third")
		pass(interval)
		assert.Equal(t, Latest{Position{"third", 0, map[string]uint64{}}, Missing}, standby.Latest())
		standby.SetCluster("mine")
		assert.Equal(t, Latest{mine, Known}, standby.Latest())

		standby.SetCluster("third")
		standby.lead(t)
		standby.Advance(at(map[string]uint64{"a": 4}))
		pass(interval)
		assert.Equal(t, Position{"third", 0, map[string]uint64{"a": 4}}, api.stored())
	})
}

func TestRunEndsDuringARequest(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.hang("get")
		p := newProcess(t, api)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, p.Refresh(ctx), context.DeadlineExceeded, "it does not wait longer for its turn")
		p.Lead()
		p.Advance(cluster(1)) // These do not wait for requests.
		assert.Equal(t, Latest{cluster(1), Unknown}, p.Latest())
		start := time.Now()
		p.stop()
		assert.Zero(t, time.Since(start))
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, p.Refresh(ctx), context.DeadlineExceeded)
		assert.NoError(t, p.health.last(), "an end is no failure")
	})
}

func TestLeadersThatChangeNeverLowerAVersion(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			simulate(t, func(t *testing.T, api *scriptedAPI) {
				random := rand.New(rand.NewPCG(seed, 0))
				var mu sync.Mutex
				api.onRequest(func(string) error {
					mu.Lock()
					broken, wait := random.IntN(8) == 0, time.Duration(random.IntN(1500))*time.Millisecond
					mu.Unlock()
					time.Sleep(wait)
					if broken {
						return errors.New("broken")
					}
					return nil
				})
				processes := []*process{newProcess(t, api), newProcess(t, api), newProcess(t, api)}
				delivered := at(map[string]uint64{})
				for range 300 {
					mu.Lock()
					p, role := processes[random.IntN(len(processes))], random.IntN(12)
					stream, wait := []string{"", "a", "b"}[random.IntN(3)], time.Duration(random.IntN(700))*time.Millisecond
					mu.Unlock()
					switch role {
					case 0:
						p.Lead()
					case 1:
						p.Follow()
					case 2:
						go func() { _ = p.Refresh(t.Context()) }()
					case 3:
						go func() { _ = p.Flush(t.Context()) }()
					default:
						delivered.Streams[stream]++
						p.Advance(at(map[string]uint64{stream: delivered.Streams[stream]}))
					}
					time.Sleep(wait)
				}
				api.onRequest(nil)
				pass(time.Minute)
				assert.Empty(t, api.fell)
				assert.Equal(t, delivered, api.stored(), "everything is published at the end")
			})
		})
	}
}

func TestPositionsAreSafeForConcurrentUse(t *testing.T) {
	api := newScriptedAPI(t)
	var processes, users sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for writer := range uint64(2) {
		p := NewPositions(api.store(), &health{})
		processes.Go(func() { p.Run(ctx) })
		p.Lead()
		users.Go(func() {
			for version := uint64(1); version <= 300; version++ {
				p.Advance(at(map[string]uint64{"": 2*version + writer, fmt.Sprint("own-", writer): version}))
				if version%10 == 0 {
					for p.Flush(ctx) != nil { // Another process may write all the time.
						if ctx.Err() != nil {
							return
						}
					}
				}
			}
		})
		users.Go(func() {
			last := Position{}
			for range 300 {
				p.Changed()
				latest := p.Latest()
				assert.False(t, last.fellTo(latest.Position))
				last = latest.Position
				if last.Reached("", 300) {
					assert.NoError(t, p.Refresh(ctx))
				}
			}
		})
	}
	users.Wait()
	cancel()
	processes.Wait()
	assert.Empty(t, api.fell)
	assert.Equal(t, map[string]uint64{"": 601, "own-0": 300, "own-1": 300}, api.stored().Streams)
}

func TestALeaderKeepsTheStreamsThatItDoesNotWatch(t *testing.T) {
	simulate(t, func(t *testing.T, api *scriptedAPI) {
		api.set(at(map[string]uint64{"": 7, "a": 8, "z": 3}))
		p := newProcess(t, api)
		p.lead(t)
		p.Advance(at(map[string]uint64{"a": 9, "b": 10}))
		pass(interval)
		assert.Equal(t, at(map[string]uint64{"": 7, "a": 9, "b": 10, "z": 3}), api.stored())
	})
}
