// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/delivery"
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

const (
	// batchChanges bounds a batch. At most one batch is undelivered at a time.
	batchChanges = 1000
	// savedBatchWait is how long a batch waits for more changes with storage: a write costs as much
	// for one change as for many. Without storage, a batch is what the streams have available.
	savedBatchWait = 100 * time.Millisecond
	// maxBatchWait is how long a batch waits while owner lookups strain the API server: unknown
	// objects are then read in few lists instead of in many requests.
	maxBatchWait = 1300 * time.Millisecond
	// unsavedChanges is how many changes without a record are saved without waiting for one.
	unsavedChanges = 1000
)

// session is the queue, the memory and the outbox. With storage and an elector, a session is one term
// of leading, and begins with the checkpoint. Otherwise it lasts as long as the process:
//
//	elector | storage | the session      | the gate                | the checkpoint
//	no      | no      | of the process   | is open                 | none
//	no      | yes     | of the process   | is open                 | of this process
//	yes     | no      | of the process   | is open while it leads  | none; the leader publishes its position
//	yes     | yes     | of one term      | is open                 | of all leaders, with a number for each term
type session struct {
	*Process

	queue    *queue.Queue
	memory   *memory.Memory
	gate     gate
	persist  persistence
	delivery *delivery.Deliverer
	versions *watch.Versions
	// clusterUID is that of the cluster that this session watches; empty: it is not known. It is also
	// read by the timer of the metrics.
	clusterUID atomic.Pointer[string]
	// emits is whether the sums are those of this term. The timer of the metrics reads it.
	emits   atomic.Bool
	start   election.Position // where the receiver starts without a checkpoint; zero: nowhere in particular
	changes []watch.Change    // of the batch that is being dealt with
	// refreshed is when the cluster was last asked for its UID because versions had gone back.
	refreshed time.Time
	// recordBytes is the mean size of a record in OTLP, as measured last.
	recordBytes int
}

// gate decides whether a batch is this process's to deliver. For its
// methods, see election.Gate and election.Open.
type gate interface {
	Pass(stop, work context.Context, observations []observation.Observation) (rest []observation.Observation, t election.Term, ok bool)
	Changed() <-chan struct{}
	TakeBack(observations []observation.Observation)
	Delivered(versions func() map[string]uint64)
	WentBack(now uint64)
	Close(work context.Context)
}

// persistence decides when a batch counts, and remembers it.
type persistence interface {
	// prepare is called before the batch is delivered, commit after.
	prepare(t election.Term, observations []observation.Observation, requests []*request)
	commit(t election.Term, observations []observation.Observation, undelivered []*request)
	// idle is called while there is nothing to deliver, and finish once there will be nothing more.
	idle(work context.Context)
	finish(work context.Context)
	// due returns when idle must be called next; zero: never. If ready fires, idle must be called
	// earlier.
	due() time.Time
	ready() <-chan struct{}
	// settled reports whether the last write is acknowledged; if it is not, it is repeated after a
	// while.
	settled() bool
	// saves reports whether batches are saved.
	saves() bool
	// close is called at the end of the session.
	close()
}

// loop is the receiver's loop: take, account, resolve, convert, save, deliver, a batch at a time, until stop
// ends, or another cluster answers. What was taken by then is still delivered, as long as work
// allows.
func (s *session) loop(stop, work context.Context) {
	s.memory.Windows.Resolve(func(held []observation.Observation) { s.resolve(work, held) })
	for more := true; more; {
		more = s.take(stop, work)
		observations := s.wanted(s.account(stop))
		more = more && !s.isReplaced()
		observations, t, ok := s.gate.Pass(stop, work, observations)
		if !ok {
			s.advance()
			continue
		}
		if t.First {
			s.beginTerm(observations)
		}
		delivered := s.handle(t, observations, s.admit)
		for delivered && !more && s.holds() {
			delivered = s.handle(t, nil, s.flush)
		}
		if !delivered && stop.Err() != nil {
			return
		}
	}
	s.persist.finish(work)
}

// handle resolves, converts, saves and delivers a batch. It returns false if the term ended before
// all was delivered.
func (s *session) handle(t election.Term, observations []observation.Observation, admit admission) bool {
	s.resolve(t.Work, observations)
	records := admit(observations)
	requests := s.requests(records)
	s.persist.prepare(t, observations, requests)
	undelivered := s.deliver(t, requests)
	s.persist.commit(t, observations, undelivered)
	if len(undelivered) == 0 {
		s.gate.Delivered(s.deliveredUpTo)
		return true
	}
	s.gate.TakeBack(recordsIn(undelivered))
	return false
}

// mayDeliver is asked before each attempt to deliver. While a pipeline rejects the batch, it also lets
// the write of the batch be repeated.
func (s *session) mayDeliver(stop context.Context) bool {
	s.persist.settled()
	return s.Leadership.WaitUntilCertain(stop)
}

// deliveredUpTo returns the versions up to which each stream is delivered. After a restore, a stream
// that has not noticed it yet has a version that does not exist.
func (s *session) deliveredUpTo() map[string]uint64 {
	versions, highest := s.memory.Delivered(), s.versions.Highest()
	maps.DeleteFunc(versions, func(_ string, version uint64) bool { return version > highest })
	return versions
}

// admission returns the records of a batch, of its observations and of the windows.
type admission func([]observation.Observation) []observation.Observation

// admit returns what dedup_interval lets through now.
func (s *session) admit(observations []observation.Observation) []observation.Observation {
	now := time.Now()
	return append(s.memory.Windows.Due(now, batchChanges), s.memory.Windows.Admit(observations, now)...)
}

// flush ends windows before their time.
func (s *session) flush([]observation.Observation) []observation.Observation {
	return s.memory.Windows.Flush(batchChanges)
}

// holds reports whether a window is open.
func (s *session) holds() bool {
	_, open := s.memory.Windows.NextEnd()
	return open
}

// beginTerm starts the sums of a term without storage.
func (s *session) beginTerm(observations []observation.Observation) {
	s.memory.Tally.Reset(time.Now())
	s.emits.Store(true)
	s.Logger.Info("Started leading; delivering what the last leader has not confirmed as delivered",
		zap.Int("records", len(observations)))
}

// endTerm forgets how the pipelines behaved: what they rejected is the next leader's to deliver. It
// emits the last sums of the term while no other process can lead.
func (s *session) endTerm() {
	if s.emits.Swap(false) {
		s.emitLast()
	}
	if s.delivery != nil {
		s.delivery.Forget()
	}
}

// take waits for a change and gathers more. It returns without any when something else is due, and
// false once stop has ended and nothing that was read from the API server is left.
func (s *session) take(stop, work context.Context) (more bool) {
	s.release()
	wake := s.wakeTimer()
	defer wake.Stop()

	select {
	case <-s.queue.Signal():
		more = s.gather(stop)
	case <-wake.C:
		more = true
	case <-s.persist.ready():
		more = true
	case <-s.gate.Changed():
		more = true
	case <-stop.Done():
	}
	s.changes = s.queue.Take(s.changes)
	if !more {
		s.drain()
	}
	if len(s.changes) == 0 {
		s.persist.idle(work)
	}
	return more
}

// release forgets the last batch, which is dealt with.
func (s *session) release() {
	s.Health.DealtWith(s.changes)
	clear(s.changes)
	s.changes = s.changes[:0]
	s.queue.Done()
}

// wakeTimer ends when a window of dedup_interval does, or when something is to be saved.
func (s *session) wakeTimer() *time.Timer {
	due := time.Now().Add(time.Hour)
	if end, open := s.memory.Windows.NextEnd(); open && end.Before(due) {
		due = end
	}
	if save := s.persist.due(); !save.IsZero() && save.Before(due) {
		due = save
	}
	return time.NewTimer(time.Until(due))
}

// gather waits until the batch is full, for the time that a batch may wait, or until stop ends; it
// returns false then. The end of a listing ends a batch, too: that the listing is complete is saved
// before anything that comes after it has to be delivered.
func (s *session) gather(stop context.Context) bool {
	wait := s.batchWait()
	if wait == 0 {
		return true
	}
	full := time.NewTimer(wait)
	defer full.Stop()
	for !s.queue.Full() {
		select {
		case <-s.queue.Signal():
		case <-full.C:
			return true
		case <-stop.Done():
			return false
		}
	}
	return true
}

func (s *session) batchWait() (wait time.Duration) {
	if s.persist.saves() {
		wait = savedBatchWait
	}
	return max(wait, min(s.Owners.Strain(), maxBatchWait))
}

// drain takes what the streams had put into the queue when they were stopped.
func (s *session) drain() {
	for taken := -1; taken != len(s.changes); {
		taken = len(s.changes)
		s.changes = s.queue.Take(s.changes)
	}
}

// account passes the changes to the memory and returns the new observations. Before, the memory forgets
// what it has remembered for long enough: there may have been no batch for a day.
func (s *session) account(stop context.Context) []observation.Observation {
	s.memory.Forget(time.Now())
	observations := make([]observation.Observation, 0, len(s.changes))
	for i := range s.changes {
		c := &s.changes[i]
		if c.Kind == watch.Restored {
			forgetPlaces(s.changes[:i], c.Namespace)
		}
		if occurrences := s.accountFor(stop, c); occurrences > 0 {
			o := observation.Observation{Event: c.Event, Occurrences: occurrences, SeenAt: c.SeenAt, Restores: c.Restores}
			if c.Kind == watch.Listed {
				o.First = s.memory.Reached(c.Namespace) + 1
			}
			observations = append(observations, o)
		}
		if c.Kind == watch.Restored && s.isReplaced() {
			// The next session lists what follows.
			s.Health.DealtWith(s.changes[i:])
			s.changes = s.changes[:i]
			break
		}
	}
	return observations
}

// forgetPlaces takes out of changes of before a restore where their stream resumes.
func forgetPlaces(changes []watch.Change, stream string) {
	for i := range changes {
		if changes[i].Namespace == stream {
			changes[i].ResourceVersion = ""
		}
	}
}

// accountFor returns the number of new occurrences in one change.
func (s *session) accountFor(stop context.Context, c *watch.Change) int64 {
	switch c.Kind {
	case watch.Restored:
		s.restored(stop, c.Namespace)
	case watch.ListBegan:
		s.memory.BeginList(c.Namespace)
	case watch.ListEnded:
		s.memory.EndList(c.Namespace, c.SeenAt)
	case watch.Deleted:
		s.memory.Delete(c.Namespace, c.Event, c.SeenAt)
	case watch.Existing:
		s.memory.Existing(c.Namespace, c.Event)
	case watch.Listed:
		return s.memory.List(c.Namespace, c.Event)
	case watch.Changed:
		return s.memory.Change(c.Namespace, c.Event)
	}
	return 0
}

// restored notes, for one stream after the other, that the cluster's resource versions have gone back:
// etcd was restored, or another cluster answers at the address.
func (s *session) restored(stop context.Context, stream string) {
	s.memory.ForgetVersions(stream)
	// A position that was published since is not above the highest version.
	s.gate.WentBack(s.versions.Highest())
	// All streams notice it at about the same time: one answer serves those of a second.
	if time.Since(s.refreshed) < retryCluster {
		return
	}
	if s.Cluster.Refresh(stop) == nil { // If this fails, the next stream or session asks again.
		s.refreshed = time.Now()
	}
}

// isReplaced reports whether another cluster answers than the one that is remembered.
func (s *session) isReplaced() bool {
	known, uid := s.memory.Cluster(), s.Cluster.UID()
	if known == "" && uid != "" {
		s.setCluster(uid)
	}
	return known != "" && uid != "" && uid != known
}

// setCluster sets the UID that records and points name.
func (s *session) setCluster(uid string) {
	s.memory.SetCluster(uid)
	s.clusterUID.Store(&uid)
}

// wanted returns the observations that the filters let through. The memory has all of them, so that
// a filter that is widened later counts nothing of the past.
func (s *session) wanted(observations []observation.Observation) []observation.Observation {
	var received, filtered int64
	for i := range s.changes {
		if ev := s.changes[i].Event; ev != nil {
			received++
			if !s.Filter.Wants(ev) {
				filtered++
			}
		}
	}
	s.Health.Accounted(received, filtered)
	wanted := observations[:0]
	for i := range observations {
		if s.Filter.Wants(observations[i].Event) {
			wanted = append(wanted, observations[i])
		}
	}
	return wanted
}

// advance notes where the streams resume, once the batch is dealt with or saved.
func (s *session) advance() {
	for i := range s.changes {
		if c := &s.changes[i]; c.ResourceVersion != "" {
			s.memory.Advance(c.Namespace, c.ResourceVersion)
		}
	}
}

// count adds observations to the metric.
func (s *session) count(observations []observation.Observation) {
	if s.Metrics != nil {
		s.memory.Tally.Add(observations, time.Now())
	}
}

// withoutStorage counts a batch once it is delivered.
type withoutStorage struct{ *session }

func (withoutStorage) saves() bool            { return false }
func (withoutStorage) close()                 {}
func (withoutStorage) settled() bool          { return true }
func (withoutStorage) due() (t time.Time)     { return t }
func (withoutStorage) ready() <-chan struct{} { return nil }
func (withoutStorage) idle(context.Context)   {}
func (withoutStorage) finish(context.Context) {}

func (withoutStorage) prepare(election.Term, []observation.Observation, []*request) {}

// commit counts what was delivered. The leader that delivers the rest counts it.
func (w withoutStorage) commit(_ election.Term, observations []observation.Observation, undelivered []*request) {
	rest := len(recordsIn(undelivered))
	if rest > 0 && w.DedupInterval > 0 {
		rest = len(observations) // It is not known which of them are in the records.
	}
	w.count(observations[:len(observations)-rest])
	w.advance()
}
