// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// The lease of the leader election, and the ConfigMap that the receiver keeps next to it.
const (
	leaseNamespace = "observability"
	leaseName      = "kube-events"
	positionName   = "kube-events-kube-events"
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

// newVote is an elector that reaches the API server in a way that the receiver does not know, so
// that the receiver does not watch its lease.
func newVote() *vote {
	return &vote{config: &voteConfig{AuthType: "tls", LeaseNamespace: leaseNamespace, LeaseName: leaseName}}
}

func (v *vote) SetCallBackFuncs(started func(context.Context), stopped func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.started, v.stopped = append(v.started, started), append(v.stopped, stopped)
}

func (v *vote) elect() { v.electUntil(context.Background()) }

func (v *vote) electUntil(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, started := range v.started {
		started(ctx)
	}
}

func (v *vote) depose() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, stopped := range v.stopped {
		stopped()
	}
}

// newReplicas launches two replicas. Neither of them leads.
func newReplicas(t *testing.T, api *apitest.Server, on *disk, config string) (a, b *process) {
	t.Helper()
	return newReplica(t, api, on, config), newReplica(t, api, on, config)
}

// newReplica starts one of several receivers of which one leads.
func newReplica(t *testing.T, api *apitest.Server, on *disk, config string) *process {
	t.Helper()
	return launch(t, api, options{config: config, disk: on, vote: newVote()})
}

// electAndDeliver lets the process lead, and waits until it has delivered an event of this name.
func (p *process) electAndDeliver(t *testing.T, api *apitest.Server, name string) {
	t.Helper()
	p.elect()
	api.Put(eventNamed(name, 1))
	p.awaitRecords(t, name+"+1")
}

// published is the position of the leader's cluster-wide stream; empty if there is none.
func published(api *apitest.Server) string {
	streams := api.ConfigMap(leaseNamespace, positionName)["streams"]
	version, _ := strings.CutPrefix(streams, `{"":"`)
	return strings.TrimSuffix(version, `"}`)
}

func publish(api *apitest.Server, cluster, version string) {
	api.PutConfigMap(leaseNamespace, positionName, map[string]string{"cluster": cluster, "streams": `{"":"` + version + `"}`})
}

// count counts the requests of a kind.
func count(api *apitest.Server, kind string) (n int) {
	for _, request := range api.Requests() {
		if request == kind {
			n++
		}
	}
	return n
}

func TestOnlyTheLeaderEmits(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := newReplicas(t, api, nil, "start_at: beginning")
		a.elect()
		api.Put(eventNamed("one", 2))
		a.awaitRecords(t, "one+2")
		a.awaitSum(t, 2)
		assert.Equal(t, 2, count(api, "stream"), "the standby follows")
		assert.Zero(t, b.logs.attempted())
		assert.Zero(t, b.metrics.DataPointCount())
	})
}

func TestALeaderPublishesHowFarItHasDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, nil, "start_at: beginning")
		api.Put(eventNamed("one", 1))
		settle()
		assert.Empty(t, published(api), "a standby publishes nothing")
		a.elect()
		a.awaitRecords(t, "one+1")
		assert.Equal(t, api.Version(), published(api))
		assert.Equal(t, "cluster-uid", api.ConfigMap(leaseNamespace, positionName)["cluster"])

		a.logs.reject(errors.New("the queue is full"))
		delivered := api.Version()
		api.Put(eventNamed("two", 1))
		settle()
		assert.Equal(t, delivered, published(api), "not what is not delivered")
		a.logs.reject(nil)
		time.Sleep(time.Minute)
		assert.Equal(t, api.Version(), published(api))
	})
}

func TestThePositionOfAQuietStreamFollowsBookmarks(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		api.WithBookmarks()
		a := newReplica(t, api, nil, "start_at: beginning")
		a.electAndDeliver(t, api, "one")
		api.Bookmark()
		settle()
		assert.Equal(t, api.Version(), published(api))
		a.logs.reject(errors.New("the queue is full"))
		delivered := api.Version()
		api.Put(eventNamed("two", 1))
		api.Bookmark()
		settle()
		assert.Equal(t, delivered, published(api), "not past what is not delivered")
	})
}

func TestAFilteredEventCountsAsDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, nil, "{start_at: beginning, exclude_reasons: [Testing]}")
		a.elect()
		settle()
		api.Put(eventNamed("one", 1))
		settle()
		assert.Equal(t, api.Version(), published(api))
	})
}

func TestAWindowThatHoldsOccurrencesHoldsThePositionBack(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, nil, "{start_at: beginning, dedup_interval: 1m}")
		a.elect()
		api.Put(eventNamed("one", 1))
		settle()
		delivered := api.Version()
		assert.Equal(t, delivered, published(api))
		api.Put(eventNamed("one", 2))
		api.Put(eventNamed("two", 1))
		a.awaitRecords(t, "one+1", "two+1")
		assert.Equal(t, delivered, published(api))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"one+1", "two+1", "one+1"}, a.logs.names())
		assert.Equal(t, api.Version(), published(api))
	})
}

func TestAStandbyDropsWhatTheLeaderHasDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := newReplicas(t, api, nil, "start_at: beginning")
		a.elect()
		var want []string
		for i := range 20 {
			api.Put(eventNamed("one", int32(i+1)))
			want = append(want, "one+1")
			time.Sleep(time.Second)
		}
		a.awaitRecords(t, want...)
		a.depose()
		b.elect()
		settle()
		assert.Empty(t, b.logs.names())
		api.Put(eventNamed("one", 23))
		b.awaitRecords(t, "one+3")
		b.awaitSum(t, 3)
	})
}

func TestAStandbyKeepsWhatTheLeaderHasNotDeliveredHoweverLongItLags(t *testing.T) {
	for name, lag := range map[string]time.Duration{"a minute": time.Minute, "an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				a, b := newReplicas(t, api, nil, "start_at: beginning")
				a.electAndDeliver(t, api, "before")
				a.logs.reject(errors.New("the queue is full"))
				var want []string
				for i := range 20 {
					api.Put(eventNamed(fmt.Sprintf("e%02d", i), int32(i+1)))
					want = append(want, fmt.Sprintf("e%02d+%d", i, i+1))
					time.Sleep(lag / 20)
				}
				a.depose()
				assert.Equal(t, []string{"before+1"}, a.logs.names())
				b.elect()
				b.awaitRecords(t, want...)
				b.awaitSum(t, 20*21/2)
			})
		})
	}
}

func TestHoweverLongNobodyLeadsNothingIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		b := newReplica(t, api, nil, "start_at: beginning")
		settle()
		for i := range 10 {
			api.Put(eventNamed("one", int32(2*i+2)))
			time.Sleep(10 * time.Minute)
		}
		b.elect()
		eventually(t, func() bool { return occurrences(b.logs.records()...) == 20 })
		b.awaitSum(t, 20)
		b.logs.Reset()
		api.Put(eventNamed("two", 1))
		b.awaitRecords(t, "two+1")
	})
}

func TestEventsThatWaitForALeaderStayInTheAPIServer(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		b := newReplica(t, api, nil, "start_at: beginning")
		settle()
		large := eventNamed("", 1)
		large.Message = strings.Repeat("x", 64<<10)
		for i := range 25 * 16 {
			large.Name = fmt.Sprintf("large%03d", i)
			api.Put(large)
		}
		time.Sleep(10 * time.Minute)
		assert.LessOrEqual(t, receiverOf(t, b).health.Waiting(), int64((16+4)*16), "a batch and what waits for the next")
		b.elect()
		eventually(t, func() bool { return b.logs.LogRecordCount() == 25*16 })
	})
}

func TestWhatALeaderDeliversAfterItsLastPositionIsRepeatedWhenItDies(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := newReplicas(t, api, nil, "start_at: beginning")
		a.electAndDeliver(t, api, "before")
		api.RefuseConfigMaps(func(verb string) int {
			if verb == "get" {
				return 0
			}
			return http.StatusServiceUnavailable
		})
		api.Put(eventNamed("after", 1))
		a.awaitRecords(t, "before+1", "after+1")
		b.elect()
		b.awaitRecords(t, "after+1")
	})
}

func TestAMissingPermissionDropsNothingAndIsReportedWithTheRule(t *testing.T) {
	for name, forbidden := range map[string][]string{
		"to read the position":    {"get", "create", "update"},
		"to publish the position": {"create", "update"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				api.RefuseConfigMaps(func(verb string) int {
					if slices.Contains(forbidden, verb) {
						return http.StatusForbidden
					}
					return 0
				})
				a, b := newReplicas(t, api, nil, "start_at: beginning")
				a.elect()
				api.Put(eventNamed("one", 1))
				api.Put(eventNamed("two", 1))
				a.awaitRecords(t, "one+1", "two+1")
				_, text := a.host.status()
				assert.Contains(t, text, `{apiGroups: [''], resources: [configmaps], verbs: [create]}`)
				assert.Contains(t, text, `resourceNames: [kube-events-kube-events], verbs: [get, update]`)
				assert.Contains(t, text, `namespace observability`)
				a.depose()
				b.elect()
				b.awaitRecords(t, "one+1", "two+1")

				api.RefuseConfigMaps(nil)
				time.Sleep(time.Minute)
				assert.False(t, b.host.fails())
				assert.Equal(t, api.Version(), published(api))
			})
		})
	}
}

func TestAnOrderlyStopRepeatsNothing(t *testing.T) {
	for _, config := range []string{"start_at: beginning", "{start_at: beginning, dedup_interval: 1h}"} {
		t.Run(config, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				a, b := newReplicas(t, api, nil, config)
				a.elect()
				api.Put(eventNamed("one", 1))
				settle()
				api.Put(eventNamed("one", 4))
				settle()
				a.stop()
				assert.Equal(t, []string{"one+1", "one+3"}, a.logs.names())
				assert.Equal(t, int64(4), a.sum(), "the last sum is emitted")
				b.elect()
				settle()
				assert.Empty(t, b.logs.names())
				api.Put(eventNamed("one", 5))
				b.awaitRecords(t, "one+1")
			})
		})
	}
}

func TestTheEndOfATermKeepsWhatTheWindowsHold(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, dedup_interval: 1h}"
		a, b := newReplicas(t, api, nil, config)
		a.elect()
		api.Put(eventNamed("one", 1))
		settle()
		api.Put(eventNamed("one", 4))
		settle()
		a.depose()
		assert.Equal(t, []string{"one+1"}, a.logs.names())
		settle()
		b.elect()
		b.awaitRecords(t, "one+3")
		b.depose()
		settle()
		a.elect()
		a.awaitRecords(t, "one+1")
	})
}

func TestAProcessThatLeadsAgainDeliversWhatItsWindowsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, nil, "{start_at: beginning, dedup_interval: 1h}")
		a.elect()
		api.Put(eventNamed("one", 1))
		settle()
		api.Put(eventNamed("one", 4))
		settle()
		a.depose()
		settle()
		a.elect()
		a.awaitRecords(t, "one+1", "one+3")
	})
}

func TestAProcessThatFindsAPositionStartsExactlyThere(t *testing.T) {
	for _, startAt := range []string{"start_at: end", "start_at: beginning"} {
		t.Run(startAt, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				a := newReplica(t, api, nil, "start_at: beginning")
				a.electAndDeliver(t, api, "one")
				a.stop()
				for i := range 3 {
					api.Put(eventNamed("one", int32(i+2)))
				}
				api.Put(eventNamed("two", 2))
				began := len(api.Requests())
				b := newReplica(t, api, nil, startAt)
				settle()
				assert.Equal(t, []string{"exact", "watch"}, api.Requests()[began:])
				b.elect()
				b.awaitRecords(t, "one+1", "one+1", "one+1", "two+2")
				assert.Equal(t, api.Version(), published(api))
			})
		})
	}
}

func TestAPositionThatIsCompactedIsWhereTheListDivides(t *testing.T) {
	for _, startAt := range []string{"start_at: end", "start_at: beginning"} {
		t.Run(startAt, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				a := newReplica(t, api, nil, "start_at: beginning")
				a.elect()
				api.Put(eventNamed("one", 1))
				api.Put(eventNamed("old", 5))
				settle()
				a.stop()
				api.Put(eventNamed("one", 4))
				api.Put(eventNamed("two", 2))
				api.Compact()
				b := newReplica(t, api, nil, startAt)
				b.elect()
				settle()
				assert.ElementsMatch(t, []string{"one+4", "two+2"}, b.logs.names(), "the counts at the position are not known")
			})
		})
	}
}

func TestWithoutAPositionStartAtDecides(t *testing.T) {
	for startAt, want := range map[string][]string{"end": nil, "beginning": {"one+3"}} {
		t.Run(startAt, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Put(eventNamed("one", 3))
				a := newReplica(t, api, nil, "start_at: "+startAt)
				a.elect()
				a.awaitRecords(t, want...)
				assert.Equal(t, api.Version(), published(api))
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
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Put(eventNamed("one", 1))
				publish(api, position[0], position[1])
				a, b := newReplicas(t, api, nil, "start_at: beginning")
				settle()
				api.Put(eventNamed("two", 1))
				a.elect()
				eventually(t, func() bool { return slices.Contains(a.logs.names(), "two+1") })
				settle()
				assert.Equal(t, api.Version(), published(api))
				assert.Equal(t, "cluster-uid", api.ConfigMap(leaseNamespace, positionName)["cluster"])
				a.stop()
				b.electAndDeliver(t, api, "three")
			})
		})
	}
}

func TestAPositionThatAFormerLeaderPublishesAfterARestoreIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		b := newReplica(t, api, nil, "start_at: beginning")
		api.Put(eventNamed("one", 1))
		backup := api.Version()
		for range 20 {
			api.Put(eventNamed("one", 1))
		}
		publish(api, "cluster-uid", api.Version())
		settle()
		api.Restore(backup)
		api.Cut()
		settle()
		publish(api, "cluster-uid", "5000") // By a leader that has not noticed the restore.
		b.elect()
		settle()
		api.Put(eventNamed("two", 1))
		settle()
		assert.Contains(t, b.logs.names(), "two+1")
		assert.Equal(t, api.Version(), published(api))
	})
}

func TestARestoredEtcdMakesThePositionVoid(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := newReplicas(t, api, nil, "start_at: beginning")
		a.electAndDeliver(t, api, "one")
		backup := api.Version()
		for i := range 50 {
			api.Put(eventNamed("one", int32(i+2)))
		}
		eventually(t, func() bool { return occurrences(a.logs.records()...) == 51 })
		settle()
		api.Restore(backup)
		api.Cut()
		settle()
		api.Put(eventNamed("two", 1))
		settle()
		assert.Contains(t, a.logs.names(), "two+1")
		assert.Equal(t, api.Version(), published(api), "it is lower than before")
		a.depose()
		b.electAndDeliver(t, api, "three")
	})
}

func TestLeadershipIsLostAndRegainedAnyNumberOfTimes(t *testing.T) {
	for name, shared := range map[string]bool{"without storage": false, "with shared storage": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				var on *disk
				if shared {
					on = newDisk()
				}
				a, b := newReplicas(t, api, on, "start_at: beginning")
				leader, other := a, b
				var want []string
				for round := range 6 {
					leader.elect()
					name := fmt.Sprint("e", round)
					api.Put(eventNamed(name, 1))
					want = append(want, name+"+1")
					eventually(t, func() bool { return slices.Contains(leader.logs.names(), name+"+1") })
					settle()
					leader.depose()
					leader, other = other, leader
				}
				assert.ElementsMatch(t, want, slices.Concat(leader.logs.names(), other.logs.names()), "each once")
			})
		})
	}
}

func TestASumBelongsToOneTermWithoutStorage(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, nil, "start_at: beginning")
		a.elect()
		api.Put(eventNamed("one", 2))
		a.awaitSum(t, 2)
		a.depose()
		emitted := a.metrics.DataPointCount()
		time.Sleep(time.Minute)
		assert.Equal(t, emitted, a.metrics.DataPointCount(), "a standby emits none")
		again := time.Now()
		a.elect()
		api.Put(eventNamed("one", 3))
		a.awaitSum(t, 1)
		assert.False(t, a.starts()[len(a.starts())-1].Before(again), "with a new start time")
	})
}

func TestTheMetricGoesOnAfterAFailoverWithSharedStorage(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		a, b := newReplicas(t, api, on, "start_at: beginning")
		a.elect()
		api.Put(eventNamed("one", 2))
		a.awaitRecords(t, "one+2")
		a.depose()
		api.Put(eventNamed("one", 5))
		b.elect()
		b.awaitSum(t, 5)
		b.awaitRecords(t, "one+3")
		assert.Equal(t, a.starts(), b.starts())
		assert.Empty(t, published(api), "with storage, the checkpoint has the position")
	})
}

func TestWhatALeaderCouldNotDeliverTheNextOneDeliversByteForByte(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		a, b := newReplicas(t, api, on, "start_at: beginning")
		var saved [][]byte
		a.logs.onAttempt(func() {
			for key, value := range on.content() {
				if strings.HasPrefix(key, "o/") {
					request, err := s2.Decode(nil, value[:len(value)-4]) // Without the checksum.
					assert.NoError(t, err)
					saved = append(saved, request)
				}
			}
		})
		a.logs.reject(errors.New("the queue is full"))
		a.elect()
		api.Put(eventNamed("one", 1))
		eventually(t, func() bool { return a.logs.attempted() > 0 })
		a.depose()
		api.Put(eventNamed("one", 4))
		b.elect()
		b.awaitRecords(t, "one+1", "one+3")
		assert.Equal(t, saved[0], b.logs.requests()[0])
	})
}

func TestAProcessWithoutACheckpointOfItsPredecessorSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, newDisk(), "")
		a.elect()
		settle()
		assert.Equal(t, 1, a.log.FilterMessageSnippet("the replicas do not share this storage").Len())
	})
}

func TestALeaderThatIsDeposedWhileThePipelineRejectsEmitsNoMore(t *testing.T) {
	for name, shared := range map[string]bool{"without storage": false, "with shared storage": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				var on *disk
				if shared {
					on = newDisk()
				}
				a := newReplica(t, api, on, "start_at: beginning")
				a.logs.reject(errors.New("the queue is full"))
				a.elect()
				settle()
				api.Put(eventNamed("one", 1))
				time.Sleep(2 * time.Minute)
				assert.True(t, a.host.fails())
				a.depose()
				assert.False(t, a.host.fails(), "a standby does not deliver, so its pipeline does not fail")
				attempts := a.logs.attempted()
				a.logs.reject(nil)
				api.Put(eventNamed("two", 1))
				time.Sleep(time.Minute)
				assert.Equal(t, attempts, a.logs.attempted())
				a.elect()
				a.awaitRecords(t, "one+1", "two+1")
			})
		})
	}
}

func TestAStartOfLeadingWhoseContextHasEndedIsIgnored(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, nil, "start_at: beginning")
		api.Put(eventNamed("one", 1))
		settle()
		a.depose()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		a.electUntil(ended)
		settle()
		assert.Empty(t, a.logs.names())
		a.elect()
		a.awaitRecords(t, "one+1")
	})
}

// The elector calls its users one after the other, and waits for each.
func TestTheEndOfATermEndsTheWorkOfAllReceiversOfTheElectorAtOnce(t *testing.T) {
	const long = 12 * time.Second
	for name, tt := range map[string]struct {
		storage bool
		slow    func(v *vote, first *process) // makes the first call of the elector take long
	}{
		"a receiver takes long": {slow: func(_ *vote, first *process) {
			first.logs.onAttempt(func() { time.Sleep(long) })
		}},
		"a receiver with storage takes long": {storage: true, slow: func(_ *vote, first *process) {
			first.logs.onAttempt(func() { time.Sleep(long) })
		}},
		"another user takes long": {slow: func(v *vote, _ *process) {
			v.stopped = slices.Insert(v.stopped, 0, func() { time.Sleep(long) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				v := newVote()
				var receivers []*process
				for _, name := range []string{"first", "second"} {
					o := options{config: "start_at: beginning", name: name, vote: v}
					if tt.storage {
						o.disk = newDisk()
					}
					receivers = append(receivers, launch(t, api, o))
				}
				leads, ended := context.WithCancel(t.Context())
				v.electUntil(leads)
				api.Put(eventNamed("before", 1))
				receivers[1].awaitRecords(t, "before+1")
				tt.slow(v, receivers[0])
				api.Put(eventNamed("last", 1))
				settle()

				ended() // As client-go does before it calls the elector.
				deposed := make(chan struct{})
				go func() {
					defer close(deposed)
					v.depose()
				}()
				time.Sleep(time.Second)
				for i := range 5 {
					api.Put(eventNamed(fmt.Sprintf("after%d", i), 1))
					time.Sleep(time.Second)
				}
				assert.Equal(t, []string{"before+1", "last+1"}, receivers[1].logs.names())
				<-deposed
			})
		})
	}
}

func TestAReceiverThatStartsWhileAnotherOneOfItsElectorLeadsLeadsToo(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		v := newVote()
		first := launch(t, api, options{config: "start_at: beginning", name: "first", vote: v})
		v.elect()
		settle()
		second := launch(t, api, options{config: "start_at: beginning", name: "second", vote: v})
		api.Put(eventNamed("one", 1))
		second.awaitRecords(t, "one+1")
		first.stop()
		api.Put(eventNamed("two", 1))
		second.awaitRecords(t, "one+1", "two+1")
		again := launch(t, api, options{config: "start_at: beginning", name: "first", vote: v})
		api.Put(eventNamed("three", 1))
		again.awaitRecords(t, "two+1", "three+1")
		v.depose()
		api.Put(eventNamed("four", 1))
		settle()
		assert.Equal(t, []string{"two+1", "three+1"}, again.logs.names())
		assert.Equal(t, []string{"one+1", "two+1", "three+1"}, second.logs.names())
	})
}

func TestAPausedLeaderEmitsNothingBeforeItKnowsWhetherItLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a := newReplica(t, api, nil, "start_at: beginning")
		a.elect()
		settle()
		of := receiverOf(t, a)
		of.elector.leadership.NoteBeat(time.Now().Add(time.Minute)) // As if it had not run for a minute.
		paused := time.Now()
		api.Put(eventNamed("one", 1))
		time.Sleep(time.Minute + 10*time.Second)
		assert.Empty(t, a.logs.names())
		eventually(t, func() bool { return len(a.logs.names()) == 1 })
		assert.Less(t, time.Since(paused), 2*time.Minute)
	})
}

// receiverOf is the receiver of a process.
func receiverOf(t *testing.T, p *process) *eventsReceiver {
	t.Helper()
	receivers.mu.Lock()
	defer receivers.mu.Unlock()
	for _, r := range receivers.byConfig {
		if r.logs == p.logs {
			return r
		}
	}
	require.Fail(t, "it does not run")
	return nil
}

func TestALeaderElectorThatIsNotThere(t *testing.T) {
	api := apitest.New(t)
	extensions := map[component.ID]component.Component{component.MustNewID("vote"): &vote{}, component.MustNewID("disk"): newDisk()}
	for id, want := range map[string]string{
		"gone": `k8s_leader_elector: "gone" is not among the extensions that run; add it`,
		"disk": `k8s_leader_elector: "disk" is not a leader elector`,
	} {
		cfg := configFor(t, api.URL, "")
		elector := component.MustNewID(id)
		cfg.LeaderElector = &elector
		r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, r.Start(t.Context(), &host{extensions: extensions}), want)
		require.NoError(t, r.Shutdown(t.Context()))
	}
}

func TestAnElectorWhoseLeaseIsNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		p := launch(t, api, options{config: "start_at: beginning", vote: &vote{}})
		api.Put(eventNamed("before", 1))
		time.Sleep(time.Minute)
		assert.Equal(t, 1, p.log.FilterMessageSnippet("Cannot read or publish the position").Len())
		assert.Empty(t, p.logs.names(), "a standby emits nothing, and drops nothing")
		p.elect()
		api.Put(eventNamed("one", 1))
		p.awaitRecords(t, "before+1", "one+1")
	})
}

func TestAnElectorThatReachesTheAPIServerInItsOwnWay(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		p := newReplica(t, api, nil, "start_at: beginning")
		p.elect()
		api.Put(eventNamed("one", 2))
		p.awaitRecords(t, "one+2")
		assert.Equal(t, 1, p.log.FilterMessageSnippet("leader election Lease").FilterLevelExact(zap.WarnLevel).Len())
	})
}

func TestAPositionThatCannotBeDecodedDropsNothingAndIsNotOverwritten(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		garbage := map[string]string{"cluster": "cluster-uid", "streams": "12"}
		api.PutConfigMap(leaseNamespace, positionName, garbage)
		a := newReplica(t, api, nil, "start_at: beginning")
		a.electAndDeliver(t, api, "one")
		_, text := a.host.status()
		assert.Contains(t, text, "delete the ConfigMap")
		assert.Equal(t, garbage, api.ConfigMap(leaseNamespace, positionName))
	})
}

func TestEachNamespaceHasItsOwnPosition(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, namespaces: [ns, other]}"
		other := func(name string, count int32) {
			ev := eventNamed(name, count)
			ev.Namespace = "other"
			api.Put(ev)
		}
		a, b := newReplicas(t, api, nil, config)
		a.elect()
		settle()
		api.Put(eventNamed("one", 1))
		settle()
		api.RefuseConfigMaps(func(verb string) int {
			if verb == "get" {
				return 0
			}
			return http.StatusServiceUnavailable
		})
		other("two", 1)
		a.awaitRecords(t, "one+1", "two+1")
		b.elect()
		b.awaitRecords(t, "two+1")
	})
}

func TestWithAnotherCoverageANewNamespaceBeginsAsStartAtSays(t *testing.T) {
	for startAt, want := range map[string][]string{"end": {"one+1"}, "beginning": {"one+1", "two+5"}} {
		t.Run(startAt, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				other := eventNamed("two", 5)
				other.Namespace = "other"
				api.Put(other)
				api.Put(eventNamed("one", 1))
				a := newReplica(t, api, nil, "{start_at: end, namespaces: [ns]}")
				a.elect()
				settle()
				a.stop()
				api.Put(eventNamed("one", 2))
				b := newReplica(t, api, nil, "{namespaces: [ns, other], start_at: "+startAt+"}")
				b.elect()
				settle()
				assert.ElementsMatch(t, want, b.logs.names())
			})
		})
	}
}

func TestWhileTheFirstListIsDeliveredNoPositionIsPublished(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		for i := range 3 * 1000 {
			api.Put(eventNamed(fmt.Sprintf("e%05d", i), 1))
		}
		a := newReplica(t, api, nil, "start_at: beginning")
		a.logs.onAttempt(func() {
			if a.logs.attempted() == 2 {
				a.logs.reject(errors.New("the queue is full"))
			}
		})
		a.elect()
		settle()
		assert.Len(t, a.logs.requests(), 2)
		assert.Nil(t, api.ConfigMap(leaseNamespace, positionName))
		b := newReplica(t, api, nil, "start_at: beginning")
		a.depose()
		b.elect()
		eventually(t, func() bool { return b.logs.LogRecordCount() == 3*1000 })
		time.Sleep(time.Minute)
		assert.Equal(t, api.Version(), published(api))
	})
}

func TestALeaderWithWindowsThatDiesRepeatsAtMostOneInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, dedup_interval: 1m}"
		a, b := newReplicas(t, api, nil, config)
		a.elect()
		for i := range 40 {
			api.Put(eventNamed("one", int32(i+1)))
			time.Sleep(10 * time.Second)
		}
		delivered := occurrences(a.logs.records()...)
		b.elect() // a is dead, as far as anybody knows.
		eventually(t, func() bool { return len(b.logs.names()) > 1 })
		total := delivered + occurrences(b.logs.records()...)
		assert.GreaterOrEqual(t, total, int64(40))
		assert.LessOrEqual(t, total, int64(40+6))
	})
}

func TestWhileItIsNotCertainWhoLeadsNothingIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		a := newReplica(t, api, on, "start_at: beginning")
		a.electAndDeliver(t, api, "one")
		on.fail(nil, errDisk)
		api.Put(eventNamed("two", 1))
		a.awaitRecords(t, "one+1", "two+1")
		receiverOf(t, a).elector.leadership.NoteBeat(time.Now().Add(time.Minute)) // As if it had not run for a minute.
		synctest.Wait()
		on.fail(nil, nil)
		kept := on.content()
		time.Sleep(time.Minute)
		assert.Equal(t, kept, on.content())
		a.awaitSum(t, 2)
	})
}

// A standby whose elector's Lease is not known must lose nothing.
func TestAStandbyWhoseLeaseIsNotKnownLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		p := launch(t, api, options{config: "start_at: beginning", vote: &vote{}})
		settle()
		api.Put(eventNamed("one", 1))
		settle()
		p.elect()
		settle()
		api.Put(eventNamed("two", 1))
		settle()
		assert.Equal(t, []string{"one+1", "two+1"}, p.logs.names())
		p.depose()
		api.Put(eventNamed("three", 1))
		settle()
		p.elect()
		settle()
		assert.Equal(t, []string{"one+1", "two+1", "three+1"}, p.logs.names())
	})
}

// An orderly stop of a leader whose last delivery takes longer than a pause of the process.
func TestALeaderThatStopsDuringASlowDeliveryRepeatsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		d := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: d, vote: newVote()})
		p.elect()
		settle()
		api.Put(eventNamed("zero", 1))
		settle()
		var slow atomic.Bool
		slow.Store(true)
		began := make(chan struct{})
		p.logs.onAttempt(func() {
			if slow.CompareAndSwap(true, false) {
				close(began)
				time.Sleep(4 * time.Second)
			}
		})
		api.Put(eventNamed("one", 1))
		<-began
		p.stop()
		assert.Equal(t, []string{"zero+1", "one+1"}, p.logs.names())
		assert.Equal(t, int64(2), p.sum())
		next := newReplica(t, api, d, "start_at: beginning")
		next.elect()
		settle()
		assert.Empty(t, next.logs.names())
	})
}

// leaderThatHoldsALostEvent returns a leader whose window holds count 2 of the event "one", and its
// standby. Etcd was restored to a backup of before.
func leaderThatHoldsALostEvent(t *testing.T, api *apitest.Server) (a, b *process) {
	t.Helper()
	a, b = newReplicas(t, api, nil, "{start_at: beginning, dedup_interval: 1m}")
	a.electAndDeliver(t, api, "one")
	backup := api.Version()
	for range 100 {
		api.Put(eventNamed("another", 1)) // So that the versions from here on are far above the backup's.
	}
	api.Put(eventNamed("one", 2))
	settle()
	api.Restore(backup)
	api.Cut()
	settle()
	return a, b
}

// Occurrences of after a restore, in a window that held occurrences of before it.
func TestAWindowThatOutlivesARestoreHoldsThePositionBack(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		_, b := leaderThatHoldsALostEvent(t, api)
		api.Put(eventNamed("one", 4))
		settle()
		b.elect() // a is dead, as far as anybody knows.
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"one+3"}, b.logs.names(), "three above the backup")
	})
}

// The leader holds an event of the lost history in a window when its term ends.
func TestAStandbyDoesNotWaitForAPositionInTheLostHistory(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := leaderThatHoldsALostEvent(t, api)
		a.depose()
		b.elect()
		for i := range 10 {
			api.Put(eventNamed(fmt.Sprint("since-", i), 1))
			settle()
		}
		assert.Zero(t, receiverOf(t, a).health.Waiting())
	})
}

// A standby whose queue is stalled has no connection on which it could notice a restore.
func TestAStandbyWhoseQueueIsStalledNoticesARestore(t *testing.T) {
	for name, publishes := range map[string]bool{"the leader is idle": false, "the leader publishes all the time": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				a, b := newReplicas(t, api, nil, "start_at: beginning")
				a.electAndDeliver(t, api, "before")
				backup := api.Version()
				a.logs.reject(errors.New("the queue is full"))
				for i := range 200 {
					api.Put(eventNamed("lost", int32(i+1)))
				}
				time.Sleep(2 * time.Minute)
				api.Restore(backup)
				api.Cut()
				a.logs.reject(nil)
				for i := range 60 {
					if publishes {
						api.Put(eventNamed("since", int32(i+1)))
					}
					time.Sleep(2 * time.Second)
				}
				assert.Len(t, b.logged("known_version"), 1)
				api.Put(eventNamed("last", 1))
				settle()
				assert.Zero(t, receiverOf(t, b).health.Waiting(), "the leader has delivered it")
			})
		})
	}
}

// The leader's pipeline rejects everything over a restore, so its streams have no connection, and it
// does not ask. When the pipeline accepts again, the versions have grown above those that it knows.
func TestALeaderLearnsOfARestoreFromItsStandby(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := newReplicas(t, api, nil, "start_at: beginning")
		a.electAndDeliver(t, api, "before")
		backup := api.Version()
		a.logs.reject(errors.New("the queue is full"))
		for i := range 20 {
			api.Put(eventNamed("lost", int32(i+1)))
			time.Sleep(time.Second) // So that most of them wait for the batch of the first.
		}
		time.Sleep(2 * time.Minute)
		api.Restore(backup)
		api.Cut()
		time.Sleep(2 * time.Minute)
		for i := range 30 {
			api.Put(eventNamed("since-"+strconv.Itoa(i), 1))
		}
		a.logs.reject(nil)
		time.Sleep(time.Minute)
		api.Put(eventNamed("last", 1))
		time.Sleep(time.Minute)
		assert.Empty(t, a.logged("known_version"))
		assert.EqualValues(t, 1+20+30+1, occurrences(a.logs.records()...), "also those with versions that it knew")
		assert.Zero(t, receiverOf(t, b).health.Waiting())
		a.depose()
		b.elect()
		settle()
		assert.Empty(t, b.logs.names())
	})
}

// Nobody has delivered what the standby holds: one count that the backup has, too, and two of the
// history that is lost. Nobody can know what the leader has delivered of these.
func TestANewLeaderDeliversWhatTheRestoredClusterHas(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := newReplicas(t, api, nil, "start_at: beginning")
		a.electAndDeliver(t, api, "one")
		a.logs.reject(errors.New("the queue is full"))
		api.Put(eventNamed("one", 2))
		settle()
		backup := api.Version()
		api.Put(eventNamed("one", 3))
		api.Put(eventNamed("one", 5))
		settle()
		api.Restore(backup)
		api.Cut()
		settle()
		a.stop()
		b.elect()
		settle()
		assert.Equal(t, []string{"one+1"}, b.logs.names())
	})
}

// The event is older than the backup. The lagging leader delivers it after the restore.
func TestAStandbyRepeatsNothingThatTheLeaderDeliveredAfterARestore(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := newReplicas(t, api, nil, "start_at: beginning")
		a.electAndDeliver(t, api, "before")
		a.logs.reject(errors.New("the queue is full"))
		api.Put(eventNamed("one", 1))
		settle()
		backup := api.Version()
		api.Put(eventNamed("lost", 1))
		settle()
		api.Restore(backup)
		api.Cut()
		time.Sleep(15 * time.Second)
		a.logs.reject(nil)
		time.Sleep(2 * time.Minute)
		for range 5 {
			api.Put(eventNamed("since", 1))
		}
		settle()
		assert.Equal(t, api.Version(), published(api))
		a.depose()
		b.elect()
		settle()
		assert.NotContains(t, b.logs.names(), "one+1", "a has delivered it and published more")
	})
}

// A leader that has not noticed a restore publishes a position that is above the cluster's version.
// The version cannot be read when b is elected.
func TestAVoidPositionDropsNothingIfTheVersionCannotBeReadAtTheElection(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		b := newReplica(t, api, nil, "start_at: beginning")
		settle()
		publish(api, "cluster-uid", "5000") // By a leader that has not noticed the restore.
		settle()
		api.Refuse(func(r *http.Request) int {
			if strings.Contains(r.URL.RawQuery, "kubeeventsreceiver-resource-version") {
				return http.StatusTooManyRequests
			}
			return 0
		})
		b.elect()
		time.Sleep(15 * time.Second) // It no longer asks.
		api.Refuse(nil)
		api.Put(eventNamed("two", 1))
		settle()
		time.Sleep(time.Hour)
		api.Put(eventNamed("three", 1))
		settle()
		assert.Subset(t, b.logs.names(), []string{"two+1", "three+1"})
	})
}

// The API server answers no request for events when b is elected, so b has not seen all that the
// position has. Nothing was restored.
func TestALeaderThatCouldNotReadTheVersionAtTheElectionPublishes(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		b, c := newReplicas(t, api, nil, "start_at: beginning")
		settle()
		api.Refuse(func(*http.Request) int { return http.StatusServiceUnavailable })
		api.Cut()
		api.Put(eventNamed("one", 1))
		publish(api, "cluster-uid", api.Version()) // By the last leader.
		settle()
		b.elect()
		time.Sleep(15 * time.Second) // It no longer asks.
		api.Refuse(nil)
		time.Sleep(time.Minute)
		api.Put(eventNamed("two", 1))
		settle()
		assert.Contains(t, b.logs.names(), "two+1")
		assert.Equal(t, api.Version(), published(api))
		b.depose()
		c.elect()
		settle()
		assert.Empty(t, c.logs.names())
	})
}
