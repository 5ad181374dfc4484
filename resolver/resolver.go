// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	cache         *cache
	loader        *loader
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
	begun := cfg.Now()
	now := func() time.Duration { return cfg.Now().Sub(begun) }
	background, cache := newBackground(), newCache(cfg.CacheSize, cfg.CacheTTL, now)
	return &Resolver{
		maxDepth:      cfg.MaxDepth,
		lookupTimeout: cfg.LookupTimeout,
		observer:      cfg.Observer,
		background:    background,
		cache:         cache,
		loader:        newLoader(background, clients, cache, newLimiter(cfg.Concurrency, rateLimiterFor(restConfig)), cfg, now),
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
		known = climb{cache: r.cache, loader: r.loader, maxDepth: r.maxDepth}
		if chain, isKnown := known.chain(ref); isKnown {
			chains[i] = chain
			r.observeHits(known.hits())
		} else {
			cold = append(cold, i)
		}
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
	defer context.AfterFunc(r.background.context(), cancel)()
	var climbs sync.WaitGroup
	for _, i := range cold {
		climbs.Go(func() {
			waiting := climb{cache: r.cache, loader: r.loader, maxDepth: r.maxDepth, ctx: ctx}
			chains[i], _ = waiting.chain(refs[i])
			r.observeHits(waiting.hits())
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

// Len returns how many objects the cache holds. It is never above Config.CacheSize.
func (r *Resolver) Len() int { return r.cache.len() }

// Close ends the lookups that are in flight, and returns when they have ended. After Close, Resolve
// answers from the cache, or returns Unavailable. Close may be called more than once.
func (r *Resolver) Close() {
	r.background.close()
	r.clients.close()
}

// Config sets the limits of a Resolver.
type Config struct {
	// MaxDepth is the maximum number of owners above an object; 0 means 10.
	MaxDepth int
	// LookupTimeout is the maximum duration of one call of Resolve; 0 means 2 s.
	LookupTimeout time.Duration
	// CacheSize is the maximum number of entries in the cache; 0 means 100,000.
	CacheSize int
	// CacheTTL is the age at which the next use refreshes a cached object. It is also how long the
	// chain of a deleted object stays in the cache after its last use. 0 means 10 minutes.
	CacheTTL time.Duration

	// Namespaces are the namespaces of the objects that callers resolve; empty means all. If
	// there are any, no list of a namespaced kind is of the whole cluster.
	Namespaces []string

	// KeepLabel and KeepAnnotation report whether objects keep a key; nil keeps none. An object keeps
	// at most 128 labels and annotations of 8 KiB in all: KeepFirst reports whether a key comes before
	// others; nil: none does. All are called concurrently.
	KeepLabel      func(key string) bool
	KeepAnnotation func(key string) bool
	KeepFirst      func(key string) bool

	// Concurrency is the maximum number of concurrent requests; 0 means 400. One kind of object
	// gets at most a quarter of them.
	Concurrency int
	// Observer observes the requests; nil means none.
	Observer Observer
	// Now is the clock for the ages of cache entries; nil means time.Now.
	Now func() time.Time
}

// Default returns the config that zero values mean.
func Default() Config {
	return Config{
		MaxDepth: 10, LookupTimeout: 2 * time.Second, CacheSize: 100_000, CacheTTL: 10 * time.Minute,
		Concurrency: 400, Now: time.Now,
	}
}

// withDefaults returns the config with defaults for its zero values. The error names an invalid
// value.
func (c Config) withDefaults() (Config, error) {
	for name, value := range map[string]int64{
		"MaxDepth":      int64(c.MaxDepth),
		"LookupTimeout": int64(c.LookupTimeout),
		"CacheSize":     int64(c.CacheSize),
		"CacheTTL":      int64(c.CacheTTL),
		"Concurrency":   int64(c.Concurrency),
	} {
		if value < 0 {
			return c, fmt.Errorf("%s must not be negative", name)
		}
	}
	defaults := Default()
	c.MaxDepth = cmp.Or(c.MaxDepth, defaults.MaxDepth)
	c.LookupTimeout = cmp.Or(c.LookupTimeout, defaults.LookupTimeout)
	c.CacheSize = cmp.Or(c.CacheSize, defaults.CacheSize)
	c.CacheTTL = cmp.Or(c.CacheTTL, defaults.CacheTTL)
	c.Concurrency = cmp.Or(c.Concurrency, defaults.Concurrency)
	if c.Now == nil {
		c.Now = defaults.Now
	}
	return c, nil
}

// Observer observes the resolver's requests. Its methods are called concurrently and must not
// block.
type Observer interface {
	// LookupDone is called after each request. The result is "found", "not_found", "forbidden",
	// "timeout" or "unavailable".
	LookupDone(result string, took time.Duration)
	// CacheHit is called for each object that the resolver returned without a request.
	CacheHit()
	// Forbidden is called after each request that failed because the permission for verb ("get" or
	// "list") is missing. An empty namespace means a cluster-scoped resource.
	Forbidden(verb string, resource schema.GroupResource, namespace string)
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

// context returns a context that is done once background is closed.
func (b *background) context() context.Context { return b.ctx }

func (b *background) isClosed() bool { return b.ctx.Err() != nil }

// close stops the running work and waits for it. It may be called more than once.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.running.Wait()
}
