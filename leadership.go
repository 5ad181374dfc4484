// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

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

// leadership tells whether this process is the one that emits. Its methods may be called concurrently.
type leadership struct {
	// lease is how long the others take a leader for alive that says nothing, and patience how long a leader takes itself
	// for one that cannot renew its lease.
	lease, patience time.Duration

	// mu guards the following.
	mu        sync.Mutex
	leading   bool
	term      context.Context // ends with the leadership
	endTerm   context.CancelFunc
	changed   chan struct{} // closed when leading changes
	ended     chan struct{} // closed when the work of the last term has ended; nil: none began
	stoppedAt time.Time     // when the last term ended
	lastBeat  time.Time
	doubtful  time.Time // until then it is doubtful whether a leader that was paused still is one
}

func newLeadership(lease, patience time.Duration) *leadership {
	return &leadership{lease: lease, patience: patience, changed: make(chan struct{}), lastBeat: time.Now()}
}

// started begins a term. A start whose context has ended is ignored: its end was reported before.
func (l *leadership) started(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading || ctx.Err() != nil {
		return
	}
	l.leading = true
	l.term, l.endTerm = context.WithCancel(context.Background())
	l.doubtful = time.Time{}
	l.announceLocked()
}

// stopped ends the term and waits until its work has ended, so that this process does not run for the next term before.
func (l *leadership) stopped() {
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

func (l *leadership) announceLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// begin returns the context of the present term, and what has to be called when its work has ended; ok is false when this
// process does not lead.
func (l *leadership) begin() (term context.Context, end func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leading {
		return nil, nil, false
	}
	ended := make(chan struct{})
	l.ended = ended
	return l.term, sync.OnceFunc(func() { close(ended) }), true
}

// change is closed when this process starts or stops leading.
func (l *leadership) change() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// beat proves at intervals that the process runs, until the context ends.
func (l *leadership) beat(ctx context.Context) {
	ticker := time.NewTicker(beatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			l.noteBeat(now)
		}
	}
}

// noteBeat takes a gap for a pause of the process. It may have outlasted the lease, and the elector learns of that only
// once it has tried to renew it, so until then nobody knows who leads.
func (l *leadership) noteBeat(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The monotonic clock stands still while a virtual machine is suspended, the wall clock does not.
	gap := max(now.Sub(l.lastBeat), now.Round(0).Sub(l.lastBeat.Round(0)))
	if gap > pausedAfter {
		l.doubtful = now.Add(l.patience + pausedAfter)
	}
	if now.After(l.lastBeat) {
		l.lastBeat = now
	}
}

// leads says whether this process leads.
func (l *leadership) leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading
}

// certainIn is how long to wait until it is certain that a leader leads; 0 means now.
func (l *leadership) certainIn(now time.Time) time.Duration {
	l.noteBeat(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.doubtful.Sub(now))
}

// nobodyElseLeads reports whether no other process can lead yet after the end of a term: the elector
// gives up before the lease expires, unless this process was paused.
func (l *leadership) nobodyElseLeads(now time.Time) bool {
	if l.certainIn(now) > 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading || now.Sub(l.stoppedAt) < (l.lease-l.patience)/2
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

// mayEmit reports whether this process is certain to be the one that emits.
func (r *eventsReceiver) mayEmit() bool {
	return r.leadership == nil || r.leadership.leads() && r.leadership.certainIn(time.Now()) == 0
}

// awaitCertainty waits, after a pause of this process, until it is certain whether it still leads, and
// reports whether it does. It reports false if stop ends before.
func (r *eventsReceiver) awaitCertainty(stop context.Context) bool {
	if r.leadership == nil {
		return true
	}
	for {
		uncertain := r.leadership.certainIn(time.Now())
		if uncertain == 0 {
			return r.leadership.leads()
		}
		if !sleep(stop, uncertain) {
			return false
		}
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
