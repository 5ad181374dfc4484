// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

const fromBeginning = "start_at: beginning"

func TestARestartNeitherLosesNorRepeats(t *testing.T) {
	for name, gap := range map[string]func(*apitest.Server){
		"when the API server still has the version to resume from": func(*apitest.Server) {},
		"when it does not": (*apitest.Server).Compact,
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				api.Put(harness.Event("before", 7))
				first := harness.Launch(t, api, harness.Options{Disk: on})
				harness.Settle()
				api.Put(harness.Event("a", 2))
				first.AwaitRecords(t, "a+2")
				first.Stop()
				first.AwaitSum(t, 2)

				api.Put(harness.Event("a", 5))
				api.Put(harness.Event("b", 1))
				gap(api)
				second := harness.Launch(t, api, harness.Options{Disk: on})
				second.AwaitRecords(t, "a+3", "b+1")
				second.AwaitSum(t, 4)
				second.Stop()

				third := harness.Launch(t, api, harness.Options{Disk: on})
				third.AwaitRecords(t)
			})
		})
	}
}

// Both are as version 0.1.0 writes them. A later version that writes another format reads this one, too.
func TestAnUpgradeContinuesFromTheProgress(t *testing.T) {
	checkpoint := map[string]string{
		"head": `{"format":1,"generation":0,"chunks":0}`,
		"0/0":  "\x01c\fcluster-uid" + "\x01p&" + `{"listed":true,"resourceVersion":"2"}`,
		"0/1": "\x01p&" + `{"listed":true,"resourceVersion":"3"}` + "\re" +
			"\xe7x\xac\x15|\xf3\xd1\x17\u04ee\x12\xad!\xd9\aQ\xfc|(\xd4\xef\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x05\xcb\xf2\x9c\xe4\x84\x22\x23\x25\x00\x00\x00\x00",
	}
	configMap := map[string]string{"cluster": "cluster-uid", "leader": "85d5e9c4-9b9b-4bd0-9bf1-2a7b6b9a2f0e", "streams": `{"":"3"}`}
	for name, launch := range map[string]func(*testing.T, *apitest.Server) *harness.Process{
		"storage": func(t *testing.T, api *apitest.Server) *harness.Process {
			on := harness.NewDisk()
			for key, value := range checkpoint {
				on.Values[key] = []byte(value)
			}
			return harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		},
		"leader election": func(t *testing.T, api *apitest.Server) *harness.Process {
			api.PutConfigMap(harness.LeaseNamespace, harness.ProgressName, configMap)
			p := harness.NewReplica(t, api, nil, fromBeginning)
			p.Elect()
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Put(harness.Event("a", 5))
				require.Equal(t, "3", api.Version())
				api.Put(harness.Event("a", 8))
				launch(t, api).AwaitRecords(t, "a+3")
			})
		})
	}
}

func TestProgressHasTheIDOfTheReceiver(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		harness.Launch(t, api, harness.Options{Name: "prod", Disk: on})
		assert.Equal(t, "kube_events/prod", on.ID.String())
		leads := harness.Launch(t, api, harness.Options{Name: "prod", Config: fromBeginning, Elector: harness.NewElector()})
		leads.ElectAndDeliver(t, api, "one")
		harness.Settle()
		assert.NotEmpty(t, api.ConfigMap(harness.LeaseNamespace, harness.ProgressName+".prod"))
	})
}

// It does not ask again which cluster it is, as reliability.md says.
func TestARunningProcessKeepsItsCluster(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{Disk: harness.NewDisk()})
		harness.Settle()
		api.SetCluster("another-cluster")
		api.Cut()
		api.Put(harness.Event("a", 1))
		p.AwaitRecords(t, "a+1")
		p.Logs.EachRecord(func(resource map[string]any, _ plog.LogRecord) {
			assert.Equal(t, "cluster-uid", resource["k8s.cluster.uid"])
		})
	})
}

// A first start is noted as soon as a stream has been listed, and not only with the next write.
func TestAKillRightAfterTheFirstRecordLosesNothing(t *testing.T) {
	for _, config := range []string{"{}", "namespaces: [ns, other]"} {
		t.Run(config, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				first := harness.Launch(t, api, harness.Options{Config: config, Disk: on})
				time.Sleep(50 * time.Millisecond)
				api.Put(harness.Event("a", 1))
				harness.Eventually(t, func() bool { return len(first.Logs.Names()) > 0 }, "the first record")
				killed, delivered := on.Copied(), first.Logs.Names()
				elsewhere := harness.Event("c", 1)
				elsewhere.Namespace, elsewhere.InvolvedObject.Namespace = "other", "other"
				api.Put(elsewhere)
				second := harness.Launch(t, api, harness.Options{Config: config, Disk: killed})
				harness.Settle()
				assert.Contains(t, second.Logs.Names(), "c+1")
				assert.Subset(t, append(delivered, second.Logs.Names()...), []string{"a+1", "c+1"})
			})
		})
	}
}

func TestAResumedWatchDoesNotList(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		first.Stop()
		second := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		api.Put(harness.Event("a", 1))
		second.AwaitRecords(t, "a+1")
		assert.Equal(t, []string{"list", "watch", "version", "watch"}, api.Requests())
	})
}

func TestTheCheckpointOfAQuietStreamFollowsBookmarks(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.WithBookmarks()
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		api.Bookmark()
		harness.Settle()
		first.Stop()
		api.Compact()
		second := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		api.Put(harness.Event("a", 1))
		second.AwaitRecords(t, "a+1")
		assert.Equal(t, []string{"list", "watch", "version", "watch"}, api.Requests(), "no list")
	})
}

func TestAProxyThatDoesNotReturnTheClusterKeepsNothingFromStarting(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.RefuseCluster(status)
				api.Put(harness.Event("a", 3))
				p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: harness.NewDisk()})
				p.AwaitRecords(t, "a+3")
				assert.False(t, p.Host.Fails())
				assert.Equal(t, 1, p.Log.FilterMessageSnippet("have no k8s.cluster.uid").Len())
			})
		})
	}
}

func TestWhileTheStorageCannotBeReadAShutdownIsOrderly(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		on.Fail(harness.ErrDisk, harness.ErrDisk)
		p := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		began := time.Now()
		p.Stop()
		assert.Less(t, time.Since(began), time.Second)
		assert.Empty(t, on.Values)
	})
}

func TestWhatHappenedWhileAFilterWasNarrowIsNotCounted(t *testing.T) {
	for name, filters := range map[string]struct{ narrow, wide string }{
		"a wider reason filter":             {"include_reasons: [Testing]", "include_reasons: []"},
		"a wider event_types filter":        {"event_types: [Normal]", "event_types: []"},
		"another single type":               {"event_types: [Normal]", "event_types: [Normal, Warning]"},
		"a namespace that was removed":      {"namespaces: [ns]", "namespaces: [ns, other]"},
		"all namespaces instead of one":     {"namespaces: [ns]", "namespaces: []"},
		"another namespace, another type":   {"{namespaces: [ns], event_types: [Normal]}", "namespaces: [ns, other]"},
		"a namespace that was not excluded": {"exclude_namespaces: [oth*]", "exclude_namespaces: []"},
	} {
		for _, startAt := range []string{"end", "beginning"} {
			t.Run(name+", start_at: "+startAt, func(t *testing.T) {
				harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
					with := func(filter string) string {
						return fmt.Sprintf("{start_at: %s, %s}", startAt, strings.Trim(filter, "{}"))
					}
					on := harness.NewDisk()
					// Matches only the wide filter, whichever it is.
					rest := func(name string, count int32) {
						ev := harness.Event(name, count)
						ev.Namespace, ev.InvolvedObject.Namespace, ev.Type, ev.Reason = "other", "other", "Warning", "Other"
						api.Put(ev)
					}
					p := harness.Launch(t, api, harness.Options{Config: with(filters.wide), Disk: on})
					harness.Settle()
					api.Put(harness.Event("a", 1))
					p.AwaitRecords(t, "a+1")
					rest("b", 2)
					p.AwaitRecords(t, "a+1", "b+2")
					p.Stop()
					p = harness.Launch(t, api, harness.Options{Config: with(filters.narrow), Disk: on})
					harness.Settle()
					api.Put(harness.Event("a", 2))
					rest("b", 20)
					rest("c", 30)
					p.AwaitRecords(t, "a+1")
					p.Stop()
					api.Put(harness.Event("a", 4))
					rest("b", 21)
					rest("d", 40)
					p = harness.Launch(t, api, harness.Options{Config: with(filters.wide), Disk: on})
					harness.Settle()
					seen := p.Logs.Names()
					assert.Contains(t, seen, "a+2", "what both filters let through is not missed")
					rest("b", 22)
					rest("c", 31)
					harness.Settle()
					assert.Subset(t, p.Logs.Names(), []string{"b+1", "c+1"}, "from now on it counts")
					if strings.Contains(name, "reason") || strings.Contains(name, "excluded") {
						// What happened while nothing ran is watched with the wide filter.
						seen = slices.DeleteFunc(seen, func(record string) bool { return record == "b+1" || record == "d+40" })
					}
					assert.Equal(t, []string{"a+2"}, seen)
				})
			})
		}
	}
}

// No event comes while the namespace is not watched, so that nothing else is to be saved.
func TestAKillDoesNotHideThatANamespaceWasNotWatched(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const wide, narrow = "namespaces: [ns, other]", "namespaces: [ns]"
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: wide, Disk: on})
		harness.Settle()
		p.Stop()
		harness.Launch(t, api, harness.Options{Config: narrow, Disk: on})
		harness.Settle()
		killed := on.Copied()
		ev := harness.Event("meanwhile", 3)
		ev.Namespace = "other"
		api.Put(ev)
		q := harness.Launch(t, api, harness.Options{Config: wide, Disk: killed})
		harness.Settle()
		assert.Empty(t, q.Logs.Names())
	})
}

func TestStartAtDecidesAboutANamespaceThatWasNeverWatched(t *testing.T) {
	for startAt, want := range map[string][]string{"end": nil, "beginning": {"b+2"}} {
		t.Run(startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				ev := harness.Event("b", 2)
				ev.Namespace = "other"
				api.Put(ev)
				p := harness.Launch(t, api, harness.Options{Config: "{namespaces: [ns], start_at: " + startAt + "}", Disk: on})
				harness.Settle()
				p.Stop()
				p = harness.Launch(t, api, harness.Options{Config: "{namespaces: [ns, other], start_at: " + startAt + "}", Disk: on})
				p.AwaitRecords(t, want...)
			})
		})
	}
}

func TestStartAtDecidesOnceTheFirstListIsComplete(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		api.Refuse(func(*http.Request) int { return http.StatusForbidden })
		first := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		first.Stop()
		api.Refuse(nil)
		api.Put(harness.Event("existing", 1))
		second := harness.Launch(t, api, harness.Options{Disk: on})
		second.AwaitRecords(t)
		second.Stop()
		for i := range 3 {
			api.Put(harness.Event(fmt.Sprint("new", i), 1))
		}
		api.Compact()
		third := harness.Launch(t, api, harness.Options{Disk: on})
		third.AwaitRecords(t, "new0+1", "new1+1", "new2+1")
	})
}

// What was delivered after the last note comes again, with the same log.record.uid. It is noted within
// a second.
func TestACrashRepeatsWhatWasNotNoted(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		api.Put(harness.Event("a", 1))
		first.AwaitRecords(t, "a+1")
		api.Put(harness.Event("b", 1)) // So that the next write is not at once.
		harness.Eventually(t, func() bool { return len(first.Logs.Names()) == 2 })
		time.Sleep(10 * time.Millisecond)
		var crashed *harness.Disk
		first.Logs.OnAttempt(func() { crashed = on.Copied() })
		api.Put(harness.Event("a", 3))
		harness.Eventually(t, func() bool { return len(first.Logs.Names()) == 3 })
		time.Sleep(time.Second)
		noted := on.Copied()
		second := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: crashed})
		second.AwaitRecords(t, "a+2")
		assert.Equal(t, attributes(first, "log.record.uid")[2:], attributes(second, "log.record.uid"))
		third := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: noted})
		third.AwaitRecords(t)
	})
}

// attributes returns an attribute of each record.
func attributes(p *harness.Process, name string) (values []string) {
	p.Logs.EachRecord(func(_ map[string]any, record plog.LogRecord) {
		value, _ := record.Attributes().Get(name)
		values = append(values, value.AsString())
	})
	return values
}

func TestARestartForgetsTheOwnersOfDeletedObjects(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		pod := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "pod-uid"}
		api.Objects.Put(pod)
		p := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		api.Put(harness.Event("a", 1))
		harness.Settle()
		api.Objects.Remove(pod)
		api.Put(harness.Event("a", 2))
		harness.Settle()
		assert.Equal(t, []string{"complete", "complete"}, attributes(p, "k8s.owner.resolution"))
		p.Stop()
		p = harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		api.Put(harness.Event("a", 3))
		harness.Settle()
		assert.Equal(t, []string{"not_found"}, attributes(p, "k8s.owner.resolution"))
	})
}

func TestOccurrencesThatAWindowHoldsOutliveACrash(t *testing.T) {
	const config = "{start_at: beginning, dedup_interval: 20s}"
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: config, Disk: on})
		api.Put(harness.Event("a", 1))
		first.AwaitRecords(t, "a+1")
		api.Put(harness.Event("a", 4))
		harness.Settle()
		crashed := on.Copied()
		second := harness.Launch(t, api, harness.Options{Config: config, Disk: crashed})
		second.AwaitRecords(t, "a+3")
		first.AwaitSum(t, 1)
	})
}

func TestWhatIsRejectedAtShutdownIsDeliveredAtTheNextStart(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		api.Put(harness.Event("a", 1))
		first.AwaitRecords(t, "a+1")
		first.Logs.Reject(errors.New("the queue is full"))
		api.Put(harness.Event("b", 2))
		harness.Settle()
		api.Put(harness.Event("c", 3))
		harness.Settle()
		first.Stop()
		second := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		second.AwaitRecords(t, "b+2", "c+3")
		second.Stop()
		third := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		third.AwaitRecords(t)
	})
}

// The pipeline may take 5 s for the last records, and the storage 4 s for the last note.
func TestAnOrderlyStopWaitsForThePipelineAndTheStorage(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const delivering, failing = 4900 * time.Millisecond, 3 * time.Second
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		api.Put(harness.Event("a", 1))
		first.AwaitRecords(t, "a+1")
		first.Logs.OnAttempt(func() { time.Sleep(delivering) })
		api.Put(harness.Event("b", 1))
		harness.Eventually(t, func() bool { return first.Logs.Attempted() == 2 })
		on.Fail(nil, harness.ErrDisk)
		time.AfterFunc(delivering+failing, func() { on.Fail(nil, nil) })
		first.Stop()
		assert.Equal(t, []string{"a+1", "b+1"}, first.Logs.Names())
		second := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		second.AwaitRecords(t)
	})
}

func TestUntilTheStorageCanBeReadNothingIsEmittedAndNothingOverwritten(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		api.Put(harness.Event("a", 2))
		first.AwaitRecords(t, "a+2")
		first.Stop()
		api.Put(harness.Event("a", 5))

		on.Fail(harness.ErrDisk, nil)
		kept := on.Content()
		second := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		time.Sleep(10 * time.Minute)
		assert.Zero(t, second.Logs.Attempted())
		assert.Zero(t, second.Metrics.DataPointCount())
		assert.Equal(t, kept, on.Content())
		_, text := second.Host.Status()
		assert.Contains(t, text, harness.ErrDisk.Error())
		assert.Len(t, second.Warned(harness.ErrDisk), 1, "not at each attempt")

		on.Fail(nil, nil)
		second.AwaitRecords(t, "a+3")
		assert.False(t, second.Host.Fails())
	})
}

// Storage that fails changes nothing that exporters see.
func TestWhileTheStorageCannotBeWrittenEventsAreDeliveredAndCounted(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		api.Put(harness.Event("a", 2))
		p.AwaitSum(t, 2)
		on.Fail(nil, harness.ErrDisk)
		for i := range 30 {
			api.Put(harness.Event("a", int32(i+3)))
			time.Sleep(10 * time.Second)
			require.Len(t, p.Logs.Names(), i+2, "no event waits for the storage")
		}
		p.AwaitSum(t, 32)
		_, text := p.Host.Status()
		assert.Contains(t, text, harness.ErrDisk.Error())
		assert.Len(t, p.Warned(harness.ErrDisk), 1)

		on.Fail(nil, nil)
		time.Sleep(30 * time.Second)
		harness.Settle()
		assert.False(t, p.Host.Fails())
		p.Stop()
		second := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		second.AwaitRecords(t)
	})
}

func TestAStorageThatCannotBeWrittenDelaysNoShutdown(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		harness.Settle()
		on.Fail(nil, harness.ErrDisk)
		api.Put(harness.Event("a", 2))
		p.AwaitRecords(t, "a+2")
		began := time.Now()
		p.Stop()
		assert.Less(t, time.Since(began), 10*time.Second)
		assert.EqualValues(t, 2, p.Sum())
	})
}

func TestACheckpointThatCannotBeUsedIsSetAside(t *testing.T) {
	for name, change := range map[string]func(*apitest.Server, *harness.Disk){
		"it is of another cluster": func(api *apitest.Server, _ *harness.Disk) { api.SetCluster("another-cluster") },
		"its head is damaged":      func(_ *apitest.Server, on *harness.Disk) { on.Values["head"] = []byte("x") },
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				first := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
				api.Put(harness.Event("a", 2))
				first.AwaitRecords(t, "a+2")
				first.Stop()
				kept := on.Content()
				change(api, on)
				second := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
				second.AwaitRecords(t, "a+2")
				require.Len(t, second.Logged("set_aside"), 1)
				assert.Equal(t, zap.ErrorLevel, second.Logged("set_aside")[0].Level)
				second.Stop()
				for key, value := range kept {
					if key != "head" {
						assert.Equal(t, value, on.Values[key], "%s is overwritten", key)
					}
				}
				third := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
				third.AwaitRecords(t)
				assert.Empty(t, third.Logged("set_aside"))
			})
		})
	}
}

func TestARestoredEtcdKeepsCounts(t *testing.T) {
	for name, restart := range map[string]bool{"while the receiver runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				api.Put(harness.Event("a", 5))
				api.Put(harness.Event("b", 1))
				p := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
				p.AwaitRecords(t, "a+5", "b+1")
				backup := api.Version()
				api.Put(harness.Event("a", 8))
				api.Put(harness.Event("later", 2))
				want := []string{"a+5", "b+1", "a+3", "later+2"}
				p.AwaitRecords(t, want...)
				if restart {
					p.Stop()
				}
				api.Restore(backup)
				api.Put(harness.Event("b", 10))
				if restart {
					p = harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
					want = nil
				} else {
					api.Cut()
				}
				want = append(want, "b+9")
				p.AwaitRecords(t, want...)
				assert.Len(t, p.Logged("known_version"), 1)
				api.Put(harness.Event("a", 6))
				api.Put(harness.Event("later", 4))
				p.AwaitRecords(t, append(want, "a+1", "later+2")...)
				assert.True(t, slices.IsSorted(p.Sums()))
			})
		})
	}
}

// Nothing would bring it back after a crash: the backup does not have it.
func TestARestoredEtcdReleasesWhatAWindowHolds(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, dedup_interval: 24h}", Disk: harness.NewDisk()})
		api.Put(harness.Event("a", 1))
		p.AwaitRecords(t, "a+1")
		backup := api.Version()
		api.Put(harness.Event("a", 4))
		harness.Settle()
		api.Restore(backup)
		api.Cut()
		p.AwaitRecords(t, "a+1", "a+3")
	})
}

func TestWithoutThePermissionToReadTheClusterTheCheckpointIsUsed(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		api.Put(harness.Event("a", 3))
		first := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		first.AwaitRecords(t, "a+3")
		first.Stop()
		api.RefuseCluster(http.StatusForbidden)
		api.Put(harness.Event("a", 4))
		second := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		second.AwaitRecords(t, "a+1")
		second.Stop()
		api.RefuseCluster(0)
		api.SetCluster("another-cluster")
		third := harness.Launch(t, api, harness.Options{Config: fromBeginning, Disk: on})
		harness.Settle()
		assert.Len(t, third.Logged("checkpoint_cluster"), 1, "it is still known which one it was")
	})
}

func TestAnEntryThatCannotBeReadCostsItselfAndALogLine(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		api.Put(harness.Event("a", 3))
		first.AwaitRecords(t, "a+3")
		first.Stop()
		last := slices.Max(slices.DeleteFunc(slices.Collect(maps.Keys(on.Values)), func(key string) bool { return !strings.Contains(key, "/") }))
		on.Values[last] = append(on.Values[last], 1, 'x', 2, 'x') // An entry of a kind that a later version may have.
		api.Put(harness.Event("b", 2))
		second := harness.Launch(t, api, harness.Options{Disk: on})
		second.AwaitRecords(t, "b+2")
		assert.Len(t, second.Logged("entries"), 1)
	})
}

// What a window keeps is delivered at the end, but not if something before it could not be.
func TestTheEndNotesNothingAfterABatchThatWasNotDelivered(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, dedup_interval: 1h}"
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: config, Disk: on})
		api.Put(harness.Event("one", 1))
		harness.Settle()
		api.Put(harness.Event("one", 4)) // The window keeps it.
		harness.Settle()
		first.Logs.Reject(errors.New("unavailable"))
		two := harness.Event("two", 1)
		two.InvolvedObject.Name = "another" // It has no window.
		api.Put(two)
		harness.Settle()
		first.Logs.Reject(nil) // No time passes: it is not tried again before the end.
		first.Stop()
		assert.Equal(t, []string{"one+1"}, first.Logs.Names())
		second := harness.Launch(t, api, harness.Options{Config: config, Disk: on})
		second.AwaitRecords(t, "one+3", "two+1")
	})
}
