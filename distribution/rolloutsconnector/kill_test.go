// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// observed is a record of an Event that a kubelet repeats.
type observed struct {
	at     time.Duration // when the connector gets it
	reason string
	count  int64
}

// crashing is what a kubelet recorded about a container that goes on after its fifth start. The fourth
// start and the BackOff after it are in the same second.
var crashing = []observed{
	{598 * time.Millisecond, "Scheduled", 1},
	{3766 * time.Millisecond, "Pulled", 1}, {3866 * time.Millisecond, "Created", 1}, {5917 * time.Millisecond, "Started", 1},
	{7234 * time.Millisecond, "Pulled", 2}, {7414 * time.Millisecond, "Created", 2}, {7776 * time.Millisecond, "Started", 2},
	{9061 * time.Millisecond, "BackOff", 1},
	{20554 * time.Millisecond, "Pulled", 3}, {20643 * time.Millisecond, "Created", 3}, {20893 * time.Millisecond, "Started", 3},
	{21400 * time.Millisecond, "BackOff", 2},
	{49553 * time.Millisecond, "Pulled", 4}, {49647 * time.Millisecond, "Created", 4}, {50448 * time.Millisecond, "Started", 4},
	{50822 * time.Millisecond, "BackOff", 3},
	{101553 * time.Millisecond, "Pulled", 5}, {101647 * time.Millisecond, "Created", 5}, {102448 * time.Millisecond, "Started", 5},
}

// logs returns the record. Events have whole seconds.
func (o observed) logs(began time.Time) plog.Logs {
	logs := records("shop-a-1", began.Add(o.at.Truncate(time.Second)), o.reason)
	logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutInt("k8s.event.count", o.count)
	return logs
}

// kill is when the connector is killed: at a time, or between the delivery with this number and the
// moment that the connector saves it. The zero value is never.
type kill struct {
	at       time.Duration
	delivery int
}

// life is a connector that is killed once.
type life struct {
	t       *testing.T
	kill    kill
	records []observed
	repeats bool // the receiver has no storage: after a restart, it emits the present state of each Event

	began   time.Time
	disk    *disk
	process *process
	seen    map[string]observed
	spans   map[pcommon.SpanID]string // the newest versions

	mu         sync.Mutex // guards the following
	deliveries int
	saved      map[string][]byte // what the connector had saved when it was killed in a delivery; nil: it lives
}

func (l *life) start() {
	l.process = start(l.t, l.disk, func(c *Config) { c.IdleTimeout, c.SettleTime = 40*time.Second, 3*time.Second })
	l.process.next(l.delivered)
}

// delivered counts the deliveries.
func (l *life) delivered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deliveries++; l.deliveries == l.kill.delivery {
		l.saved = l.disk.content()
	}
	l.process.next(l.delivered)
}

func (l *life) consume(o observed) {
	require.NoError(l.t, l.process.ConsumeLogs(l.t.Context(), o.logs(l.began)))
}

// stop keeps what was delivered.
func (l *life) stop() {
	l.process.stop(l.t)
	for _, traces := range l.process.received() {
		for span := range allSpans(traces) {
			l.spans[span.SpanID()] = contentOf(span)
		}
	}
}

func contentOf(span ptrace.Span) string {
	var warnings []any
	for _, event := range span.Events().All() {
		warnings = append(warnings, event.Timestamp(), event.Name(), event.Attributes().AsRaw())
	}
	return fmt.Sprint(span.Name(), span.TraceID(), span.StartTimestamp(), span.EndTimestamp(), span.Status().Message(), span.Attributes().AsRaw(), warnings)
}

// killed returns what the connector had saved when it was killed in a delivery; nil: it lives.
func (l *life) killed() (saved map[string][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	saved, l.saved = l.saved, nil
	return saved
}

// restart starts the connector again, with what it had saved.
func (l *life) restart(saved map[string][]byte) {
	l.stop()
	l.disk = &disk{values: saved}
	l.start()
	if !l.repeats {
		return
	}
	for _, reason := range slices.Sorted(maps.Keys(l.seen)) {
		l.consume(l.seen[reason])
	}
}

// sleepUntil sleeps until a time after the begin, and kills the connector on the way if it is time.
func (l *life) sleepUntil(at time.Duration) {
	if now := time.Since(l.began); now < l.kill.at && l.kill.at <= at {
		time.Sleep(l.kill.at - now)
		l.restart(l.disk.content())
	}
	time.Sleep(at - time.Since(l.began))
	synctest.Wait()
	if saved := l.killed(); saved != nil {
		l.restart(saved)
	}
}

// end returns the spans long after the last record.
func (l *life) end() map[pcommon.SpanID]string {
	l.began, l.disk = time.Now(), &disk{values: map[string][]byte{}}
	l.seen, l.spans = map[string]observed{}, map[pcommon.SpanID]string{}
	l.start()
	for _, o := range l.records {
		l.sleepUntil(o.at)
		l.consume(o)
		l.seen[o.reason] = o
	}
	last := l.records[len(l.records)-1].at
	for quiet := time.Second; quiet < 10*time.Minute; quiet += time.Second {
		l.sleepUntil(last + quiet)
	}
	l.stop()
	return l.spans
}

// kills are during each delivery, half-way between two looks of the loop, and immediately before and
// after each record.
func kills() (all []kill) {
	for delivery := range 3 {
		all = append(all, kill{delivery: delivery + 1})
	}
	for at := 500 * time.Millisecond; at < 4*time.Minute; at += time.Second {
		all = append(all, kill{at: at})
	}
	for _, o := range crashing {
		all = append(all, kill{at: o.at - time.Millisecond}, kill{at: o.at + time.Millisecond})
	}
	return all
}

// TestKilledAtAnyTime: whenever the connector is killed while a container crashes and recovers, the trace
// becomes complete, with the same spans.
func TestKilledAtAnyTime(t *testing.T) {
	var undisturbed map[pcommon.SpanID]string
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t, records: crashing}
		undisturbed = l.end()
		assert.Len(t, undisturbed, 6, "rollout, pod, schedule, pull, start, restart")
		assert.Contains(t, fmt.Sprint(undisturbed), "k8s.rollout.outcome:complete")
		assert.Equal(t, 3, l.deliveries, "complete, incomplete, and complete again")
	})
	for _, repeats := range []bool{false, true} {
		for _, k := range kills() {
			synctest.Test(t, func(t *testing.T) {
				l := &life{t: t, kill: k, records: crashing, repeats: repeats}
				assert.Equal(t, undisturbed, l.end(), "killed after %v, or in delivery %d; the receiver repeats: %v", k.at, k.delivery, repeats)
			})
		}
	}
}

// TestKilledWhileSpansAreReplaced: the backend has an incomplete version, which the connector could not save.
// When the rollout is complete again, its spans are those of the first version, and must be delivered again.
func TestKilledWhileSpansAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t, kill: kill{delivery: 2}, records: []observed{
			{5 * time.Second, "Started", 1},
			{9 * time.Second, "BackOff", 1},
			{60 * time.Second, "Started", 2},
		}}
		assert.Contains(t, fmt.Sprint(l.end()), "k8s.rollout.outcome:complete")
	})
}

// randomCrashes is a container that ends several times, always earlier than idle_timeout after its start.
// It can recover in the end.
func randomCrashes(random *rand.Rand, recovers bool) (all []observed) {
	upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	at := time.Duration(0)
	count := 1 + random.Int64N(8)
	for i := range count {
		all = append(all, observed{at, "Started", i + 1})
		at += upTo(39 * time.Second)
		all = append(all, observed{at, "BackOff", i + 1})
		at += 10*time.Second + upTo(time.Minute)
	}
	if recovers {
		all = append(all, observed{at, "Started", count + 1})
	}
	return all
}

// TestOutcomeOfRandomCrashes: in the end, a trace is complete if the container goes on, and only then.
func TestOutcomeOfRandomCrashes(t *testing.T) {
	for seed := range uint64(500) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			recovers := random.IntN(2) == 0
			l := &life{t: t, records: randomCrashes(random, recovers), repeats: random.IntN(2) == 0}
			l.kill.at = time.Duration(random.Int64N(int64(l.records[len(l.records)-1].at + 2*time.Minute)))
			outcome := map[bool]string{true: "k8s.rollout.outcome:complete", false: "k8s.rollout.outcome:incomplete"}[recovers]
			assert.Contains(t, fmt.Sprint(l.end()), outcome, "seed %d, killed after %v: %v", seed, l.kill.at, l.records)
		})
	}
}
