// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/filter"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/progress"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/series"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// waitsOf returns the sum of each cause's waits, and how many there were.
func waitsOf(t *testing.T, telemetry *componenttest.Telemetry) (sums map[health.WaitCause]time.Duration, counts map[health.WaitCause]uint64) {
	t.Helper()
	metric, err := telemetry.GetMetric("otelcol_kube_events_batch_wait")
	require.NoError(t, err)
	sums, counts = map[health.WaitCause]time.Duration{}, map[health.WaitCause]uint64{}
	for _, p := range metric.Data.(metricdata.Histogram[float64]).DataPoints {
		name, _ := p.Attributes.Value("cause")
		cause, ok := metadata.MapAttributeWaitCause[name.AsString()]
		require.True(t, ok, name.AsString())
		sums[cause] = time.Duration(p.Sum * float64(time.Second)).Round(time.Microsecond)
		counts[cause] = p.Count
	}
	return sums, counts
}

// waitingProcess is a loop of which nothing runs, whose steps take no time in a bubble.
func waitingProcess(t *testing.T, telemetry *componenttest.Telemetry) *Loop {
	t.Helper()
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	observer, err := health.New(settings)
	require.NoError(t, err)
	extractor, err := extract.New(extract.Settings{})
	require.NoError(t, err)
	api := apitest.NewInMemory(t)
	client, err := kubeclient.Events(&rest.Config{Host: api.URL, Transport: api})
	require.NoError(t, err)
	return New(Settings{
		Streams: []string{""}, CollectionInterval: 30 * time.Second, FromBeginning: true,
		Series: series.Settings{Max: 10_000, TTL: time.Hour},
		Retry:  configretry.BackOffConfig{Enabled: true, InitialInterval: time.Second, Multiplier: 1, MaxInterval: time.Second},
		Logger: settings.Logger, Logs: &consumertest.LogsSink{}, Metrics: &consumertest.MetricsSink{},
		Health: observer, Owners: owners.New(nil, extractor), Converter: logrecord.Converter{ScopeName: metadata.ScopeName},
		Client: client, Leadership: election.AlwaysLeads(),
	})
}

// slowOwners looks owners up at an API server that answers after lookup_timeout.
func slowOwners(t *testing.T) *owners.Owners {
	t.Helper()
	api := apitest.NewObjectsInMemory()
	api.SetDelay(time.Minute)
	slow, err := resolver.New(&rest.Config{Host: "http://cluster", Transport: api, QPS: -1},
		resolver.Settings{MaxDepth: 10, LookupTimeout: 2 * time.Second, CacheSize: 100, CacheTTL: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() {
		slow.Close()
		time.Sleep(time.Hour) // The API server's answers that nobody waits for.
	})
	extractor, err := extract.New(extract.Settings{})
	require.NoError(t, err)
	return owners.New(slow, extractor)
}

func aboutPod(i int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("e", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: fmt.Sprint(i + 1)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "pod"},
		Count:          1, Reason: "Started", Type: "Normal",
	}
}

// putEvent puts the i-th event into the queue, as a stream does.
func (s *session) putEvent(t *testing.T, i int) {
	t.Helper()
	ev := aboutPod(i)
	change := watch.Change{Kind: watch.KindChanged, Event: ev, SeenAt: time.Now(), ResourceVersion: ev.ResourceVersion}
	assert.NoError(t, s.intake.queue.Put(t.Context(), change))
}

func TestEachCauseOfWaitingHasItsTime(t *testing.T) {
	pipelineThat := func(consume func(attempt int) error) consumer.Logs {
		attempt := 0
		logs, _ := consumer.NewLogs(func(context.Context, plog.Logs) error {
			attempt++
			return consume(attempt)
		})
		return logs
	}
	const batches = 3
	for name, tt := range map[string]struct {
		slow  func(*testing.T, *Loop)
		comes time.Duration // how long before its batch a change comes
		want  map[health.WaitCause]time.Duration
	}{
		"nothing is slow": {
			slow: func(*testing.T, *Loop) {},
			want: map[health.WaitCause]time.Duration{health.WaitCauseGathering: batches * watch.ReadTogether},
		},
		"the loop delivers the batch before": {
			slow: func(*testing.T, *Loop) {}, comes: time.Second,
			want: map[health.WaitCause]time.Duration{},
		},
		"lookups that time out": {
			slow: func(t *testing.T, p *Loop) { p.Owners = slowOwners(t) },
			want: map[health.WaitCause]time.Duration{health.WaitCauseGathering: batches * watch.ReadTogether, health.WaitCauseLookups: 2 * time.Second},
		},
		"a pipeline that takes 1 s": {
			slow: func(_ *testing.T, p *Loop) {
				p.Logs = pipelineThat(func(int) error { time.Sleep(time.Second); return nil })
			},
			want: map[health.WaitCause]time.Duration{health.WaitCauseGathering: batches * watch.ReadTogether, health.WaitCauseDelivering: batches * time.Second},
		},
		"a pipeline that takes 100 ms to reject every other attempt, with retries after 1 s": {
			slow: func(_ *testing.T, p *Loop) {
				p.Logs = pipelineThat(func(attempt int) error {
					if attempt%2 == 1 {
						time.Sleep(100 * time.Millisecond)
						return errors.New("the queue is full")
					}
					return nil
				})
			},
			want: map[health.WaitCause]time.Duration{health.WaitCauseGathering: batches * watch.ReadTogether, health.WaitCauseDelivering: batches * 1100 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				telemetry := componenttest.NewTelemetry()
				p := waitingProcess(t, telemetry)
				tt.slow(t, p)
				s := p.openToTest()
				for i := range batches {
					s.putEvent(t, i)
					time.Sleep(tt.comes)
					s.turn(t.Context(), t.Context())
				}
				sums, counts := waitsOf(t, telemetry)
				for _, cause := range []health.WaitCause{health.WaitCauseGathering, health.WaitCauseLookups, health.WaitCauseDelivering} {
					assert.Equal(t, tt.want[cause], sums[cause], cause)
					assert.EqualValues(t, batches, counts[cause], "%s: one measurement for each batch", cause)
				}
			})
		})
	}
}

// openToTest makes a session without what it would wait for at its start.
func (l *Loop) openToTest() *session {
	s := l.newSession(semconv.Cluster{}, progress.Nowhere{}, l.newLedger())
	return s
}

// The metrics of the receiver show how much the filters exclude.
func TestWhatTheFiltersExcludeIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		p := waitingProcess(t, telemetry)
		p.Filter = filter.Filter{ExcludeReasons: []string{"Started"}}
		s := p.openToTest()
		kept := aboutPod(3)
		kept.Reason = "Killing"
		s.account(&batch{changes: []watch.Change{
			{Kind: watch.KindListBegan}, {Kind: watch.KindListed, Event: aboutPod(1)}, {Kind: watch.KindListEnded},
			{Kind: watch.KindChanged, Event: aboutPod(2)}, {Kind: watch.KindChanged, Event: kept},
		}})
		for name, want := range map[string]int64{"received": 3, "filtered": 2} {
			metric, err := telemetry.GetMetric("otelcol_kube_events_" + name)
			require.NoError(t, err)
			assert.Equal(t, want, metric.Data.(metricdata.Sum[int64]).DataPoints[0].Value, name)
		}
	})
}

// Otherwise the mean of what a batch waits for would be too low.
func TestABatchWithoutRecordsWaitsForNoLookupsAndNoDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		p := waitingProcess(t, telemetry)
		p.Filter = filter.Filter{ExcludeReasons: []string{"Started"}}
		s := p.openToTest()
		s.putEvent(t, 1)
		s.turn(t.Context(), t.Context())
		_, counts := waitsOf(t, telemetry)
		assert.Equal(t, map[health.WaitCause]uint64{health.WaitCauseGathering: 1}, counts)
	})
}

// A batch has what was read together, and does not wait if the loop was busy meanwhile.
func TestHowLongABatchGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waitingProcess(t, componenttest.NewTelemetry()).openToTest()
		stop, cancel := context.WithCancel(t.Context())
		next := func() (changes int, waited time.Duration) {
			began := time.Now()
			changes = len(s.intake.take(stop, began.Add(time.Hour)).changes)
			return changes, time.Since(began)
		}
		putting := func(n int, every time.Duration) {
			go func() {
				for i := range n {
					s.putEvent(t, i)
					time.Sleep(every)
				}
			}()
			synctest.Wait()
		}
		expect := func(changes int, waited time.Duration) {
			t.Helper()
			gotChanges, gotWaited := next()
			assert.Equal(t, changes, gotChanges)
			assert.Equal(t, waited, gotWaited)
		}
		putting(8, 600*time.Microsecond)
		expect(4, watch.ReadTogether)
		time.Sleep(time.Second)
		expect(4, 0)
		putting(3*batchChanges, 0)
		expect(batchChanges, watch.ReadTogether)
		expect(batchChanges, 0)
		expect(batchChanges, 0)
		putting(1, 0)
		cancel()
		expect(1, 0)
	})
}

// The queue can have several batches at the end.
func TestTheLastBatchHasAllThatTheQueueHas(t *testing.T) {
	s := waitingProcess(t, componenttest.NewTelemetry()).openToTest()
	const changes = 2*batchChanges + 1
	for i := range changes {
		s.putEvent(t, i)
	}
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	b := s.intake.take(stop, s.nextTurn())
	assert.True(t, b.last)
	assert.Len(t, b.changes, changes)
	s.intake.release()
	assert.Nil(t, s.intake.batch.changes[:changes][0].Event, "no event stays in memory")
}

func TestDeletedEventsAreForgottenWithoutMoreChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waitingProcess(t, componenttest.NewTelemetry()).openToTest()
		const events = ledger.MaxDeleted + 10_000
		changes := []watch.Change{{Kind: watch.KindListBegan}}
		for i := range events {
			changes = append(changes, watch.Change{Kind: watch.KindListed, Event: aboutPod(i)})
		}
		changes = append(changes, watch.Change{Kind: watch.KindListEnded}, watch.Change{Kind: watch.KindListBegan}, watch.Change{Kind: watch.KindListEnded})
		for i := range changes {
			changes[i].SeenAt = time.Now()
		}
		s.intake.batch.changes = changes
		s.account(&s.intake.batch)
		for turns := 0; time.Until(s.nextTurn()) <= 0; turns++ {
			require.Less(t, turns, 100)
			s.turn(t.Context(), t.Context())
		}
		assert.Equal(t, ledger.MaxDeleted, s.ledger.Len())
	})
}

// A list is in the order of names: an event that is still to come may have a lower version.
func TestAListThatIsNotCompleteReachesNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waitingProcess(t, componenttest.NewTelemetry()).openToTest()
		take := func(changes ...watch.Change) ledger.Versions {
			b := &batch{changes: changes}
			s.account(b)
			require.True(t, s.emit(t.Context(), t.Context(), b))
			return s.ledger.Versions()
		}
		began, ended := watch.Change{Kind: watch.KindListBegan}, watch.Change{Kind: watch.KindListEnded, ResourceVersion: "9"}
		assert.Empty(t, take(began, watch.Change{Kind: watch.KindListed, Event: aboutPod(5)}))
		assert.Equal(t, ledger.Versions{"": 9}, take(ended))
		assert.Equal(t, ledger.Versions{"": 9}, take(began, watch.Change{Kind: watch.KindListed, Event: aboutPod(20)}))
	})
}
