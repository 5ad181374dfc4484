// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// badInARow is the number of consecutive requests of a kind that hang or fail from which its
	// lookups are answered immediately. A request that hangs on counts several times.
	badInARow = 3
	// openFor is how long they are, before another request shows whether the kind works again.
	openFor = 5 * time.Second

	// leastHang is the shortest time after which a request without an answer may count as one that
	// hangs, and hangFactor how many times longer than the other answers of its kind it must take.
	leastHang  = 100 * time.Millisecond
	hangFactor = 4
	// overtakers is how many requests of other kinds that were sent later must have been answered by
	// then. Otherwise the API server as a whole may be slow, and the request hangs only after a part
	// of the time that callers wait.
	overtakers     = 3
	partOfPatience = 4
	// lookAgain is how long to wait before looking again whether a request hangs.
	lookAgain = 20 * time.Millisecond
	// slowestTTL is how long the slowest answer counts.
	slowestTTL = time.Minute
)

// circuit is a circuit breaker for the requests of one kind. A kind may hang because its conversion
// webhook is gone, or because its aggregated API server is. Then the events of its objects do not
// wait, nor do the events that come with them.
type circuit struct {
	bad     int        // consecutive requests that hang or fail
	failure Resolution // of the last one
	retry   time.Duration

	answered [overtakers]int             // the numbers of the last requests that were answered
	repeat   func(context.Context) error // one of them, for an object; nil: there was none
	slowest  time.Duration               // answer since then
	since    time.Duration
}

// isOpen reports whether requests of the kind are not worth waiting for.
func (c *circuit) isOpen() bool { return c.bad >= badInARow }

// flight is a request that was sent.
type flight struct {
	limiter *limiter
	kind    unique.Handle[schema.GroupKind]
	number  int
	sentAt  time.Time

	// limiter.mu guards the following.
	timer *time.Timer // for the next look at whether it hangs
	hangs bool
	ended bool
}

func (l *limiter) beginFlight(kind unique.Handle[schema.GroupKind]) *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	f := &flight{limiter: l, kind: kind, number: l.sent, sentAt: time.Now()}
	f.timer = time.AfterFunc(l.hangAfterLocked(kind), f.look)
	return f
}

// hangAfterLocked returns after which time a request of the kind may hang.
func (l *limiter) hangAfterLocked(kind unique.Handle[schema.GroupKind]) time.Duration {
	of := l.laneLocked(kind)
	if l.now()-of.since >= slowestTTL {
		return leastHang
	}
	return max(leastHang, hangFactor*of.slowest)
}

// look notes that the request hangs, if it does, or looks again later.
func (f *flight) look() {
	l := f.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.ended {
		return
	}
	if !l.isOvertakenLocked(f) && time.Since(f.sentAt) < l.patience/partOfPatience {
		l.overtakeLocked(f.kind)
		f.timer.Reset(lookAgain)
		return
	}
	f.hangs = true
	l.noteBadLocked(f.kind, Timeout)
	f.timer.Reset(leastHang) // If it hangs on, it counts again.
}

// overtakeLocked repeats requests for an object of another kind, one after the other. If these are
// answered, the API server works.
func (l *limiter) overtakeLocked(suspect unique.Handle[schema.GroupKind]) {
	for kind, of := range l.lanes {
		if kind == suspect || of.repeat == nil || of.bad > 0 || l.overtaking {
			continue
		}
		l.overtaking = l.background.run(func() { l.overtake(kind, of.repeat) })
	}
}

func (l *limiter) overtake(kind unique.Handle[schema.GroupKind], request func(context.Context) error) {
	for range overtakers {
		f := l.beginFlight(kind)
		took, _, err := l.do(request)
		f.end(err == nil, err, took)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overtaking = false
}

// isOvertakenLocked reports whether requests of other kinds that were sent later have been answered.
func (l *limiter) isOvertakenLocked(f *flight) bool {
	later := 0
	for kind, of := range l.lanes {
		for _, number := range of.answered {
			if kind != f.kind && number > f.number {
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
			l.noteBadLocked(f.kind, failure)
		}
	default:
		if works {
			l.laneLocked(f.kind).noteGood(f.number, took, l.now())
		}
	}
}

// noteGood notes an answer.
func (c *circuit) noteGood(number int, took, now time.Duration) {
	c.bad = 0
	copy(c.answered[:], c.answered[1:])
	c.answered[overtakers-1] = number
	if took > c.slowest || now-c.since >= slowestTTL {
		c.slowest, c.since = took, now
	}
}

// noteBadLocked notes a request that hangs or has failed.
func (l *limiter) noteBadLocked(kind unique.Handle[schema.GroupKind], failure Resolution) {
	if l.background.isClosed() {
		return
	}
	of := l.laneLocked(kind)
	of.bad++
	of.failure = failure
	if of.bad == badInARow {
		of.retry = l.now() + openFor
		l.background.run(func() { l.opened(kind, failure) })
	}
}

// refuses returns the failure of lookups of a kind that are not worth waiting for; empty if they
// are. A request that the API server does not want before the caller's time is up is not worth
// waiting for either.
func (l *limiter) refuses(kind unique.Handle[schema.GroupKind], patience time.Duration) Resolution {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.laneLocked(kind)
	switch {
	case of.isOpen():
		return of.failure
	case time.Until(of.paused) > patience:
		return Unavailable
	default:
		return ""
	}
}

// probes reports whether a request is to show whether a kind works again. The caller must send it.
func (l *limiter) probes(kind unique.Handle[schema.GroupKind]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.laneLocked(kind)
	if !of.isOpen() || l.now() < of.retry {
		return false
	}
	of.retry = l.now() + openFor
	return true
}
