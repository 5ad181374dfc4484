// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// badInARow is the number of consecutive requests of a kind that hang or fail from which its
	// lookups are answered immediately. A request that hangs on counts several times.
	badInARow = 3
	// openFor is how long they are, before another request shows whether the kind works again.
	openFor = 5 * time.Second

	// A request without an answer may count as one that hangs after leastHang, or after the timeout
	// of callers divided by hangShare if this is longer. It must also take hangFactor times longer
	// than the other answers of its kind.
	leastHang  = 100 * time.Millisecond
	hangShare  = 20
	hangFactor = 4
	// overtakers is how many consistent requests of other kinds that were sent later must have been
	// answered by then. Otherwise the API server as a whole may be slow, and the request hangs only
	// after the time that callers wait. What the watch cache answers shows nothing: it answers even
	// when etcd does not.
	overtakers = 3
	// checkAgain is how long to wait before checking again whether a request hangs.
	checkAgain = 20 * time.Millisecond
	// slowestTTL is how long the slowest answer counts.
	slowestTTL = 10 * time.Minute
)

// circuit is a circuit breaker for the requests of one kind. A kind may hang because its conversion
// webhook is gone, or because its aggregated API server is. Then the events of its objects do not
// wait, nor do the events that come with them.
//
// Each request of an object is a flight. When it takes long, its timer fires (check). If requests
// of other kinds that were sent later have been answered, it hangs; if there are none, some are
// repeated (overtake). Three bad results in a row open the circuit: the callers get an answer. From
// then on, an object is read every few seconds (probe), until a request is answered. It is not
// always the same object, because a single one may be unreadable.
type circuit struct {
	bad     int                         // consecutive requests that hang or fail
	failure Resolution                  // of the last one
	suspect func(context.Context) error // repeats the last one, or reads what was last refused
	probing bool                        // until it is answered

	answered [overtakers]int             // the numbers of the last consistent requests that were answered
	repeat   func(context.Context) error // one of them, for an object; nil: there was none
	slowest  time.Duration               // answer since then
	since    time.Duration
}

// isOpen reports whether requests of the kind are not worth waiting for.
func (c *circuit) isOpen() bool { return c.bad >= badInARow }

// flight is a request that was sent.
type flight struct {
	limiter *limiter
	request *request
	number  int
	sentAt  time.Time

	// limiter.mu guards the following.
	timer *time.Timer // for the next check whether it hangs
	hangs bool
	ended bool
}

func (l *limiter) beginFlight(r *request) *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	f := &flight{limiter: l, request: r, number: l.sent, sentAt: time.Now()}
	f.timer = time.AfterFunc(f.hangAfterLocked(), f.check)
	return f
}

// leastHang returns the shortest time after which a request may hang.
func (l *limiter) leastHang() time.Duration { return max(leastHang, l.timeout/hangShare) }

// hangAfterLocked returns after which time the request may hang.
func (f *flight) hangAfterLocked() time.Duration {
	l := f.limiter
	after := l.leastHang()
	if of := l.laneLocked(f.request.kind); l.now()-of.since < slowestTTL {
		after = max(after, min(hangFactor*of.slowest, l.timeout))
	}
	if f.request.onHang != nil {
		after *= badInARow // It counts once, and a list takes longer than an object.
	}
	return after
}

// check notes that the request hangs, if it does, or checks again later.
func (f *flight) check() {
	l := f.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.ended {
		return
	}
	// Requests that were sent together may have been answered meanwhile, and only a little sooner.
	if wait := f.hangAfterLocked() - time.Since(f.sentAt); wait > 0 {
		f.timer.Reset(wait)
		return
	}
	if !l.isOvertakenLocked(f) && time.Since(f.sentAt) < l.timeout {
		l.overtakeLocked(f.request.kind)
		f.timer.Reset(checkAgain)
		return
	}
	f.hangs = true
	if f.request.onHang != nil {
		l.background.run(f.request.onHang)
		return
	}
	l.noteBadLocked(f.request, Timeout)
	f.timer.Reset(l.leastHang()) // If it hangs on, it counts again.
}

// overtakeLocked repeats requests for an object of another kind, one after the other. If these are
// answered, the API server works.
func (l *limiter) overtakeLocked(suspect unique.Handle[schema.GroupKind]) {
	for kind, of := range l.lanes {
		if kind == suspect || of.repeat == nil || of.bad > 0 || l.overtaking || time.Now().Before(of.paused) {
			continue
		}
		repeated := l.repeated(kind, of.repeat)
		l.overtaking = l.background.run(func() { l.overtake(repeated) })
	}
}

func (l *limiter) overtake(r *request) {
	for range overtakers {
		f := l.beginFlight(r)
		took, after, err := l.do(r.repeat)
		if after > 0 && err != nil {
			f.endPaused(after, false)
			break
		}
		f.end(true, err, took)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overtaking = false
}

// repeated returns a request that repeats another one.
func (l *limiter) repeated(kind unique.Handle[schema.GroupKind], repeat func(context.Context) error) *request {
	return &request{
		kind: kind, isConsistent: true, repeat: repeat,
		isNeeded: func() bool { return !l.background.isClosed() },
		send:     func(ctx context.Context) (works bool, err error) { return true, repeat(ctx) },
	}
}

// isOvertakenLocked reports whether requests of other kinds that were sent later have been
// answered.
func (l *limiter) isOvertakenLocked(f *flight) bool {
	later := 0
	for kind, of := range l.lanes {
		for _, number := range of.answered {
			if kind != f.request.kind && number > f.number {
				later++
			}
		}
	}
	return later >= overtakers
}

// end notes the result of the request, and whether it shows that the kind works.
func (f *flight) end(works bool, err error, took time.Duration) {
	l := f.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	f.ended = true
	f.timer.Stop()
	switch failure := failureOf(err); failure {
	case Timeout, Unavailable:
		if !f.hangs {
			l.noteBadLocked(f.request, failure)
		}
	default:
		if works || failure == Forbidden {
			l.laneLocked(f.request.kind).noteGood(f, err, took, l.now())
		}
	}
}

// endPaused notes that the API server wants the request later. isTooLate is set if this is later
// than callers wait.
func (f *flight) endPaused(after time.Duration, isTooLate bool) {
	l := f.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	f.ended = true
	f.timer.Stop()
	l.pauseLocked(f.request.kind, after)
	if isTooLate && !f.hangs {
		l.noteBadLocked(f.request, Unavailable)
	}
}

// noteGood notes an answer.
func (c *circuit) noteGood(f *flight, err error, took, now time.Duration) {
	c.bad = 0
	if f.request.isConsistent {
		copy(c.answered[:], c.answered[1:])
		c.answered[overtakers-1] = f.number
	}
	if err == nil && f.request.repeat != nil {
		c.repeat = f.request.repeat
	}
	if took > c.slowest || now-c.since >= slowestTTL {
		c.slowest, c.since = took, now
	}
}

// noteBadLocked notes a request that hangs or has failed. A list shows nothing about single reads.
func (l *limiter) noteBadLocked(r *request, failure Resolution) {
	if l.background.isClosed() || r.repeat == nil {
		return
	}
	of := l.laneLocked(r.kind)
	of.bad++
	of.failure, of.suspect = failure, r.repeat
	if of.bad == badInARow {
		reached.State("lookups of a kind are not worth waiting for")
		l.background.run(func() { l.opened(r.kind, failure) })
	}
	if of.isOpen() && !of.probing {
		of.probing = l.background.run(func() { l.probe(r.kind) })
	}
}

// probe reads an object of a kind from time to time, until a request is answered: in turn one that
// was read before, and the suspect.
func (l *limiter) probe(kind unique.Handle[schema.GroupKind]) {
	for i := 0; ; i++ {
		select {
		case <-time.After(openFor):
		case <-l.background.ctx.Done():
			return
		}
		l.mu.Lock()
		of := l.laneLocked(kind)
		isOpen, object := of.isOpen(), of.suspect
		if i%2 == 0 && of.repeat != nil {
			object = of.repeat
		}
		of.probing = isOpen
		l.mu.Unlock()
		if !isOpen {
			return
		}
		_ = l.send(l.repeated(kind, object))
	}
}

// refuses returns the failure of lookups of a kind that are not worth waiting for; empty if they
// are. A request that the API server does not want before the caller's time is up is not worth
// waiting for either. read would read the object.
func (l *limiter) refuses(kind unique.Handle[schema.GroupKind], read func(context.Context) error) Resolution {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.laneLocked(kind)
	switch {
	case of.isOpen():
		of.suspect = read
		return of.failure
	case time.Until(of.paused) > l.timeout:
		return Unavailable
	default:
		return ""
	}
}
