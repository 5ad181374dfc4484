// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	defaultMaxDepth      = 10
	defaultLookupTimeout = 2 * time.Second
	defaultCacheSize     = 100_000
	defaultCacheTTL      = 10 * time.Minute
	defaultConcurrency   = 16
)

// Config sets the bounds of a Resolver.
type Config struct {
	// MaxDepth is how many owners above an object are followed; 0 means 10.
	MaxDepth int
	// LookupTimeout is how long one call of Resolve may take; 0 means 2 s.
	LookupTimeout time.Duration
	// CacheSize is how many entries the cache holds; 0 means 100,000.
	CacheSize int
	// CacheTTL is the age at which what is known is refreshed on its next use,
	// and how long a deleted object's chain stays known after its last use;
	// 0 means 10 minutes.
	CacheTTL time.Duration

	// Namespaces are those whose objects are asked for; empty means all of them.
	// It bounds what is streamed while many new objects come.
	Namespaces []string

	// KeepLabel and KeepAnnotation choose the keys that objects keep; nil keeps
	// none. Both are called concurrently.
	KeepLabel      func(key string) bool
	KeepAnnotation func(key string) bool

	// Concurrency is how many requests run side by side; 0 means 16.
	Concurrency int
	// Observer watches the requests; nil means that nobody does.
	Observer Observer
	// Now is the clock that ages are measured by; nil means time.Now.
	Now func() time.Time
}

// withDefaults returns the config with its zero values filled in, or an error
// that names a value which makes no sense.
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
	c.MaxDepth = cmp.Or(c.MaxDepth, defaultMaxDepth)
	c.LookupTimeout = cmp.Or(c.LookupTimeout, defaultLookupTimeout)
	c.CacheSize = cmp.Or(c.CacheSize, defaultCacheSize)
	c.CacheTTL = cmp.Or(c.CacheTTL, defaultCacheTTL)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

// Observer is told what the resolver asks of the API server. Its methods are
// called concurrently and must not block.
type Observer interface {
	// LookupDone is called after each request. The result is "found",
	// "not_found", "forbidden", "timeout" or "unavailable".
	LookupDone(result string, took time.Duration)
	// CacheHit is called for each object that was answered without a request.
	CacheHit()
	// Forbidden is called after each request that was refused for want of the
	// permission to do what verb says: "get" or "list". An empty namespace means
	// a cluster-scoped resource.
	Forbidden(verb string, resource schema.GroupResource, namespace string)
}
