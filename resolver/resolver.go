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

// errLookupTimeout tells the resolver's own deadline from that of its caller.
var errLookupTimeout = errors.New("lookup timeout")

// Resolver finds the owners of Kubernetes objects. Its methods may be called
// concurrently.
type Resolver struct {
	maxDepth      int
	lookupTimeout time.Duration
	background    *background
	lookup        *lookup
	clients       *clients
}

// New returns a resolver that asks the API server of restConfig, at most as
// often as its QPS and Burst allow, and under its UserAgent. It sends no request
// yet. The error says what is wrong with one of the two configurations.
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
		lookup:        newLookup(background, clients, limiterOf(restConfig), cfg),
		clients:       clients,
	}, nil
}

func newLookup(b *background, c *clients, limiter flowcontrol.RateLimiter, cfg Config) *lookup {
	begun := cfg.Now()
	now := func() time.Duration { return cfg.Now().Sub(begun) }
	gate := newGate(b, cfg.Concurrency, limiter, cfg.Observer, now)
	cache := newCache(cfg.CacheSize, cfg.CacheTTL, now)
	reader := &reader{
		client:  c.metadata,
		gate:    gate,
		cache:   cache,
		trimmer: &trimmer{keepLabel: cfg.KeepLabel, keepAnnotation: cfg.KeepAnnotation, sets: newStringSets()},
		now:     now,
		singles: newCalls[address, answer](b),
		refused: newRefusals(refusedInARow, now),
	}
	hits := func() {}
	if cfg.Observer != nil {
		hits = cfg.Observer.CacheHit
	}
	return &lookup{
		kinds:  newKinds(b, &discoverer{client: c.discovery, gate: gate, now: now}),
		cache:  cache,
		reader: reader,
		lister: newLister(b, reader, newFollower(reader, cfg.Namespaces)),
		hits:   hits,
	}
}

// Resolve returns one chain for each reference, in the order of the references.
// It does not fail: a chain's Resolution says what could not be found out. It
// returns after Config.LookupTimeout or when ctx is done, if not before; lookups
// that have begun by then go on in the background for the next who asks.
func (r *Resolver) Resolve(ctx context.Context, refs []Reference) []Chain {
	climbs := make([]climb, len(refs))
	under := make([]*climb, len(refs))
	for i, ref := range refs {
		climbs[i] = newClimb(ref, r.maxDepth)
		under[i] = &climbs[i]
	}
	if under = r.advance(under); len(under) > 0 {
		r.finish(ctx, under)
	}
	chains := make([]Chain, len(refs))
	for i := range climbs {
		chains[i] = climbs[i].chain()
	}
	return chains
}

// finish takes climbs that lack something to their ends. It asks for what all of
// them lack together, takes each as far as it goes with that, and so on.
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
			r.refuse(searches, Unavailable, false)
		case ctx.Err() != nil:
			// A caller that leaves early proves nothing about the API server.
			r.refuse(searches, Timeout, errors.Is(context.Cause(ctx), errLookupTimeout))
		default:
			r.lookup.ask(ctx, searches)
		}
	}
}

// advance takes the climbs as far as they go without a request, and returns those
// that are not over.
func (r *Resolver) advance(climbs []*climb) []*climb {
	stopped := climbs[:0]
	for _, c := range climbs {
		for !c.over() && r.lookup.look(&c.search) {
			c.step()
		}
		if !c.over() {
			stopped = append(stopped, c)
		}
	}
	return stopped
}

func (r *Resolver) refuse(searches []*search, failure Resolution, remember bool) {
	for _, s := range searches {
		r.lookup.refuse(s, failure, remember)
	}
}

// Strain returns how long to wait before what is unknown is asked for again, so
// that more is asked for at once and the API server is spared: 0 unless there were
// many requests of late, and some since it was last called.
func (r *Resolver) Strain() time.Duration { return r.lookup.reader.gate.strain() }

// Len returns how many entries the cache holds, objects and remembered failures.
// It is never above Config.CacheSize.
func (r *Resolver) Len() int { return r.lookup.cache.len() }

// Close ends the lookups that are still under way, and returns when they have
// ended. Resolve then answers from what is known, and otherwise Unavailable.
// Close may be called more than once.
func (r *Resolver) Close() {
	r.background.close()
	r.clients.close()
}
