// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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

	// Concurrency is the maximum number of concurrent reads of one kind of object; 0 means 100. An
	// eighth as many lists may be added.
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
		Concurrency: 100, Now: time.Now,
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
