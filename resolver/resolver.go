// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// errLookupTimeout distinguishes the resolver's own deadline from its caller's.
var errLookupTimeout = errors.New("lookup timeout")

// Resolver finds the owners of Kubernetes objects. Its methods may be called concurrently.
type Resolver struct {
	maxDepth      int
	lookupTimeout time.Duration
	background    *background
	lookup        *lookup
	clients       *clients
}

// New returns a resolver for the API server of restConfig. The resolver observes the QPS and Burst
// of restConfig and uses its UserAgent. New sends no request. The error names what is wrong in one
// of the two configurations.
func New(restConfig *rest.Config, cfg Config) (*Resolver, error) {
	cfg, err := cfg.withDefaults()
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
	background := newBackground()
	return &Resolver{
		maxDepth:      cfg.MaxDepth,
		lookupTimeout: cfg.LookupTimeout,
		background:    background,
		lookup:        newLookup(background, clients, rateLimiterOf(restConfig), cfg),
		clients:       clients,
	}, nil
}

func newLookup(b *background, c *clients, rate flowcontrol.RateLimiter, cfg Config) *lookup {
	begun := cfg.Now()
	now := func() time.Duration { return cfg.Now().Sub(begun) }
	limiter := newLimiter(b, cfg.Concurrency, rate, cfg.Observer, now)
	cache := newCache(cfg.CacheSize, cfg.CacheTTL, now)
	reader := &reader{
		client:   c.metadata,
		limiter:  limiter,
		cache:    cache,
		trimmer:  &trimmer{keepLabel: cfg.KeepLabel, keepAnnotation: cfg.KeepAnnotation, sets: newStringSets()},
		now:      now,
		gets:     newFlight[objectKey, answer](b),
		refusals: newRefusals(refusalsInARow, now),
	}
	onHit := func() {}
	if cfg.Observer != nil {
		onHit = cfg.Observer.CacheHit
	}
	return &lookup{
		kinds:  newKinds(b, &discoverer{client: c.discovery, limiter: limiter, now: now}),
		cache:  cache,
		reader: reader,
		lister: newLister(b, reader, newWatcher(reader, cfg.Namespaces)),
		onHit:  onHit,
	}
}

// Resolve returns one chain for each reference, in the order of the references. It never fails: the
// Resolution of a chain reports what could not be found. It returns after Config.LookupTimeout at
// the latest, or when ctx is done. Lookups that are in flight continue in the background, so that
// the next call can use their results.
func (r *Resolver) Resolve(ctx context.Context, refs []Reference) []Chain {
	climbs := make([]climb, len(refs))
	open := make([]*climb, len(refs))
	for i, ref := range refs {
		climbs[i] = newClimb(ref, r.maxDepth)
		open[i] = &climbs[i]
	}
	if open = r.advance(open); len(open) > 0 {
		r.finish(ctx, open)
	}
	chains := make([]Chain, len(refs))
	for i := range climbs {
		chains[i] = climbs[i].chain()
	}
	return chains
}

// finish completes climbs that need requests. It fetches what all of them lack, advances each with
// the results, and repeats.
func (r *Resolver) finish(ctx context.Context, climbs []*climb) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.lookupTimeout, errLookupTimeout)
	defer cancel()
	for ; len(climbs) > 0; climbs = r.advance(climbs) {
		searches := make([]*search, len(climbs))
		for i, c := range climbs {
			searches[i] = &c.search
		}
		switch {
		case r.background.isClosed():
			r.fail(searches, Unavailable, false)
		case ctx.Err() != nil:
			// A caller that leaves early proves nothing about the API server.
			r.fail(searches, Timeout, errors.Is(context.Cause(ctx), errLookupTimeout))
		default:
			r.lookup.fetch(ctx, searches)
		}
	}
}

// advance takes the climbs as far as they go without a request. It returns those that are not done.
func (r *Resolver) advance(climbs []*climb) []*climb {
	stopped := climbs[:0]
	for _, c := range climbs {
		for !c.done() && r.lookup.fromCache(&c.search) {
			c.step()
		}
		if !c.done() {
			stopped = append(stopped, c)
		}
	}
	return stopped
}

func (r *Resolver) fail(searches []*search, failure Resolution, remember bool) {
	for _, s := range searches {
		r.lookup.fail(s, failure, remember)
	}
}

// Strain returns how long callers should wait before they resolve more unknown objects, so that
// larger batches spare the API server. It returns 0 unless the resolver has sent many requests
// lately, and at least one since the last call of Strain.
func (r *Resolver) Strain() time.Duration { return r.lookup.reader.limiter.strain() }

// Len returns how many entries the cache holds: objects and failed lookups. It is never above
// Config.CacheSize.
func (r *Resolver) Len() int { return r.lookup.cache.len() }

// Close ends the lookups that are in flight, and returns when they have ended. After Close, Resolve
// answers from the cache, or returns Unavailable. Close may be called more than once.
func (r *Resolver) Close() {
	r.background.close()
	r.clients.close()
}
