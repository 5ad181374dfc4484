// SPDX-License-Identifier: Apache-2.0

// Package leadership decides whether this process leads: its terms, the elector that begins and ends
// them, and the elector's Lease.
package leadership

import (
	"context"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// beatInterval is how often the process proves to itself that it was not paused.
	beatInterval = 500 * time.Millisecond
	// pausedAfter is the gap between two beats that counts as a pause.
	pausedAfter = 3 * time.Second
)

// Leadership reports whether this process is the one that emits. All receivers of one elector share
// it: see Join. Its methods may be called concurrently.
type Leadership struct {
	// elected reports whether an elector decides. Otherwise, this process always leads.
	elected bool
	// lease is the time without renewal after which another process may lead, and deadline that
	// after which the leader stops.
	lease, deadline time.Duration
	// confirm waits until it is certain that this process holds the lease, or the context ends; nil:
	// nobody can tell.
	confirm func(context.Context)

	// mu guards the following.
	mu        sync.Mutex
	leading   bool
	last      *term         // of leading; nil: there was none
	abandon   func()        // the term that waits until it is confirmed; nil: none ever did
	unused    bool          // the last receiver has ended
	changed   chan struct{} // closed when leading changes
	stoppedAt time.Time     // when the last term ended
	lastBeat  time.Time
	// uncertain is until when it is not certain that a leader that was paused still leads.
	uncertain time.Time
	// open is set in a term that does not end with a context, and provenUntil is until when it is
	// proven that such a term has not ended; zero: nobody proves it. See Lease.Guard.
	open        bool
	provenUntil time.Time
}

// Term is a time in which this process leads. Without an elector, it is the life of the process.
type Term struct {
	// Stop is cancelled at the end of the term, or when the receiver is to stop. Drain is cancelled
	// at the end of the term, or when the grace period of the shutdown is over.
	Stop, Drain context.Context
	Begins      bool // whether the term has just begun
}

// term is one term of leading, of all receivers that share the Leadership.
type term struct {
	ctx  context.Context
	end  func()
	work sync.WaitGroup // that has begun in the term
}

// AlwaysLeads returns the leadership of a process without an elector.
func AlwaysLeads() *Leadership { return &Leadership{} }

// newLeadership returns the leadership of a process that an elector has not made a leader yet.
// lease and deadline are the elector's LeaseDuration and RenewDeadline.
func newLeadership(lease, deadline time.Duration) *Leadership {
	return &Leadership{
		elected: true, lease: lease, deadline: deadline,
		changed: make(chan struct{}), lastBeat: time.Now(),
	}
}

// LeaseDuration returns the time without renewal after which another process may lead.
func (l *Leadership) LeaseDuration() time.Duration { return l.lease }

// IsElected reports whether an elector decides which process leads.
func (l *Leadership) IsElected() bool { return l.elected }

// Started begins a term, which ends at the latest with the context. A start whose context has ended
// is ignored. The answer that made this process the leader may have been delayed, so that the lease
// has expired, and another process leads: the term begins when that is ruled out. An elector that
// goes on after its deadline has renewed the lease since.
func (l *Leadership) Started(ctx context.Context) {
	if l.confirm == nil || ctx.Done() == nil {
		l.begin(ctx, ctx)
		return
	}
	waiting, abandon := context.WithCancel(ctx)
	l.mu.Lock()
	l.abandonLocked()
	l.abandon = abandon
	if l.unused {
		abandon()
	}
	l.mu.Unlock()
	go func() {
		defer abandon()
		confirming, done := context.WithTimeout(waiting, (l.deadline+l.lease)/2)
		defer done()
		l.confirm(confirming)
		l.begin(ctx, waiting)
	}()
}

// left lets no term begin any more: nobody would use it.
func (l *Leadership) left() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unused = true
	l.abandonLocked()
}

func (l *Leadership) abandonLocked() {
	if l.abandon != nil {
		l.abandon()
	}
}

// begin begins a term that ends with the context, unless the other one has ended.
func (l *Leadership) begin(ctx, waiting context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading || waiting.Err() != nil {
		return
	}
	termCtx, cancel := context.WithCancel(context.Background())
	t := &term{ctx: termCtx}
	// The elector calls its users one after the other, and waits for each. The context ends before.
	unfollow := context.AfterFunc(ctx, func() { l.end(t) })
	t.end = func() {
		unfollow()
		cancel()
	}
	l.leading, l.last = true, t
	l.open, l.provenUntil = ctx.Done() == nil, time.Time{}
	l.uncertain = time.Time{}
	l.announceLocked()
}

// Stopped ends the term, and waits until all its work has ended. So this process does not stand for
// election before.
func (l *Leadership) Stopped() {
	l.mu.Lock()
	l.abandonLocked()
	t := l.last
	l.mu.Unlock()
	if t != nil {
		l.end(t)
		t.work.Wait()
	}
}

// end ends the term if it has not ended.
func (l *Leadership) end(t *term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t != l.last || !l.leading {
		return
	}
	l.leading, l.stoppedAt = false, time.Now()
	t.end()
	l.announceLocked()
}

func (l *Leadership) announceLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Begin begins the work of the present term, with contexts that also end with stop and drain.
// Callers must call end when that work has ended. ok is false if this process does not lead.
func (l *Leadership) Begin(stop, drain context.Context) (t Term, end func(), ok bool) {
	if !l.elected {
		return Term{Stop: stop, Drain: drain}, func() {}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leading {
		return Term{}, nil, false
	}
	current := l.last
	current.work.Add(1)
	// With the term, its contexts end at once: else its work would repeat without a pause what may
	// be done only by a leader.
	termStop, cancelStop := either(current.ctx, stop)
	termDrain, cancelDrain := either(current.ctx, drain)
	return Term{Stop: termStop, Drain: termDrain, Begins: true}, sync.OnceFunc(func() {
		cancelStop()
		cancelDrain()
		current.work.Done()
	}), true
}

// Changed returns a channel that is closed when this process starts or stops leading. It is nil
// without an elector.
func (l *Leadership) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Beat proves at intervals that the process runs, until the context ends.
func (l *Leadership) Beat(ctx context.Context) {
	ticker := time.NewTicker(beatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			l.NoteBeat(now)
		}
	}
}

// NoteBeat notes that the process runs at this time. A long gap since the last beat means that the
// process was paused. The lease may have expired in that time, and the elector learns of it only
// when it tries to renew. Until then, it is uncertain who leads.
func (l *Leadership) NoteBeat(now time.Time) {
	if !l.elected {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The monotonic clock stands still while a virtual machine is suspended, the wall clock does
	// not.
	gap := max(now.Sub(l.lastBeat), now.Round(0).Sub(l.lastBeat.Round(0)))
	if gap > pausedAfter {
		l.uncertain = now.Add(l.deadline + pausedAfter)
	}
	if now.After(l.lastBeat) {
		l.lastBeat = now
	}
}

// isOpen reports whether only Stopped ends the present term. It may be called late.
func (l *Leadership) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading && l.open
}

// prove notes that an open term has not ended before then.
func (l *Leadership) prove(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading && l.open && until.After(l.provenUntil) {
		l.provenUntil = until
	}
}

// Leads reports whether this process leads, as far as the elector knows.
func (l *Leadership) Leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.elected || l.leading
}

// CertainlyLeads reports whether this process leads, and was not paused: after a pause, another
// process may lead.
func (l *Leadership) CertainlyLeads() bool { return l.Leads() && l.uncertainFor(time.Now()) == 0 }

// WaitUntilCertain waits, after a pause of this process or while nothing proves an open term, until
// it is certain whether it still leads, and reports whether it does. It reports false if the context ends before.
func (l *Leadership) WaitUntilCertain(ctx context.Context) bool {
	for {
		wait := l.uncertainFor(time.Now())
		if wait == 0 {
			return l.Leads()
		}
		reached.State("a leader waits until it is certain whether it leads")
		if !sleep(ctx, wait) {
			return false
		}
	}
}

// uncertainFor returns how long it stays uncertain whether this process leads; 0: it is certain.
func (l *Leadership) uncertainFor(now time.Time) time.Duration {
	l.NoteBeat(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.provenUntil.IsZero() && now.After(l.provenUntil) {
		reached.State("nothing proves that an open term goes on")
		return max(beatInterval, l.uncertain.Sub(now)) // Then it may be proven.
	}
	return max(0, l.uncertain.Sub(now))
}

// NobodyElseLeads reports whether no other process can lead yet after the end of a term: the
// elector gives up before the lease expires, unless this process was paused.
func (l *Leadership) NobodyElseLeads(now time.Time) bool { return l.NobodyElseLeadsFor(now) > 0 }

// NobodyElseLeadsFor returns for how long that is certain.
func (l *Leadership) NobodyElseLeadsFor(now time.Time) time.Duration {
	if !l.elected {
		return time.Hour
	}
	if l.uncertainFor(now) > 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading {
		return l.lease - l.deadline
	}
	return (l.lease-l.deadline)/2 - now.Sub(l.stoppedAt)
}

// either returns a context that ends when one of the two does.
func either(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// sleep reports whether the time passed before the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
