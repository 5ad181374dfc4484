// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

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
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadatatest"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

var errDisk = errors.New("input/output error")

func TestARestartNeitherLosesNorRepeats(t *testing.T) {
	for name, gap := range map[string]func(*apitest.Server){
		"when the API server still has the version to resume from": func(*apitest.Server) {},
		"when it does not": (*apitest.Server).Compact,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				on := newDisk()
				api.Put(eventNamed("before", 7))
				first := launch(t, api, options{disk: on})
				settle()
				api.Put(eventNamed("a", 2))
				first.awaitRecords(t, "a+2")
				first.stop()
				first.awaitSum(t, 2)

				api.Put(eventNamed("a", 5))
				api.Put(eventNamed("b", 1))
				gap(api)
				second := launch(t, api, options{disk: on})
				second.awaitRecords(t, "a+3", "b+1")
				second.awaitSum(t, 6)
				assert.Equal(t, first.starts(), second.starts(), "the sum continues with its old start time")
				second.stop()

				third := launch(t, api, options{disk: on})
				third.awaitSum(t, 6)
				third.awaitRecords(t)
			})
		})
	}
}

func TestAResumedWatchDoesNotList(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		first := launch(t, api, options{disk: on})
		settle()
		first.stop()
		second := launch(t, api, options{disk: on})
		settle()
		api.Put(eventNamed("a", 1))
		second.awaitRecords(t, "a+1")
		assert.Equal(t, []string{"stream", "version", "watch"}, api.Requests())
	})
}

func TestTheCheckpointOfAQuietStreamFollowsBookmarks(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		api.WithBookmarks()
		on := newDisk()
		first := launch(t, api, options{disk: on})
		settle()
		api.Bookmark()
		settle()
		first.stop()
		api.Compact()
		second := launch(t, api, options{disk: on})
		settle()
		api.Put(eventNamed("a", 1))
		second.awaitRecords(t, "a+1")
		assert.Equal(t, []string{"stream", "version", "watch"}, api.Requests(), "no list")
	})
}

func TestAProxyThatDoesNotReturnTheClusterKeepsNothingFromStarting(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				api.RefuseCluster(status)
				api.Put(eventNamed("a", 3))
				p := launch(t, api, options{config: "start_at: beginning", disk: newDisk()})
				p.awaitRecords(t, "a+3")
				assert.False(t, p.host.fails())
				assert.Equal(t, 1, p.log.FilterMessageSnippet("have no k8s.cluster.uid").Len())
			})
		})
	}
}

// crashes has a copy of the disk for each attempt of a pipeline to take records, as a kill at that
// moment would leave it.
type crashes struct {
	pipeline
	copies []*disk
	sums   []int64 // that the metric had reported by then
}

func newCrashes(on *disk) (c *crashes, watch func(*process)) {
	c = &crashes{}
	var of *process
	c.before = func() {
		c.copies = append(c.copies, on.copied())
		if of != nil {
			c.sums = append(c.sums, of.sum())
		} else {
			c.sums = append(c.sums, 0)
		}
	}
	return c, func(p *process) { of = p }
}

func TestAfterACrashADuplicateIsByteForByteTheFirstRecord(t *testing.T) {
	rewritten := eventNamed("a", 30)
	rewritten.Message = "The message is another one, too."
	for name, meanwhile := range map[string]func(*apitest.Server){
		"nothing happened meanwhile":     func(*apitest.Server) {},
		"the event has changed":          func(api *apitest.Server) { api.Put(rewritten) },
		"it has changed, and is listed":  func(api *apitest.Server) { api.Put(rewritten); api.Compact() },
		"it is deleted":                  func(api *apitest.Server) { api.Delete(eventNamed("a", 21)) },
		"it is deleted, and not watched": func(api *apitest.Server) { api.Delete(eventNamed("a", 21)); api.Compact() },
	} {
		for _, config := range []string{"start_at: beginning", "{start_at: beginning, dedup_interval: 1s}"} {
			t.Run(name+" "+config, func(t *testing.T) {
				inBubble(t, func(t *testing.T, api *apitest.Server) {
					on := newDisk()
					killed, watch := newCrashes(on)
					first := launch(t, api, options{config: config, disk: on, logs: &killed.pipeline})
					watch(first)
					for i := range 20 {
						api.Put(eventNamed("a", int32(i+1)))
						api.Put(eventNamed(fmt.Sprint("b", i), 1))
						time.Sleep(300 * time.Millisecond)
					}
					first.awaitSum(t, 40)
					first.stop()
					meanwhile(api)
					delivered := killed.requests()
					require.Greater(t, len(delivered), 10)
					truth := int64(40)
					if strings.Contains(name, "changed") {
						truth = 20 + 30
					}
					for i, left := range killed.copies {
						second := launch(t, api, options{config: config, disk: left})
						settle()
						require.NotEmpty(t, second.logs.requests(), "crash %d", i)
						assert.Equal(t, delivered[i], second.logs.requests()[0], "crash %d", i)
						sums := second.sums()
						assert.GreaterOrEqual(t, sums[0], killed.sums[i], "the metric never falls")
						assert.True(t, slices.IsSorted(sums))
						second.stop()
						if strings.Contains(name, "deleted") {
							continue // What nobody saw is lost with the event.
						}
						received := slices.Concat(delivered[:i], second.logs.requests())
						all := &pipeline{accepted: received}
						assert.Equal(t, truth, occurrences(all.records()...), "crash %d", i)
						assert.Equal(t, truth, second.sum(), "crash %d", i)
					}
				})
			})
		}
	}
}

func TestOccurrencesThatAWindowHoldsOutliveACrash(t *testing.T) {
	const config = "{start_at: beginning, dedup_interval: 20s}"
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		first := launch(t, api, options{config: config, disk: on})
		api.Put(eventNamed("a", 1))
		first.awaitRecords(t, "a+1")
		api.Put(eventNamed("a", 4))
		first.awaitSum(t, 4)
		crashed := on.copied()
		second := launch(t, api, options{config: config, disk: crashed})
		settle()
		assert.Empty(t, second.logs.names(), "the window is still open")
		time.Sleep(20 * time.Second)
		second.awaitRecords(t, "a+3")
	})
}

func TestARecordThatIsRejectedAtShutdownIsDeliveredAsItWasAtTheNextStart(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		first := launch(t, api, options{config: "start_at: beginning", disk: on})
		api.Put(eventNamed("a", 1))
		first.awaitRecords(t, "a+1")
		first.logs.reject(errors.New("the queue is full"))
		api.Put(eventNamed("b", 2))
		settle()
		api.Put(eventNamed("c", 3))
		settle()
		first.stop()
		api.Put(eventNamed("b", 5))
		second := launch(t, api, options{config: "{start_at: beginning, exclude_reasons: [Testing]}", disk: on})
		second.awaitRecords(t, "b+2")
		second.stop()
		third := launch(t, api, options{config: "start_at: beginning", disk: on})
		third.awaitRecords(t)
		third.awaitSum(t, 1+2)
	})
}

func TestAShutdownDuringASlowDeliveryIsOrderly(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		slow := &pipeline{before: func() { time.Sleep(time.Second) }}
		p := launch(t, api, options{config: "{start_at: beginning, dedup_interval: 1h}", disk: on, logs: slow})
		settle()
		api.Put(eventNamed("a", 1))
		eventually(t, func() bool { return slow.attempted() == 1 })
		api.Put(eventNamed("a", 3))
		time.Sleep(500 * time.Millisecond)
		p.stop()
		assert.Equal(t, []string{"a+1", "a+2"}, p.logs.names())
		assert.Empty(t, p.log.FilterLevelExact(zap.WarnLevel).All())
		second := launch(t, api, options{config: "{start_at: beginning, dedup_interval: 1h}", disk: on})
		second.awaitRecords(t)
		second.awaitSum(t, 3)
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
				inBubble(t, func(t *testing.T, api *apitest.Server) {
					on := newDisk()
					api.Put(eventNamed("a", 3))
					first := launch(t, api, options{config: "start_at: beginning", disk: on})
					first.awaitRecords(t, "a+3")
					settle()
					api.Put(eventNamed("b", 1))
					first.awaitRecords(t, "a+3", "b+1")
					first.stop()
					keys := slices.DeleteFunc(slices.Sorted(maps.Keys(on.values)), func(key string) bool { return !strings.HasPrefix(key, part) })
					// The parts before the last one can be read, and mean nothing without it.
					damage(on.values, keys[len(keys)-1])
					kept := on.content()
					second := launch(t, api, options{config: "start_at: beginning", disk: on})
					second.awaitRecords(t, "a+3", "b+1")
					require.Len(t, second.logged("set_aside"), 1)
					assert.Equal(t, zap.ErrorLevel, second.logged("set_aside")[0].Level)
					second.awaitSum(t, 4)
					assert.NotEqual(t, first.starts(), second.starts(), "the sum is a new one")
					second.stop()
					now := on.content()
					for key, value := range kept {
						if key != "term" && key != "claim" {
							assert.Equal(t, value, now[key], "%s is overwritten", key)
						}
					}
					third := launch(t, api, options{config: "start_at: beginning", disk: on})
					third.awaitSum(t, 4)
					third.awaitRecords(t)
				})
			})
		}
	}
}

func TestInARollingUpdateTheNewProcessTakesTheStorageOver(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		first := launch(t, api, options{config: "start_at: beginning", disk: on})
		api.Put(eventNamed("a", 2))
		first.awaitRecords(t, "a+2")
		first.awaitSum(t, 2)

		second := launch(t, api, options{config: "start_at: beginning", disk: on})
		settle()
		second.awaitRecords(t)
		for count := range int32(10) {
			api.Put(eventNamed("a", 3+count))
			settle()
		}
		second.awaitSum(t, 12)
		assert.Equal(t, int64(10), occurrences(second.logs.records()...))
		assert.Equal(t, int64(12), occurrences(first.logs.records()...), "the first one delivers without saving")
		assert.Equal(t, int64(2), first.sum())
		assert.True(t, first.host.fails())
		_, text := first.host.status()
		for _, fix := range []string{"Recreate", "k8s_leader_elector", "a storage of its own"} {
			assert.Contains(t, text, fix)
		}
		assert.Len(t, first.warned(checkpoint.ErrTakenOver), 1, "not at each attempt")
		assert.False(t, second.host.fails())
		kept := on.content()
		first.stop()
		assert.Equal(t, kept, on.content())
		second.stop()

		api.Put(eventNamed("a", 15))
		third := launch(t, api, options{config: "start_at: beginning", disk: on})
		third.awaitRecords(t, "a+3")
		third.awaitSum(t, 15)
		assert.Equal(t, first.starts(), third.starts(), "the sum continues with its old start time")
		assert.Empty(t, slices.Concat(second.logged("set_aside"), third.logged("set_aside")))
	})
}

func TestAStorageWhoseKeysExpireIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: on})
		settle()
		require.NoError(t, on.Delete(t.Context(), "claim"))
		api.Put(eventNamed("a", 2))
		p.awaitSum(t, 2)
		assert.Equal(t, 1, p.log.FilterMessageSnippet("keys of this storage must not expire").Len())
	})
}

func TestUntilTheStorageCanBeReadNothingIsEmittedAndNothingOverwritten(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		killed, _ := newCrashes(on)
		first := launch(t, api, options{config: "start_at: beginning", disk: on, logs: &killed.pipeline})
		api.Put(eventNamed("a", 2))
		first.awaitSum(t, 2)
		first.stop()
		on = killed.copies[0]
		api.Put(eventNamed("a", 5))

		on.fail(errDisk, nil)
		kept := on.content()
		second := launch(t, api, options{config: "start_at: beginning", disk: on})
		time.Sleep(10 * time.Minute)
		assert.Zero(t, second.logs.attempted())
		assert.Zero(t, second.metrics.DataPointCount())
		assert.Equal(t, kept, on.content())
		assert.True(t, second.host.fails())
		_, text := second.host.status()
		assert.Contains(t, text, errDisk.Error())
		assert.Len(t, second.warned(errDisk), 1, "not at each attempt")

		on.fail(nil, nil)
		second.awaitRecords(t, "a+2", "a+3")
		assert.Equal(t, killed.requests()[0], second.logs.requests()[0])
		assert.False(t, second.host.fails())
		second.awaitSum(t, 5)
		assert.Equal(t, first.starts(), second.starts())
	})
}

func TestWhileTheStorageCannotBeReadAShutdownIsOrderly(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		on.fail(errDisk, errDisk)
		p := launch(t, api, options{disk: on})
		settle()
		began := time.Now()
		p.stop()
		assert.Less(t, time.Since(began), time.Second)
		assert.Empty(t, on.values)
	})
}

func TestWhileTheStorageCannotBeWrittenEventsAreDeliveredAndTheMetricStandsStill(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: on})
		api.Put(eventNamed("a", 2))
		p.awaitSum(t, 2)

		on.fail(nil, errDisk)
		var want []string
		for i := range 30 {
			api.Put(eventNamed("a", int32(i+3)))
			time.Sleep(10 * time.Second)
			want = append(want, "a+1")
			require.Len(t, p.logs.names(), len(want)+1, "no event waits for the storage")
		}
		assert.Equal(t, int64(2), p.sum())
		status, text := p.host.status()
		assert.Equal(t, componentstatus.StatusRecoverableError, status)
		assert.Contains(t, text, errDisk.Error())
		assert.Len(t, p.warned(errDisk), 1)

		on.fail(nil, nil)
		p.awaitSum(t, 32)
		assert.False(t, p.host.fails())
		assert.True(t, slices.IsSorted(p.sums()), "%v", p.sums())
		api.Put(eventNamed("a", 33))
		p.awaitSum(t, 33)
		p.stop()
		second := launch(t, api, options{config: "start_at: beginning", disk: on})
		second.awaitSum(t, 33)
		second.awaitRecords(t)
	})
}

func TestACrashWhileTheStorageCannotBeWrittenRepeatsWhatIsNotSaved(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: on})
		api.Put(eventNamed("a", 2))
		p.awaitRecords(t, "a+2")
		on.fail(nil, errDisk)
		api.Put(eventNamed("a", 3))
		p.awaitRecords(t, "a+2", "a+1")
		crashed := on.copied()
		second := launch(t, api, options{config: "start_at: beginning", disk: crashed})
		second.awaitSum(t, 3)
		api.Put(eventNamed("a", 6))
		second.awaitSum(t, 6)
		assert.Equal(t, int64(4), occurrences(second.logs.records()...))
	})
}

func TestAStorageThatCannotBeWrittenDelaysNoShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: on})
		settle()
		on.fail(nil, errDisk)
		api.Put(eventNamed("a", 2))
		p.awaitRecords(t, "a+2")
		began := time.Now()
		p.stop()
		assert.Less(t, time.Since(began), 10*time.Second)
		assert.Zero(t, p.sum(), "what is not saved is not reported, also at shutdown")
	})
}

func TestAStorageThatAppliesAWriteAndLosesTheAnswer(t *testing.T) {
	for _, every := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("every %d", every), func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				on := newDisk()
				on.answer = func() error {
					if on.writes%every == 0 {
						return errDisk
					}
					return nil
				}
				killed, _ := newCrashes(on)
				p := launch(t, api, options{config: "start_at: beginning", disk: on, logs: &killed.pipeline})
				for i := range 10 {
					api.Put(eventNamed("a", int32(i+1)))
					time.Sleep(time.Second)
				}
				p.awaitSum(t, 10)
				assert.Equal(t, int64(10), occurrences(p.logs.records()...))
				assert.Len(t, p.logs.records(), 10)
				p.stop()
				for i, left := range append(killed.copies, on.copied()) {
					second := launch(t, api, options{config: "start_at: beginning", disk: left})
					second.awaitSum(t, 10)
					second.stop()
					all := slices.Concat(killed.records()[:min(i, 10)], second.logs.records())
					assert.Equal(t, int64(10), occurrences(all...), "crash %d", i)
				}
			})
		})
	}
}

func TestACheckpointOfAnotherClusterIsSetAside(t *testing.T) {
	for startAt, want := range map[string][]string{"end": {"a+2", "b+1"}, "beginning": {"a+2", "a+5", "b+1"}} {
		t.Run("start_at: "+startAt, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				on := newDisk()
				killed, _ := newCrashes(on)
				first := launch(t, api, options{config: "start_at: beginning", disk: on, logs: &killed.pipeline})
				api.Put(eventNamed("a", 2))
				first.awaitSum(t, 2)
				first.stop()
				on = killed.copies[0]
				api.SetCluster("another-cluster")
				api.Put(eventNamed("a", 5))
				kept := on.content()

				second := launch(t, api, options{config: "start_at: " + startAt, disk: on})
				settle()
				api.Put(eventNamed("b", 1))
				second.awaitRecords(t, want...)
				assert.Equal(t, killed.requests()[0], second.logs.requests()[0], "its outbox is delivered as it is")
				assert.Len(t, second.logged("checkpoint_cluster"), 1)
				second.awaitSum(t, map[string]int64{"end": 1, "beginning": 6}[startAt])
				for _, start := range second.starts() {
					assert.True(t, start.After(first.starts()[0]), "with new sums")
				}
				second.stop()
				now := on.content()
				for key, value := range kept {
					if strings.HasPrefix(key, "j/") {
						assert.Equal(t, value, now[key], "%s is overwritten", key)
					}
				}
				third := launch(t, api, options{config: "start_at: " + startAt, disk: on})
				third.awaitRecords(t)
				assert.Empty(t, third.logged("checkpoint_cluster"))
				third.awaitSum(t, second.sum())
			})
		})
	}
}

func TestAnotherClusterThatAnswersWhileTheReceiverRuns(t *testing.T) {
	for name, on := range map[string]*disk{"with storage": newDisk(), "without": nil} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := launch(t, api, options{config: "start_at: beginning", disk: on})
				before := api.Version()
				api.Put(eventNamed("a", 2))
				p.awaitRecords(t, "a+2")
				p.awaitSum(t, 2)
				for range 10 {
					api.Put(eventNamed("a", 2))
				}
				settle()
				api.Restore(before)
				api.SetCluster("another-cluster")
				api.Put(eventNamed("a", 1))
				api.Cut()
				p.awaitRecords(t, "a+2", "a+1")
				p.awaitSum(t, 1)
				assert.Len(t, p.starts(), 2, "with a new start time")
				api.Put(eventNamed("a", 2))
				p.awaitRecords(t, "a+2", "a+1", "a+1")
				p.awaitSum(t, 2)
			})
		})
	}
}

func TestARestoredEtcdKeepsCountsAndSums(t *testing.T) {
	for name, restart := range map[string]bool{"while the receiver runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				on := newDisk()
				api.Put(eventNamed("a", 5))
				api.Put(eventNamed("b", 1))
				p := launch(t, api, options{config: "start_at: beginning", disk: on})
				p.awaitRecords(t, "a+5", "b+1")
				backup := api.Version()
				api.Put(eventNamed("a", 8))
				api.Put(eventNamed("later", 2))
				p.awaitRecords(t, "a+5", "b+1", "a+3", "later+2")
				p.awaitSum(t, 11)
				start := p.starts()
				want := p.logs.names()
				if restart {
					p.stop()
				}
				api.Restore(backup)
				api.Put(eventNamed("b", 10))
				if restart {
					p = launch(t, api, options{config: "start_at: beginning", disk: on})
					want = nil
				} else {
					api.Cut()
				}
				want = append(want, "b+9")
				p.awaitRecords(t, want...)
				assert.Len(t, p.logged("known_version"), 1)
				api.Put(eventNamed("a", 6))
				api.Put(eventNamed("later", 4))
				want = append(want, "a+1", "later+2")
				p.awaitRecords(t, want...)
				p.awaitSum(t, 11+9+1+2)
				assert.Equal(t, start, p.starts())
				assert.True(t, slices.IsSorted(p.sums()))
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
				inBubble(t, func(t *testing.T, api *apitest.Server) {
					with := func(filter string) string {
						return fmt.Sprintf("{start_at: %s, %s}", startAt, strings.Trim(filter, "{}"))
					}
					on := newDisk()
					// Matches only the wide filter, whichever it is.
					rest := func(name string, count int32) {
						ev := eventNamed(name, count)
						ev.Namespace, ev.InvolvedObject.Namespace, ev.Type, ev.Reason = "other", "other", "Warning", "Other"
						api.Put(ev)
					}
					p := launch(t, api, options{config: with(filters.wide), disk: on})
					settle()
					api.Put(eventNamed("a", 1))
					p.awaitRecords(t, "a+1")
					rest("b", 2)
					p.awaitRecords(t, "a+1", "b+2")
					p.stop()
					p = launch(t, api, options{config: with(filters.narrow), disk: on})
					settle()
					api.Put(eventNamed("a", 2))
					rest("b", 20)
					rest("c", 30)
					p.awaitRecords(t, "a+1")
					p.stop()
					api.Put(eventNamed("a", 4))
					rest("b", 21)
					rest("d", 40)
					p = launch(t, api, options{config: with(filters.wide), disk: on})
					settle()
					seen := p.logs.names()
					assert.Contains(t, seen, "a+2", "what both filters let through is not missed")
					rest("b", 22)
					rest("c", 31)
					settle()
					assert.Subset(t, p.logs.names(), []string{"b+1", "c+1"}, "from now on it counts")
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

func TestStartAtDecidesAboutANamespaceThatWasNeverWatched(t *testing.T) {
	for startAt, want := range map[string][]string{"end": nil, "beginning": {"b+2"}} {
		t.Run(startAt, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				on := newDisk()
				ev := eventNamed("b", 2)
				ev.Namespace = "other"
				api.Put(ev)
				p := launch(t, api, options{config: "{namespaces: [ns], start_at: " + startAt + "}", disk: on})
				settle()
				p.stop()
				p = launch(t, api, options{config: "{namespaces: [ns, other], start_at: " + startAt + "}", disk: on})
				p.awaitRecords(t, want...)
			})
		})
	}
}

func TestAnOutboxThatWasThereAtFiveStartsIsDeliveredOneRecordAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		killed, _ := newCrashes(on)
		for i := range 3 {
			ev := eventNamed(fmt.Sprint("e", i), 1)
			ev.Message = fmt.Sprint("message ", i)
			api.Put(ev)
		}
		first := launch(t, api, options{config: "start_at: beginning", disk: on, logs: &killed.pipeline})
		first.awaitRecords(t, "e0+1", "e1+1", "e2+1")
		on = killed.copies[0]
		for start := 1; start <= 5; start++ {
			poison := &pipeline{rejects: errors.New("it kills the process")}
			p := launch(t, api, options{config: "start_at: beginning", disk: on, logs: poison})
			eventually(t, func() bool { return poison.attempted() > 0 })
			on = on.copied() // A kill.
			log := p.logged("record")
			if start < 5 {
				assert.Empty(t, log, "start %d", start)
				continue
			}
			require.Len(t, log, 1)
			assert.Contains(t, fmt.Sprint(log[0].ContextMap()), "message 0", "the log names the record")
			assert.Contains(t, fmt.Sprint(log[0].ContextMap()), "e0")
		}
		last := launch(t, api, options{config: "start_at: beginning", disk: on})
		last.awaitRecords(t, "e0+1", "e1+1", "e2+1")
		outbox := (&pipeline{accepted: killed.requests()[:1]}).records()
		require.GreaterOrEqual(t, len(last.logs.requests()), len(outbox))
		assert.Equal(t, outbox, last.logs.requests()[:len(outbox)], "each as it was")
		last.awaitSum(t, 3)
		last.stop()
		again := launch(t, api, options{config: "start_at: beginning", disk: on})
		again.awaitRecords(t)
	})
}

func TestWithoutALogsPipelineTheOutboxIsDroppedCountedAndReported(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		killed, _ := newCrashes(on)
		big := eventNamed("a", 1)
		for len(big.Message) < 10_000 {
			big.Message += rand.Text() // It cannot be compressed.
		}
		first := launch(t, api, options{config: "start_at: beginning", disk: on, logs: &killed.pipeline})
		before := killed.before
		killed.before = func() {
			before()
			if len(killed.copies) == 1 { // The next batch has both events.
				api.Put(big)
				api.Put(eventNamed("b", 1))
				time.Sleep(time.Second)
			}
		}
		api.Put(eventNamed("z", 1))
		first.awaitSum(t, 3)
		first.stop()
		on = killed.copies[1]
		require.Greater(t, on.size(), 10_000)

		telemetry := componenttest.NewTelemetry()
		defer func() { assert.NoError(t, telemetry.Shutdown(t.Context())) }()
		second := launch(t, api, options{config: "start_at: beginning", disk: on, noLogs: true, telemetry: telemetry})
		settle()
		metadatatest.AssertEqualKubeEventsDropped(t, telemetry, []metricdata.DataPoint[int64]{{Attributes: attribute.NewSet(attribute.String("receiver", "kube_events")), Value: 2}}, metricdatatest.IgnoreTimestamp())
		log := second.logged("records")
		require.Len(t, log, 1)
		assert.Equal(t, int64(2), log[0].ContextMap()["records"])
		second.awaitSum(t, 3)
		big.Name = "c"
		api.Put(big)
		second.awaitSum(t, 4)
		api.Put(eventNamed("d", 2))
		second.awaitSum(t, 6)
		assert.Less(t, on.size(), 10_000, "the storage has neither these records nor later ones")
		second.stop()
		third := launch(t, api, options{config: "start_at: beginning", disk: on, noLogs: true})
		third.awaitSum(t, 6)
		assert.Empty(t, third.logged("records"))
	})
}

func TestStartAtDecidesOnceTheFirstListIsComplete(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		api.Refuse(func(*http.Request) int { return http.StatusForbidden })
		first := launch(t, api, options{disk: on})
		settle()
		first.stop()
		api.Refuse(nil)
		api.Put(eventNamed("existing", 1))
		second := launch(t, api, options{disk: on})
		second.awaitRecords(t)
		second.stop()
		for i := range 3 {
			api.Put(eventNamed(fmt.Sprint("new", i), 1))
		}
		api.Compact()
		third := launch(t, api, options{disk: on})
		third.awaitRecords(t, "new0+1", "new1+1", "new2+1")
	})
}

func TestOtherSettingsOfASeriesStartTheMetricAt0(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		api.Put(eventNamed("a", 3))
		first := launch(t, api, options{config: "start_at: beginning", disk: on})
		first.awaitSum(t, 3)
		first.stop()
		api.Put(eventNamed("a", 4))
		second := launch(t, api, options{config: "{start_at: beginning, extract: {labels: [{key: team}]}}", disk: on})
		second.awaitRecords(t, "a+1")
		second.awaitSum(t, 1)
		assert.True(t, second.starts()[0].After(first.starts()[0]))
	})
}

func TestWithoutThePermissionToReadTheClusterTheCheckpointIsUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		api.Put(eventNamed("a", 3))
		first := launch(t, api, options{config: "start_at: beginning", disk: on})
		first.awaitSum(t, 3)
		first.stop()
		api.RefuseCluster(http.StatusForbidden)
		api.Put(eventNamed("a", 4))
		second := launch(t, api, options{config: "start_at: beginning", disk: on})
		second.awaitRecords(t, "a+1")
		second.stop()
		api.RefuseCluster(0)
		api.SetCluster("another-cluster")
		third := launch(t, api, options{config: "start_at: beginning", disk: on})
		settle()
		assert.Len(t, third.logged("checkpoint_cluster"), 1, "it is still known which one it was")
	})
}

// The permission is added while the receiver runs. The log says why the metric has new series.
func TestTheUIDOfTheClusterThatIsKnownLateIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		api.RefuseCluster(http.StatusForbidden)
		p := launch(t, api, options{config: "start_at: beginning"})
		api.Put(eventNamed("a", 3))
		p.awaitSum(t, 3)
		const message = "The UID of the cluster is known now"
		assert.Zero(t, p.log.FilterMessageSnippet(message).Len())
		api.RefuseCluster(0)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, p.log.FilterMessageSnippet(message).Len())
	})
}

func TestAClusterThatDoesNotAnswerWhichOneItIsIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		api.RefuseCluster(http.StatusServiceUnavailable)
		p := launch(t, api, options{config: "start_at: beginning", disk: newDisk()})
		api.Put(eventNamed("a", 3))
		time.Sleep(time.Minute)
		assert.Empty(t, p.logs.names())
		_, text := p.host.status()
		assert.Contains(t, text, "kube-system")
		api.RefuseCluster(0)
		p.awaitRecords(t, "a+3")
		assert.False(t, p.host.fails())
	})
}

func TestStorageThatIsNotThere(t *testing.T) {
	api := apitest.New(t)
	for name, tt := range map[string]struct {
		id, want string
		on       component.Component
	}{
		"a missing extension":     {"gone", `storage: "gone" is not among the extensions that run; add it`, newDisk()},
		"not a storage extension": {"disk", `storage: "disk" is not a storage extension`, &noStorage{}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configFor(t, api.URL, "")
			id := component.MustNewID(tt.id)
			cfg.Storage = &id
			r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(t, err)
			extensions := map[component.ID]component.Component{component.MustNewID("disk"): tt.on}
			require.ErrorContains(t, r.Start(t.Context(), &host{extensions: extensions}), tt.want)
			require.NoError(t, r.Shutdown(t.Context()))
		})
	}
}

type noStorage struct {
	component.StartFunc
	component.ShutdownFunc
}

// The status of a process that was deposed while it delivered the outbox.
func TestALeaderThatIsDeposedWhileItDeliversTheOutboxReportsNoPipeline(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		d := newDisk()
		first := newReplica(t, api, d, "start_at: beginning")
		first.elect()
		settle()
		first.logs.reject(errors.New("full"))
		api.Put(eventNamed("one", 1))
		settle()
		first.stop()

		p := newReplica(t, api, d, "start_at: beginning")
		p.logs.reject(errors.New("full"))
		p.elect()
		time.Sleep(3 * time.Minute)
		assert.True(t, p.host.fails(), "it reports the pipeline")
		p.depose()
		settle()
		assert.False(t, p.host.fails(), "a standby reports a pipeline")
		p.logs.reject(nil)
		p.elect()
		settle()
		assert.Equal(t, []string{"one+1"}, p.logs.names())
		time.Sleep(5 * time.Minute)
		st, text := p.host.status()
		assert.False(t, p.host.fails(), "%v %v", st, text)
	})
}

// The storage fails once; the pipeline rejects for hours. Then the process is killed.
func TestAWriteIsRepeatedWhileThePipelineRejects(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		d := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: d})
		settle()
		api.Put(eventNamed("zero", 1))
		settle()
		p.logs.reject(errors.New("full"))
		d.fail(nil, errors.New("no space left"))
		api.Put(eventNamed("one", 1))
		settle()
		d.fail(nil, nil)
		time.Sleep(2 * time.Hour)
		_, text := p.host.status()
		assert.NotContains(t, text, "no space left", "the storage has worked for two hours")
		crashed := d.copied()
		api.Delete(eventNamed("one", 1))
		api.Compact()
		q := launch(t, api, options{config: "start_at: beginning", disk: crashed})
		settle()
		assert.Equal(t, []string{"one+1"}, q.logs.names(), "nothing is lost by a crash")
	})
}

// Windows hold events with large messages, which are saved without a record.
func TestAWriteIsBoundedWhileWindowsHoldLargeEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		p := launch(t, api, options{config: "{start_at: beginning, dedup_interval: 1h}", disk: on})
		settle()
		for count := range int32(4) {
			for i := range 150 {
				ev := eventNamed(fmt.Sprint("e", i), count+1)
				ev.Message = strings.Repeat("x", 64<<10)
				api.Put(ev)
			}
			settle()
		}
		assert.Len(t, p.logs.names(), 150)
		on.mu.Lock()
		defer on.mu.Unlock()
		assert.LessOrEqual(t, on.largest, 12<<20)
	})
}

// The windows of a checkpoint of another cluster are delivered like its outbox.
func TestWhatTheWindowsOfAnotherClusterHeldIsDelivered(t *testing.T) {
	const config = "{start_at: end, dedup_interval: 20s}"
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		first := launch(t, api, options{config: config, disk: on})
		settle()
		api.Put(eventNamed("a", 1))
		first.awaitRecords(t, "a+1")
		api.Put(eventNamed("a", 4))
		first.awaitSum(t, 4)
		crashed := on.copied()
		api.SetCluster("another-cluster")
		second := launch(t, api, options{config: config, disk: crashed})
		second.awaitRecords(t, "a+3")
		resource := second.logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().AsRaw()
		assert.Equal(t, "cluster-uid", resource["k8s.cluster.uid"])
		assert.NotContains(t, resource, "k8s.workload.name", "this cluster does not know it")
		second.stop()
		third := launch(t, api, options{config: config, disk: crashed})
		settle()
		assert.Empty(t, third.logs.names())
	})
}

// The cluster does not answer after a crash, and the receiver is stopped meanwhile.
func TestAnOutboxThatIsDeliveredIsNotRepeatedAfterAnOrderlyStop(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		killed, _ := newCrashes(on)
		api.Put(eventNamed("a", 1))
		first := launch(t, api, options{config: "start_at: beginning", disk: on, logs: &killed.pipeline})
		first.awaitRecords(t, "a+1")
		on = killed.copies[0]
		api.RefuseCluster(http.StatusServiceUnavailable)
		second := launch(t, api, options{config: "start_at: beginning", disk: on})
		time.Sleep(20 * time.Second)
		assert.Equal(t, []string{"a+1"}, second.logs.names(), "the outbox")
		second.stop()
		for i := range 5 {
			p := launch(t, api, options{config: "start_at: beginning", disk: on})
			time.Sleep(20 * time.Second)
			assert.Empty(t, p.logs.names(), "start %d: repeated after an orderly stop", i+2)
			assert.Empty(t, p.logged("record"), "start %d: claims that the outbox was not delivered", i+2)
			p.stop()
		}
	})
}

func TestAnotherClusterThatDoesNotAnswerAtOnceIsNoticed(t *testing.T) {
	for name, on := range map[string]*disk{"with storage": newDisk(), "without": nil} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := launch(t, api, options{config: "start_at: beginning", disk: on})
				before := api.Version()
				api.Put(eventNamed("a", 2))
				p.awaitRecords(t, "a+2")
				for range 10 {
					api.Put(eventNamed("a", 2))
				}
				settle()
				api.Restore(before)
				api.SetCluster("another-cluster")
				api.RefuseCluster(http.StatusTooManyRequests)
				api.Put(eventNamed("c", 1))
				api.Cut()
				time.Sleep(time.Minute)
				assert.Equal(t, []string{"a+2"}, p.logs.names(), "it is not known whose event c is")
				_, text := p.host.status()
				assert.Contains(t, text, "kube-system")
				api.RefuseCluster(0)
				time.Sleep(2 * time.Minute)
				api.Put(eventNamed("b", 1))
				settle()
				assert.False(t, p.host.fails())
				assert.Equal(t, []string{"a+2", "c+1", "b+1"}, p.logs.names())
				for _, request := range p.logs.requests()[1:] {
					uid, _ := decode(request).ResourceLogs().At(0).Resource().Attributes().Get("k8s.cluster.uid")
					assert.Equal(t, "another-cluster", uid.AsString())
				}
			})
		})
	}
}

// The chain of the tests of restarts.
var (
	storedDeployment = apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "fe", UID: "d1", Labels: map[string]string{"tilt-manifest": "shop", "team": "a"}}
	storedReplicaSet = apitest.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "ns", Name: "fe-1", UID: "r1", Owners: []metav1.OwnerReference{apitest.OwnedBy(storedDeployment, true)}}
	storedPod        = apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "fe-1-a", UID: "p1", Owners: []metav1.OwnerReference{apitest.OwnedBy(storedReplicaSet, true)}}
)

// eventAbout is an event about an object; an empty UID is left out of the event, too.
func eventAbout(name string, o apitest.Object, uid string) *corev1.Event {
	ev := eventNamed(name, 1)
	ev.InvolvedObject = corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(uid)}
	return ev
}

// ownersOf describes the owners of the event's only record.
func (p *process) ownersOf(t *testing.T, event string) string {
	t.Helper()
	var found []string
	for _, logs := range p.logs.AllLogs() {
		for _, rl := range logs.ResourceLogs().All() {
			for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
				if name, _ := record.Attributes().Get("k8s.event.name"); name.Str() != event {
					continue
				}
				parts := []string{}
				for _, key := range []string{"k8s.owner.chain", "k8s.workload.name", "tilt.manifest", "team"} {
					if value, ok := rl.Resource().Attributes().Get(key); ok {
						parts = append(parts, value.AsString())
					}
				}
				resolution, _ := record.Attributes().Get("k8s.owner.resolution")
				found = append(found, strings.Join(append(parts, resolution.Str()), " "))
			}
		}
	}
	require.Len(t, found, 1, "records of %s", event)
	return found[0]
}

// afterAKill resolves the chain of the tests, kills the receiver, and starts another one after what
// happened meanwhile.
func afterAKill(t *testing.T, api *apitest.Server, config string, meanwhile func(*apitest.Objects)) *process {
	t.Helper()
	api.Objects.Put(storedPod, storedReplicaSet, storedDeployment)
	on := newDisk()
	first := launch(t, api, options{disk: on})
	settle()
	api.Put(eventAbout("before", storedPod, storedPod.UID))
	first.awaitRecords(t, "before+1")
	require.Equal(t, wholeChain, first.ownersOf(t, "before"))
	left := on.copied()
	first.stop()
	meanwhile(api.Objects)
	second := launch(t, api, options{config: config, disk: left})
	settle()
	return second
}

const (
	chainAndWorkload = `["replicaset.apps/fe-1","deployment.apps/fe"] fe`
	wholeChain       = chainAndWorkload + " shop complete"
)

func removeAll(objects *apitest.Objects) {
	objects.Remove(storedPod, storedReplicaSet, storedDeployment)
}

func TestAfterACrashTheOwnersOfDeletedObjectsAreKnown(t *testing.T) {
	renewed := storedPod
	renewed.UID, renewed.Owners = "p2", nil
	moved := storedPod
	moved.Owners = []metav1.OwnerReference{apitest.OwnedBy(storedDeployment, true)}
	relabelled := storedDeployment
	relabelled.Labels = map[string]string{"tilt-manifest": "new"}
	extracting := "extract: {labels: [{tag_name: tilt.manifest, key: tilt-manifest}, {tag_name: team, key: team}]}"
	for name, test := range map[string]struct {
		config    string
		meanwhile func(*apitest.Objects)
		uid       string
		want      string
	}{
		"the whole chain is deleted":                         {"", removeAll, "p1", wholeChain},
		"it is deleted, and the event has no UID":            {"", removeAll, "", wholeChain},
		"nothing is deleted":                                 {"", func(*apitest.Objects) {}, "p1", wholeChain},
		"it is deleted, and another label is wanted":         {extracting, removeAll, "p1", chainAndWorkload + " shop complete"},
		"nothing is deleted, and another label is wanted":    {extracting, func(*apitest.Objects) {}, "p1", chainAndWorkload + " shop a complete"},
		"owners are not looked up any more":                  {"owners: {enabled: false}", removeAll, "p1", ""},
		"the pod has another owner":                          {"", func(o *apitest.Objects) { o.Put(moved) }, "p1", `["deployment.apps/fe"] fe shop complete`},
		"a label has changed":                                {"", func(o *apitest.Objects) { o.Put(relabelled) }, "p1", chainAndWorkload + " new complete"},
		"the name is used again":                             {"", func(o *apitest.Objects) { o.Put(renewed) }, "p2", "fe-1-a complete"},
		"the name is used again, and the event has no UID":   {"", func(o *apitest.Objects) { o.Put(renewed) }, "", "fe-1-a complete"},
		"the name was used again by a pod that is gone":      {"", removeAll, "p2", "not_found"},
		"the name is used again, the event is about the old": {"", func(o *apitest.Objects) { o.Put(renewed) }, "p1", wholeChain},
		"the API server refuses everything": {"", func(o *apitest.Objects) {
			for _, object := range []apitest.Object{storedPod, storedReplicaSet, storedDeployment} {
				o.Fail(o.Path(object), apitest.Fault{Status: http.StatusForbidden})
			}
		}, "p1", wholeChain},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := afterAKill(t, api, test.config, test.meanwhile)
				api.Put(eventAbout("after", storedPod, test.uid))
				settle()
				assert.Equal(t, test.want, p.ownersOf(t, "after"))
			})
		})
	}
}

func TestStoredObjectsOutliveSeveralRestartsInWhichNothingUsesThem(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		p := afterAKill(t, api, "", removeAll)
		on := p.host.extensions[component.MustNewID("disk")].(*disk)
		for range 3 {
			p.stop()
			p = launch(t, api, options{disk: on})
			settle()
		}
		api.Put(eventAbout("after", storedPod, storedPod.UID))
		settle()
		assert.Equal(t, wholeChain, p.ownersOf(t, "after"))
	})
}

func TestTheObjectsOfAnotherClustersCheckpointAreNotUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		p := afterAKill(t, api, "", func(objects *apitest.Objects) {
			removeAll(objects)
			api.SetCluster("another-cluster")
		})
		api.Put(eventAbout("after", storedPod, storedPod.UID))
		settle()
		assert.Equal(t, "not_found", p.ownersOf(t, "after"))
	})
}

// podMetrics is an object that an aggregated API server computes: it has no UID.
var podMetrics = apitest.Object{
	APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics", Namespace: "shop", Name: "fe-1-a",
	Labels: map[string]string{"tilt-manifest": "shop"},
}

func TestAnObjectWithoutAUIDCostsTheCheckpointNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		api.Objects.Serve(podMetrics.APIVersion, podMetrics.Kind, "pods", true)
		api.Objects.Put(podMetrics)
		on := newDisk()
		first := launch(t, api, options{disk: on})
		settle()
		api.Put(eventNamed("a", 3))
		api.Put(eventAbout("before", podMetrics, ""))
		first.awaitRecords(t, "a+3", "before+1")
		first.stop()
		api.Objects.Remove(podMetrics)
		api.Put(eventNamed("a", 5))
		api.Put(eventAbout("after", podMetrics, ""))
		second := launch(t, api, options{disk: on})
		second.awaitRecords(t, "a+2", "after+1")
		second.awaitSum(t, 7)
		assert.Equal(t, first.ownersOf(t, "before"), second.ownersOf(t, "after"), "the object is still known")
		assert.Contains(t, second.ownersOf(t, "after"), "shop complete")
		assert.Empty(t, second.logged("set_aside"))
		assert.Empty(t, second.logged("entries"))
	})
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
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		first := launch(t, api, options{disk: on})
		settle()
		api.Put(eventNamed("a", 3))
		first.awaitRecords(t, "a+3")
		first.stop()
		require.True(t, damagedEntry(on.values, 'o') || damagedEntry(on.values, 'e'))
		api.Put(eventNamed("b", 2))
		second := launch(t, api, options{disk: on})
		second.awaitRecords(t, "b+2")
		second.awaitSum(t, 5)
		assert.Len(t, second.logged("entries"), 1)
		second.stop()
		third := launch(t, api, options{disk: on})
		settle()
		assert.Empty(t, third.logged("entries"), "the entry is removed")
	})
}
