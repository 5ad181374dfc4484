// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/position"
)

// load is what a session does with events that come at a steady rate. A bubble's clock moves only
// while all wait, so processor time does not count, and the times are exact.
type load struct {
	storage  time.Duration // how long a write takes
	pipeline time.Duration // how long a request takes

	latencies  []time.Duration // from arrival to delivery
	mostWaited int64           // the most events that were read and not processed
}

const (
	loadPerSecond = 5000
	loadEvents    = 2 * loadPerSecond
	loadTick      = 2 * time.Millisecond
)

// run puts the events into the queue of a session whose loop runs, until all are delivered.
func (l *load) run(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := waitingProcess(t, componenttest.NewTelemetry())
		p.Storage = &slowStorage{takes: l.storage}
		arrived := map[string]time.Time{}
		var mu sync.Mutex // guards arrived
		logs, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
			time.Sleep(l.pipeline)
			mu.Lock()
			defer mu.Unlock()
			for _, rl := range logs.ResourceLogs().All() {
				for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
					name, _ := record.Attributes().Get("k8s.event.name")
					l.latencies = append(l.latencies, time.Since(arrived[name.Str()]))
				}
			}
			return nil
		})
		require.NoError(t, err)
		p.Logs = logs
		s := p.openToTest(t)
		stop, cancel := context.WithCancel(t.Context())
		s.history = s.newHistory(stop)
		var loop sync.WaitGroup
		loop.Go(func() { s.loop(stop, t.Context()) })
		for i := range loadEvents {
			if i%int(loadPerSecond*loadTick/time.Second) == 0 {
				time.Sleep(loadTick)
			}
			mu.Lock()
			arrived[aboutPod(i).Name] = time.Now()
			mu.Unlock()
			p.Health.Arrived()
			s.putEvent(t, i)
			l.mostWaited = max(l.mostWaited, p.Health.Waiting())
		}
		time.Sleep(10 * time.Second)
		assert.Zero(t, p.Health.Waiting())
		cancel()
		loop.Wait()
		slices.Sort(l.latencies)
	})
}

// p99 is exceeded by one event of a hundred.
func (l *load) p99() time.Duration { return l.latencies[len(l.latencies)*99/100] }

// TestStorageThatTakes20MillisecondsKeepsUp: a change waits at most for the write under way and for
// its own. What comes meanwhile is the next batch.
func TestStorageThatTakes20MillisecondsKeepsUp(t *testing.T) {
	const write = 20 * time.Millisecond
	fast, slow := load{}, load{storage: write}
	fast.run(t)
	slow.run(t)
	for _, l := range []load{fast, slow} {
		assert.Len(t, l.latencies, loadEvents, "each event is delivered once")
		assert.LessOrEqual(t, l.mostWaited, int64(batchChanges), "the backlog is less than a batch")
	}
	t.Logf("p99 with a write of %v: %v, without: %v; the most events that waited: %d and %d",
		write, slow.p99(), fast.p99(), slow.mostWaited, fast.mostWaited)
	assert.LessOrEqual(t, slow.p99(), fast.p99()+2*write+loadTick)
}

// TestABatchBecomesAsFewRequestsAsItsSizeAllows, although records are larger than those that were
// measured last.
func TestABatchBecomesAsFewRequestsAsItsSizeAllows(t *testing.T) {
	p := waitingProcess(t, componenttest.NewTelemetry())
	s := p.newUnsaved(position.Position{})
	for batchNumber := range 5 {
		b := &batch{}
		for i := range batchChanges {
			ev := aboutPod(i)
			ev.Message = strings.Repeat("x", 1000)
			if i < batchChanges/2 {
				ev.Message += strings.Repeat("x", 20)
			}
			b.records = append(b.records, observation.Observation{Event: ev, Occurrences: 1, SeenAt: time.Now()})
		}
		s.resolve(t.Context(), b.records)
		s.pipeline.convert(b)
		records, bytes := 0, 0
		for _, r := range b.requests {
			size := (&plog.ProtoMarshaler{}).LogsSize(r.logs())
			assert.LessOrEqual(t, size, requestBytes)
			records, bytes = records+r.count, bytes+size
		}
		require.Equal(t, batchChanges, records)
		assert.Len(t, b.requests, bytes/requestBytes+1, "batch %d of %d bytes", batchNumber, bytes)
	}
}
