// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// unservedTTL is how long the resolver assumes that a kind is not served. So this is how long a
	// kind may stay unknown after its CRD appeared.
	unservedTTL = 10 * time.Second
	// forever is longer than any resolver lives. The resolver assumes that a kind stays as it is
	// served until a request proves otherwise.
	forever = time.Duration(math.MaxInt64)
	// maxKinds is the maximum number of cached queries. No cluster has as many kinds, but events
	// may name kinds and versions that do not exist.
	maxKinds = 4096
)

// kindQuery is the part of a reference that names its object's kind.
type kindQuery struct {
	apiVersion string
	kind       string

	// allGroups, without an API version, searches all groups except core. A query with neither
	// searches core.
	allGroups bool
}

// kindAnswer holds the possible kinds, the best guess first. With an API version, there is at most
// one.
type kindAnswer struct {
	kinds []*kind
	// failure is why the kinds could not be discovered now. Then kinds holds those that were known
	// before; their objects may still be in the cache.
	failure Resolution
}

// kindEntry is a cached answer and when it expires.
type kindEntry struct {
	kindAnswer
	until time.Duration
}

// kinds caches which kinds the API server serves, and discovers the others. It may be used
// concurrently.
type kinds struct {
	documents *documents
	now       func() time.Duration
	flight    *flight[kindQuery, kindAnswer]

	mu      sync.Mutex
	entries *simplelru.LRU[kindQuery, kindEntry] // guarded by mu
}

func newKinds(b *background, d *discoverer) *kinds {
	return &kinds{
		documents: newDocuments(b, d),
		now:       d.now,
		flight:    newFlight[kindQuery, kindAnswer](b),
		entries:   newLRU[kindQuery, kindEntry](maxKinds),
	}
}

// find returns the cached answer, if there is a valid one.
func (k *kinds) find(q kindQuery) (kindAnswer, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	entry, found := k.entries.Get(q)
	if !found || k.now() >= entry.until {
		return kindAnswer{}, false
	}
	return entry.kindAnswer, true
}

// fetch finds the answer in the background. Callers must wait for the call or leave it.
func (k *kinds) fetch(q kindQuery) *call[kindAnswer] {
	return k.flight.join(q, func(ctx context.Context) (kindAnswer, bool) {
		// Another call may have ended since the caller searched the cache.
		if answer, known := k.find(q); known {
			return answer, true
		}
		found, err := k.discover(ctx, q)
		switch {
		case errors.Is(err, errNotSent):
			return kindAnswer{}, false
		case err != nil:
			return k.fail(q, failureOf(err), true), true
		case len(found) == 0:
			return k.fail(q, NotFound, true), true
		default:
			return k.learn(q, found), true
		}
	})
}

// discover asks the API server. It returns nothing for a kind that is not served.
func (k *kinds) discover(ctx context.Context, q kindQuery) ([]*kind, error) {
	if q.allGroups {
		return k.documents.inAllGroups(ctx, q.kind)
	}
	found, err := k.inGroup(ctx, currentGroupVersion(q.apiVersion, q.kind), q.kind)
	if found == nil {
		return nil, err
	}
	return []*kind{found}, nil
}

// inGroup returns the kind as the named version of the group serves it, else as the best other
// version does; nil if no version has it.
func (k *kinds) inGroup(ctx context.Context, gv schema.GroupVersion, name string) (*kind, error) {
	if gv.Group == "" {
		return k.documents.inVersion(ctx, schema.GroupVersion{Version: coreVersion}, name)
	}
	if !isSegment(gv.Group) {
		return nil, nil
	}
	if isSegment(gv.Version) {
		found, err := k.documents.inVersion(ctx, gv, name)
		if found != nil || err != nil {
			return found, err
		}
	}
	return k.inOtherVersions(ctx, gv, name)
}

// inOtherVersions returns the kind as the group's most preferred version serves it that has it; nil
// if there is none. It skips the version of gv.
func (k *kinds) inOtherVersions(ctx context.Context, gv schema.GroupVersion, name string) (*kind, error) {
	versions, err := k.documents.discoverer.versions(ctx, gv.Group)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		if version == gv.Version {
			continue
		}
		found, err := k.documents.inVersion(ctx, schema.GroupVersion{Group: gv.Group, Version: version}, name)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// learn caches the answer to a query.
func (k *kinds) learn(q kindQuery, found []*kind) kindAnswer {
	entry := kindEntry{kindAnswer{kinds: found}, forever}
	if q.allGroups {
		// Another group may get a kind with the same name.
		entry.until = k.now() + catalogueTTL
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries.Add(q, entry)
	return entry.kindAnswer
}

// fail returns the answer to a query that failed or found no kind. With remember, the failure is
// cached. If another call found an answer in the meantime, fail returns that.
func (k *kinds) fail(q kindQuery, failure Resolution, remember bool) kindAnswer {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, found := k.entries.Get(q)
	if found && last.failure == "" && k.now() < last.until {
		return last.kindAnswer
	}
	answer := kindAnswer{kinds: last.kinds, failure: failure}
	if !remember {
		return answer
	}
	lifetime := failureTTL(failure)
	if failure == NotFound {
		lifetime = unservedTTL
	}
	k.entries.Add(q, kindEntry{answer, k.now() + lifetime})
	return answer
}

// invalidate must be called when a request for an object shows that its kind is no longer served at
// its path.
func (k *kinds) invalidate(unserved *kind) {
	k.documents.invalidate(unserved)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, q := range k.entries.Keys() {
		if entry, _ := k.entries.Peek(q); slices.Contains(entry.kinds, unserved) {
			entry.until = min(entry.until, k.now())
			k.entries.Add(q, entry)
		}
	}
}
