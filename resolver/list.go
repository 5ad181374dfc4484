// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// anyVersion allows an answer from the watch cache at any version, in pages. "0" means the same,
// but returns a single page.
const anyVersion = "1"

// list is one paged list of a collection. Climbs leave it as soon as their objects are found. It is
// read to its end all the same, because it was begun for more objects than those.
type list struct {
	kind       *kinds.Kind
	collection collection // with an empty namespace, of the whole cluster if the kind is namespaced
	limit      int        // objects of the next page
	needed     int        // objects for which it is read
	consistent bool       // read consistently: the whole list proves what does not exist
	level      int

	// lookup.mu guards the following.

	wants   map[objectKey][]*want
	place   string // of the last object that was read
	pages   int    // that were read
	objects int    // that were read
	left    int    // objects that are left to be read, as far as known
	stalled bool   // for so long that objects are also read one by one
}

// beginListLocked begins a list. Usually it is read from the API server's watch cache, since most
// objects are older than that. A consistent list can take the API server a while.
func (l *lookup) beginListLocked(k *kinds.Kind, in collection, wants []*want, limit, needed int) {
	of := &list{
		kind: k, collection: in, limit: limit, needed: needed, left: l.scopeLocked(in).size,
		wants: make(map[objectKey][]*want),
	}
	for _, w := range wants {
		w.isEarly = true
		of.consistent = of.consistent || w.needsProof
		of.level = max(of.level, w.level)
		of.wants[w.key] = append(of.wants[w.key], w)
	}
	l.lists[in] = of
	if !l.background.run(func() { l.readList(of) }) {
		delete(l.lists, in)
		for _, w := range wants {
			l.failLocked(w, Unavailable, false)
		}
	}
	l.readSoonerLocked(of)
}

// mayBring reports whether a list that is in flight may still bring the object.
func (of *list) mayBring(w *want) bool {
	return placeOf(w.key) > of.place && (of.consistent || !w.needsProof)
}

// placeOf returns a string that orders objects as lists do: as etcd does.
func placeOf(key objectKey) string { return key.namespace.Value() + "/" + key.name }

func (l *lookup) waitForListLocked(of *list, w *want) {
	w.isEarly = false
	of.wants[w.key] = append(of.wants[w.key], w)
	l.readSoonerLocked(of)
}

// readList reads a list to its end, unless it is not worth it.
func (l *lookup) readList(of *list) {
	options := metav1.ListOptions{Limit: int64(of.limit)}
	if !of.consistent {
		options.ResourceVersion = anyVersion
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	for {
		stalled := time.AfterFunc(l.timeout/4, func() { l.noteStalled(of) })
		page, requestedAt, err := l.page(of, options)
		stalled.Stop()
		if refusesVersion(err) && options.ResourceVersion != "" {
			options = metav1.ListOptions{Limit: options.Limit}
			continue
		}
		if err != nil || !l.takePage(of, page, requestedAt) {
			l.endList(of, page, err)
			return
		}
		options = metav1.ListOptions{Limit: int64(of.limit), Continue: page.Continue}
	}
}

// refusesVersion reports whether a server without a watch cache rejected the resource version.
func refusesVersion(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// page reads one page, before single objects of the kind: it may bring many of them.
func (l *lookup) page(of *list, options metav1.ListOptions) (page *metav1.PartialObjectMetadataList, requestedAt time.Duration, err error) {
	isNeeded := func() bool { return !l.background.isClosed() }
	err = l.limiter.send(&request{
		kind: of.kind.Name, level: of.level + 1, isConsistent: of.consistent,
		isNeeded: isNeeded,
		onHang:   func() { l.noteStalled(of) },
		send: func(ctx context.Context) (works bool, err error) {
			requestedAt = l.now()
			page, err = l.resource(of.kind, of.collection).List(ctx, options)
			return err != nil || of.consistent || len(page.Items) > 0, err
		},
	})
	return page, requestedAt, err
}

// takePage caches a page and answers the climbs that wait for its objects. It reports whether the
// next page is to be read.
func (l *lookup) takePage(of *list, page *metav1.PartialObjectMetadataList, requestedAt time.Duration) (goesOn bool) {
	found, keys := make([]*Object, len(page.Items)), make([]objectKey, len(page.Items))
	for i := range page.Items {
		in := collectionOf(of.kind, page.Items[i].Namespace)
		found[i] = l.store(of.kind, in, &page.Items[i], requestedAt, true)
		keys[i] = objectKey{in, found[i].Name}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, object := range found {
		l.answerFoundLocked(of, keys[i], object)
	}
	if last := len(keys) - 1; last >= 0 {
		of.place = placeOf(keys[last])
	}
	of.pages++
	of.objects += len(found)
	of.left, of.stalled = remaining(page), false
	l.noteVersionLocked(of.kind, page.ResourceVersion)
	s := l.scopeLocked(of.collection)
	s.size, s.sized = of.objects+of.left, max(l.now(), 1)
	isFirst := of.limit < pageSize && of.pages == 1
	of.limit = limitAfter(page)
	s.limit = of.limit
	if page.Continue == "" || (isFirst || page.RemainingItemCount == nil) && !l.isWorth(of.needed, s.size, of.left) {
		return false
	}
	l.readSoonerLocked(of)
	l.requestWaveLocked()
	return true
}

// limitAfter returns how many objects the page after this one should have.
func limitAfter(page *metav1.PartialObjectMetadataList) int {
	size := 0
	for i := range page.Items {
		size += page.Items[i].Size()
	}
	if size == 0 {
		return pageSize
	}
	return max(1, min(pageSize, pageBytes*len(page.Items)/size))
}

// answerFoundLocked answers the climbs that wait for an object of the list. In a list from the
// watch cache, an object with another UID may be an earlier one of the name.
func (l *lookup) answerFoundLocked(of *list, key objectKey, object *Object) {
	var left []*want
	for _, w := range of.wants[key] {
		if object.hasUID(w.uid) {
			l.cache.use(key, object.UID)
			l.answerLocked(w, answer{object: object})
		} else if !w.answered {
			left = append(left, w)
		}
	}
	if delete(of.wants, key); len(left) > 0 {
		of.wants[key] = left
	}
}

// remaining returns the minimum number of objects after the page.
func remaining(page *metav1.PartialObjectMetadataList) int {
	switch {
	case page.Continue == "":
		return 0
	case page.RemainingItemCount == nil:
		return 1
	default:
		return int(*page.RemainingItemCount)
	}
}

// noteStalled notes that a page does not come.
func (l *lookup) noteStalled(of *list) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of.stalled = true
	l.readSoonerLocked(of)
}

// readSoonerLocked also requests the objects of a list one by one if this takes less time. A long
// list is for those that will be needed later.
func (l *lookup) readSoonerLocked(of *list) {
	pages := (of.left + pageSize - 1) / pageSize
	turns := (len(of.wants) + l.limiter.slotsOfOne - 1) / l.limiter.slotsOfOne
	if turns >= pages && !of.stalled || l.lists[of.collection] != of {
		return
	}
	for _, wants := range of.wants {
		for _, w := range wants {
			if !w.answered && l.reads[w.key] == nil {
				l.readLocked(w)
			}
		}
	}
}

// endList answers the climbs that still wait for the list. page is its last page; nil: there is
// none.
func (l *lookup) endList(of *list, page *metav1.PartialObjectMetadataList, err error) {
	unserved := l.noteError("list", of.kind, of.collection, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lists, of.collection)
	isWhole := err == nil && page.Continue == ""
	if !unserved {
		l.noteListLocked(of, isWhole, err)
	}
	for _, wants := range of.wants {
		for _, w := range wants {
			switch {
			case unserved:
				l.answerLocked(w, answer{failure: NotFound, unserved: true})
			case isWhole && of.consistent && w.isEarly:
				l.failLocked(w, NotFound, true)
			default:
				w.needsProof = w.needsProof || isWhole
				l.wave = append(l.wave, w)
			}
		}
	}
	l.requestWaveLocked()
}

func (l *lookup) noteListLocked(of *list, isWhole bool, err error) {
	s, now := l.scopeLocked(of.collection), l.now()
	switch {
	case isWhole:
		s.listed = max(now, 1)
	case failureOf(err) == Forbidden:
		s.listRefused = now + stableFailureTTL
	case err != nil:
		s.listRefused = now + transientFailureTTL
	}
}
