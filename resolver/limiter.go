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

// shareOfKind is the part of the request slots that one kind may use. So a kind whose requests hang
// leaves most of them to the others.
const shareOfKind = 4

// limiter decides when requests are sent: how many at a time, how many of one kind, and how many per
// second. client-go's own rate limiter is not used: a request that waits there cannot be
// distinguished from one that was sent.
type limiter struct {
	slots      *semaphore.Weighted
	slotsOfOne int64                   // of one kind
	rate       flowcontrol.RateLimiter // nil: no limit

	mu    sync.Mutex
	kinds map[unique.Handle[schema.GroupKind]]*semaphore.Weighted // guarded by mu
}

func newLimiter(concurrency int, rate flowcontrol.RateLimiter) *limiter {
	return &limiter{
		slots: semaphore.NewWeighted(int64(concurrency)), slotsOfOne: int64(max(1, concurrency/shareOfKind)), rate: rate,
		kinds: make(map[unique.Handle[schema.GroupKind]]*semaphore.Weighted),
	}
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

// acquire waits until a request of the kind may be sent. Then release must be called. The error is
// that of ctx, or says that ctx will end too soon.
func (l *limiter) acquire(ctx context.Context, kind unique.Handle[schema.GroupKind]) (release func(), err error) {
	slotsOfKind := l.slotsOf(kind)
	if err := slotsOfKind.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if err := l.slots.Acquire(ctx, 1); err != nil {
		slotsOfKind.Release(1)
		return nil, err
	}
	release = func() {
		l.slots.Release(1)
		slotsOfKind.Release(1)
	}
	if l.rate != nil {
		if err := l.rate.Wait(ctx); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

func (l *limiter) slotsOf(kind unique.Handle[schema.GroupKind]) *semaphore.Weighted {
	l.mu.Lock()
	defer l.mu.Unlock()
	slots := l.kinds[kind]
	if slots == nil {
		slots = semaphore.NewWeighted(l.slotsOfOne)
		l.kinds[kind] = slots
	}
	return slots
}
