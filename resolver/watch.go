// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// rewatchAfter is how long the resolver waits after a watch failed.
	rewatchAfter = 10 * time.Minute
	// watchTimeout is after how many seconds the API server ends a watch.
	watchTimeout = int64(300)
)

// watched is what is known of a kind for a watch of its new objects. While thousands of pods
// appear, a read of each one would be a burden to the API server. Watched objects are in the cache
// before a caller needs them. lookup.mu guards it.
type watched struct {
	reads     int // single reads since then
	since     time.Duration
	version   uint64 // the newest one that was read, where the watch starts; 0: there is none
	running   bool
	notBefore time.Duration // after a failure
}

func (l *lookup) watchedLocked(k *kinds.Kind) *watched {
	of := l.watches[k.Name]
	if of == nil {
		of = &watched{}
		l.watches[k.Name] = of
	}
	return of
}

// noteVersionLocked notes the resource version of a list or an object that was read.
func (l *lookup) noteVersionLocked(k *kinds.Kind, version string) {
	read, _ := strconv.ParseUint(version, 10, 64) // Without a number, there is no watch.
	of := l.watchedLocked(k)
	of.version = max(of.version, read)
}

// noteSingleReadLocked counts an object that was read by itself. If there are many, it starts a
// watch of the kind.
func (l *lookup) noteSingleReadLocked(k *kinds.Kind) {
	of, now := l.watchedLocked(k), l.now()
	if now-of.since > watchWindow {
		of.reads, of.since = 0, now
	}
	of.reads++
	if of.reads < watchThreshold || of.running || of.version == 0 || now < of.notBefore || !k.Watchable ||
		len(l.namespaces) > maxWatchedNamespaces {
		return
	}
	version := strconv.FormatUint(of.version, 10)
	of.running = l.background.run(func() { l.watch(k, version) })
}

// watch watches a kind until all streams have ended.
func (l *lookup) watch(k *kinds.Kind, version string) {
	namespaces := l.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var streams sync.WaitGroup
	for _, namespace := range namespaces {
		streams.Go(func() { l.stream(k, namespace, version) })
	}
	streams.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchedLocked(k).running = false
}

// stream watches the objects of one namespace, or of all. When the API server ends a watch, the
// next one resumes there.
func (l *lookup) stream(k *kinds.Kind, namespace, version string) {
	for resume := true; resume; {
		version, resume = l.streamFrom(k, namespace, version)
	}
}

// streamFrom reads one watch. It returns the resource version that it reached, and whether another
// watch is to resume there.
func (l *lookup) streamFrom(k *kinds.Kind, namespace, version string) (reached string, resume bool) {
	ctx, cancel := context.WithCancel(l.background.ctx)
	defer cancel()
	timeout := watchTimeout
	stream, err := l.resource(k, collectionOf(k, namespace)).Watch(ctx, metav1.ListOptions{
		ResourceVersion: version, TimeoutSeconds: &timeout,
	})
	if err != nil {
		l.failWatch(k)
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
				l.failWatch(k) // It cannot be watched, or not from this version.
				return version, false
			}
			version, ever = meta.ResourceVersion, true
			if l.storeChange(k, change.Type, meta) {
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

// storeChange caches new objects, changes of objects that are in the cache, and deleted objects,
// whose last events come now.
func (l *lookup) storeChange(k *kinds.Kind, change watch.EventType, meta *metav1.PartialObjectMetadata) (isNew bool) {
	key := objectKey{collectionOf(k, meta.Namespace), meta.Name}
	if change == watch.Added || change == watch.Deleted || change == watch.Modified && l.cache.has(key, meta.UID) {
		object := l.trimmer.object(k, meta)
		key.name = object.Name
		l.cache.store(key, object, l.now(), true)
	}
	return change == watch.Added
}

func (l *lookup) failWatch(k *kinds.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchedLocked(k).notBefore = l.now() + rewatchAfter
}
