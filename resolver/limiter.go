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

// requestTimeout is the maximum duration of one request, including the retries that the API server
// asks for (429, Retry-After). A request without callers continues in the background and keeps its
// slot.
const requestTimeout = 10 * time.Second

const (
	// normalRate is the number of requests per second that do not strain the API server.
	// normalBurst is the same for requests at once.
	normalRate  = 7
	normalBurst = 50
)

// errNotSent is the error of a request that no caller needed any more before the resolver could
// send it.
var errNotSent = errors.New("not sent: no longer needed")

// limiter limits the requests to the API server: how many are in flight, and how many are sent per
// second. client-go's own rate limiter is not used, because a request that waits there cannot be
// distinguished from one that was sent.
type limiter struct {
	background *background
	slots      chan struct{}
	rate       flowcontrol.RateLimiter // nil: no limit
	observer   Observer
	now        func() time.Duration

	// mu guards the following. level is how many requests above normalRate there were at levelAt.
	mu      sync.Mutex
	level   float64
	levelAt time.Duration
	hasSent bool // whether a request was sent since the last call of strain
}

func newLimiter(b *background, concurrency int, rate flowcontrol.RateLimiter, observer Observer, now func() time.Duration) *limiter {
	return &limiter{background: b, slots: make(chan struct{}, concurrency), rate: rate, observer: observer, now: now}
}

// noteSent counts a request.
func (l *limiter) noteSent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leakLocked()
	l.level++
	l.hasSent = true
}

func (l *limiter) leakLocked() {
	now := l.now()
	l.level = max(0, l.level-normalRate*(now-l.levelAt).Seconds())
	l.levelAt = now
}

// strain returns how long it takes until the sent requests no longer strain the API server. If no
// request was sent since the last call, it returns 0: a larger batch would save nothing.
func (l *limiter) strain() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasSent {
		return 0
	}
	l.hasSent = false
	l.leakLocked()
	return time.Duration(max(0, l.level-normalBurst) / normalRate * float64(time.Second))
}

// rateLimiterOf returns the rate limiter that client-go would create for the config.
func rateLimiterOf(config *rest.Config) flowcontrol.RateLimiter {
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

// send sends the request as soon as the limits permit, unless ctx ends first. Once sent, the
// request does not depend on ctx: it ends at its timeout or at Close.
func (l *limiter) send(ctx context.Context, request func(context.Context) error) error {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return errNotSent
	}
	if l.rate != nil {
		// The error is usually that of ctx, but a rate limiter may have its own.
		if err := l.rate.Wait(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return errNotSent
	}
	requestCtx, cancel := context.WithTimeout(l.background.ctx, requestTimeout)
	defer cancel()
	l.noteSent()
	sentAt := time.Now()
	err := request(requestCtx)
	l.observe(err, time.Since(sentAt))
	return err
}

func (l *limiter) observe(err error, took time.Duration) {
	// A request that Close ended says nothing about the API server.
	if l.observer == nil || l.background.isClosed() {
		return
	}
	result := "found"
	if err != nil {
		result = string(failureOf(err))
	}
	l.observer.LookupDone(result, took)
}

// forbidden reports to the observer that the API server refused a request for objects of a kind.
func (l *limiter) forbidden(err error, verb string, k *kind, in collection) {
	if l.observer != nil && failureOf(err) == Forbidden {
		l.observer.Forbidden(verb, k.resource.GroupResource(), in.namespace.Value())
	}
}
