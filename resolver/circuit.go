// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// failuresInARow is the number of consecutive reads of a kind that fail from which its lookups are
// answered immediately, for transientFailureTTL. Then another read shows whether the kind works again.
const failuresInARow = 3

// circuit is a circuit breaker for the single reads of one kind: a counter of failures and a timer.
// It has two states:
//
//	closed    Callers wait for the reads of the kind. While there are any, the timer fires when none
//	          of them has been answered for as long as callers wait: the kind hangs.
//	open      Callers get an answer immediately. The timer fires every 5 s: one object is read, in turn
//	          one that was answered before, and one that callers want: a single object may be
//	          unreadable. The answer to any read closes the circuit.
type circuit struct {
	failures int        // consecutive ones
	failure  Resolution // the last one
	opened   time.Time  // the last time; what becomes of earlier reads counts only if they are answered
	timer    *time.Timer
	wanted   target // the last object that was read, or that callers wanted
	sample   target // the last object whose read was answered; zero: there is none
	// tried is set if the sample was read last of the two, since the circuit was opened.
	tried bool
	// rereading is set while an object is read again that no caller waits for.
	rereading bool

	inFlight int       // reads since the circuit was opened
	since    time.Time // when the last answer came, or when the first of these reads was sent
}

// isOpen reports whether reads of the kind are not worth waiting for.
func (c *circuit) isOpen() bool { return c.failures >= failuresInARow }

// circuits has the circuits of all kinds. A kind may hang because its conversion webhook is gone,
// or because its aggregated API server is. Then the events of its objects do not wait, nor do the
// events that come with them.
//
// A kind that begins to hang delays the batch that needs it by as long as callers wait. Whether it
// hangs cannot be known earlier: on a busy machine, an answer may take a second.
type circuits struct {
	background *background
	timeout    time.Duration // how long callers wait
	// reread reads an object again, consistently. The result counts as any other.
	reread func(target)
	// opened is called when the circuit of a kind opens.
	opened func(kind unique.Handle[schema.GroupKind], failure Resolution)

	mu    sync.Mutex // guards the following, and the circuits
	kinds map[unique.Handle[schema.GroupKind]]*circuit
}

func (c *circuits) ofLocked(kind unique.Handle[schema.GroupKind]) *circuit {
	of := c.kinds[kind]
	if of == nil {
		of = &circuit{}
		of.timer = time.AfterFunc(c.timeout, func() { c.fire(kind) })
		of.timer.Stop()
		c.kinds[kind] = of
	}
	return of
}

// begin must be called when the read of an object is sent, and end when it has ended.
func (c *circuits) begin(t target) (sentAt time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, sentAt := c.ofLocked(t.kind.Name), time.Now()
	if !of.rereading { // Else it may be the sample, which would replace what callers want.
		of.wanted = t
	}
	if of.inFlight++; of.inFlight == 1 {
		of.since = sentAt
		c.watchLocked(of)
	}
	return sentAt
}

// watchLocked sets the timer of a closed circuit to when the kind hangs.
func (c *circuits) watchLocked(of *circuit) {
	if !of.isOpen() {
		of.timer.Reset(time.Until(of.since.Add(c.timeout)))
	}
}

// outcome is what the end of a read shows.
type outcome struct {
	works   bool // The kind is answered.
	failure Resolution
}

// end notes the end of a read.
func (c *circuits) end(t target, sentAt time.Time, o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, now := c.kinds[t.kind.Name], time.Now()
	isCounted := sentAt.After(of.opened)
	if isCounted {
		of.inFlight--
	}
	switch {
	case o.works:
		of.sample = t
		of.failures, of.since = 0, now
	case o.failure != "" && isCounted:
		c.failLocked(of, o.failure, 1)
	}
	if of.inFlight > 0 {
		c.watchLocked(of)
	} else if !of.isOpen() {
		of.timer.Stop()
	}
}

// failLocked counts failures. It opens the circuit if they are enough.
func (c *circuits) failLocked(of *circuit, failure Resolution, n int) {
	if c.background.isClosed() {
		return
	}
	wasOpen := of.isOpen()
	of.failures, of.failure = of.failures+n, failure
	if of.isOpen() && !wasOpen {
		reached.State("lookups of a kind are not worth waiting for")
		of.opened, of.inFlight, of.tried = time.Now(), 0, false
		of.timer.Reset(transientFailureTTL)
		kind := of.wanted.kind.Name
		c.background.run(func() { c.opened(kind, failure) })
	}
}

// fire is called by the timer of a kind.
func (c *circuits) fire(kind unique.Handle[schema.GroupKind]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.kinds[kind]
	switch {
	case of.isOpen():
		c.rereadLocked(of)
	case of.inFlight == 0:
	case time.Since(of.since) < c.timeout: // An answer has come in the meantime.
		c.watchLocked(of)
	default:
		c.failLocked(of, Timeout, failuresInARow)
	}
}

// rereadLocked reads an object of an open kind again.
func (c *circuits) rereadLocked(of *circuit) {
	if of.rereading {
		return
	}
	t := of.wanted
	if of.tried = !of.tried && of.sample.kind != nil; of.tried {
		t = of.sample
	}
	of.rereading = c.background.run(func() {
		c.reread(t)
		c.mu.Lock()
		defer c.mu.Unlock()
		of.rereading = false
		if of.isOpen() {
			of.timer.Reset(transientFailureTTL)
		}
	})
}

// refuses returns the failure of lookups of a kind that are not worth waiting for; empty if they
// are. It notes the object, which is read to find out whether the kind works again.
func (c *circuits) refuses(t target) Resolution {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.kinds[t.kind.Name]
	if of == nil || !of.isOpen() {
		return ""
	}
	of.wanted = t
	return of.failure
}
