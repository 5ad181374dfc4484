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
	// watchThreshold is the number of misses within missWindow from which the resolver watches a
	// kind.
	watchThreshold = 10
	missWindow     = time.Second
	// quietAfter is how long the resolver watches a kind with less than one new object per second.
	quietAfter = 10 * time.Second
	// maxScopes is the maximum number of namespaces in which a kind is watched. Each takes one
	// stream of a connection.
	maxScopes = 32
	// rewatchAfter is how long the resolver waits after a watch failed.
	rewatchAfter = 10 * time.Minute
	// watchTimeout is after how many seconds the API server ends a watch.
	watchTimeout = int64(300)
)

// watcher watches the new objects of kinds that have many of them, such as pods while thousands
// appear. A GET per object, or repeated lists, would strain the API server. Watched objects are in
// the cache before a caller needs them.
type watcher struct {
	reader *reader
	scopes []string // namespaces; a single empty name means all

	mu    sync.Mutex
	kinds map[unique.Handle[schema.GroupKind]]*watchedKind // guarded by mu
}

// watchedKind is the state of one kind. watcher.mu guards it.
type watchedKind struct {
	misses    int // requested objects since then that a complete list did not have
	since     time.Duration
	version   string // of the newest list, where the watch starts
	running   bool
	notBefore time.Duration // after a failure
}

func newWatcher(r *reader, namespaces []string) *watcher {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	return &watcher{reader: r, scopes: namespaces, kinds: make(map[unique.Handle[schema.GroupKind]]*watchedKind)}
}

func (w *watcher) kindLocked(k *kind) *watchedKind {
	of := w.kinds[k.name]
	if of == nil {
		of = &watchedKind{}
		w.kinds[k.name] = of
	}
	return of
}

// listed records the version of a complete list of objects of the kind.
func (w *watcher) listed(k *kind, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kindLocked(k).version = version
}

// missed records that callers requested objects that a recent complete list did not have. If there
// are many, it starts a watch of the kind.
func (w *watcher) missed(k *kind, misses int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, now := w.kindLocked(k), w.reader.now()
	if now-of.since > missWindow {
		of.misses, of.since = 0, now
	}
	of.misses += misses
	if of.misses < watchThreshold || of.running || of.version == "" || now < of.notBefore || !k.watchable || len(w.scopes) > maxScopes {
		return
	}
	version := of.version
	of.running = w.reader.limiter.background.run(func() { w.run(k, version) })
}

// run watches until all streams have ended.
func (w *watcher) run(k *kind, version string) {
	var streams sync.WaitGroup
	for _, namespace := range w.scopes {
		streams.Go(func() { w.stream(k, namespace, version) })
	}
	streams.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kindLocked(k).running = false
}

// stream watches the objects of one namespace, or of all. When the API server ends a watch, the
// next one resumes there.
func (w *watcher) stream(k *kind, namespace, version string) {
	for resume := true; resume; {
		version, resume = w.streamFrom(k, namespace, version)
	}
}

// streamFrom reads one watch. It returns the resource version that it reached, and whether another
// watch is to resume there.
func (w *watcher) streamFrom(k *kind, namespace, version string) (reached string, resume bool) {
	ctx, cancel := context.WithCancel(w.reader.limiter.background.ctx)
	defer cancel()
	timeout := watchTimeout
	stream, err := w.reader.resource(k, collectionOf(k, namespace)).Watch(ctx, metav1.ListOptions{
		ResourceVersion: version, TimeoutSeconds: &timeout,
	})
	if err != nil {
		w.fail(k)
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
				w.fail(k) // It cannot be watched, or not from this version.
				return version, false
			}
			version, ever = meta.ResourceVersion, true
			if w.store(k, change.Type, meta) {
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

// store caches new objects, and changes of objects that are in the cache.
func (w *watcher) store(k *kind, change watch.EventType, meta *metav1.PartialObjectMetadata) (isNew bool) {
	in := collectionOf(k, meta.Namespace)
	known := change == watch.Modified && w.reader.cache.has(objectKey{collection: in, name: meta.Name}, meta.UID)
	if change == watch.Added || known {
		w.reader.store(k, in, meta, w.reader.now())
	}
	return change == watch.Added
}

func (w *watcher) fail(k *kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kindLocked(k).notBefore = w.reader.now() + rewatchAfter
}
