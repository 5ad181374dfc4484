// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// failuresInARow is the number of consecutive reads of a kind that fail from which its lookups
	// are answered immediately.
	failuresInARow = 3
	// openFor is how long they are, before another read shows whether the kind works again.
	openFor = 5 * time.Second

	// A kind that does not answer may hang after leastHang, or after the timeout of callers divided by
	// hangShare if this is longer. It must also take hangFactor times longer than it usually does.
	leastHang  = 200 * time.Millisecond
	hangShare  = 10
	hangFactor = 4
	// fade is how much less the slowest answer counts with each answer after it: one part of fade.
	fade = 8
)

// circuit is a circuit breaker for the single reads of one kind: a counter of failures and a timer.
// It has two states:
//
//	closed    Callers wait for the reads of the kind. While there are any, the timer fires when none
//	          of them has been answered for a while: the kind may hang (judgeLocked).
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

	inFlight int           // reads since the circuit was opened
	since    time.Time     // when the last answer came, or when the first of these reads was sent
	slowest  time.Duration // answer
	answered time.Time     // when the newest consistent read was sent that was answered
}

// isOpen reports whether reads of the kind are not worth waiting for.
func (c *circuit) isOpen() bool { return c.failures >= failuresInARow }

// circuits has the circuits of all kinds. A kind may hang because its conversion webhook is gone,
// or because its aggregated API server is. Then the events of its objects do not wait, nor do the
// events that come with them.
//
// A kind hangs if it does not answer, although the API server has answered a later read of another
// kind. Usually there is no such read, because all callers wait for the kind that hangs. So an
// object of another kind is read again. Without this, a kind that hangs would delay a batch by as
// long as callers wait, 2 s, because the API server as a whole might be slow: next to a conversion
// webhook that never answers, the 99th percentile of healthy records was 2.4 and 4.1 s instead of 0.6
// and 0.3 s (go run ./bench hanging).
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

// watchLocked sets the timer of a closed circuit to when the kind may hang.
func (c *circuits) watchLocked(of *circuit) {
	if !of.isOpen() {
		of.timer.Reset(time.Until(of.since.Add(c.hangAfter(of))))
	}
}

// hangAfter returns after which time without an answer the kind may hang.
func (c *circuits) hangAfter(of *circuit) time.Duration {
	return max(leastHang, c.timeout/hangShare, min(hangFactor*of.slowest, c.timeout))
}

// outcome is what the end of a read shows.
type outcome struct {
	works        bool // The kind is answered.
	isConsistent bool // The watch cache could not answer.
	failure      Resolution
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
		of.failures, of.since, of.slowest = 0, now, max(now.Sub(sentAt), of.slowest-of.slowest/fade)
		if o.isConsistent && sentAt.After(of.answered) {
			of.answered = sentAt
		}
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
		of.timer.Reset(openFor)
		kind := of.wanted.kind.Name
		c.background.run(func() { c.opened(kind, failure) })
	}
}

// fire is called by the timer of a kind.
func (c *circuits) fire(kind unique.Handle[schema.GroupKind]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.kinds[kind]; of.isOpen() {
		c.rereadLocked(of)
	} else {
		c.judgeLocked(of)
	}
}

// judgeLocked opens the circuit of a kind that hangs. If the API server as a whole may be slow, it
// reads an object of another kind again.
func (c *circuits) judgeLocked(of *circuit) {
	waited := time.Since(of.since)
	switch {
	case of.inFlight == 0 || of.isOpen():
	case waited < c.hangAfter(of):
		c.watchLocked(of)
	case waited >= c.timeout || c.answersOthersLocked(of):
		c.failLocked(of, Timeout, failuresInARow)
	default:
		of.timer.Reset(leastHang) // The other kind may hang, too: then it is the turn of the next one.
		for _, other := range c.kinds {
			if other != of && other.inFlight == 0 && other.failures == 0 && !other.rereading {
				c.rereadLocked(other)
				return
			}
		}
	}
}

// answersOthersLocked reports whether the API server has answered a read of another kind that was
// sent when the kind should have answered. An earlier one shows less: on a busy machine, reads that
// were sent at about the same time may be answered long after each other. What the watch cache
// answers shows nothing: it answers even when etcd does not.
func (c *circuits) answersOthersLocked(of *circuit) bool {
	since := of.since.Add(c.hangAfter(of))
	for _, other := range c.kinds {
		if other != of && !other.answered.Before(since) {
			return true
		}
	}
	return false
}

// rereadLocked reads an object of a kind again. Its answer may show that other kinds hang.
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
			of.timer.Reset(openFor)
		}
		for _, other := range c.kinds {
			c.judgeLocked(other)
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
