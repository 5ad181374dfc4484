// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"sync"
	"time"
)

const (
	// beatInterval is how often the process proves to itself that it was not paused.
	beatInterval = 500 * time.Millisecond
	// pausedAfter is the gap between two beats that counts as a pause.
	pausedAfter = 3 * time.Second
)

// Leadership reports whether this process is the one that emits. Its methods may be called
// concurrently.
type Leadership struct {
	// elected reports whether an elector decides. Otherwise, this process always leads.
	elected bool
	// lease is the time without renewal after which another process may lead, and deadline that
	// after which the leader stops.
	lease, deadline time.Duration

	// mu guards the following.
	mu        sync.Mutex
	leading   bool
	term      context.Context // ends with the leadership
	endTerm   context.CancelFunc
	changed   chan struct{} // closed when leading changes
	ended     chan struct{} // closed when the work of the last term has ended; nil: none began
	stoppedAt time.Time     // when the last term ended
	lastBeat  time.Time
	// uncertain is until when it is not certain that a leader that was paused still leads.
	uncertain time.Time
}

// Term is a time in which this process leads. Without an elector, it is the life of the process.
type Term struct {
	// Stop is cancelled at the end of the term, or when the receiver is to stop. Drain is cancelled
	// at the end of the term, or when the grace period of the shutdown is over.
	Stop, Drain context.Context
	Begins      bool // whether the term has just begun
}

// AlwaysLeads returns the leadership of a process without an elector.
func AlwaysLeads() *Leadership { return &Leadership{} }

// NewLeadership returns the leadership of a process that an elector has not made a leader yet.
// lease and deadline are the elector's LeaseDuration and RenewDeadline.
func NewLeadership(lease, deadline time.Duration) *Leadership {
	return &Leadership{
		elected: true, lease: lease, deadline: deadline,
		changed: make(chan struct{}), lastBeat: time.Now(),
	}
}

// LeaseDuration returns the time without renewal after which another process may lead.
func (l *Leadership) LeaseDuration() time.Duration { return l.lease }

// IsElected reports whether an elector decides which process leads.
func (l *Leadership) IsElected() bool { return l.elected }

// Started begins a term. A start whose context has ended is ignored: its end was reported before.
func (l *Leadership) Started(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading || ctx.Err() != nil {
		return
	}
	l.leading = true
	l.term, l.endTerm = context.WithCancel(context.Background())
	l.uncertain = time.Time{}
	l.announceLocked()
}

// Stopped ends the term, and waits until its work has ended. So this process does not stand for
// election before.
func (l *Leadership) Stopped() {
	l.mu.Lock()
	if !l.leading {
		l.mu.Unlock()
		return
	}
	l.leading, l.stoppedAt = false, time.Now()
	l.endTerm()
	ended := l.ended
	l.announceLocked()
	l.mu.Unlock()
	if ended != nil {
		<-ended
	}
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
	ended := make(chan struct{})
	l.ended = ended
	termStop, cancelStop := either(stop, l.term)
	termDrain, cancelDrain := either(drain, l.term)
	return Term{Stop: termStop, Drain: termDrain, Begins: true}, sync.OnceFunc(func() {
		cancelStop()
		cancelDrain()
		close(ended)
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

// Leads reports whether this process leads, as far as the elector knows.
func (l *Leadership) Leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.elected || l.leading
}

// CertainlyLeads reports whether this process leads, and was not paused: after a pause, another
// process may lead.
func (l *Leadership) CertainlyLeads() bool { return l.Leads() && l.uncertainFor(time.Now()) == 0 }

// WaitUntilCertain waits, after a pause of this process, until it is certain whether it still
// leads, and reports whether it does. It reports false if the context ends before.
func (l *Leadership) WaitUntilCertain(ctx context.Context) bool {
	for {
		wait := l.uncertainFor(time.Now())
		if wait == 0 {
			return l.Leads()
		}
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
