// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// requestTimeout is how long one request may take, with the repetitions that
// the API server asks for (429, Retry-After). It goes on in the background when
// nobody waits for it any more, and holds its place at the gate.
const requestTimeout = 10 * time.Second

const (
	// easyRate is how many requests a second are no strain, and easyBurst how many
	// at once.
	easyRate  = 7
	easyBurst = 50
)

// errNotSent is the error of a request that nobody wanted any more before it
// could be sent.
var errNotSent = errors.New("not sent: no longer wanted")

// gate lets requests to the API server pass: so many at a time, and so many in
// a second. client-go's own rate limiter is not used because a request that
// waits there can't be told from one that was sent.
type gate struct {
	background *background
	places     chan struct{}
	limiter    flowcontrol.RateLimiter // nil: no limit
	observer   Observer
	now        func() time.Duration

	// mu guards what follows: how many requests were sent beyond easyRate, then.
	mu    sync.Mutex
	level float64
	then  time.Duration
	asked bool // whether a request was sent since strain was last called
}

func newGate(b *background, concurrency int, limiter flowcontrol.RateLimiter, observer Observer, now func() time.Duration) *gate {
	return &gate{background: b, places: make(chan struct{}, concurrency), limiter: limiter, observer: observer, now: now}
}

// noteSent counts a request.
func (g *gate) noteSent() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leakLocked()
	g.level++
	g.asked = true
}

func (g *gate) leakLocked() {
	now := g.now()
	g.level = max(0, g.level-easyRate*(now-g.then).Seconds())
	g.then = now
}

// strain is how long it takes until what was sent is no strain. When nothing was
// sent since the last call, there is nothing to gather for.
func (g *gate) strain() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked {
		return 0
	}
	g.asked = false
	g.leakLocked()
	return time.Duration(max(0, g.level-easyBurst) / easyRate * float64(time.Second))
}

// limiterOf returns the rate limiter that client-go would make of the config.
func limiterOf(config *rest.Config) flowcontrol.RateLimiter {
	if config.RateLimiter != nil {
		return config.RateLimiter
	}
	qps, burst := config.QPS, config.Burst
	if qps < 0 {
		return nil
	}
	if qps == 0 {
		qps = rest.DefaultQPS
	}
	if burst == 0 {
		burst = rest.DefaultBurst
	}
	return flowcontrol.NewTokenBucketRateLimiter(qps, burst)
}

// send makes the request when its turn comes, unless it is not wanted any more
// by then. Once begun, the request ends by itself, by its timeout or by Close.
func (g *gate) send(wanted context.Context, request func(context.Context) error) error {
	select {
	case g.places <- struct{}{}:
		defer func() { <-g.places }()
	case <-wanted.Done():
		return errNotSent
	}
	if g.limiter != nil {
		// An error is mostly that of wanted, but a limiter may have its own.
		if err := g.limiter.Wait(wanted); err != nil && wanted.Err() == nil {
			return err
		}
	}
	if wanted.Err() != nil {
		return errNotSent
	}
	ctx, cancel := context.WithTimeout(g.background.ctx, requestTimeout)
	defer cancel()
	g.noteSent()
	begun := time.Now()
	err := request(ctx)
	g.observe(err, time.Since(begun))
	return err
}

func (g *gate) observe(err error, took time.Duration) {
	// What Close ended tells nothing about the API server.
	if g.observer == nil || g.background.isClosed() {
		return
	}
	result := "found"
	if err != nil {
		result = string(failureOf(err))
	}
	g.observer.LookupDone(result, took)
}

// forbidden tells of a request for objects of a kind that was refused.
func (g *gate) forbidden(err error, verb string, k *kind, in place) {
	if g.observer != nil && failureOf(err) == Forbidden {
		g.observer.Forbidden(verb, k.resource.GroupResource(), in.namespace.Value())
	}
}
