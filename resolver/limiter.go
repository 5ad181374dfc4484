// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
)

// shareOfKind is the part of the request slots that one kind may use. So a kind whose requests hang
// leaves most of them to the others.
const shareOfKind = 4

// limiter decides when requests are sent: how many at a time, how many of one kind, how many per
// second, and in which order. Those of the climbs that have progressed furthest come first, because
// these climbs have waited longest. client-go's own rate limiter is not used: it knows no order,
// and a request that waits there cannot be distinguished from one that was sent.
type limiter struct {
	slots      int
	slotsOfOne int                     // of one kind
	rate       flowcontrol.RateLimiter // nil: no limit

	mu       sync.Mutex // guards the following, and the lanes
	inFlight int
	lanes    map[unique.Handle[schema.GroupKind]]*lane
	arrived  int         // requests that have asked for a slot so far
	unused   int         // permits of the rate that were not used
	wake     *time.Timer // for the next permit of the rate; nil: none is awaited
}

// lane has the requests of one kind.
type lane struct {
	inFlight int
	waiting  []*waiter // the next one first
	paused   time.Time // until then, the API server wants no request
}

// waiter is a request that waits for a slot.
type waiter struct {
	level   int
	arrival int
	granted chan struct{} // closed when the request may be sent
}

// compare returns a negative number if the request goes before the other one.
func (w *waiter) compare(other *waiter) int {
	return cmp.Or(cmp.Compare(other.level, w.level), cmp.Compare(w.arrival, other.arrival))
}

func newLimiter(concurrency int, rate flowcontrol.RateLimiter) *limiter {
	return &limiter{
		slots: concurrency, slotsOfOne: slotsOfKind(concurrency), rate: rate,
		lanes: make(map[unique.Handle[schema.GroupKind]]*lane),
	}
}

// slotsOfKind returns how many of the slots one kind may use.
func slotsOfKind(concurrency int) int { return max(1, concurrency/shareOfKind) }

// acquire waits for a slot. It returns false if ctx is done first.
func (l *limiter) acquire(ctx context.Context, kind unique.Handle[schema.GroupKind], level int) bool {
	w := &waiter{level: level, granted: make(chan struct{})}
	l.mu.Lock()
	l.arrived++
	w.arrival = l.arrived
	of := l.laneLocked(kind)
	at, _ := slices.BinarySearchFunc(of.waiting, w, (*waiter).compare)
	of.waiting = slices.Insert(of.waiting, at, w)
	l.grantLocked()
	l.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-ctx.Done():
		return false
	}
}

// release returns a slot, and the permit of the rate if it was not used.
func (l *limiter) release(kind unique.Handle[schema.GroupKind], used bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	l.laneLocked(kind).inFlight--
	if !used && l.rate != nil {
		l.unused++
	}
	l.grantLocked()
}

// pause lets the requests of a kind wait.
func (l *limiter) pause(kind unique.Handle[schema.GroupKind], wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.laneLocked(kind)
	if until := time.Now().Add(wait); until.After(of.paused) {
		of.paused = until
	}
	time.AfterFunc(wait, l.grant)
}

// pausedFor returns how long the requests of a kind still wait because of a pause.
func (l *limiter) pausedFor(kind unique.Handle[schema.GroupKind]) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.laneLocked(kind).paused)
}

// grant is called when requests may be sent that could not be sent before.
func (l *limiter) grant() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake != nil {
		l.wake.Stop()
		l.wake = nil
	}
	l.grantLocked()
}

func (l *limiter) laneLocked(kind unique.Handle[schema.GroupKind]) *lane {
	of := l.lanes[kind]
	if of == nil {
		of = &lane{}
		l.lanes[kind] = of
	}
	return of
}

// grantLocked lets waiting requests be sent, as many as the limits permit.
func (l *limiter) grantLocked() {
	for l.inFlight < l.slots {
		next := l.nextLocked()
		if next == nil || !l.hasPermitLocked() {
			return
		}
		next.inFlight++
		l.inFlight++
		close(next.waiting[0].granted)
		next.waiting = slices.Delete(next.waiting, 0, 1)
	}
}

// nextLocked returns the lane of the request that is sent next; nil if none may be sent.
func (l *limiter) nextLocked() *lane {
	var next *lane
	now := time.Now()
	for _, of := range l.lanes {
		if len(of.waiting) > 0 && of.inFlight < l.slotsOfOne && !now.Before(of.paused) &&
			(next == nil || of.waiting[0].compare(next.waiting[0]) < 0) {
			next = of
		}
	}
	return next
}

// hasPermitLocked takes a permit of the rate limit. If there is none, it tries again later.
func (l *limiter) hasPermitLocked() bool {
	switch {
	case l.unused > 0: // These first: otherwise they would add up to more than the user permits.
		l.unused--
		return true
	case l.rate == nil || l.rate.TryAccept():
		return true
	case l.wake == nil:
		interval := time.Duration(float64(time.Second) / max(float64(l.rate.QPS()), 0.001))
		l.wake = time.AfterFunc(interval, l.grant)
	}
	return false
}
