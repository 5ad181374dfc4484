// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// read is a request for one object, in flight or waiting to be sent. lookup.mu guards wants and
// proven.
type read struct {
	kind  *kinds.Kind
	key   objectKey
	level int
	wants []*want // that wait for it; some may be answered in another way
	// proven is how many of the wants were there when the last request was sent. For the others,
	// the request may be older than their object, so it does not prove that the object does not
	// exist.
	proven int
}

// joinReadLocked lets a want wait for the read of its object. It returns false if none is in
// flight.
func (l *lookup) joinReadLocked(w *want) bool {
	r := l.reads[w.key]
	if r != nil {
		r.wants = append(r.wants, w)
	}
	return r != nil
}

// readLocked requests one object, unless this is in flight.
func (l *lookup) readLocked(w *want) {
	if l.joinReadLocked(w) {
		return
	}
	r := &read{kind: w.kind, key: w.key, level: w.level, wants: []*want{w}}
	l.reads[w.key] = r
	fromCache := !w.needsProof && w.uid != "" // Most objects are older than their events.
	uid := w.uid
	if !l.background.run(func() { l.endRead(r, l.read(r, fromCache, func(o *Object) bool { return o.hasUID(uid) })) }) {
		delete(l.reads, w.key)
		l.failLocked(w, Unavailable, false)
	}
}

// readResult is the object that a read found, or the error of its last request.
type readResult struct {
	object  *Object
	version string // the object's resource version
	err     error
	// isConsistent is set if the watch cache could not answer.
	isConsistent bool
}

// read sends the request. If an answer from the API server's watch cache is allowed and is not the
// object, it sends a consistent one: only this proves that an object does not exist, or is another
// one.
func (l *lookup) read(r *read, fromCache bool, isWanted func(*Object) bool) readResult {
	if fromCache {
		found := l.send(r, metav1.GetOptions{ResourceVersion: "0"})
		if isAboutPath(found.err) || found.err != nil && failureOf(found.err) != NotFound ||
			found.object != nil && isWanted(found.object) {
			return found
		}
	}
	return l.send(r, metav1.GetOptions{})
}

// send sends one request, as soon as the limits permit and if a climb still waits for it.
func (l *lookup) send(r *read, options metav1.GetOptions) (result readResult) {
	isConsistent := options.ResourceVersion == ""
	result.isConsistent = isConsistent
	result.err = l.limiter.send(&request{
		kind: r.kind.Name, level: r.level, isConsistent: isConsistent,
		isNeeded: func() bool { return l.noteSent(r) },
		repeat:   l.repeating(r.kind, r.key),
		send: func(ctx context.Context) (works bool, err error) {
			requestedAt := l.now()
			meta, err := l.resource(r.kind, r.key.collection).Get(ctx, r.key.name, options)
			if err == nil {
				result.object = l.store(r.kind, r.key.collection, meta, requestedAt, false)
				result.version = meta.ResourceVersion
			}
			return err == nil || isConsistent, err
		},
	})
	return result
}

// repeating returns a function that reads an object, to see whether it is answered.
func (l *lookup) repeating(k *kinds.Kind, key objectKey) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.resource(k, key.collection).Get(ctx, key.name, metav1.GetOptions{})
		return err
	}
}

// noteSent notes that the request is about to be sent. It returns false if nobody waits for it.
func (l *lookup) noteSent(r *read) (isNeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range r.wants {
		isNeeded = isNeeded || !w.answered
	}
	if !isNeeded {
		return false
	}
	for _, w := range r.wants {
		w.sent = true
	}
	r.proven = len(r.wants)
	return true
}

// endRead answers the climbs that wait for the object.
func (l *lookup) endRead(r *read, result readResult) {
	unserved := l.noteError("get", r.kind, r.key.collection, result.err)
	failure, notSent := failureOf(result.err), errors.Is(result.err, errNotSent)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reads, r.key)
	if !notSent && !l.background.isClosed() {
		l.noteReadLocked(r, failure, result.version)
	}
	for i, w := range r.wants {
		isProven := i < r.proven && (result.err != nil || result.isConsistent)
		switch {
		case w.answered:
			l.rememberLocked(w, result.err, isProven)
		case result.object != nil && result.object.hasUID(w.uid):
			l.answerLocked(w, answer{object: result.object})
		case notSent || !isProven && (failure == NotFound || failure == ""):
			w.needsProof = true
			l.wave = append(l.wave, w)
		case unserved:
			l.answerLocked(w, answer{failure: NotFound, unserved: true})
		case failure == "":
			l.failLocked(w, NotFound, true) // Another object has the name.
		default:
			l.failLocked(w, failure, !l.background.isClosed())
		}
	}
	l.requestWaveLocked()
}

// noteError reports a missing permission to the observer, and a kind that is not served at its path
// to the catalogue. Without the list of the cluster, those of single namespaces do.
func (l *lookup) noteError(verb string, k *kinds.Kind, in collection, err error) (unserved bool) {
	isOfCluster := k.Namespaced && in.namespace.Value() == ""
	if l.observer != nil && failureOf(err) == Forbidden && !isOfCluster {
		l.observer.Forbidden(verb, k.Resource.GroupResource(), in.namespace.Value())
	}
	unserved = isAboutPath(err)
	if unserved {
		l.catalogue.Unserved(k)
	}
	return unserved
}

// noteReadLocked notes the result of a read in the collections that have its object. version is the
// object's resource version.
func (l *lookup) noteReadLocked(r *read, failure Resolution, version string) {
	own, now := l.scopeLocked(r.key.collection), l.now()
	own.noteRead(failure, now)
	if failure == "" {
		own.noteFound(now, l.cache.ttl)
		l.noteVersionLocked(r.kind, version)
		l.noteSingleReadLocked(r.kind)
	}
	if failure == "" && r.kind.Namespaced {
		l.scopeLocked(collectionOf(r.kind, "")).noteFound(now, l.cache.ttl)
	}
}

// rememberLocked remembers what a request has shown to a climb that has left.
func (l *lookup) rememberLocked(w *want, err error, isProven bool) {
	if err != nil && !errors.Is(err, errNotSent) && isProven && !isAboutPath(err) && !l.background.isClosed() {
		l.cache.fail(w.key, w.uid, failureOf(err), true)
	}
}

// store caches what was read and returns it.
func (l *lookup) store(k *kinds.Kind, in collection, meta *metav1.PartialObjectMetadata, requestedAt time.Duration, isListed bool) *Object {
	l.objectsRead.Add(1)
	object := l.trimmer.object(k, meta)
	return l.cache.store(objectKey{collection: in, name: object.Name}, object, requestedAt, isListed)
}

// resource returns the client for objects of the kind in the collection.
func (l *lookup) resource(k *kinds.Kind, in collection) metadata.ResourceInterface {
	client := l.client.Resource(k.Resource)
	if k.Namespaced {
		return client.Namespace(in.namespace.Value())
	}
	return client
}
