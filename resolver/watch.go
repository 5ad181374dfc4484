// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"strconv"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

const (
	// watchThreshold is the number of single reads within watchWindow from which the resolver
	// watches a kind.
	watchThreshold = 20
	watchWindow    = time.Second
	// quietAfter is how long the resolver watches a kind with less than one new object per second.
	quietAfter = 10 * time.Second
	// maxWatchedNamespaces is the maximum number of namespaces in which a kind is watched. Each
	// takes one stream of a connection.
	maxWatchedNamespaces = 32
	// watchTimeout is after how many seconds the API server ends a watch.
	watchTimeout = int64(300)
)

// watcher watches the new objects of kinds. While thousands of pods appear, a read of each one
// would be a burden to the API server. Watched objects are in the cache before a caller needs them.
type watcher struct {
	clients    *clients
	store      func(*kinds.Kind, watch.EventType, *metav1.PartialObjectMetadata)
	background *background
	now        func() time.Duration
	namespaces []string // empty: all

	mu    sync.Mutex // guards the following, and what is known of each kind
	kinds map[unique.Handle[schema.GroupKind]]*watched
}

// watched is what is known of a kind for a watch of its new objects.
type watched struct {
	reads     int // single reads since then
	since     time.Duration
	version   uint64 // the newest one that was read, where the watch starts; 0: there is none
	running   bool
	notBefore time.Duration // after a failure
}

func (w *watcher) ofLocked(k *kinds.Kind) *watched {
	of := w.kinds[k.Name]
	if of == nil {
		of = &watched{}
		w.kinds[k.Name] = of
	}
	return of
}

// noteList notes the resource version of a list that was read.
func (w *watcher) noteList(k *kinds.Kind, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ofLocked(k).noteVersion(version)
}

func (of *watched) noteVersion(version string) {
	read, _ := strconv.ParseUint(version, 10, 64) // Without a number, there is no watch.
	of.version = max(of.version, read)
}

// noteRead counts an object that was read by itself. If there are many, it starts a watch of the
// kind.
func (w *watcher) noteRead(k *kinds.Kind, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, now := w.ofLocked(k), w.now()
	of.noteVersion(version)
	if now-of.since > watchWindow {
		of.reads, of.since = 0, now
	}
	of.reads++
	if of.reads < watchThreshold || of.running || of.version == 0 || now < of.notBefore || !k.Watchable ||
		len(w.namespaces) > maxWatchedNamespaces {
		return
	}
	from := strconv.FormatUint(of.version, 10)
	of.running = w.background.run(func() { w.watch(k, from) })
}

// watch watches a kind until all streams have ended.
func (w *watcher) watch(k *kinds.Kind, version string) {
	namespaces := w.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var streams sync.WaitGroup
	for _, namespace := range namespaces {
		streams.Go(func() { w.stream(k, collectionOf(k, namespace), version) })
	}
	streams.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ofLocked(k).running = false
}

// stream watches the objects of one namespace, or of all. When the API server ends a watch, the
// next one resumes there.
func (w *watcher) stream(k *kinds.Kind, in collection, version string) {
	for resume := true; resume; {
		version, resume = w.streamFrom(k, in, version)
	}
}

// streamFrom reads one watch. It returns the resource version that it reached, and whether another
// watch is to resume there.
func (w *watcher) streamFrom(k *kinds.Kind, in collection, version string) (reached string, resume bool) {
	ctx, cancel := context.WithCancel(w.background.context())
	defer cancel()
	timeout := watchTimeout
	stream, err := w.clients.resource(k, in).Watch(ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &timeout})
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
			w.store(k, change.Type, meta)
			if change.Type == watch.Added {
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

func (w *watcher) fail(k *kinds.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ofLocked(k).notBefore = w.now() + stableFailureTTL
}
