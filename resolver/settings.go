// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Settings set the limits of a Resolver.
type Settings struct {
	// MaxDepth is the maximum number of owners above an object; 0 means 10.
	MaxDepth int
	// LookupTimeout is the maximum duration of one call of Resolve; 0 means 2 s.
	LookupTimeout time.Duration
	// CacheSize is the maximum number of entries in the cache; 0 means 100,000.
	CacheSize int
	// CacheTTL is the age at which the next use refreshes a cached object. It is also how long the
	// chain of a deleted object stays in the cache after its last use. 0 means 10 minutes.
	CacheTTL time.Duration

	// ListNamespacesOnly is set if the objects are in a few namespaces, or if Roles permit to read only
	// these. Then no list is of the whole cluster.
	ListNamespacesOnly bool

	// Trim is called with the metadata of each object that was read, before the resolver keeps what it
	// needs of it: all labels and annotations that Trim leaves. It may change everything, and is called
	// concurrently. Nil leaves neither labels nor annotations.
	Trim func(*metav1.PartialObjectMetadata)

	// Concurrency is the maximum number of concurrent reads of one kind of object; 0 means 100. An
	// eighth as many lists may be added.
	Concurrency int
	// Observer observes the requests; nil means none.
	Observer Observer
	// Now is the clock for the ages of cache entries; nil means time.Now.
	Now func() time.Time
}

// DefaultSettings returns the settings that zero values mean.
func DefaultSettings() Settings {
	return Settings{
		MaxDepth: 10, LookupTimeout: 2 * time.Second, CacheSize: 100_000, CacheTTL: 10 * time.Minute,
		Concurrency: 100, Now: time.Now,
	}
}

// withDefaults returns the settings with defaults for its zero values. The error names an invalid
// value.
func (s Settings) withDefaults() (Settings, error) {
	for name, value := range map[string]int64{
		"MaxDepth":      int64(s.MaxDepth),
		"LookupTimeout": int64(s.LookupTimeout),
		"CacheSize":     int64(s.CacheSize),
		"CacheTTL":      int64(s.CacheTTL),
		"Concurrency":   int64(s.Concurrency),
	} {
		if value < 0 {
			return s, fmt.Errorf("%s must not be negative", name)
		}
	}
	defaults := DefaultSettings()
	s.MaxDepth = cmp.Or(s.MaxDepth, defaults.MaxDepth)
	s.LookupTimeout = cmp.Or(s.LookupTimeout, defaults.LookupTimeout)
	s.CacheSize = cmp.Or(s.CacheSize, defaults.CacheSize)
	s.CacheTTL = cmp.Or(s.CacheTTL, defaults.CacheTTL)
	s.Concurrency = cmp.Or(s.Concurrency, defaults.Concurrency)
	if s.Now == nil {
		s.Now = defaults.Now
	}
	return s, nil
}

// Observer observes the resolver's requests. Its methods are called concurrently and must not
// block.
type Observer interface {
	// LookupDone is called after each request. The error is nil if it brought an object or a list.
	LookupDone(err error, took time.Duration)
	// CacheHit is called for each object that the resolver returned without a request.
	CacheHit()
	// Forbidden is called after each request that failed because the permission for verb ("get" or
	// "list") is missing. An empty namespace means a cluster-scoped resource.
	Forbidden(verb string, resource schema.GroupResource, namespace string)
}
