// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestTheEndOfATermKeepsWhatTheWindowsHold(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, dedup_interval: 1h}"
		a, b := harness.NewReplicas(t, api, nil, config)
		a.Elect()
		api.Put(harness.Event("one", 1))
		harness.Settle()
		api.Put(harness.Event("one", 4))
		harness.Settle()
		a.Depose()
		assert.Equal(t, []string{"one+1"}, a.Logs.Names())
		harness.Settle()
		b.Elect()
		b.AwaitRecords(t, "one+3")
		b.Depose()
		harness.Settle()
		a.Elect()
		a.AwaitRecords(t, "one+1")
	})
}

func TestAProcessThatLeadsAgainDeliversWhatItsWindowsHeld(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "{start_at: beginning, dedup_interval: 1h}")
		a.Elect()
		api.Put(harness.Event("one", 1))
		harness.Settle()
		api.Put(harness.Event("one", 4))
		harness.Settle()
		a.Depose()
		harness.Settle()
		a.Elect()
		a.AwaitRecords(t, "one+1", "one+3")
	})
}

// logged returns how often the log of a replica has a message.
func logged(p *harness.Process, message string) int { return p.Log.FilterMessage(message).Len() }

func TestTheLogOfALeaderSaysWhereItsTermBegins(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const leads = "Started leading"
		const first, next = "No progress in the ConfigMap: this is a first start; start_at decides whether existing events are emitted",
			"Continuing from the progress of the last leader"
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.Elect()
		harness.Settle()
		assert.Equal(t, []int{1, 1, 0}, []int{logged(a, leads), logged(a, first), logged(a, next)})
		assert.Equal(t, []int{0, 0, 0}, []int{logged(b, leads), logged(b, first), logged(b, next)})
		a.Depose()
		b.Elect()
		harness.Settle()
		assert.Equal(t, []int{1, 0, 1}, []int{logged(b, leads), logged(b, first), logged(b, next)})
	})
}

func TestASumBelongsToOneTerm(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		a.Elect()
		api.Put(harness.Event("one", 2))
		a.AwaitSum(t, 2)
		a.Depose()
		emitted := a.Metrics.DataPointCount()
		time.Sleep(time.Minute)
		assert.Equal(t, emitted, a.Metrics.DataPointCount(), "a standby emits none")
		again := time.Now()
		a.Elect()
		api.Put(harness.Event("one", 3))
		a.AwaitSum(t, 1)
		assert.False(t, a.Starts()[len(a.Starts())-1].Before(again), "with a new start time")
	})
}

// The elector learns of a pause only when it tries to renew the lease. Another process may lead by then.
func TestALeaderThatWasPausedEmitsNoPointUntilItSurelyLeads(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "{start_at: beginning, collection_interval: 1s}")
		a.Elect()
		api.Put(harness.Event("one", 1))
		harness.Settle()
		a.Pause()
		before := len(a.Metrics.AllMetrics())
		assert.Positive(t, before)
		harness.Settle()
		assert.Len(t, a.Metrics.AllMetrics(), before)
		time.Sleep(2 * time.Minute)
		assert.Greater(t, len(a.Metrics.AllMetrics()), before)
	})
}

func TestALeaderThatIsDeposedWhileThePipelineRejectsEmitsNoMore(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		a.Logs.Reject(errors.New("the queue is full"))
		a.Elect()
		harness.Settle()
		api.Put(harness.Event("one", 1))
		time.Sleep(2 * time.Minute)
		assert.True(t, a.Host.Fails())
		a.Depose()
		assert.False(t, a.Host.Fails(), "a standby does not deliver, so its pipeline does not fail")
		attempts := a.Logs.Attempted()
		a.Logs.Reject(nil)
		api.Put(harness.Event("two", 1))
		time.Sleep(time.Minute)
		assert.Equal(t, attempts, a.Logs.Attempted())
		a.Elect()
		a.AwaitRecords(t, "one+1", "two+1")
	})
}

// An orderly stop of a leader whose last delivery takes longer than a pause of the process.
func TestALeaderThatStopsDuringASlowDeliveryRepeatsNothing(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.NewReplica(t, api, nil, "start_at: beginning")
		p.Elect()
		harness.Settle()
		api.Put(harness.Event("zero", 1))
		harness.Settle()
		var slow atomic.Bool
		slow.Store(true)
		began := make(chan struct{})
		p.Logs.OnAttempt(func() {
			if slow.CompareAndSwap(true, false) {
				close(began)
				time.Sleep(4 * time.Second)
			}
		})
		api.Put(harness.Event("one", 1))
		<-began
		p.Stop()
		assert.Equal(t, []string{"zero+1", "one+1"}, p.Logs.Names())
		assert.Equal(t, int64(2), p.Sum())
		next := harness.NewReplica(t, api, nil, "start_at: beginning")
		next.Elect()
		harness.Settle()
		assert.Empty(t, next.Logs.Names())
	})
}

// A standby watches nothing: it costs the API server nothing but the election.
func TestAStandbyMakesNoRequest(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		api.Put(harness.Event("one", 1))
		time.Sleep(10 * time.Minute)
		assert.Empty(t, api.Requests())
		assert.False(t, a.Host.Fails())
		a.Elect()
		a.AwaitRecords(t, "one+1")
	})
}

// Two processes lead at once, as client-go's election permits for a moment: the note of the one that
// was deposed is refused, and it ends its term.
func TestALeaderEndsItsTermWhenAnotherOneHasNotedProgress(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "one")
		b.Elect()
		harness.Settle()
		api.Put(harness.Event("two", 1))
		harness.Eventually(t, func() bool { return a.Log.FilterMessageSnippet("ending this term").Len() > 0 })
		b.AwaitRecords(t, "two+1")
		time.Sleep(5 * time.Second) // Its elector needs 10 s and a retry until it knows that another one leads.
		api.Put(harness.Event("three", 1))
		b.AwaitRecords(t, "two+1", "three+1")
		assert.Zero(t, b.Log.FilterMessageSnippet("ending this term").Len(), "the other one goes on")
		a.Depose()
	})
}

// One loss was there: without the permission to read the progress, what happened until it was there
// again was gone.
func TestUntilTheProgressCanBeReadNothingIsEmittedAndNothingLost(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: end")
		a.Elect()
		harness.Settle()
		api.Put(harness.Event("one", 1))
		a.AwaitRecords(t, "one+1")
		a.Stop()
		api.RefuseConfigMaps(func(string) int { return http.StatusForbidden })
		b := harness.NewReplica(t, api, nil, "start_at: end")
		b.Elect()
		for i := range 10 {
			api.Put(harness.Event(fmt.Sprintf("lost%d", i), 1))
			time.Sleep(5 * time.Second)
		}
		assert.Empty(t, b.Logs.Names())
		_, text := b.Host.Status()
		assert.Contains(t, text, "resources: [configmaps]", "the status names the missing rule")
		api.RefuseConfigMaps(nil)
		harness.Eventually(t, func() bool { return len(b.Logs.Names()) == 10 })
		assert.False(t, b.Host.Fails())
	})
}

func TestAfterALeaderThatCouldNeverNoteTheNextOneStartsForTheFirstTime(t *testing.T) {
	for startAt, want := range map[string][]string{"end": {"three+1"}, "beginning": {"one+1", "two+1", "three+1"}} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.RefuseConfigMaps(func(verb string) int {
					if verb == "get" {
						return 0
					}
					return http.StatusForbidden
				})
				a, b := harness.NewReplicas(t, api, nil, "start_at: "+startAt)
				a.Elect()
				harness.Settle()
				api.Put(harness.Event("one", 1))
				a.AwaitRecords(t, "one+1")
				assert.True(t, a.Host.Fails())
				a.Stop()
				api.Put(harness.Event("two", 1))
				b.Elect()
				harness.Settle()
				api.Put(harness.Event("three", 1))
				b.AwaitRecords(t, want...)
			})
		})
	}
}

// After a kill, the next leader repeats what was delivered after the version that it finds.
func TestTheProgressIsAtMostTwoSecondsAndOneDedupIntervalOld(t *testing.T) {
	for interval, oldest := range map[string]int{"0s": 2, "10s": 12} {
		t.Run(interval, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a := harness.NewReplica(t, api, nil, "{start_at: beginning, dedup_interval: "+interval+"}")
				a.ElectAndDeliver(t, api, "first")
				var versions []string // after each second
				for i := range 60 {
					api.Put(harness.Event(fmt.Sprint("e", i), 1))
					time.Sleep(time.Second)
					if versions = append(versions, api.Version()); i >= oldest {
						assert.Contains(t, versions[i-oldest:], harness.NotedProgress(api), "after %d s", i)
					}
				}
			})
		})
	}
}

// The versions of the ConfigMap do not say which part of a list was delivered. The counts of the
// checkpoint do.
func TestAnOrderlyStopDuringAListRepeatsItWithAnElectorOnly(t *testing.T) {
	for name, hasElector := range map[string]bool{"with an elector": true, "with storage": false} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				const events = 8000
				for i := range events {
					api.Put(harness.Event(fmt.Sprintf("e%04d", i), 1))
				}
				on := harness.NewDisk()
				launch := func() *harness.Process {
					if !hasElector {
						return harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
					}
					p := harness.NewReplica(t, api, nil, fromBeginning)
					p.Elect()
					return p
				}
				first := launch()
				first.Logs.OnAttempt(func() { time.Sleep(100 * time.Millisecond) })
				harness.Eventually(t, func() bool { return len(first.Logs.Names()) > 0 })
				first.Stop()
				delivered := len(first.Logs.Names())
				assert.Less(t, delivered, events, "the list was not complete")
				want := events
				if !hasElector {
					want -= delivered
				}
				second := launch()
				harness.Eventually(t, func() bool { return len(second.Logs.Names()) >= want })
				harness.Settle()
				assert.Len(t, second.Logs.Names(), want)
			})
		})
	}
}

// The new streams cannot list before the term ends.
func TestALeaderThatWatchesMoreThanTheLastOneKeepsItsProgressUntilItHasListed(t *testing.T) {
	for name, config := range map[string]struct{ before, after string }{
		"the cluster instead of some namespaces": {"namespaces: [ns, other]", "namespaces: []"},
		"some namespaces instead of the cluster": {"namespaces: []", "namespaces: [ns, other]"},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a := harness.NewReplica(t, api, nil, config.before)
				a.Elect()
				harness.Settle()
				a.ElectAndDeliver(t, api, "one")
				a.Stop()
				api.Put(harness.Event("two", 1))
				api.Refuse(func(*http.Request) int { return http.StatusForbidden })
				b := harness.NewReplica(t, api, nil, config.after)
				b.Elect()
				harness.Settle()
				b.Stop()
				api.Refuse(nil)
				c := harness.NewReplica(t, api, nil, config.after)
				c.Elect()
				c.AwaitRecords(t, "two+1")
			})
		})
	}
}

// In a metrics pipeline alone, too, what a term did not resolve is left to the next leader.
func TestATermThatEndsDuringALookupCountsNothing(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		launch := func() *harness.Process {
			return harness.Launch(t, api, harness.Options{Elector: harness.NewElector(), NoLogs: true, Config: "start_at: end"})
		}
		a := launch()
		a.Elect()
		harness.Settle()
		api.Put(harness.Event("before", 1))
		harness.Settle()
		api.Objects.SetDelay(time.Second)
		ev := harness.Event("a", 2)
		ev.InvolvedObject.Name = "unknown"
		api.Put(ev)
		time.Sleep(500 * time.Millisecond)
		a.Depose()
		assert.EqualValues(t, 1, a.Sum())
		b := launch()
		b.Elect()
		b.AwaitSum(t, 2)
	})
}

// What its windows hold, the other leader delivers.
func TestALeaderWhoseNoteIsRefusedDeliversNothingMore(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "{start_at: beginning, dedup_interval: 1h}")
		a.ElectAndDeliver(t, api, "one")
		harness.Settle()
		harness.NoteProgress(api, "cluster-uid", harness.NotedProgress(api))
		other := harness.Event("two", 1)
		other.Reason = "Other"
		api.Put(other)
		api.Put(harness.Event("one", 4))
		harness.Eventually(t, func() bool { return a.Log.FilterMessageSnippet("ending this term").Len() > 0 })
		time.Sleep(time.Second)
		assert.Equal(t, []string{"one+1", "two+1"}, a.Logs.Names())
	})
}

// Somebody restores an old copy of the ConfigMap. No other process leads.
func TestALeaderWhoseNoteIsRefusedStartsAgainIfItsElectorGoesOn(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "one")
		harness.NoteProgress(api, "cluster-uid", harness.NotedProgress(api))
		api.Put(harness.Event("two", 1))
		time.Sleep(time.Minute)
		api.Put(harness.Event("three", 1))
		harness.Settle()
		assert.Equal(t, 1, a.Log.FilterMessageSnippet("ending this term").Len())
		assert.Equal(t, 2, a.Log.FilterMessage("Started leading").Len())
		assert.Contains(t, a.Logs.Names(), "three+1")
	})
}

// The counts at the progress say what is new since. Without them, all occurrences of an event count that
// is newer than the progress. The count of a deleted event is not among them.
func TestWhatANewLeaderKnowsOfTheEventsBefore(t *testing.T) {
	for name, tt := range map[string]struct {
		gap  func(*apitest.Server)
		want []string
	}{
		"the API server has the version of the progress": {func(*apitest.Server) {}, []string{"changed+3", "new+2", "deleted+12"}},
		"it is compacted": {(*apitest.Server).Compact, []string{"changed+8", "new+2", "deleted+12"}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
				a.Elect()
				harness.Settle()
				deleted := api.Put(harness.Event("deleted", 11))
				api.Put(harness.Event("changed", 5))
				harness.Settle()
				api.Delete(deleted)
				api.Put(harness.Event("same", 3))
				a.AwaitRecords(t, "deleted+11", "changed+5", "same+3")
				a.Depose()
				api.Put(harness.Event("changed", 8))
				api.Put(harness.Event("new", 2))
				tt.gap(api)
				b.Elect()
				harness.Eventually(t, func() bool { return len(b.Logs.Names()) == 2 })
				api.Put(harness.Event("deleted", 12))
				b.AwaitRecords(t, tt.want...)
			})
		})
	}
}

// A backup, or somebody's copy, has brought the ConfigMap into this cluster.
func TestProgressOfAnotherClusterIsFollowedByAFirstStart(t *testing.T) {
	for startAt, want := range map[string][]string{"end": nil, "beginning": {"existing+2"}} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				version := api.Version()
				api.Put(harness.Event("existing", 2))
				harness.NoteProgress(api, "another-cluster", version)
				a := harness.NewReplica(t, api, nil, "start_at: "+startAt)
				a.Elect()
				harness.Settle()
				assert.Equal(t, want, a.Logs.Names())
				assert.Len(t, a.Logged("progress_cluster"), 1)
			})
		})
	}
}

// The exceptions in docs/configuration.md are here, too: progress without counts has a version for each
// stream of the last leader.
func TestAWiderFilterWithLeaderElection(t *testing.T) {
	for name, tt := range map[string]struct {
		narrow, wide string
		want         []string
	}{
		"a wider reason filter":                  {"{start_at: beginning, include_reasons: [Testing]}", "start_at: beginning", []string{"a+3", "b+1"}},
		"one more namespace":                     {"namespaces: [ns]", "namespaces: [ns, other]", []string{"a+3"}},
		"one more namespace, from its beginning": {"namespaces: [ns]", "{start_at: beginning, namespaces: [ns, other]}", []string{"a+3", "b+21"}},
		"the cluster":                            {"namespaces: [ns]", "namespaces: []", []string{"a+4"}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				other := func(count int32) {
					ev := harness.Event("b", count)
					ev.Namespace, ev.InvolvedObject.Namespace, ev.Reason = "other", "other", "Other"
					api.Put(ev)
				}
				a := harness.NewReplica(t, api, nil, tt.narrow)
				a.Elect()
				harness.Settle()
				other(20)
				api.Put(harness.Event("a", 1))
				a.AwaitRecords(t, "a+1")
				a.Stop()
				api.Put(harness.Event("a", 4))
				other(21)
				b := harness.NewReplica(t, api, nil, tt.wide)
				b.Elect()
				harness.Settle()
				assert.ElementsMatch(t, tt.want, b.Logs.Names())
				other(22)
				harness.Settle()
				assert.ElementsMatch(t, append(tt.want, "b+1"), b.Logs.Names(), "from now on it counts")
			})
		})
	}
}

func TestAStandbyHasNoEventsThatWait(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.NewReplica(t, api, nil, "start_at: beginning")
		p.Logs.Reject(errors.New("full"))
		p.Elect()
		api.Put(harness.Event("a", 1))
		harness.Settle()
		api.Put(harness.Event("b", 1))
		harness.Settle()
		assert.Positive(t, p.Waiting(t))
		p.Depose()
		harness.Settle()
		assert.Zero(t, p.Waiting(t))
	})
}
