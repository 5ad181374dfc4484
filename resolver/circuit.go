// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// badInARow is the number of consecutive requests of a kind that hang or fail from which its
	// lookups are answered immediately.
	badInARow = 3
	// openFor is how long they are, before another request shows whether the kind works again.
	openFor = 5 * time.Second

	// leastHang is the shortest time after which a request without an answer counts as one that
	// hangs, and slownessOfHang is how many times longer than any answer lately it must take.
	leastHang      = 500 * time.Millisecond
	slownessOfHang = 4
	// speedTTL is how long the slowest answer counts.
	speedTTL = time.Minute
)

// circuit is a circuit breaker for the requests of one kind. A kind may hang because its conversion
// webhook is gone, or because its aggregated API server is. Then the events of its objects do not
// wait, nor do the events that come with them.
type circuit struct {
	bad     int        // consecutive requests that hang or fail
	failure Resolution // of the last one
	retry   time.Duration
}

// isOpen reports whether requests of the kind are not worth waiting for.
func (c *circuit) isOpen() bool { return c.bad >= badInARow }

// speed is how long the API server takes to answer.
type speed struct {
	slowest time.Duration
	since   time.Duration
}

// note notes a good answer.
func (s *speed) note(took, now time.Duration) {
	if took > s.slowest || now-s.since >= speedTTL {
		s.slowest, s.since = took, now
	}
}

// hangAfter returns after which time a request without an answer hangs.
func (l *limiter) hangAfter() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(leastHang, slownessOfHang*l.speed.slowest)
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

// noteResult notes the result of a request. isLate is set if it was already noted that it hangs.
func (l *limiter) noteResult(kind unique.Handle[schema.GroupKind], err error, took time.Duration, isLate bool) {
	switch failure := failureOf(err); failure {
	case Timeout, Unavailable:
		if !isLate {
			l.note(kind, failure)
		}
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.laneLocked(kind).circuit = circuit{}
		l.speed.note(took, l.now())
	}
}

// note notes a request that hangs or has failed.
func (l *limiter) note(kind unique.Handle[schema.GroupKind], failure Resolution) {
	if l.background.isClosed() {
		return
	}
	l.mu.Lock()
	of := l.laneLocked(kind)
	of.bad++
	of.failure = failure
	opens := of.bad == badInARow
	if opens {
		of.retry = l.now() + openFor
	}
	l.mu.Unlock()
	if opens {
		l.opened(kind, failure)
	}
}
