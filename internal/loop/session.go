// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/progress"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// firstAnswer is the time after which the log has it that the API server does not answer.
const firstAnswer = 2 * time.Second

// listedPages is the maximum number of pages of lists that all streams together have in memory. A
// page has at most 4 MiB, and three times as much when it is decoded.
const listedPages = 4

// session has the state of the loop in one term, or in the process.
type session struct {
	*Loop

	ledger   *ledger.Ledger
	progress progress.Progress
	intake   *intake
	pipeline *logsPipeline
	emitter  *emitter
	emission sync.WaitGroup // of the sums at intervals
	// isUndelivered is set when a batch could not be delivered. From then on, the ledger knows more than
	// the exporters have, and nothing may be noted any more.
	isUndelivered bool
	isReported    bool // the log has it that the watch works
}

// runSession runs a session until stop ends, or another process has noted progress as the leader.
func (l *Loop) runSession(stop, drain context.Context) {
	stop, endStop := context.WithCancel(stop)
	drain, endDrain := context.WithCancel(drain)
	supersede := func() {
		endStop()
		endDrain() // What this process delivers now, the other one delivers, too.
	}
	defer supersede()
	l.Health.Waiting(health.Streams(l.Streams)...)
	uid, ok := l.askCluster(stop)
	if !ok {
		return
	}
	p := l.Progress()
	if known := p.Load(stop, uid, l.newLedger, supersede); known != nil {
		l.newSession(semconv.Cluster{UID: uid, Name: l.ClusterName}, p, known).run(stop, drain)
	}
}

// askCluster returns which cluster this is. It asks before the first list: the progress is that of one
// cluster, and records name it. Until it has an answer, no stream works. ok is false if stop ended before.
func (l *Loop) askCluster(stop context.Context) (uid string, ok bool) {
	for patience := firstAnswer; stop.Err() == nil; patience = progress.Slow {
		asking, cancel := context.WithTimeout(stop, patience)
		uid, err := kubeclient.ClusterUID(asking, l.Client, l.Logger)
		cancel()
		if err == nil {
			return uid, true
		}
		if stop.Err() == nil {
			l.Health.Restarting(l.Streams[0], watch.CauseOf(err), err)
		}
		progress.Pause(stop, progress.RetryRead)
	}
	return "", false
}

// newLedger makes a ledger that knows nothing.
func (l *Loop) newLedger() *ledger.Ledger {
	return ledger.New(ledger.Settings{
		Coverage:      ledger.Coverage{Namespaces: l.Streams, FieldSelector: l.Filter.FieldSelector()},
		FromBeginning: l.FromBeginning,
		DedupInterval: l.DedupInterval,
	})
}

func (l *Loop) newSession(cluster semconv.Cluster, p progress.Progress, known *ledger.Ledger) *session {
	return &session{
		Loop: l, ledger: known, progress: p,
		intake:   &intake{queue: queue.New(batchChanges), health: l.Health},
		pipeline: l.newPipeline(cluster),
		emitter:  l.newEmitter(cluster),
	}
}

// run runs the streams, the loop, and the emission of the metric.
func (s *session) run(stop, drain context.Context) {
	running, end := context.WithCancel(stop)
	var streams sync.WaitGroup
	s.emission.Go(func() { s.emitter.run(running, drain) })
	pages := semaphore.NewWeighted(listedPages)
	for _, namespace := range s.Streams {
		stream := s.newStream(namespace, pages)
		streams.Go(func() { stream.Run(running) })
	}
	s.loop(running, drain)
	end()
	streams.Wait()
	s.end(drain)
	s.intake.discard()
}

func (s *session) newStream(namespace string, pages *semaphore.Weighted) *watch.Stream {
	settings := watch.Settings{
		Client:        s.Client,
		Watches:       s.Watches,
		Namespace:     namespace,
		FieldSelector: s.Filter.FieldSelector(),
		Taker:         s.intake.queue,
		Observer:      s.Health,
		Pages:         pages,
		Keep:          s.Owners.Keep,
	}
	version, exactly := s.ledger.Resume(namespace)
	if exactly {
		settings.ExactAt = version
	} else {
		settings.ResourceVersion = version
	}
	return watch.New(settings)
}

// loop turns until stop has ended and the queue is empty, or until a batch cannot be delivered.
func (s *session) loop(stop, drain context.Context) {
	for s.turn(stop, drain) {
	}
}

// turn takes a batch, accounts for it, and emits it. It reports whether another one may follow.
func (s *session) turn(stop, drain context.Context) bool {
	b := s.intake.take(stop, s.nextTurn())
	s.account(b)
	return s.emit(stop, drain, b) && !b.last
}

// emit delivers the records of a batch. It reports false if they could not be delivered before the
// term, or the process, ended: nothing of the batch is noted then.
func (s *session) emit(stop, drain context.Context, b *batch) bool {
	s.resolve(drain, b)
	requests := s.pipeline.convert(b.records)
	delivered := s.pipeline.deliver(stop, drain, requests)
	s.emitter.count(delivered)
	if len(delivered) < len(b.records) {
		s.isUndelivered = true
		return false
	}
	for i := range b.changes {
		if c := &b.changes[i]; c.ResourceVersion != "" {
			s.ledger.Advance(c.Namespace, c.ResourceVersion)
		}
	}
	s.progress.Note()
	return true
}

// end delivers what the windows hold, emits the last points, and notes the progress for the last time.
// The last note does not wait for the points: the metrics pipeline may hang until drain ends.
func (s *session) end(drain context.Context) {
	for !s.isUndelivered && drain.Err() == nil {
		b := &batch{records: s.ledger.Flush(batchChanges)}
		if len(b.records) == 0 || !s.emit(drain, drain, b) {
			break
		}
	}
	var last sync.WaitGroup
	last.Go(func() { patiently(s.progress.End) })
	s.emission.Wait()
	patiently(s.emitter.end)
	last.Wait()
	s.pipeline.forget()
}

// patiently calls a function whose context ends after patience.
func patiently(do func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	do(ctx)
}

// nextTurn returns when the next turn begins if no change comes before: there is something to forget,
// a window ends, or the log does not have it yet that the watch works.
func (s *session) nextTurn() time.Time {
	if s.intake.batch.forgetsMore {
		return time.Now()
	}
	next := time.Now().Add(time.Hour)
	if !s.isReported {
		next = time.Now().Add(time.Second)
	}
	if end, open := s.ledger.NextEnd(); open && end.Before(next) {
		return end
	}
	return next
}

// resolve adds to each record who owns its involved object and, at the same time, its details.
func (s *session) resolve(ctx context.Context, b *batch) {
	began := time.Now()
	var reads sync.WaitGroup
	reads.Go(func() { s.Details.Add(ctx, b.records) })
	s.Owners.Resolve(ctx, b.records)
	reads.Wait()
	if len(b.records) > 0 {
		s.Health.Waited(health.WaitCauseLookups, time.Since(began))
	}
	s.Health.Resolved(b.records)
}
