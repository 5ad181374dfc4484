// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"context"
	"sync"
	"unique"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// shareOfLists is the part of a kind's requests in flight that may be lists in addition: lists that hang
// must leave single reads their slots.
const shareOfLists = 8

// limiter decides when requests are sent: how many of one kind at a time, and how many per second. A
// kind whose requests hang holds up no other. client-go's own rate limiter is not used: a request that
// waits there cannot be distinguished from one that was sent.
type limiter struct {
	slotsOfKind int64
	rate        flowcontrol.RateLimiter // nil: no limit

	mu    sync.Mutex
	slots map[slotKey]*semaphore.Weighted // guarded by mu
}

type slotKey struct {
	kind   unique.Handle[schema.GroupKind]
	isList bool
}

func newLimiter(concurrency int, rate flowcontrol.RateLimiter) *limiter {
	return &limiter{slotsOfKind: int64(concurrency), rate: rate, slots: make(map[slotKey]*semaphore.Weighted)}
}

// rateLimiterFor returns the rate limiter that client-go would create for the config; nil: there is
// no limit.
func rateLimiterFor(config *rest.Config) flowcontrol.RateLimiter {
	if config.RateLimiter != nil {
		return config.RateLimiter
	}
	if config.QPS < 0 {
		return nil
	}
	return flowcontrol.NewTokenBucketRateLimiter(cmp.Or(config.QPS, rest.DefaultQPS), cmp.Or(config.Burst, rest.DefaultBurst))
}

// acquire waits until a request may be sent. Then release must be called. The error is that of ctx.
func (l *limiter) acquire(ctx context.Context, t target) (release func(), err error) {
	slots := l.slotsFor(slotKey{t.kind.Name, t.isList()})
	if err := slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if l.rate == nil {
		return func() { slots.Release(1) }, nil
	}
	if err := l.rate.Wait(ctx); err != nil {
		slots.Release(1)
		<-ctx.Done() // It would end before the request may be sent.
		return nil, err
	}
	return func() { slots.Release(1) }, nil
}

func (l *limiter) slotsFor(key slotKey) *semaphore.Weighted {
	l.mu.Lock()
	defer l.mu.Unlock()
	slots := l.slots[key]
	if slots == nil {
		n := l.slotsOfKind
		if key.isList {
			n = max(1, n/shareOfLists)
		}
		slots = semaphore.NewWeighted(n)
		l.slots[key] = slots
	}
	return slots
}
