// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/position"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// session is the queue, the memory and the outbox, and the steps that work with them. With storage
// and an elector, a session is one term of leading, and begins with the checkpoint. Otherwise it
// lasts as long as the process. If another cluster answers, the session ends and a new one begins.
// For the modes, see newSession.
type session struct {
	process *Process

	intake   *intake
	gate     gate
	pipeline *logsPipeline
	persist  persistence

	memory *memory.Memory
	sums   *metricsPipeline
	// start is where the receiver starts without a checkpoint; zero: nowhere in particular.
	start   position.Position
	history *watch.History
}

// gate decides whether a batch is this process's to deliver. For its methods, see position.Gate and
// position.Open.
type gate interface {
	HasEnded() bool
	Pass(stop, drain context.Context, history position.History, observations []observation.Observation) (
		rest []observation.Observation, t leadership.Term, ok bool)
	Changed() <-chan struct{}
	Delivered(undelivered []observation.Observation, upTo func() map[string]uint64)
	EndHistory() (waiting []observation.Observation)
	Publish() (wait func())
	End(held []observation.Observation)
}

// persistence saves the memory and the outbox. Only the session changes the memory.
type persistence interface {
	// beforeDelivery and afterDelivery are called for each batch that passed the gate. afterDelivery
	// is also called if the term ended before all of it was delivered.
	beforeDelivery(b *batch)
	afterDelivery(b *batch)
	// finish saves that all is delivered. It is called before a long wait, too.
	finish(drain context.Context)
	// next returns when a turn is needed although nothing has changed; zero: none is. A turn is also
	// needed when acknowledged fires; nil: it never fires.
	next() (due time.Time, acknowledged <-chan struct{})
	// saveMeanwhile saves what changes while the pipeline rejects a batch that is saved.
	saveMeanwhile(stop context.Context)
	// close is called at the end of the session.
	close()
}

// loop is the receiver's loop. It returns the batch that is the last one: the history has ended, as
// it does with stop, and the queue is empty, or another cluster answers. This batch is still
// delivered, until drain is cancelled.
func (s *session) loop(stop, drain context.Context) (last *batch) {
	for last == nil || !last.last {
		last = s.turn(stop, drain)
	}
	return last
}

// turn takes a batch, accounts for it, and emits it if it passes the gate. What does not fit the
// batch follows in batches of its own.
func (s *session) turn(stop, drain context.Context) *batch {
	b := s.intake.take(s.history.Context(), s.nextTurn())
	s.identify(b)
	s.account(b)
	s.awaitGate(stop, drain, b)
	if !b.passed {
		advance(s.memory, b) // The leader delivers it, or has.
		return b
	}
	s.emit(b)
	for b.isDelivered() && s.memory.Windows.HasDeferred() {
		b = &batch{term: b.term, last: b.last, passed: true}
		s.emit(b)
	}
	if !b.isDelivered() && stop.Err() != nil {
		b.last = true // Nothing may be saved after it: the outbox keeps it for the next session.
	}
	return b
}

// emit resolves the owners of a batch that passed the gate, converts, saves and delivers it.
func (s *session) emit(b *batch) {
	s.resolve(b.term.Drain, b.observations)
	s.admit(b)
	s.pipeline.convert(b)
	if s.countsEarly() {
		s.count(b, b.observations)
		s.memory.Use(b.observations)
	}
	s.persist.beforeDelivery(b)
	s.pipeline.deliver(b)
	if !b.isDelivered() {
		s.sums.prepareEnd() // The term has ended.
	}
	if !s.countsEarly() {
		s.count(b, s.delivered(b))
	}
	s.persist.afterDelivery(b)
	s.gate.Delivered(recordsIn(b.undelivered), s.memory.DeliveredUpTo)
}

// countsEarly reports whether a batch counts before it is delivered: with storage, because a crash
// then delivers its outbox. Otherwise, it counts when it is delivered.
func (s *session) countsEarly() bool { return s.process.Storage != nil }

// count counts observations of a batch, and notes where the streams resume.
func (s *session) count(b *batch, observations []observation.Observation) {
	s.memory.Count(observations, time.Now())
	advance(s.memory, b)
}

// delivered returns the observations to count of a batch. The leader that delivers the rest counts it.
func (s *session) delivered(b *batch) []observation.Observation {
	rest := len(recordsIn(b.undelivered))
	switch {
	case s.process.DedupInterval == 0:
		return b.records[:len(b.records)-rest]
	case rest == 0:
		return b.observations
	default: // It is not known which observations are in the delivered records.
		reached.State("a term ends before it has delivered a batch with windows")
		return nil
	}
}

// finish ends the windows after the last batch. What could not be delivered stays in the outbox.
func (s *session) finish(drain context.Context, last *batch) {
	if s.endWindows(last).isDelivered() {
		s.sums.prepareEnd()
		s.persist.finish(drain)
	}
}

// endWindows delivers what the windows hold, batch by batch, in the term of a batch that was
// emitted. It returns the last one, and stops early if that one cannot be delivered.
func (s *session) endWindows(b *batch) *batch {
	for b.isDelivered() {
		if _, open := s.memory.Windows.NextEnd(); !open {
			break
		}
		b = &batch{term: b.term, endsWindows: true}
		s.emit(b)
	}
	return b
}

// nextTurn returns what begins the next turn if no change does: something to forget, the end of a
// dedup window, something to save, or an election.
func (s *session) nextTurn() wakeup {
	due, acknowledged := s.persist.next()
	w := wakeup{at: time.Now().Add(time.Hour), saved: acknowledged, elected: s.gate.Changed(), emitted: s.sums.unsaved}
	if s.intake.batch.forgetsMore {
		w.at = time.Now()
	}
	if end, open := s.memory.Windows.NextEnd(); open && end.Before(w.at) {
		w.at = end
	}
	if !due.IsZero() && due.Before(w.at) {
		w.at = due
	}
	return w
}

// awaitGate waits for the gate's decision: either this process delivers the batch, or the leader
// has delivered it. The gate also keeps the batch if stop is cancelled.
func (s *session) awaitGate(stop, drain context.Context, b *batch) {
	s.endTermIfOver()
	b.observations, b.term, b.passed = s.gate.Pass(stop, drain, s.history, b.observations)
	if b.passed && b.term.Begins {
		if slices.ContainsFunc(b.changes, func(c watch.Change) bool { return c.Kind == watch.Listed }) {
			reached.State("a takeover within a list")
		}
		s.intake.queue.SetGate(false)
		s.sums.begin(b.term.Drain, time.Now())
		s.process.Logger.Info("Started leading; delivering what the last leader has not confirmed as delivered",
			zap.Int("records", len(b.observations)))
	}
}

func (s *session) endTermIfOver() {
	if s.gate.HasEnded() {
		s.endTerm()
	}
}

// endTerm publishes how far the term came. At the same time, it emits the last sums of the term, as
// long as it is certain that no other process leads: neither waits for the other one, which may hang.
// The gate keeps what the windows hold, which the next leader may not deliver. The delivery forgets how the pipeline behaved:
// the next leader delivers what it rejected.
func (s *session) endTerm() {
	awaitPublished := s.gate.Publish()
	s.sums.end()
	awaitPublished()
	s.gate.End(s.memory.EndWindows())
	s.pipeline.forget()
	s.intake.queue.SetGate(true)
}

// resolve adds to each observation who owns its involved object.
func (s *session) resolve(ctx context.Context, observations []observation.Observation) {
	began := time.Now()
	s.process.Owners.Resolve(ctx, observations)
	if len(observations) > 0 {
		s.process.Health.Waited(health.Lookups, time.Since(began))
	}
	s.process.Health.Resolved(observations)
}

// admit lets through what dedup_interval does not hold back.
func (s *session) admit(b *batch) {
	windows, now := s.memory.Windows, time.Now()
	if b.endsWindows {
		b.records = windows.Flush(batchChanges)
	} else {
		b.records = append(windows.Due(now, batchChanges), windows.Admit(b.observations, now)...)
	}
	if n := fitting(b.records); n < len(b.records) {
		reached.State("records do not fit their batch")
		windows.Defer(b.records[n:], now)
		b.records = b.records[:n:n]
	}
}

// fitting returns how many of the first records a batch may have: together with their owners and
// tags, a few bytes of events can become a lot of OTLP.
func fitting(records []observation.Observation) (n int) {
	for size := 0; n < len(records); n++ {
		if size += logrecord.MaxSize(&records[n]); size > batchBytes && n > 0 {
			break
		}
	}
	return n
}
