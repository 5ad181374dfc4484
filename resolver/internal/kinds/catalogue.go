// SPDX-License-Identifier: Apache-2.0

// Package kinds knows which kinds of objects the API server serves, and where. It reads the two
// aggregated discovery documents (/api and /apis), which every supported server has, when the first
// kind is needed. It reads them again only if a reference names a kind that they do not have, or if
// a request shows that they are out of date. With their ETags, a document that has not changed
// costs one short answer.
//
// A reference may name its kind in several ways: with a version that is no longer served, with the
// group that it has left, or without either. [Catalogue.Find] returns the kinds that it may mean.
package kinds

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// freshFor is the time for which the documents prove that a kind is not served.
	freshFor = time.Second
	// readInterval is the mean time between two reads that unknown kinds cause. Nobody validates
	// the references in events: those to invented kinds must not cost a request each.
	readInterval = 10 * time.Second
	// readBurst is the number of such reads that may follow each other at once. An operator
	// installs several CRDs at a time, and their first events come at once.
	readBurst = 10
)

var (
	// ErrNotServed is the error for a kind that the API server does not serve.
	ErrNotServed = errors.New("the API server does not serve this kind")
	// ErrIncomplete is the error for a kind that may be served by an aggregated API server that
	// cannot be reached.
	ErrIncomplete = errors.New("the API server of this group cannot be reached")
)

// Catalogue has the kinds that the API server serves. Its methods may be called concurrently.
type Catalogue struct {
	documents *documents
	run       func(func()) bool
	retry     func(error) time.Duration
	now       func() time.Duration

	// mu guards the following.
	mu       sync.Mutex
	known    *snapshot // nil: nothing was read yet
	readAt   time.Duration
	dropped  bool          // known lacks kinds that the documents may have: read them whole
	outdated bool          // the documents are read before anything is found not to be served
	permits  *rate.Limiter // of reads that unknown kinds cause
	failure  error         // of the last read; nil: it succeeded
	failedTo time.Duration // until then, failure is the answer for what known does not have
	reading  chan struct{} // closed when the read that is in flight ends; nil: there is none
}

// Settings configure a catalogue.
type Settings struct {
	Client *http.Client
	// URL returns the address of a path on the API server.
	URL func(path string) string
	// Send sends a request. It does not limit its rate: nothing can be looked up without the kinds.
	Send func(request func(context.Context) error) error
	// Run runs work in the background. It returns false if the resolver is closed.
	Run func(work func()) bool
	// Retry returns how long a failure to read the documents is remembered.
	Retry func(error) time.Duration
	Now   func() time.Duration
}

// New returns a catalogue that has read nothing.
func New(s Settings) *Catalogue {
	return &Catalogue{
		documents: &documents{client: s.Client, url: s.URL, send: s.Send},
		run:       s.Run, retry: s.Retry, now: s.Now,
		permits: rate.NewLimiter(rate.Every(readInterval), readBurst),
	}
}

// Find returns the kinds that a reference may mean, the best guess first; at least one unless there
// is an error. With an API version, there is at most one. The error is ErrNotServed, ErrIncomplete,
// or why the documents could not be read. If ok is false, the documents must be read first: see
// Await.
func (c *Catalogue) Find(apiVersion, name string) (found []*Kind, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answerLocked(apiVersion, name)
}

// Await returns a channel that is closed when the documents are read, so that Find has an answer;
// nil if it has one now. The documents are read in the background, once for all callers.
func (c *Catalogue) Await(apiVersion, name string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok, _ := c.answerLocked(apiVersion, name); ok {
		return nil
	}
	return c.readLocked()
}

// Late must be called when a caller's time was up before the documents were read. So the next
// callers do not wait as long.
func (c *Catalogue) Late(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading != nil {
		c.failure, c.failedTo = err, c.now()+c.retry(err)
	}
}

// Unserved must be called when a request shows that a kind is not served at its path.
func (c *Catalogue) Unserved(k *Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.drop(k)
	c.dropped, c.outdated = true, true
}

// answerLocked returns what is known; ok is false if the documents must be read first, and may be.
func (c *Catalogue) answerLocked(apiVersion, name string) (found []*Kind, ok bool, err error) {
	if c.known != nil {
		if found = c.known.find(apiVersion, name); len(found) > 0 {
			return found, true, nil
		}
	}
	switch {
	case c.failure != nil && c.now() < c.failedTo:
		return nil, true, c.failure
	case c.known == nil || c.reading != nil || (c.outdated || c.now()-c.readAt >= freshFor) && c.hasPermitLocked():
		return nil, false, nil
	case c.known.mayLack(apiVersion, name):
		return nil, true, ErrIncomplete
	default:
		return nil, true, ErrNotServed
	}
}

// hasPermitLocked reports whether the documents may be read again.
func (c *Catalogue) hasPermitLocked() bool { return c.permits.TokensAt(c.timeLocked()) >= 1 }

func (c *Catalogue) timeLocked() time.Time { return time.Unix(0, 0).Add(c.now()) }

// readLocked returns the read that is in flight, or begins one.
func (c *Catalogue) readLocked() <-chan struct{} {
	if c.reading != nil {
		return c.reading
	}
	if c.known != nil {
		c.permits.AllowN(c.timeLocked(), 1)
	}
	reading := make(chan struct{})
	c.reading = reading
	if !c.run(c.read) {
		c.failure, c.failedTo = context.Canceled, 1<<62
		c.endLocked()
	}
	return reading
}

func (c *Catalogue) read() {
	readAt := c.now()
	all := c.takeDropped()
	read, err := c.documents.read(all)
	c.note(read, err, readAt)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked()
}

// note notes what a read has brought; nil if nothing has changed. A kind that was dropped meanwhile
// needs another read.
func (c *Catalogue) note(read *snapshot, err error, readAt time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
	if err != nil {
		c.failedTo = c.now() + c.retry(err)
		return
	}
	c.readAt, c.outdated = readAt, c.dropped
	if read != nil {
		c.known = read
	}
}

// takeDropped reports whether kinds were dropped since it was called last.
func (c *Catalogue) takeDropped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped := c.dropped
	c.dropped = false
	return dropped
}

func (c *Catalogue) endLocked() {
	close(c.reading)
	c.reading = nil
}
