// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// requestTimeout is the maximum duration of one request. A request without callers continues in
	// the background and keeps its slot.
	requestTimeout = 10 * time.Second
	// shareOfKind is the part of the request slots that one kind may use. So a kind whose requests
	// hang leaves most of them to the others.
	shareOfKind = 4
)

// errNotSent is the error of a request that no caller needed any more before the resolver could
// send it.
var errNotSent = errors.New("not sent: no longer needed")

// limiter decides when requests are sent: how many at a time, how many of one kind, how many per
// second, and in which order. Those of the climbs that have progressed furthest come first, because
// these climbs have waited longest. client-go's own rate limiter is not used: it knows no order,
// and a request that waits there cannot be distinguished from one that was sent.
type limiter struct {
	background *background
	slots      int
	slotsOfOne int                     // of one kind
	rate       flowcontrol.RateLimiter // nil: no limit
	observer   Observer
	now        func() time.Duration
	// opened is called when the circuit of a kind opens.
	opened  func(kind unique.Handle[schema.GroupKind], failure Resolution)
	timeout time.Duration // how long callers wait

	mu       sync.Mutex // guards the following
	inFlight int
	lanes    map[unique.Handle[schema.GroupKind]]*lane
	arrived  int         // requests that have asked for a slot so far
	unused   int         // permits of the rate that were not used
	wake     *time.Timer // for the next permit of the rate; nil: none is awaited
	sent     int         // requests that were sent so far
	// overtaking is set while requests are repeated to see whether the API server works.
	overtaking bool
}

// lane has the requests of one kind. limiter.mu guards it.
type lane struct {
	circuit
	inFlight int
	waiting  waiters
	paused   time.Time // until then, the API server wants no request
}

// waiter is a request that waits for a slot.
type waiter struct {
	level   int
	arrival int
	granted chan struct{} // closed when the request may be sent
}

func newLimiter(b *background, cfg Config, rate flowcontrol.RateLimiter, now func() time.Duration,
	opened func(unique.Handle[schema.GroupKind], Resolution),
) *limiter {
	return &limiter{
		background: b, rate: rate, observer: cfg.Observer, now: now, opened: opened, timeout: cfg.LookupTimeout,
		slots: cfg.Concurrency, slotsOfOne: max(1, cfg.Concurrency/shareOfKind),
		lanes: make(map[unique.Handle[schema.GroupKind]]*lane),
	}
}

// request is a request for objects of a kind.
type request struct {
	kind     unique.Handle[schema.GroupKind]
	level    int
	isNeeded func() bool // when it is about to be sent
	// send sends it. It returns whether the answer shows that the kind works: that the API server's
	// watch cache does not have an object shows nothing.
	send func(context.Context) (works bool, err error)
	// isConsistent is set if the watch cache may not answer.
	isConsistent bool
	// repeat reads the same object consistently; nil for a list.
	repeat func(context.Context) error
	// onHang is called once if a list hangs. This shows nothing about single reads.
	onHang func()
}

// send sends a request as soon as the limits permit, if it is still needed then. Once sent, it ends
// at its timeout or at Close. If the API server asks to repeat it later (Retry-After), it waits
// without a slot. If it asks for longer than callers wait, the request counts as one that fails.
func (l *limiter) send(r *request) error {
	for waited := time.Duration(0); ; {
		if !l.acquire(r.kind, r.level) {
			return errNotSent
		}
		if !r.isNeeded() {
			l.release(r.kind, false)
			return errNotSent
		}
		f, works := l.beginFlight(r), false
		took, after, err := l.do(func(ctx context.Context) (err error) {
			works, err = r.send(ctx)
			return err
		})
		l.release(r.kind, true)
		if after > 0 && err != nil {
			waited += after
			f.endPaused(after, waited >= l.timeout)
			continue
		}
		f.end(works, err, took)
		return err
	}
}

// sendUnlimited sends a request for a discovery document. It needs no slot.
func (l *limiter) sendUnlimited(request func(context.Context) error) error {
	for {
		_, after, err := l.do(request)
		if after <= 0 || err == nil {
			return err
		}
		select {
		case <-time.After(after):
		case <-l.background.ctx.Done():
			return err
		}
	}
}

// do sends a request. after is when the API server asks to repeat it; 0 if it does not.
func (l *limiter) do(request func(context.Context) error) (took, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(l.background.ctx, requestTimeout)
	defer cancel()
	ctx, retryAfter := noteRetryAfter(ctx)
	sentAt := time.Now()
	err = request(ctx)
	took = time.Since(sentAt)
	// A request that Close ended says nothing about the API server.
	if l.observer != nil && !l.background.isClosed() {
		l.observer.LookupDone(string(cmp.Or(failureOf(err), "found")), took)
	}
	return took, *retryAfter, err
}

// acquire waits for a slot. It returns false if the resolver is closed first.
func (l *limiter) acquire(kind unique.Handle[schema.GroupKind], level int) bool {
	w := &waiter{level: level, granted: make(chan struct{})}
	l.mu.Lock()
	l.arrived++
	w.arrival = l.arrived
	heap.Push(&l.laneLocked(kind).waiting, w)
	l.grantLocked()
	l.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-l.background.ctx.Done():
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

// pauseLocked lets the requests of a kind wait.
func (l *limiter) pauseLocked(kind unique.Handle[schema.GroupKind], wait time.Duration) {
	of := l.laneLocked(kind)
	if until := time.Now().Add(wait); until.After(of.paused) {
		of.paused = until
	}
	time.AfterFunc(wait, l.grant)
}

func (l *limiter) grant() {
	l.mu.Lock()
	defer l.mu.Unlock()
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
		close(heap.Pop(&next.waiting).(*waiter).granted)
	}
}

// nextLocked returns the lane of the request that is sent next; nil if none may be sent.
func (l *limiter) nextLocked() *lane {
	var next *lane
	now := time.Now()
	for _, of := range l.lanes {
		if len(of.waiting) > 0 && of.inFlight < l.slotsOfOne && !now.Before(of.paused) &&
			(next == nil || of.waiting[0].isBefore(next.waiting[0])) {
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
		l.wake = time.AfterFunc(interval, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.wake = nil
			l.grantLocked()
		})
	}
	return false
}

// waiters is a heap of requests, for container/heap.
type waiters []*waiter

func (w *waiter) isBefore(other *waiter) bool {
	return cmp.Or(cmp.Compare(other.level, w.level), cmp.Compare(w.arrival, other.arrival)) < 0
}

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, j int) bool { return w[i].isBefore(w[j]) }
func (w waiters) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *waiters) Push(x any)        { *w = append(*w, x.(*waiter)) }
func (w *waiters) Pop() any {
	last := len(*w) - 1
	popped := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return popped
}
