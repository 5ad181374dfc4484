// SPDX-License-Identifier: Apache-2.0

package position_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestALeaderPublishesHowFarItHasDelivered(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		api.Put(harness.Event("one", 1))
		harness.Settle()
		assert.Empty(t, harness.Published(api), "a standby publishes nothing")
		a.Elect()
		a.AwaitRecords(t, "one+1")
		assert.Equal(t, api.Version(), harness.Published(api))
		assert.Equal(t, "cluster-uid", api.ConfigMap(harness.LeaseNamespace, harness.PositionName)["cluster"])

		a.Logs.Reject(errors.New("the queue is full"))
		delivered := api.Version()
		api.Put(harness.Event("two", 1))
		harness.Settle()
		assert.Equal(t, delivered, harness.Published(api), "not what is not delivered")
		a.Logs.Reject(nil)
		time.Sleep(time.Minute)
		assert.Equal(t, api.Version(), harness.Published(api))
	})
}

func TestThePositionOfAQuietStreamFollowsBookmarks(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.WithBookmarks()
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "one")
		api.Bookmark()
		harness.Settle()
		assert.Equal(t, api.Version(), harness.Published(api))
		a.Logs.Reject(errors.New("the queue is full"))
		delivered := api.Version()
		api.Put(harness.Event("two", 1))
		api.Bookmark()
		harness.Settle()
		assert.Equal(t, delivered, harness.Published(api), "not past what is not delivered")
	})
}

func TestAFilteredEventCountsAsDelivered(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "{start_at: beginning, exclude_reasons: [Testing]}")
		a.Elect()
		harness.Settle()
		api.Put(harness.Event("one", 1))
		harness.Settle()
		assert.Equal(t, api.Version(), harness.Published(api))
	})
}

func TestAWindowThatHoldsOccurrencesHoldsThePositionBack(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "{start_at: beginning, dedup_interval: 1m}")
		a.Elect()
		api.Put(harness.Event("one", 1))
		harness.Settle()
		delivered := api.Version()
		assert.Equal(t, delivered, harness.Published(api))
		api.Put(harness.Event("one", 2))
		api.Put(harness.Event("two", 1))
		a.AwaitRecords(t, "one+1", "two+1")
		assert.Equal(t, delivered, harness.Published(api))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"one+1", "two+1", "one+1"}, a.Logs.Names())
		assert.Equal(t, api.Version(), harness.Published(api))
	})
}

func TestAStandbyDropsWhatTheLeaderHasDelivered(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.Elect()
		var want []string
		for i := range 20 {
			api.Put(harness.Event("one", int32(i+1)))
			want = append(want, "one+1")
			time.Sleep(time.Second)
		}
		a.AwaitRecords(t, want...)
		a.Depose()
		b.Elect()
		harness.Settle()
		assert.Empty(t, b.Logs.Names())
		api.Put(harness.Event("one", 23))
		b.AwaitRecords(t, "one+3")
		b.AwaitSum(t, 3)
	})
}

func TestAStandbyKeepsWhatTheLeaderHasNotDeliveredHoweverLongItLags(t *testing.T) {
	for name, lag := range map[string]time.Duration{"a minute": time.Minute, "an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
				a.ElectAndDeliver(t, api, "before")
				a.Logs.Reject(errors.New("the queue is full"))
				var want []string
				for i := range 20 {
					api.Put(harness.Event(fmt.Sprintf("e%02d", i), int32(i+1)))
					want = append(want, fmt.Sprintf("e%02d+%d", i, i+1))
					time.Sleep(lag / 20)
				}
				a.Depose()
				assert.Equal(t, []string{"before+1"}, a.Logs.Names())
				b.Elect()
				b.AwaitRecords(t, want...)
				b.AwaitSum(t, 20*21/2)
			})
		})
	}
}

func TestHoweverLongNobodyLeadsNothingIsLost(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		b := harness.NewReplica(t, api, nil, "start_at: beginning")
		harness.Settle()
		for i := range 10 {
			api.Put(harness.Event("one", int32(2*i+2)))
			time.Sleep(10 * time.Minute)
		}
		b.Elect()
		harness.Eventually(t, func() bool { return harness.Occurrences(b.Logs.Records()...) == 20 })
		b.AwaitSum(t, 20)
		b.Logs.Reset()
		api.Put(harness.Event("two", 1))
		b.AwaitRecords(t, "two+1")
	})
}

func TestEventsThatWaitForALeaderStayInTheAPIServer(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		b := harness.NewReplica(t, api, nil, "start_at: beginning")
		harness.Settle()
		large := harness.Event("", 1)
		large.Message = strings.Repeat("x", 64<<10)
		for i := range 25 * 16 {
			large.Name = fmt.Sprintf("large%03d", i)
			api.Put(large)
		}
		time.Sleep(10 * time.Minute)
		assert.LessOrEqual(t, b.Waiting(t), int64((16+4)*16), "a batch and what waits for the next")
		b.Elect()
		harness.Eventually(t, func() bool { return b.Logs.LogRecordCount() == 25*16 })
	})
}

func TestWhatALeaderDeliversAfterItsLastPositionIsRepeatedWhenItDies(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "before")
		api.RefuseConfigMaps(func(verb string) int {
			if verb == "get" {
				return 0
			}
			return http.StatusServiceUnavailable
		})
		api.Put(harness.Event("after", 1))
		a.AwaitRecords(t, "before+1", "after+1")
		b.Elect()
		b.AwaitRecords(t, "after+1")
	})
}

func TestAMissingPermissionDropsNothingAndIsReportedWithTheRule(t *testing.T) {
	for name, forbidden := range map[string][]string{
		"to read the position":    {"get", "create", "update"},
		"to publish the position": {"create", "update"},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.RefuseConfigMaps(func(verb string) int {
					if slices.Contains(forbidden, verb) {
						return http.StatusForbidden
					}
					return 0
				})
				a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
				harness.Settle()
				hasRule := func(replica *harness.Process) {
					_, text := replica.Host.Status()
					assert.Contains(t, text, `{apiGroups: [''], resources: [configmaps], verbs: [create]}`)
					assert.Contains(t, text, `resourceNames: [kube-events-kube-events], verbs: [get, update]`)
					assert.Contains(t, text, `namespace observability`)
				}
				hasRule(a)
				hasRule(b)
				a.Elect()
				api.Put(harness.Event("one", 1))
				api.Put(harness.Event("two", 1))
				a.AwaitRecords(t, "one+1", "two+1")
				hasRule(a)
				hasRule(b)
				a.Depose()
				b.Elect()
				b.AwaitRecords(t, "one+1", "two+1")

				api.RefuseConfigMaps(nil)
				time.Sleep(time.Minute)
				assert.False(t, b.Host.Fails())
				assert.Equal(t, api.Version(), harness.Published(api))
			})
		})
	}
}

func TestAnOrderlyStopRepeatsNothing(t *testing.T) {
	for _, config := range []string{"start_at: beginning", "{start_at: beginning, dedup_interval: 1h}"} {
		t.Run(config, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a, b := harness.NewReplicas(t, api, nil, config)
				a.Elect()
				api.Put(harness.Event("one", 1))
				harness.Settle()
				api.Put(harness.Event("one", 4))
				harness.Settle()
				a.Stop()
				assert.Equal(t, []string{"one+1", "one+3"}, a.Logs.Names())
				assert.Equal(t, int64(4), a.Sum(), "the last sum is emitted")
				b.Elect()
				harness.Settle()
				assert.Empty(t, b.Logs.Names())
				api.Put(harness.Event("one", 5))
				b.AwaitRecords(t, "one+1")
			})
		})
	}
}

func TestAProcessThatFindsAPositionStartsExactlyThere(t *testing.T) {
	for _, startAt := range []string{"start_at: end", "start_at: beginning"} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a := harness.NewReplica(t, api, nil, "start_at: beginning")
				a.ElectAndDeliver(t, api, "one")
				a.Stop()
				for i := range 3 {
					api.Put(harness.Event("one", int32(i+2)))
				}
				api.Put(harness.Event("two", 2))
				began := len(api.Requests())
				b := harness.NewReplica(t, api, nil, startAt)
				harness.Settle()
				assert.Equal(t, []string{"exact", "watch"}, api.Requests()[began:])
				b.Elect()
				b.AwaitRecords(t, "one+1", "one+1", "one+1", "two+2")
				assert.Equal(t, api.Version(), harness.Published(api))
			})
		})
	}
}

func TestAPositionThatIsCompactedIsWhereTheListDivides(t *testing.T) {
	for _, startAt := range []string{"start_at: end", "start_at: beginning"} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a := harness.NewReplica(t, api, nil, "start_at: beginning")
				a.Elect()
				api.Put(harness.Event("one", 1))
				api.Put(harness.Event("old", 5))
				harness.Settle()
				a.Stop()
				api.Put(harness.Event("one", 4))
				api.Put(harness.Event("two", 2))
				api.Compact()
				b := harness.NewReplica(t, api, nil, startAt)
				b.Elect()
				harness.Settle()
				assert.ElementsMatch(t, []string{"one+4", "two+2"}, b.Logs.Names(), "the counts at the position are not known")
			})
		})
	}
}

func TestWithoutAPositionStartAtDecides(t *testing.T) {
	for startAt, want := range map[string][]string{"end": nil, "beginning": {"one+3"}} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Put(harness.Event("one", 3))
				a := harness.NewReplica(t, api, nil, "start_at: "+startAt)
				a.Elect()
				a.AwaitRecords(t, want...)
				assert.Equal(t, api.Version(), harness.Published(api))
			})
		})
	}
}

func TestAVoidPositionIsReplaced(t *testing.T) {
	for name, position := range map[string][2]string{
		"of another cluster":                 {"another-cluster", "2"},
		"above what the cluster's store has": {"cluster-uid", "5000"},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Put(harness.Event("one", 1))
				harness.Publish(api, position[0], position[1])
				a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
				harness.Settle()
				api.Put(harness.Event("two", 1))
				a.Elect()
				harness.Eventually(t, func() bool { return slices.Contains(a.Logs.Names(), "two+1") })
				harness.Settle()
				assert.Equal(t, api.Version(), harness.Published(api))
				assert.Equal(t, "cluster-uid", api.ConfigMap(harness.LeaseNamespace, harness.PositionName)["cluster"])
				a.Stop()
				b.ElectAndDeliver(t, api, "three")
			})
		})
	}
}

func TestAPositionThatAFormerLeaderPublishesAfterARestoreIsReplaced(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		b := harness.NewReplica(t, api, nil, "start_at: beginning")
		api.Put(harness.Event("one", 1))
		backup := api.Version()
		for range 20 {
			api.Put(harness.Event("one", 1))
		}
		harness.Publish(api, "cluster-uid", api.Version())
		harness.Settle()
		api.Restore(backup)
		api.Cut()
		harness.Settle()
		harness.Publish(api, "cluster-uid", "5000") // By a leader that has not noticed the restore.
		b.Elect()
		harness.Settle()
		api.Put(harness.Event("two", 1))
		harness.Settle()
		assert.Contains(t, b.Logs.Names(), "two+1")
		assert.Equal(t, api.Version(), harness.Published(api))
	})
}

func TestARestoredEtcdMakesThePositionVoid(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "one")
		backup := api.Version()
		for i := range 50 {
			api.Put(harness.Event("one", int32(i+2)))
		}
		harness.Eventually(t, func() bool { return harness.Occurrences(a.Logs.Records()...) == 51 })
		harness.Settle()
		api.Restore(backup)
		api.Cut()
		harness.Settle()
		api.Put(harness.Event("two", 1))
		harness.Settle()
		assert.Contains(t, a.Logs.Names(), "two+1")
		assert.Equal(t, api.Version(), harness.Published(api), "it is lower than before")
		a.Depose()
		b.ElectAndDeliver(t, api, "three")
	})
}

func TestAPositionThatCannotBeDecodedDropsNothingAndIsNotOverwritten(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		garbage := map[string]string{"cluster": "cluster-uid", "streams": "12"}
		api.PutConfigMap(harness.LeaseNamespace, harness.PositionName, garbage)
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "one")
		_, text := a.Host.Status()
		assert.Contains(t, text, "delete the ConfigMap")
		assert.Equal(t, garbage, api.ConfigMap(harness.LeaseNamespace, harness.PositionName))
	})
}

func TestEachNamespaceHasItsOwnPosition(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, namespaces: [ns, other]}"
		other := func(name string, count int32) {
			ev := harness.Event(name, count)
			ev.Namespace = "other"
			api.Put(ev)
		}
		a, b := harness.NewReplicas(t, api, nil, config)
		a.Elect()
		harness.Settle()
		api.Put(harness.Event("one", 1))
		harness.Settle()
		api.RefuseConfigMaps(func(verb string) int {
			if verb == "get" {
				return 0
			}
			return http.StatusServiceUnavailable
		})
		other("two", 1)
		a.AwaitRecords(t, "one+1", "two+1")
		b.Elect()
		b.AwaitRecords(t, "two+1")
	})
}

func TestWithAnotherCoverageANewNamespaceBeginsAsStartAtSays(t *testing.T) {
	for startAt, want := range map[string][]string{"end": {"one+1"}, "beginning": {"one+1", "two+5"}} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				other := harness.Event("two", 5)
				other.Namespace = "other"
				api.Put(other)
				api.Put(harness.Event("one", 1))
				a := harness.NewReplica(t, api, nil, "{start_at: end, namespaces: [ns]}")
				a.Elect()
				harness.Settle()
				a.Stop()
				api.Put(harness.Event("one", 2))
				b := harness.NewReplica(t, api, nil, "{namespaces: [ns, other], start_at: "+startAt+"}")
				b.Elect()
				harness.Settle()
				assert.ElementsMatch(t, want, b.Logs.Names())
			})
		})
	}
}

func TestWhileTheFirstListIsDeliveredNoPositionIsPublished(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		for i := range 3 * 1000 {
			api.Put(harness.Event(fmt.Sprintf("e%05d", i), 1))
		}
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		a.Logs.OnAttempt(func() {
			if a.Logs.Attempted() == 2 {
				a.Logs.Reject(errors.New("the queue is full"))
			}
		})
		a.Elect()
		harness.Settle()
		assert.Len(t, a.Logs.Requests(), 2)
		assert.Nil(t, api.ConfigMap(harness.LeaseNamespace, harness.PositionName))
		b := harness.NewReplica(t, api, nil, "start_at: beginning")
		a.Depose()
		b.Elect()
		harness.Eventually(t, func() bool { return b.Logs.LogRecordCount() == 3*1000 })
		time.Sleep(time.Minute)
		assert.Equal(t, api.Version(), harness.Published(api))
	})
}

func TestALeaderWithWindowsThatDiesRepeatsAtMostOneInterval(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, dedup_interval: 1m}"
		a, b := harness.NewReplicas(t, api, nil, config)
		a.Elect()
		for i := range 40 {
			api.Put(harness.Event("one", int32(i+1)))
			time.Sleep(10 * time.Second)
		}
		delivered := harness.Occurrences(a.Logs.Records()...)
		b.Elect() // a is dead, as far as anybody knows.
		harness.Eventually(t, func() bool { return len(b.Logs.Names()) > 1 })
		total := delivered + harness.Occurrences(b.Logs.Records()...)
		assert.GreaterOrEqual(t, total, int64(40))
		assert.LessOrEqual(t, total, int64(40+6))
	})
}

// restoreUnderAWindow restores etcd while a leader's window holds count 2 of the event "one", and
// returns the leader and its standby. The backup has the given count of the event.
func restoreUnderAWindow(t *testing.T, api *apitest.Server, inBackup int32, meanwhile func(leader *harness.Process)) (a, b *harness.Process) {
	t.Helper()
	a, b = harness.NewReplicas(t, api, nil, "{start_at: beginning, dedup_interval: 1m}")
	a.ElectAndDeliver(t, api, "one")
	backup := api.Version()
	for range 100 {
		api.Put(harness.Event("another", 1)) // So that the versions from here on are far above the backup's.
	}
	api.Put(harness.Event("one", 2))
	if inBackup == 2 {
		backup = api.Version()
		for range 100 {
			api.Put(harness.Event("another", 1))
		}
	}
	harness.Settle()
	meanwhile(a)
	api.Restore(backup)
	api.Cut()
	harness.Settle()
	return a, b
}

func TestALeaderThatNoticesARestoreDeliversWhatItsWindowsHold(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := restoreUnderAWindow(t, api, 1, func(*harness.Process) {})
		assert.Equal(t, []string{"one+1", "another+1", "one+1"}, a.Logs.Names(), "the window is open for a minute")
		api.Put(harness.Event("one", 4))
		harness.Settle()
		assert.Equal(t, []string{"one+1", "another+1", "one+1", "one+3"}, a.Logs.Names(), "three above the backup")
		b.Elect() // a is dead, as far as anybody knows.
		time.Sleep(2 * time.Minute)
		assert.Empty(t, b.Logs.Names())
	})
}

// The leader cannot deliver what its windows hold before its term ends.
func TestWhatTheWindowsOfALeaderHeldOverARestoreIsNewAgain(t *testing.T) {
	for name, of := range map[string]struct {
		inBackup int32
		want     []string // of the next term of the same leader
	}{
		"the restored cluster has it":           {2, []string{"one+1"}},
		"the restored cluster does not have it": {1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a, _ := restoreUnderAWindow(t, api, of.inBackup, func(leader *harness.Process) {
					leader.Logs.Reject(errors.New("the queue is full"))
				})
				delivered := a.Logs.Names()
				a.Depose()
				a.Logs.Reject(nil)
				a.Elect()
				harness.Settle()
				assert.ElementsMatch(t, append(delivered, of.want...), a.Logs.Names())
				assert.Zero(t, a.Waiting(t), "nothing waits for a position in the lost history")
			})
		})
	}
}

// A standby whose queue is stalled has no connection on which it could notice a restore.
func TestAStandbyWhoseQueueIsStalledNoticesARestore(t *testing.T) {
	for name, publishes := range map[string]bool{"the leader is idle": false, "the leader publishes all the time": true} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
				a.ElectAndDeliver(t, api, "before")
				backup := api.Version()
				a.Logs.Reject(errors.New("the queue is full"))
				for i := range 200 {
					api.Put(harness.Event("lost", int32(i+1)))
				}
				time.Sleep(2 * time.Minute)
				api.Restore(backup)
				api.Cut()
				a.Logs.Reject(nil)
				for i := range 60 {
					if publishes {
						api.Put(harness.Event("since", int32(i+1)))
					}
					time.Sleep(2 * time.Second)
				}
				assert.Len(t, b.Logged("known_version"), 1)
				api.Put(harness.Event("last", 1))
				harness.Settle()
				assert.Zero(t, b.Waiting(t), "the leader has delivered it")
			})
		})
	}
}

// The leader's pipeline rejects everything over a restore, so its streams have no connection, and it
// does not ask. When the pipeline accepts again, the versions have grown above those that it knows.
func TestALeaderLearnsOfARestoreFromItsStandby(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "before")
		backup := api.Version()
		a.Logs.Reject(errors.New("the queue is full"))
		for i := range 20 {
			api.Put(harness.Event("lost", int32(i+1)))
			time.Sleep(time.Second) // So that most of them wait for the batch of the first.
		}
		time.Sleep(2 * time.Minute)
		api.Restore(backup)
		api.Cut()
		time.Sleep(2 * time.Minute)
		for i := range 30 {
			api.Put(harness.Event("since-"+strconv.Itoa(i), 1))
		}
		a.Logs.Reject(nil)
		time.Sleep(time.Minute)
		api.Put(harness.Event("last", 1))
		time.Sleep(time.Minute)
		assert.Empty(t, a.Logged("known_version"))
		assert.EqualValues(t, 1+20+30+1, harness.Occurrences(a.Logs.Records()...), "also those with versions that it knew")
		assert.Zero(t, b.Waiting(t))
		a.Depose()
		b.Elect()
		harness.Settle()
		assert.Empty(t, b.Logs.Names())
	})
}

// Nobody has delivered what the standby holds: one count that the backup has, too, and two of the
// history that is lost. Nobody can know what the leader has delivered of these.
func TestANewLeaderDeliversWhatTheRestoredClusterHas(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "one")
		a.Logs.Reject(errors.New("the queue is full"))
		api.Put(harness.Event("one", 2))
		harness.Settle()
		backup := api.Version()
		api.Put(harness.Event("one", 3))
		api.Put(harness.Event("one", 5))
		harness.Settle()
		api.Restore(backup)
		api.Cut()
		harness.Settle()
		a.Stop()
		b.Elect()
		harness.Settle()
		assert.Equal(t, []string{"one+1"}, b.Logs.Names())
	})
}

// The event is older than the backup. The lagging leader delivers it after the restore.
func TestAStandbyRepeatsNothingThatTheLeaderDeliveredAfterARestore(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.ElectAndDeliver(t, api, "before")
		a.Logs.Reject(errors.New("the queue is full"))
		api.Put(harness.Event("one", 1))
		harness.Settle()
		backup := api.Version()
		api.Put(harness.Event("lost", 1))
		harness.Settle()
		api.Restore(backup)
		api.Cut()
		time.Sleep(15 * time.Second)
		a.Logs.Reject(nil)
		time.Sleep(2 * time.Minute)
		for range 5 {
			api.Put(harness.Event("since", 1))
		}
		harness.Settle()
		assert.Equal(t, api.Version(), harness.Published(api))
		a.Depose()
		b.Elect()
		harness.Settle()
		assert.NotContains(t, b.Logs.Names(), "one+1", "a has delivered it and published more")
	})
}

// A leader that has not noticed a restore publishes a position that is above the cluster's version.
// The version cannot be read when b is elected.
func TestAVoidPositionDropsNothingIfTheVersionCannotBeReadAtTheElection(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		b := harness.NewReplica(t, api, nil, "start_at: beginning")
		harness.Settle()
		harness.Publish(api, "cluster-uid", "5000") // By a leader that has not noticed the restore.
		harness.Settle()
		api.Refuse(func(r *http.Request) int {
			if strings.Contains(r.URL.RawQuery, "kubeeventsreceiver-resource-version") {
				return http.StatusTooManyRequests
			}
			return 0
		})
		b.Elect()
		time.Sleep(15 * time.Second) // It no longer asks.
		api.Refuse(nil)
		api.Put(harness.Event("two", 1))
		harness.Settle()
		time.Sleep(time.Hour)
		api.Put(harness.Event("three", 1))
		harness.Settle()
		assert.Subset(t, b.Logs.Names(), []string{"two+1", "three+1"})
	})
}

// The API server answers no request for events when b is elected, so b has not seen all that the
// position has. Nothing was restored.
func TestALeaderThatCouldNotReadTheVersionAtTheElectionPublishes(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		b, c := harness.NewReplicas(t, api, nil, "start_at: beginning")
		harness.Settle()
		api.Refuse(func(*http.Request) int { return http.StatusServiceUnavailable })
		api.Cut()
		api.Put(harness.Event("one", 1))
		harness.Publish(api, "cluster-uid", api.Version()) // By the last leader.
		harness.Settle()
		b.Elect()
		time.Sleep(15 * time.Second) // It no longer asks.
		api.Refuse(nil)
		time.Sleep(time.Minute)
		api.Put(harness.Event("two", 1))
		harness.Settle()
		assert.Contains(t, b.Logs.Names(), "two+1")
		assert.Equal(t, api.Version(), harness.Published(api))
		b.Depose()
		c.Elect()
		harness.Settle()
		assert.Empty(t, c.Logs.Names())
	})
}
