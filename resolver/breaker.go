// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// failuresInARow is the number of consecutive reads of a kind that fail from which its lookups
	// are answered immediately.
	failuresInARow = 3
	// probeInterval is the time between two background reads that show whether a kind works again.
	probeInterval = 5 * time.Second
)

// breaker is the circuit breaker of one kind. It opens after failuresInARow failures, or if a
// request gets no answer for as long as callers wait, and neither does any other request of the kind
// meanwhile. It is closed by any answer. Whether a kind hangs cannot be known earlier: on a busy
// machine, an answer may take a second.
type breaker struct {
	failures   int        // consecutive ones
	failure    Resolution // the last one
	answeredAt time.Time  // what was sent before the last answer shows nothing any more
	isOpen     bool
	isProbed   bool   // in the background, also for a while after it was closed
	wanted     target // the last object that callers wanted
}

// breakers has the breakers of all kinds. A kind may hang because its conversion webhook or its
// aggregated API server is gone. Then it delays the batch that needs it by as long as callers wait.
// Its later lookups are answered at once, while one object is read in the background every 5 s.
type breakers struct {
	background *background
	timeout    time.Duration // how long callers wait
	// probe reads an object that no caller waits for. It counts as any other read.
	probe func(target)
	// opened is called when lookups of a kind are not worth waiting for.
	opened func(kind unique.Handle[schema.GroupKind], failure Resolution)

	mu    sync.Mutex
	kinds map[unique.Handle[schema.GroupKind]]*breaker // guarded by mu, with its breakers
}

func (b *breakers) kindLocked(kind unique.Handle[schema.GroupKind]) *breaker {
	known := b.kinds[kind]
	if known == nil {
		known = &breaker{}
		b.kinds[kind] = known
	}
	return known
}

// sent must be called when a single read is sent, and the result when it has ended: with an empty
// failure if that shows nothing.
func (b *breakers) sent(t target) (ended func(isAnswer bool, failure Resolution)) {
	sentAt := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kindLocked(t.kind.Name).wanted = t
	late := time.AfterFunc(b.timeout, func() { b.failed(t.kind.Name, sentAt, ResolutionTimeout, failuresInARow) })
	return func(isAnswer bool, failure Resolution) {
		late.Stop()
		switch {
		case isAnswer:
			b.answered(t.kind.Name)
		case failure != "":
			b.failed(t.kind.Name, sentAt, failure, 1)
		}
	}
}

func (b *breakers) answered(kind unique.Handle[schema.GroupKind]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.kindLocked(kind)
	known.failures, known.isOpen, known.answeredAt = 0, false, time.Now()
}

// failed counts failures of a request. It opens the breaker if they are enough.
func (b *breakers) failed(kind unique.Handle[schema.GroupKind], sentAt time.Time, failure Resolution, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.kindLocked(kind)
	if known.answeredAt.After(sentAt) {
		return
	}
	known.failures, known.failure = known.failures+n, failure
	if known.failures < failuresInARow || known.isOpen {
		return
	}
	known.isOpen = b.background.run(func() { b.opened(kind, failure) })
	if !known.isProbed {
		known.isProbed = b.background.run(func() { b.probeUntilAnswered(kind) })
	}
}

// probeUntilAnswered reads the object that callers wanted last, again and again: a single object may
// be unreadable.
func (b *breakers) probeUntilAnswered(kind unique.Handle[schema.GroupKind]) {
	for {
		select {
		case <-time.After(probeInterval):
		case <-b.background.ctx.Done():
			return
		}
		wanted, isOpen := b.nextProbe(kind)
		if !isOpen {
			return
		}
		b.probe(wanted)
	}
}

func (b *breakers) nextProbe(kind unique.Handle[schema.GroupKind]) (wanted target, isOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.kindLocked(kind)
	known.isProbed = known.isOpen
	return known.wanted, known.isOpen
}

// refuses returns the failure of lookups that are not worth waiting for; empty if they are.
func (b *breakers) refuses(t target) Resolution {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.kinds[t.kind.Name]
	if known == nil || !known.isOpen {
		return ""
	}
	known.wanted = t
	return known.failure
}
