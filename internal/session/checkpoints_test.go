// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadatatest"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

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
				second.AwaitSum(t, 6)
				assert.Equal(t, first.Starts(), second.Starts(), "the sum continues with its old start time")
				second.Stop()

				third := harness.Launch(t, api, harness.Options{Disk: on})
				third.AwaitSum(t, 6)
				third.AwaitRecords(t)
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
		assert.Equal(t, []string{"stream", "version", "watch"}, api.Requests())
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
		assert.Equal(t, []string{"stream", "version", "watch"}, api.Requests(), "no list")
	})
}

func TestAProxyThatDoesNotReturnTheClusterKeepsNothingFromStarting(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed} {
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

// crashes has a copy of the disk for each attempt of a pipeline to take records, as a kill at that
// moment would leave it.
type crashes struct {
	harness.Pipeline
	copies []*harness.Disk
	sums   []int64 // that the metric had reported by then
}

func newCrashes(on *harness.Disk) (c *crashes, watch func(*harness.Process)) {
	c = &crashes{}
	var of *harness.Process
	c.Before = func() {
		c.copies = append(c.copies, on.Copied())
		if of != nil {
			c.sums = append(c.sums, of.Sum())
		} else {
			c.sums = append(c.sums, 0)
		}
	}
	return c, func(p *harness.Process) { of = p }
}

func TestAfterACrashADuplicateIsByteForByteTheFirstRecord(t *testing.T) {
	rewritten := harness.Event("a", 30)
	rewritten.Message = "The message is another one, too."
	for name, meanwhile := range map[string]func(*apitest.Server){
		"nothing happened meanwhile":     func(*apitest.Server) {},
		"the event has changed":          func(api *apitest.Server) { api.Put(rewritten) },
		"it has changed, and is listed":  func(api *apitest.Server) { api.Put(rewritten); api.Compact() },
		"it is deleted":                  func(api *apitest.Server) { api.Delete(harness.Event("a", 21)) },
		"it is deleted, and not watched": func(api *apitest.Server) { api.Delete(harness.Event("a", 21)); api.Compact() },
	} {
		for _, config := range []string{"start_at: beginning", "{start_at: beginning, dedup_interval: 1s}"} {
			t.Run(name+" "+config, func(t *testing.T) {
				harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
					on := harness.NewDisk()
					killed, watch := newCrashes(on)
					first := harness.Launch(t, api, harness.Options{Config: config, Disk: on, Logs: &killed.Pipeline})
					watch(first)
					for i := range 20 {
						api.Put(harness.Event("a", int32(i+1)))
						api.Put(harness.Event(fmt.Sprint("b", i), 1))
						time.Sleep(300 * time.Millisecond)
					}
					first.AwaitSum(t, 40)
					first.Stop()
					meanwhile(api)
					delivered := killed.Requests()
					require.Greater(t, len(delivered), 10)
					truth := int64(40)
					if strings.Contains(name, "changed") {
						truth = 20 + 30
					}
					for i, left := range killed.copies {
						second := harness.Launch(t, api, harness.Options{Config: config, Disk: left})
						harness.Settle()
						require.NotEmpty(t, second.Logs.Requests(), "crash %d", i)
						assert.Equal(t, delivered[i], second.Logs.Requests()[0], "crash %d", i)
						sums := second.Sums()
						assert.GreaterOrEqual(t, sums[0], killed.sums[i], "the metric never falls")
						assert.True(t, slices.IsSorted(sums))
						second.Stop()
						if strings.Contains(name, "deleted") {
							continue // What nobody saw is lost with the event.
						}
						received := slices.Concat(delivered[:i], second.Logs.Requests())
						assert.Equal(t, truth, harness.Occurrences(harness.Records(received)...), "crash %d", i)
						assert.Equal(t, truth, second.Sum(), "crash %d", i)
					}
				})
			})
		}
	}
}

func TestOccurrencesThatAWindowHoldsOutliveACrash(t *testing.T) {
	const config = "{start_at: beginning, dedup_interval: 20s}"
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: config, Disk: on})
		api.Put(harness.Event("a", 1))
		first.AwaitRecords(t, "a+1")
		api.Put(harness.Event("a", 4))
		first.AwaitSum(t, 4)
		crashed := on.Copied()
		second := harness.Launch(t, api, harness.Options{Config: config, Disk: crashed})
		harness.Settle()
		assert.Empty(t, second.Logs.Names(), "the window is still open")
		time.Sleep(20 * time.Second)
		second.AwaitRecords(t, "a+3")
	})
}

func TestARecordThatIsRejectedAtShutdownIsDeliveredAsItWasAtTheNextStart(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		api.Put(harness.Event("a", 1))
		first.AwaitRecords(t, "a+1")
		first.Logs.Reject(errors.New("the queue is full"))
		api.Put(harness.Event("b", 2))
		harness.Settle()
		api.Put(harness.Event("c", 3))
		harness.Settle()
		first.Stop()
		api.Put(harness.Event("b", 5))
		second := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, exclude_reasons: [Testing]}", Disk: on})
		second.AwaitRecords(t, "b+2")
		second.Stop()
		third := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		third.AwaitRecords(t)
		third.AwaitSum(t, 1+2)
	})
}

// The batch has several requests, and the pipeline accepts only the first ones.
func TestAfterAShutdownOnlyTheRequestsAreDeliveredThatWereNot(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		var want []string
		for i := range 60 {
			ev := harness.Event(fmt.Sprintf("e%02d", i), 1)
			ev.Message = strings.Repeat("x", 60_000)
			api.Put(ev)
			want = append(want, ev.Name+"+1")
		}
		pipeline := &harness.Pipeline{}
		pipeline.OnAttempt(func() {
			if pipeline.Attempted() > 2 {
				pipeline.Reject(errors.New("the queue is full"))
			}
		})
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: pipeline})
		time.Sleep(10 * time.Second)
		first.Stop()
		delivered := len(pipeline.Names())
		assert.Positive(t, delivered)
		assert.Less(t, delivered, len(want))
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		second.AwaitRecords(t, want[delivered:]...)
	})
}

func TestAShutdownDuringASlowDeliveryIsOrderly(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		slow := &harness.Pipeline{Before: func() { time.Sleep(time.Second) }}
		p := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, dedup_interval: 1h}", Disk: on, Logs: slow})
		harness.Settle()
		api.Put(harness.Event("a", 1))
		harness.Eventually(t, func() bool { return slow.Attempted() == 1 })
		api.Put(harness.Event("a", 3))
		time.Sleep(500 * time.Millisecond)
		p.Stop()
		assert.Equal(t, []string{"a+1", "a+2"}, p.Logs.Names())
		assert.Empty(t, p.Log.FilterLevelExact(zap.WarnLevel).All())
		second := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, dedup_interval: 1h}", Disk: on})
		second.AwaitRecords(t)
		second.AwaitSum(t, 3)
	})
}

func TestACorruptCheckpointIsSetAsideAndNothingOfItIsOverwritten(t *testing.T) {
	for name, damage := range map[string]func(values map[string][]byte, key string){
		"a bit has changed": func(values map[string][]byte, key string) { values[key][len(values[key])/2] ^= 1 },
		"it is cut short":   func(values map[string][]byte, key string) { values[key] = values[key][:len(values[key])/2] },
		"it is gone":        func(values map[string][]byte, key string) { delete(values, key) },
	} {
		for _, part := range []string{"head/", "j/"} {
			t.Run(name+": "+part, func(t *testing.T) {
				harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
					on := harness.NewDisk()
					api.Put(harness.Event("a", 3))
					first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
					first.AwaitRecords(t, "a+3")
					harness.Settle()
					api.Put(harness.Event("b", 1))
					first.AwaitRecords(t, "a+3", "b+1")
					first.Stop()
					keys := slices.DeleteFunc(slices.Sorted(maps.Keys(on.Values)), func(key string) bool { return !strings.HasPrefix(key, part) })
					// The parts before the last one can be read, and mean nothing without it.
					damage(on.Values, keys[len(keys)-1])
					kept := on.Content()
					second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
					second.AwaitRecords(t, "a+3", "b+1")
					require.Len(t, second.Logged("set_aside"), 1)
					assert.Equal(t, zap.ErrorLevel, second.Logged("set_aside")[0].Level)
					second.AwaitSum(t, 4)
					assert.NotEqual(t, first.Starts(), second.Starts(), "the sum is a new one")
					second.Stop()
					now := on.Content()
					for key, value := range kept {
						if key != "term" && key != "claim" {
							assert.Equal(t, value, now[key], "%s is overwritten", key)
						}
					}
					third := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
					third.AwaitSum(t, 4)
					third.AwaitRecords(t)
				})
			})
		}
	}
}

func TestInARollingUpdateTheNewProcessTakesTheStorageOver(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		api.Put(harness.Event("a", 2))
		first.AwaitRecords(t, "a+2")
		first.AwaitSum(t, 2)

		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		harness.Settle()
		second.AwaitRecords(t)
		for count := range int32(10) {
			api.Put(harness.Event("a", 3+count))
			harness.Settle()
		}
		second.AwaitSum(t, 12)
		assert.Equal(t, int64(10), harness.Occurrences(second.Logs.Records()...))
		assert.Equal(t, int64(12), harness.Occurrences(first.Logs.Records()...), "the first one delivers without saving")
		assert.Equal(t, int64(2), first.Sum())
		assert.True(t, first.Host.Fails())
		_, text := first.Host.Status()
		for _, fix := range []string{"Recreate", "k8s_leader_elector", "a storage of its own"} {
			assert.Contains(t, text, fix)
		}
		assert.Len(t, first.Warned(checkpoint.ErrTakenOver), 1, "not at each attempt")
		assert.False(t, second.Host.Fails())
		kept := on.Content()
		first.Stop()
		assert.Equal(t, kept, on.Content())
		second.Stop()

		api.Put(harness.Event("a", 15))
		third := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		third.AwaitRecords(t, "a+3")
		third.AwaitSum(t, 15)
		assert.Equal(t, first.Starts(), third.Starts(), "the sum continues with its old start time")
		assert.Empty(t, slices.Concat(second.Logged("set_aside"), third.Logged("set_aside")))
	})
}

func TestAStorageWhoseKeysExpireIsReported(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		harness.Settle()
		require.NoError(t, on.Delete(t.Context(), "claim"))
		api.Put(harness.Event("a", 2))
		p.AwaitSum(t, 2)
		assert.Equal(t, 1, p.Log.FilterMessageSnippet("keys of this storage must not expire").Len())
	})
}

func TestUntilTheStorageCanBeReadNothingIsEmittedAndNothingOverwritten(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		killed, _ := newCrashes(on)
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: &killed.Pipeline})
		api.Put(harness.Event("a", 2))
		first.AwaitSum(t, 2)
		first.Stop()
		on = killed.copies[0]
		api.Put(harness.Event("a", 5))

		on.Fail(harness.ErrDisk, nil)
		kept := on.Content()
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		time.Sleep(10 * time.Minute)
		assert.Zero(t, second.Logs.Attempted())
		assert.Zero(t, second.Metrics.DataPointCount())
		assert.Equal(t, kept, on.Content())
		assert.True(t, second.Host.Fails())
		_, text := second.Host.Status()
		assert.Contains(t, text, harness.ErrDisk.Error())
		assert.Len(t, second.Warned(harness.ErrDisk), 1, "not at each attempt")

		on.Fail(nil, nil)
		second.AwaitRecords(t, "a+2", "a+3")
		assert.Equal(t, killed.Requests()[0], second.Logs.Requests()[0])
		assert.False(t, second.Host.Fails())
		second.AwaitSum(t, 5)
		assert.Equal(t, first.Starts(), second.Starts())
	})
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

func TestWhileTheStorageCannotBeWrittenEventsAreDeliveredAndTheMetricStandsStill(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		api.Put(harness.Event("a", 2))
		p.AwaitSum(t, 2)

		on.Fail(nil, harness.ErrDisk)
		var want []string
		for i := range 30 {
			api.Put(harness.Event("a", int32(i+3)))
			time.Sleep(10 * time.Second)
			want = append(want, "a+1")
			require.Len(t, p.Logs.Names(), len(want)+1, "no event waits for the storage")
		}
		assert.Equal(t, int64(2), p.Sum())
		status, text := p.Host.Status()
		assert.Equal(t, componentstatus.StatusRecoverableError, status)
		assert.Contains(t, text, harness.ErrDisk.Error())
		assert.Len(t, p.Warned(harness.ErrDisk), 1)

		on.Fail(nil, nil)
		p.AwaitSum(t, 32)
		assert.False(t, p.Host.Fails())
		assert.True(t, slices.IsSorted(p.Sums()), "%v", p.Sums())
		api.Put(harness.Event("a", 33))
		p.AwaitSum(t, 33)
		p.Stop()
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		second.AwaitSum(t, 33)
		second.AwaitRecords(t)
	})
}

func TestACrashWhileTheStorageCannotBeWrittenRepeatsWhatIsNotSaved(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		api.Put(harness.Event("a", 2))
		p.AwaitRecords(t, "a+2")
		on.Fail(nil, harness.ErrDisk)
		api.Put(harness.Event("a", 3))
		p.AwaitRecords(t, "a+2", "a+1")
		crashed := on.Copied()
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: crashed})
		second.AwaitSum(t, 3)
		api.Put(harness.Event("a", 6))
		second.AwaitSum(t, 6)
		assert.Equal(t, int64(4), harness.Occurrences(second.Logs.Records()...))
	})
}

func TestAStorageThatCannotBeWrittenDelaysNoShutdown(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		harness.Settle()
		on.Fail(nil, harness.ErrDisk)
		api.Put(harness.Event("a", 2))
		p.AwaitRecords(t, "a+2")
		began := time.Now()
		p.Stop()
		assert.Less(t, time.Since(began), 10*time.Second)
		assert.Zero(t, p.Sum(), "what is not saved is not reported, also at shutdown")
	})
}

func TestAWriteThatFailedBeforeAnOrderlyStopIsRepeated(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		harness.Settle()
		on.Fail(nil, harness.ErrDisk)
		api.Put(harness.Event("a", 2))
		p.AwaitRecords(t, "a+2")
		on.Fail(nil, nil)
		p.Stop()
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		second.AwaitSum(t, 2)
		assert.Empty(t, second.Logs.Names())
	})
}

func TestTheAgeOfTheCheckpointIsThatOfTheLastWriteWhileMoreIsToBeSaved(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		age := func() float64 {
			metric, err := p.Telemetry.GetMetric("otelcol_kube_events_checkpoint_age")
			require.NoError(t, err)
			return metric.Data.(metricdata.Gauge[float64]).DataPoints[0].Value
		}
		for count := range int32(2) {
			api.Put(harness.Event("a", count+1))
			time.Sleep(time.Minute)
			assert.Zero(t, age())
		}
		on.Fail(nil, harness.ErrDisk)
		api.Put(harness.Event("a", 3))
		time.Sleep(time.Minute)
		assert.GreaterOrEqual(t, age(), 60.0)
	})
}

func TestAStorageThatAppliesAWriteAndLosesTheAnswer(t *testing.T) {
	for _, every := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("every %d", every), func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				on.Answer = func() error {
					if on.Writes%every == 0 {
						return harness.ErrDisk
					}
					return nil
				}
				killed, _ := newCrashes(on)
				p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: &killed.Pipeline})
				for i := range 10 {
					api.Put(harness.Event("a", int32(i+1)))
					time.Sleep(time.Second)
				}
				p.AwaitSum(t, 10)
				assert.Equal(t, int64(10), harness.Occurrences(p.Logs.Records()...))
				assert.Len(t, p.Logs.Records(), 10)
				p.Stop()
				for i, left := range append(killed.copies, on.Copied()) {
					second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: left})
					second.AwaitSum(t, 10)
					second.Stop()
					all := slices.Concat(killed.Records()[:min(i, 10)], second.Logs.Records())
					assert.Equal(t, int64(10), harness.Occurrences(all...), "crash %d", i)
				}
			})
		})
	}
}

func TestACheckpointOfAnotherClusterIsSetAside(t *testing.T) {
	for startAt, want := range map[string][]string{"end": {"a+2", "b+1"}, "beginning": {"a+2", "a+5", "b+1"}} {
		t.Run("start_at: "+startAt, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				killed, _ := newCrashes(on)
				first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: &killed.Pipeline})
				api.Put(harness.Event("a", 2))
				first.AwaitSum(t, 2)
				first.Stop()
				on = killed.copies[0]
				api.SetCluster("another-cluster")
				api.Put(harness.Event("a", 5))
				kept := on.Content()

				second := harness.Launch(t, api, harness.Options{Config: "start_at: " + startAt, Disk: on})
				harness.Settle()
				api.Put(harness.Event("b", 1))
				second.AwaitRecords(t, want...)
				assert.Equal(t, killed.Requests()[0], second.Logs.Requests()[0], "its outbox is delivered as it is")
				assert.Len(t, second.Logged("checkpoint_cluster"), 1)
				second.AwaitSum(t, map[string]int64{"end": 1, "beginning": 6}[startAt])
				for _, start := range second.Starts() {
					assert.True(t, start.After(first.Starts()[0]), "with new sums")
				}
				second.Stop()
				now := on.Content()
				for key, value := range kept {
					if strings.HasPrefix(key, "j/") {
						assert.Equal(t, value, now[key], "%s is overwritten", key)
					}
				}
				third := harness.Launch(t, api, harness.Options{Config: "start_at: " + startAt, Disk: on})
				third.AwaitRecords(t)
				assert.Empty(t, third.Logged("checkpoint_cluster"))
				third.AwaitSum(t, second.Sum())
			})
		})
	}
}

func TestAnotherClusterThatAnswersWhileTheReceiverRuns(t *testing.T) {
	for name, on := range map[string]*harness.Disk{"with storage": harness.NewDisk(), "without": nil} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
				before := api.Version()
				api.Put(harness.Event("a", 2))
				p.AwaitRecords(t, "a+2")
				p.AwaitSum(t, 2)
				for range 10 {
					api.Put(harness.Event("a", 2))
				}
				harness.Settle()
				api.Restore(before)
				api.SetCluster("another-cluster")
				api.Put(harness.Event("a", 1))
				api.Cut()
				p.AwaitRecords(t, "a+2", "a+1")
				p.AwaitSum(t, 1)
				assert.Len(t, p.Starts(), 2, "with a new start time")
				api.Put(harness.Event("a", 2))
				p.AwaitRecords(t, "a+2", "a+1", "a+1")
				p.AwaitSum(t, 2)
			})
		})
	}
}

func TestARestoredEtcdKeepsCountsAndSums(t *testing.T) {
	for name, restart := range map[string]bool{"while the receiver runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				on := harness.NewDisk()
				api.Put(harness.Event("a", 5))
				api.Put(harness.Event("b", 1))
				p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
				p.AwaitRecords(t, "a+5", "b+1")
				backup := api.Version()
				api.Put(harness.Event("a", 8))
				api.Put(harness.Event("later", 2))
				p.AwaitRecords(t, "a+5", "b+1", "a+3", "later+2")
				p.AwaitSum(t, 11)
				start := p.Starts()
				want := p.Logs.Names()
				if restart {
					p.Stop()
				}
				api.Restore(backup)
				api.Put(harness.Event("b", 10))
				if restart {
					p = harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
					want = nil
				} else {
					api.Cut()
				}
				want = append(want, "b+9")
				p.AwaitRecords(t, want...)
				assert.Len(t, p.Logged("known_version"), 1)
				api.Put(harness.Event("a", 6))
				api.Put(harness.Event("later", 4))
				want = append(want, "a+1", "later+2")
				p.AwaitRecords(t, want...)
				p.AwaitSum(t, 11+9+1+2)
				assert.Equal(t, start, p.Starts())
				assert.True(t, slices.IsSorted(p.Sums()))
			})
		})
	}
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

func TestAnOutboxThatWasThereAtFiveStartsIsDeliveredOneRecordAtATime(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		killed, _ := newCrashes(on)
		for i := range 3 {
			ev := harness.Event(fmt.Sprint("e", i), 1)
			ev.Message = fmt.Sprint("message ", i)
			api.Put(ev)
		}
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: &killed.Pipeline})
		first.AwaitRecords(t, "e0+1", "e1+1", "e2+1")
		on = killed.copies[0]
		for start := 1; start <= 5; start++ {
			poison := &harness.Pipeline{Rejects: errors.New("it kills the process")}
			p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: poison})
			harness.Eventually(t, func() bool { return poison.Attempted() > 0 })
			on = on.Copied() // A kill.
			log := p.Logged("record")
			if start < 5 {
				assert.Empty(t, log, "start %d", start)
				continue
			}
			require.Len(t, log, 1)
			assert.Contains(t, fmt.Sprint(log[0].ContextMap()), "message 0", "the log names the record")
			assert.Contains(t, fmt.Sprint(log[0].ContextMap()), "e0")
		}
		last := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		last.AwaitRecords(t, "e0+1", "e1+1", "e2+1")
		outbox := harness.Records(killed.Requests()[:1])
		require.GreaterOrEqual(t, len(last.Logs.Requests()), len(outbox))
		assert.Equal(t, outbox, last.Logs.Requests()[:len(outbox)], "each as it was")
		last.AwaitSum(t, 3)
		last.Stop()
		again := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		again.AwaitRecords(t)
	})
}

func TestWithoutALogsPipelineTheOutboxIsDroppedCountedAndReported(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		killed, _ := newCrashes(on)
		big := harness.Event("a", 1)
		big.Message = "" // The outbox is compressed, so the text has no repetitions.
		for len(big.Message) < 10_000 {
			big.Message += rand.Text()
		}
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: &killed.Pipeline})
		before := killed.Before
		killed.Before = func() {
			before()
			if len(killed.copies) == 1 { // The next batch has both events.
				api.Put(big)
				api.Put(harness.Event("b", 1))
				time.Sleep(time.Second)
			}
		}
		api.Put(harness.Event("z", 1))
		first.AwaitSum(t, 3)
		first.Stop()
		on = killed.copies[1]
		require.Greater(t, on.Size(), 10_000)

		telemetry := componenttest.NewTelemetry()
		defer func() { assert.NoError(t, telemetry.Shutdown(t.Context())) }()
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, NoLogs: true, Telemetry: telemetry})
		harness.Settle()
		metadatatest.AssertEqualKubeEventsDropped(t, telemetry, []metricdata.DataPoint[int64]{{Attributes: attribute.NewSet(attribute.String("receiver", "kube_events")), Value: 2}}, metricdatatest.IgnoreTimestamp())
		log := second.Logged("records")
		require.Len(t, log, 1)
		assert.Equal(t, int64(2), log[0].ContextMap()["records"])
		second.AwaitSum(t, 3)
		big.Name = "c"
		api.Put(big)
		second.AwaitSum(t, 4)
		api.Put(harness.Event("d", 2))
		second.AwaitSum(t, 6)
		assert.Less(t, on.Size(), 10_000, "the storage has neither these records nor later ones")
		second.Stop()
		third := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, NoLogs: true})
		third.AwaitSum(t, 6)
		assert.Empty(t, third.Logged("records"))
	})
}

// killedBeforeDelivery returns the disk of a process that was killed when it had saved a record, and before it
// delivered it.
func killedBeforeDelivery(t *testing.T, api *apitest.Server) *harness.Disk {
	on := harness.NewDisk()
	killed, _ := newCrashes(on)
	first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: &killed.Pipeline})
	api.Put(harness.Event("a", 1))
	first.AwaitRecords(t, "a+1")
	return killed.copies[0]
}

// The pipeline takes the records of the outbox, and the API server hangs.
func TestAStartThatDeliversTheOutboxStillReportsThatTheServerHasNotAnswered(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		left := killedBeforeDelivery(t, api)
		api.Refuse(func(r *http.Request) int {
			<-r.Context().Done()
			return http.StatusServiceUnavailable
		})
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: left})
		second.AwaitRecords(t, "a+1")
		harness.Settle()
		_, text := second.Host.Status()
		assert.Contains(t, text, "the API server has not answered yet")
	})
}

// Without this, each crash while the API server is down would repeat the records.
func TestAStartRemovesWhatItDeliveredWhileTheServerDoesNotAnswer(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		left := killedBeforeDelivery(t, api)
		api.RefuseCluster(http.StatusServiceUnavailable)
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: left})
		second.AwaitRecords(t, "a+1")
		time.Sleep(time.Minute)
		third := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: left.Copied()})
		time.Sleep(time.Minute)
		assert.Empty(t, third.Logs.Records())
	})
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

func TestOtherSettingsOfASeriesStartTheMetricAt0(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		api.Put(harness.Event("a", 3))
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		first.AwaitSum(t, 3)
		first.Stop()
		api.Put(harness.Event("a", 4))
		second := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, extract: {labels: [{key: team}]}}", Disk: on})
		second.AwaitRecords(t, "a+1")
		second.AwaitSum(t, 1)
		assert.True(t, second.Starts()[0].After(first.Starts()[0]))
	})
}

func TestWithoutThePermissionToReadTheClusterTheCheckpointIsUsed(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		api.Put(harness.Event("a", 3))
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		first.AwaitSum(t, 3)
		first.Stop()
		api.RefuseCluster(http.StatusForbidden)
		api.Put(harness.Event("a", 4))
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		second.AwaitRecords(t, "a+1")
		second.Stop()
		api.RefuseCluster(0)
		api.SetCluster("another-cluster")
		third := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		harness.Settle()
		assert.Len(t, third.Logged("checkpoint_cluster"), 1, "it is still known which one it was")
	})
}

// The permission is added while the receiver runs. The log says why the metric has new series.
func TestTheUIDOfTheClusterThatIsKnownLateIsReported(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.RefuseCluster(http.StatusForbidden)
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning"})
		api.Put(harness.Event("a", 3))
		p.AwaitSum(t, 3)
		const message = "The UID of the cluster is known now"
		assert.Zero(t, p.Log.FilterMessageSnippet(message).Len())
		api.RefuseCluster(0)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, p.Log.FilterMessageSnippet(message).Len())
	})
}

// The storage fails once; the pipeline rejects for hours. Then the process is killed.
func TestAWriteIsRepeatedWhileThePipelineRejects(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		d := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: d})
		harness.Settle()
		api.Put(harness.Event("zero", 1))
		harness.Settle()
		p.Logs.Reject(errors.New("full"))
		d.Fail(nil, errors.New("no space left"))
		api.Put(harness.Event("one", 1))
		harness.Settle()
		d.Fail(nil, nil)
		time.Sleep(2 * time.Hour)
		_, text := p.Host.Status()
		assert.NotContains(t, text, "no space left", "the storage has worked for two hours")
		crashed := d.Copied()
		api.Delete(harness.Event("one", 1))
		api.Compact()
		q := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: crashed})
		harness.Settle()
		assert.Equal(t, []string{"one+1"}, q.Logs.Names(), "nothing is lost by a crash")
	})
}

// Windows hold events with large messages, which are saved without a record.
func TestAWriteIsBoundedWhileWindowsHoldLargeEvents(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, dedup_interval: 1h}", Disk: on})
		harness.Settle()
		for count := range int32(4) {
			for i := range 150 {
				ev := harness.Event(fmt.Sprint("e", i), count+1)
				ev.Message = strings.Repeat("x", 64<<10)
				api.Put(ev)
			}
			harness.Settle()
		}
		assert.Len(t, p.Logs.Names(), 150)
		assert.LessOrEqual(t, on.Largest, 12<<20)
	})
}

// The windows of a checkpoint of another cluster are delivered like its outbox.
func TestWhatTheWindowsOfAnotherClusterHeldIsDelivered(t *testing.T) {
	const config = "{start_at: end, dedup_interval: 20s}"
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Config: config, Disk: on})
		harness.Settle()
		api.Put(harness.Event("a", 1))
		first.AwaitRecords(t, "a+1")
		api.Put(harness.Event("a", 4))
		first.AwaitSum(t, 4)
		crashed := on.Copied()
		api.SetCluster("another-cluster")
		second := harness.Launch(t, api, harness.Options{Config: config, Disk: crashed})
		second.AwaitRecords(t, "a+3")
		resource := second.Logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().AsRaw()
		assert.Equal(t, "cluster-uid", resource["k8s.cluster.uid"])
		assert.NotContains(t, resource, "k8s.workload.name", "this cluster does not know it")
		second.Stop()
		third := harness.Launch(t, api, harness.Options{Config: config, Disk: crashed})
		harness.Settle()
		assert.Empty(t, third.Logs.Names())
	})
}

// The cluster does not answer after a crash, and the receiver is stopped meanwhile.
func TestAnOutboxThatIsDeliveredIsNotRepeatedAfterAnOrderlyStop(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		killed, _ := newCrashes(on)
		api.Put(harness.Event("a", 1))
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Logs: &killed.Pipeline})
		first.AwaitRecords(t, "a+1")
		on = killed.copies[0]
		api.RefuseCluster(http.StatusServiceUnavailable)
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		time.Sleep(20 * time.Second)
		assert.Equal(t, []string{"a+1"}, second.Logs.Names(), "the outbox")
		second.Stop()
		for i := range 5 {
			p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
			time.Sleep(20 * time.Second)
			assert.Empty(t, p.Logs.Names(), "start %d: repeated after an orderly stop", i+2)
			assert.Empty(t, p.Logged("record"), "start %d: claims that the outbox was not delivered", i+2)
			p.Stop()
		}
	})
}

func TestAnotherClusterThatDoesNotAnswerAtOnceIsNoticed(t *testing.T) {
	for name, on := range map[string]*harness.Disk{"with storage": harness.NewDisk(), "without": nil} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
				before := api.Version()
				api.Put(harness.Event("a", 2))
				p.AwaitRecords(t, "a+2")
				for range 10 {
					api.Put(harness.Event("a", 2))
				}
				harness.Settle()
				api.Restore(before)
				api.SetCluster("another-cluster")
				api.RefuseCluster(http.StatusTooManyRequests)
				api.Put(harness.Event("c", 1))
				api.Cut()
				time.Sleep(time.Minute)
				assert.Equal(t, []string{"a+2"}, p.Logs.Names(), "it is not known whose event c is")
				_, text := p.Host.Status()
				assert.Contains(t, text, "kube-system")
				api.RefuseCluster(0)
				time.Sleep(2 * time.Minute)
				api.Put(harness.Event("b", 1))
				harness.Settle()
				assert.False(t, p.Host.Fails())
				assert.Equal(t, []string{"a+2", "c+1", "b+1"}, p.Logs.Names())
				for _, request := range p.Logs.Requests()[1:] {
					uid, _ := harness.Decode(request).ResourceLogs().At(0).Resource().Attributes().Get("k8s.cluster.uid")
					assert.Equal(t, "another-cluster", uid.AsString())
				}
			})
		})
	}
}

// damagedEntry changes the value of the first entry of a kind in the journal, and returns whether
// there is one. Each chunk has entries of a key of 17 bytes, a length plus 1, and the value.
func damagedEntry(values map[string][]byte, kind byte) bool {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !strings.HasPrefix(key, "j/") {
			continue
		}
		chunk := bytes.Clone(values[key])
		body := chunk[:len(chunk)-crc32.Size]
		for rest := body; len(rest) > 0; {
			length, n := binary.Uvarint(rest[17:])
			value := rest[17+n : 17+n+max(0, int(length)-1)]
			if rest[0] == kind && len(value) > 0 {
				rest[0] = 'x' // An entry of a kind that a later version may have.
				binary.BigEndian.PutUint32(chunk[len(body):], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
				values[key] = chunk
				return true
			}
			rest = rest[17+n+len(value):]
		}
	}
	return false
}

func TestAnEntryThatCannotBeReadCostsItselfAndALogLine(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		api.Put(harness.Event("a", 3))
		first.AwaitRecords(t, "a+3")
		first.Stop()
		require.True(t, damagedEntry(on.Values, 'o') || damagedEntry(on.Values, 'e'))
		api.Put(harness.Event("b", 2))
		second := harness.Launch(t, api, harness.Options{Disk: on})
		second.AwaitRecords(t, "b+2")
		second.AwaitSum(t, 5)
		assert.Len(t, second.Logged("entries"), 1)
		second.Stop()
		third := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		assert.Empty(t, third.Logged("entries"), "the entry is removed")
	})
}
