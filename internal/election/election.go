// SPDX-License-Identifier: Apache-2.0

// Package election decides whether this process leads: its terms, and the elector that begins and ends
// them.
package election

import (
	"context"
	"sync"
	"time"
)

const (
	// pausedAfter is the gap between two beats that counts as a pause.
	pausedAfter = 3 * time.Second
	// CertainAfter is the time after which the elector knows whether this process still leads: the
	// default of its renew_deadline, and a little more. The extension has no method that returns its own.
	CertainAfter = 13 * time.Second
	// leaseMargin is the time after a term in which no other process can lead: half of the time
	// between the defaults of renew_deadline and lease_duration.
	leaseMargin = 2500 * time.Millisecond
)

// Leadership reports whether this process is the one that emits. All receivers of one elector share
// it: see Join. Its methods may be called concurrently. It promises what client-go's election does:
// two processes can lead at once for a moment, and both then emit.
type Leadership struct {
	// elected reports whether an elector decides. Otherwise, this process always leads.
	elected bool

	// mu guards the following.
	mu      sync.Mutex
	leading bool
	last    *term         // of leading; nil: there was none
	changed chan struct{} // closed when leading changes
	// stoppedAt is the end of the last term.
	stoppedAt time.Time
	lastBeat  time.Time
	// pausedUntil is until when another process may lead because this one was paused.
	pausedUntil time.Time
}

// Term is a time in which this process leads. Without an elector, it is the life of the process.
type Term struct {
	// Stop is cancelled at the end of the term, or when the receiver is to stop. Drain is cancelled
	// at the end of the term, or when the grace period of the shutdown is over.
	Stop, Drain context.Context
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
func newLeadership() *Leadership {
	return &Leadership{elected: true, changed: make(chan struct{}), lastBeat: time.Now()}
}

// IsElected reports whether an elector decides which process leads.
func (l *Leadership) IsElected() bool { return l.elected }

// Started begins a term, which ends at the latest with the context. A start whose context has ended
// is ignored.
func (l *Leadership) Started(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading || ctx.Err() != nil {
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
	l.pausedUntil = time.Time{}
	l.announceLocked()
}

// Stopped ends the term, and waits until all its work has ended. So this process does not stand for
// election before.
func (l *Leadership) Stopped() {
	l.mu.Lock()
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
	return Term{Stop: termStop, Drain: termDrain}, sync.OnceFunc(func() {
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

// Beat proves at intervals that the process runs, until the context ends. A few beats may come late on
// a busy machine.
func (l *Leadership) Beat(ctx context.Context) {
	ticker := time.NewTicker(pausedAfter / 6)
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
// when it tries to renew.
func (l *Leadership) NoteBeat(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The monotonic clock stands still while a virtual machine is suspended, the wall clock does
	// not.
	gap := max(now.Sub(l.lastBeat), now.Round(0).Sub(l.lastBeat.Round(0)))
	if gap > pausedAfter {
		l.pausedUntil = now.Add(CertainAfter)
	}
	if now.After(l.lastBeat) {
		l.lastBeat = now
	}
}

// NobodyElseLeads reports whether no other process can lead yet: the elector gives up before the lease
// expires, unless this process was paused. The sums of two leaders at once would look like one series
// that jumps.
func (l *Leadership) NobodyElseLeads(now time.Time) bool {
	if !l.elected {
		return true
	}
	l.NoteBeat(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := now.Sub(l.stoppedAt)
	return !now.Before(l.pausedUntil) && (l.leading || ended < leaseMargin)
}

// Leads reports whether this process leads, as far as the elector knows.
func (l *Leadership) Leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.elected || l.leading
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
