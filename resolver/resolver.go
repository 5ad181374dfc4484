// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Resolver finds the owners of Kubernetes objects. Its methods may be called concurrently.
type Resolver struct {
	maxDepth      int
	lookupTimeout time.Duration
	observer      Observer
	background    *background
	cache         *cache
	loader        *loader
	clients       *clients
}

// New returns a resolver for the API server of restConfig. The resolver observes the QPS and Burst
// of restConfig and uses its UserAgent. New sends no request. The error names what is wrong in one
// of the two configurations.
func New(restConfig *rest.Config, settings Settings) (*Resolver, error) {
	settings, err := settings.withDefaults()
	if err != nil {
		return nil, err
	}
	if restConfig == nil {
		return nil, fmt.Errorf("no configuration of the API server")
	}
	clients, err := newClients(restConfig)
	if err != nil {
		return nil, err
	}
	begun := settings.Now()
	now := func() time.Duration { return settings.Now().Sub(begun) }
	background, cache := newBackground(), newCache(settings.CacheSize, settings.CacheTTL, now)
	return &Resolver{
		maxDepth:      settings.MaxDepth,
		lookupTimeout: settings.LookupTimeout,
		observer:      settings.Observer,
		background:    background,
		cache:         cache,
		loader:        newLoader(background, clients, cache, newLimiter(settings.Concurrency, rateLimiterFor(restConfig)), settings, now),
		clients:       clients,
	}, nil
}

// Resolve returns one chain for each reference, in the order of the references. It never fails: the
// Resolution of a chain reports what could not be found. It returns after Settings.LookupTimeout at
// the latest, or when ctx is done. Requests that were sent continue in the background, so that the
// next call can use their results.
func (r *Resolver) Resolve(ctx context.Context, refs []Reference) []Chain {
	return r.resolve(ctx, refs, r.maxDepth)
}

// Objects returns one object for each reference, without its owners, in the order of the references.
// [Object.Found] reports whether it was read. Like Resolve, it never fails.
func (r *Resolver) Objects(ctx context.Context, refs []Reference) []*Object {
	objects := make([]*Object, len(refs))
	for i, chain := range r.resolve(ctx, refs, 0) {
		objects[i] = chain.Objects[0]
	}
	return objects
}

// resolve returns chains with a maximum number of owners.
func (r *Resolver) resolve(ctx context.Context, refs []Reference, maxDepth int) []Chain {
	chains := make([]Chain, len(refs))
	var cold []int
	var known climb // Nobody keeps one that does not wait.
	for i, ref := range refs {
		known = climb{cache: r.cache, loader: r.loader, maxDepth: maxDepth}
		if chain, isKnown := known.chain(ref); isKnown {
			chains[i] = chain
			r.observeHits(known.known)
		} else {
			cold = append(cold, i)
		}
	}
	if len(cold) > 0 {
		r.resolveCold(ctx, refs, maxDepth, cold, chains)
	}
	return chains
}

// resolveCold climbs the chains that need requests, each in a goroutine of its own.
func (r *Resolver) resolveCold(ctx context.Context, refs []Reference, maxDepth int, cold []int, chains []Chain) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.lookupTimeout, errLookupTimeout)
	defer cancel()
	defer context.AfterFunc(r.background.ctx, cancel)()
	var climbs sync.WaitGroup
	for _, i := range cold {
		climbs.Go(func() {
			waiting := climb{cache: r.cache, loader: r.loader, maxDepth: maxDepth, ctx: ctx}
			chains[i], _ = waiting.chain(refs[i])
			r.observeHits(waiting.known)
		})
	}
	climbs.Wait()
}

// observeHits reports objects that needed no request.
func (r *Resolver) observeHits(n int) {
	for range n {
		if r.observer != nil {
			r.observer.CacheHit()
		}
	}
}

// Len returns how many objects the cache holds. It is never above Settings.CacheSize.
func (r *Resolver) Len() int { return r.cache.len() }

// Close ends the lookups that are in flight, and returns when they have ended. After Close, Resolve
// answers from the cache, or returns ResolutionUnavailable. Close may be called more than once.
func (r *Resolver) Close() {
	r.background.close()
	r.clients.close()
}
