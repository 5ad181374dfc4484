// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// errLookupTimeout distinguishes the resolver's own deadline from its caller's.
var errLookupTimeout = fmt.Errorf("lookup timeout: %w", context.DeadlineExceeded)

// Resolver finds the owners of Kubernetes objects. Its methods may be called concurrently.
type Resolver struct {
	maxDepth      int
	lookupTimeout time.Duration
	observer      Observer
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
		observer:      cfg.Observer,
		background:    background,
		lookup:        newLookup(background, clients, rateLimiterOf(restConfig), cfg),
		clients:       clients,
	}, nil
}

// Resolve returns one chain for each reference, in the order of the references. It never fails: the
// Resolution of a chain reports what could not be found. It returns after Config.LookupTimeout at
// the latest, or when ctx is done. Requests that were sent continue in the background, so that the
// next call can use their results.
func (r *Resolver) Resolve(ctx context.Context, refs []Reference) []Chain {
	chains := make([]Chain, len(refs))
	var cold []int
	var known climb // Nobody keeps one that does not wait.
	for i, ref := range refs {
		known = climb{lookup: r.lookup, maxDepth: r.maxDepth}
		chain, ok := known.chain(ref)
		if !ok {
			cold = append(cold, i)
			continue
		}
		chains[i] = chain
		r.observeHits(&known)
	}
	if len(cold) > 0 {
		r.resolveCold(ctx, refs, cold, chains)
	}
	return chains
}

// resolveCold climbs the chains that need requests, each in a goroutine of its own.
func (r *Resolver) resolveCold(ctx context.Context, refs []Reference, cold []int, chains []Chain) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.lookupTimeout, errLookupTimeout)
	defer cancel()
	defer context.AfterFunc(r.background.ctx, cancel)()
	r.lookup.begin(len(cold))
	var climbs sync.WaitGroup
	for _, i := range cold {
		climbs.Go(func() {
			defer r.lookup.end()
			waiting := climb{lookup: r.lookup, maxDepth: r.maxDepth, ctx: ctx}
			chains[i], _ = waiting.chain(refs[i])
			r.observeHits(&waiting)
		})
	}
	climbs.Wait()
}

func (r *Resolver) observeHits(c *climb) {
	if r.observer == nil {
		return
	}
	for range c.known {
		r.observer.CacheHit()
	}
}

// Len returns how many objects the cache holds. It is never above Config.CacheSize.
func (r *Resolver) Len() int { return r.lookup.cache.len() }

// Close ends the lookups that are in flight, and returns when they have ended. After Close, Resolve
// answers from the cache, or returns Unavailable. Close may be called more than once.
func (r *Resolver) Close() {
	r.background.close()
	r.clients.close()
}

// background runs requests that may outlive their callers, until close.
type background struct {
	ctx    context.Context // done once closed
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool           // guarded by mu
	running sync.WaitGroup // mu guards Add, so that no Add comes after Wait
}

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel}
}

// run starts work in its own goroutine. It returns false if background is closed.
func (b *background) run(work func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Go(work)
	return true
}

func (b *background) isClosed() bool { return b.ctx.Err() != nil }

// close stops the running work and waits for it. It may be called more than once.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.running.Wait()
}
