// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// followFrom is from how many newcomers within newcomersWindow on the new
	// objects of a kind are followed.
	followFrom      = 10
	newcomersWindow = time.Second
	// quietAfter is how long a kind is followed that brings hardly an object in a
	// second.
	quietAfter = 10 * time.Second
	// mostScopes is in how many namespaces a kind is followed at most: each takes
	// a connection's stream.
	mostScopes = 32
	// unfollowable is how long a kind is left in peace that could not be followed.
	unfollowable = 10 * time.Minute
	// followTimeout is after how many seconds the API server ends a stream.
	followTimeout = int64(300)
)

// follower streams the new objects of kinds that bring so many that reading each,
// or a list again and again, would be a burden: pods, while thousands come and go.
// What it brings is known before it is asked for.
type follower struct {
	reader *reader
	scopes []string // namespaces; one empty name stands for all

	mu    sync.Mutex
	kinds map[unique.Handle[schema.GroupKind]]*following // guarded by mu
}

// following is what is remembered of one kind. Guarded by follower.mu.
type following struct {
	newcomers int // objects asked for since then that a whole list did not hold
	since     time.Duration
	version   string // of the newest list, from where to follow
	runs      bool
	notBefore time.Duration // after it failed
}

func newFollower(r *reader, namespaces []string) *follower {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	return &follower{reader: r, scopes: namespaces, kinds: make(map[unique.Handle[schema.GroupKind]]*following)}
}

func (f *follower) kindLocked(k *kind) *following {
	of := f.kinds[k.name]
	if of == nil {
		of = &following{}
		f.kinds[k.name] = of
	}
	return of
}

// listed notes the version of a whole list of objects of the kind.
func (f *follower) listed(k *kind, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kindLocked(k).version = version
}

// newcomersOf notes that so many objects were asked for which a whole list, read
// not long ago, did not hold. Where they are many, the kind is followed.
func (f *follower) newcomersOf(k *kind, newcomers int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, now := f.kindLocked(k), f.reader.now()
	if now-of.since > newcomersWindow {
		of.newcomers, of.since = 0, now
	}
	of.newcomers += newcomers
	if of.newcomers < followFrom || of.runs || of.version == "" || now < of.notBefore || !k.watchable || len(f.scopes) > mostScopes {
		return
	}
	version := of.version
	of.runs = f.reader.gate.background.run(func() { f.follow(k, version) })
}

// follow streams until no more comes.
func (f *follower) follow(k *kind, version string) {
	var streams sync.WaitGroup
	for _, namespace := range f.scopes {
		streams.Go(func() { f.stream(k, namespace, version) })
	}
	streams.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kindLocked(k).runs = false
}

// stream follows the objects of one namespace, or of all. The API server ends a
// stream now and then; the next goes on where it ended.
func (f *follower) stream(k *kind, namespace, version string) {
	for goesOn := true; goesOn; {
		version, goesOn = f.streamFrom(k, namespace, version)
	}
}

// streamFrom reads one stream. It returns where the next goes on, and whether
// there is to be one.
func (f *follower) streamFrom(k *kind, namespace, version string) (reached string, goesOn bool) {
	ctx, cancel := context.WithCancel(f.reader.gate.background.ctx)
	defer cancel()
	timeout := followTimeout
	stream, err := f.reader.resource(k, placeOf(k, namespace)).Watch(ctx, metav1.ListOptions{
		ResourceVersion: version, TimeoutSeconds: &timeout,
	})
	if err != nil {
		f.fail(k)
		return version, false
	}
	defer stream.Stop()
	quiet := time.NewTicker(quietAfter)
	defer quiet.Stop()
	for brought, ever := 0, false; ; {
		select {
		case change, ok := <-stream.ResultChan():
			if !ok && ever {
				return version, true
			}
			meta, ok := change.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				f.fail(k) // It cannot be streamed, or not from there.
				return version, false
			}
			version, ever = meta.ResourceVersion, true
			if f.keep(k, change.Type, meta) {
				brought++
			}
		case <-quiet.C:
			if brought < int(quietAfter.Seconds()) {
				return version, false
			}
			brought = 0
		case <-ctx.Done():
			return version, false
		}
	}
}

// keep puts a new object into the cache, and what changed of one that is known.
func (f *follower) keep(k *kind, change watch.EventType, meta *metav1.PartialObjectMetadata) (isNew bool) {
	in := placeOf(k, meta.Namespace)
	known := change == watch.Modified && f.reader.cache.knows(address{place: in, name: meta.Name}, meta.UID)
	if change == watch.Added || known {
		f.reader.keep(k, in, meta, f.reader.now())
	}
	return change == watch.Added
}

func (f *follower) fail(k *kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kindLocked(k).notBefore = f.reader.now() + unfollowable
}
