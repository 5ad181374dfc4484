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
	// checkAgain is how long to wait before checking again whether a request hangs.
	checkAgain = 20 * time.Millisecond
	// slowestTTL is how long the slowest answer counts.
	slowestTTL = 10 * time.Minute
)

// circuit is a circuit breaker for the single reads of one kind: a counter. It has two states:
//
//	closed    Fewer than three bad results in a row. Callers wait for the requests of the kind.
//	open      Three or more. Callers get an answer immediately. Every 5 s, one object is read
//	          (probe). An answer to any request closes the circuit.
type circuit struct {
	bad     int // consecutive requests that hang or fail
	failure Resolution
	probing bool // until the circuit is closed
	control bool // a request is in flight that shows whether the API server answers

	suspect target // the last object whose read was bad, or that was refused
	sample  target // the last object whose read was answered; zero: there is none

	answered time.Time     // when the newest consistent request was sent that was answered
	slowest  time.Duration // answer since then
	since    time.Duration
}

// isOpen reports whether requests of the kind are not worth waiting for.
func (c *circuit) isOpen() bool { return c.bad >= badInARow }

// circuits has the circuits of all kinds. A kind may hang because its conversion webhook is gone,
// or because its aggregated API server is. Then the events of its objects do not wait, nor do the
// events that come with them.
//
// Each request that was sent has a timer. It fires when the request takes longer than others of
// its kind (check). The request hangs if the API server has meanwhile answered a request for
// another kind. Usually nobody sends one, because all callers wait for this kind. So an object of
// another kind is read again (control).
type circuits struct {
	background *background
	now        func() time.Duration
	timeout    time.Duration // how long callers wait
	// reread reads an object again, consistently. The result counts as any other.
	reread func(target)
	// opened is called when the circuit of a kind opens.
	opened func(kind unique.Handle[schema.GroupKind], failure Resolution)

	mu         sync.Mutex // guards the following, the circuits, and the marked fields of requests
	kinds      map[unique.Handle[schema.GroupKind]]*circuit
	controlled time.Time // when an object was last read that shows whether the API server answers
}

// sentRequest is a request that was sent.
type sentRequest struct {
	*request
	sentAt time.Time

	// circuits.mu guards the following.
	timer *time.Timer // for the next check whether it hangs
	hangs bool
	ended bool
}

func (c *circuits) ofLocked(kind unique.Handle[schema.GroupKind]) *circuit {
	of := c.kinds[kind]
	if of == nil {
		of = &circuit{}
		c.kinds[kind] = of
	}
	return of
}

// begin must be called when a request is sent. Then, either end or endPaused must be called.
func (c *circuits) begin(r *request) *sentRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &sentRequest{request: r, sentAt: time.Now()}
	s.timer = time.AfterFunc(c.hangAfterLocked(s), func() { c.check(s) })
	return s
}

// leastHang returns the shortest time after which a request may hang.
func (c *circuits) leastHang() time.Duration { return max(leastHang, c.timeout/hangShare) }

// hangAfterLocked returns after which time the request may hang.
func (c *circuits) hangAfterLocked(s *sentRequest) time.Duration {
	after := c.leastHang()
	if of := c.ofLocked(s.kind.Name); c.now()-of.since < slowestTTL {
		after = max(after, min(hangFactor*of.slowest, c.timeout))
	}
	if s.isList() {
		after *= badInARow // It counts once, and a list takes longer than an object.
	}
	return after
}

// check notes that the request hangs, if it does, or checks again later.
func (c *circuits) check(s *sentRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Requests that were sent together may have been answered meanwhile, and only a little sooner.
	after, waited := c.hangAfterLocked(s), time.Since(s.sentAt)
	switch {
	case s.ended:
	case waited < after:
		s.timer.Reset(after - waited)
	case waited < c.timeout && !c.answersOthersLocked(s.kind.Name, s.sentAt.Add(after)):
		c.controlLocked(s.kind.Name)
		s.timer.Reset(checkAgain)
	case s.isList(): // This shows nothing about single reads.
		s.hangs = true
		c.background.run(s.onHang)
	default:
		s.hangs = true
		c.noteBadLocked(s.request, Timeout)
		s.timer.Reset(c.leastHang()) // If it hangs on, it counts again.
	}
}

// answersOthersLocked reports whether the API server has answered a request for another kind that
// was sent since then. If it has not, the API server as a whole may be slow, and the request hangs
// only after the time that callers wait. What the watch cache answers shows nothing: it answers
// even when etcd does not.
func (c *circuits) answersOthersLocked(kind unique.Handle[schema.GroupKind], since time.Time) bool {
	for other, of := range c.kinds {
		if other != kind && !of.answered.Before(since) {
			return true
		}
	}
	return false
}

// controlLocked reads an object of another kind again. Without this, nothing would show for the
// whole time that callers wait that only one kind hangs. The other kind may hang, too, or wait for
// its turn: then the next one is read.
func (c *circuits) controlLocked(suspect unique.Handle[schema.GroupKind]) {
	if time.Since(c.controlled) < c.leastHang() {
		return
	}
	for kind, of := range c.kinds {
		if kind == suspect || of.bad > 0 || of.control || of.sample.kind == nil {
			continue
		}
		sample := of.sample
		c.controlled = time.Now()
		of.control = c.background.run(func() {
			c.reread(sample)
			c.mu.Lock()
			defer c.mu.Unlock()
			of.control = false
		})
		return
	}
}

// end notes the result of the request, and whether it shows that the kind works.
func (c *circuits) end(s *sentRequest, works bool, err error, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.ended = true
	s.timer.Stop()
	failure := failureOf(err)
	isBad := failure == Timeout || failure == Unavailable
	switch {
	case isBad && !s.hangs:
		c.noteBadLocked(s.request, failure)
	case !isBad && (works || failure == Forbidden):
		c.ofLocked(s.kind.Name).noteGood(s, err, took, c.now())
	}
}

// endPaused notes that the API server wants the request later. isTooLate is set if this is later
// than callers wait. The kind is not read to find out whether another one hangs.
func (c *circuits) endPaused(s *sentRequest, isTooLate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.ended = true
	s.timer.Stop()
	c.ofLocked(s.kind.Name).sample = target{}
	if isTooLate && !s.hangs {
		c.noteBadLocked(s.request, Unavailable)
	}
}

// noteGood notes an answer.
func (c *circuit) noteGood(s *sentRequest, err error, took, now time.Duration) {
	c.bad = 0
	if s.isConsistent && s.sentAt.After(c.answered) {
		c.answered = s.sentAt
	}
	if err == nil && !s.isList() {
		c.sample = s.target
	}
	if took > c.slowest || now-c.since >= slowestTTL {
		c.slowest, c.since = took, now
	}
}

// noteBadLocked notes a request that hangs or has failed. A list shows nothing about single reads.
func (c *circuits) noteBadLocked(r *request, failure Resolution) {
	if c.background.isClosed() || r.isList() {
		return
	}
	kind := r.kind.Name
	of := c.ofLocked(kind)
	of.bad++
	of.failure, of.suspect = failure, r.target
	if of.bad == badInARow {
		reached.State("lookups of a kind are not worth waiting for")
		c.background.run(func() { c.opened(kind, failure) })
	}
	if of.isOpen() && !of.probing {
		of.probing = c.background.run(func() { c.probe(kind) })
	}
}

// probe reads an object of a kind from time to time, until the circuit is closed.
func (c *circuits) probe(kind unique.Handle[schema.GroupKind]) {
	for i := 0; ; i++ {
		select {
		case <-time.After(openFor):
		case <-c.background.context().Done():
			return
		}
		t, isOpen := c.toProbe(kind, i)
		if !isOpen {
			return
		}
		c.reread(t)
	}
}

// toProbe returns the object that the probe reads: in turn one that was read before, and the
// suspect, because a single object may be unreadable. It returns false if the circuit is closed.
func (c *circuits) toProbe(kind unique.Handle[schema.GroupKind], turn int) (t target, isOpen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.ofLocked(kind)
	of.probing = of.isOpen()
	if turn%2 == 0 && of.sample.kind != nil {
		return of.sample, of.probing
	}
	return of.suspect, of.probing
}

// refuses returns the failure of lookups of a kind that are not worth waiting for; empty if they
// are. It notes the object, which the probe may read.
func (c *circuits) refuses(t target) Resolution {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.ofLocked(t.kind.Name)
	if !of.isOpen() {
		return ""
	}
	of.suspect = t
	return of.failure
}
