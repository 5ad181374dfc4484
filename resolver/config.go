// SPDX-License-Identifier: Apache-2.0

package resolver

import "time"

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

// Observer is told what the resolver asks of the API server. Its methods are
// called concurrently and must not block.
type Observer interface {
	// LookupDone is called after each request. The result is "found",
	// "not_found", "forbidden", "timeout" or "unavailable".
	LookupDone(result string, took time.Duration)
	// CacheHit is called for each object that was answered without a request.
	CacheHit()
}
