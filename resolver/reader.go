// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// reader reads the metadata of objects, one or many at a time, and caches it.
type reader struct {
	client   metadata.Interface
	limiter  *limiter
	cache    *cache
	trimmer  *trimmer
	now      func() time.Duration
	gets     *flight[objectKey, answer]
	refusals *refusals
}

// refusalsInARow is how many consecutive single reads must be refused before the whole collection
// counts as refused.
const refusalsInARow = 3

// get reads the object of the key in the background. forUID is the UID of the reference; the object
// may have another one. Callers must wait for the call or leave it.
//
// With allowCached, an answer from the API server's watch cache is enough if it is the object with
// the UID. An owner that is known from its dependent is usually older than that cache.
func (r *reader) get(k *kind, key objectKey, forUID types.UID, allowCached bool) *call[answer] {
	return r.gets.join(key, func(ctx context.Context) (answer, bool) {
		// Another call may have ended since the caller searched the cache.
		found, known := r.cache.find(key, forUID)
		var err error
		if !known {
			found, err = r.readCachedFirst(ctx, k, key, forUID, allowCached)
		}
		if errors.Is(err, errNotSent) {
			return answer{}, false
		}
		if err != nil {
			r.limiter.forbidden(err, "get", k, key.collection)
			found = r.failed(key, forUID, err)
		}
		found.forUID = forUID
		return found, true
	})
}

// readCachedFirst reads from the watch cache if allowed, and then with a consistent read if
// necessary.
func (r *reader) readCachedFirst(ctx context.Context, k *kind, key objectKey, forUID types.UID, allowCached bool) (answer, error) {
	if allowCached && forUID != "" {
		found, err := r.read(ctx, k, key, metav1.GetOptions{ResourceVersion: "0"})
		if isAboutPath(err) || failureOf(err) != NotFound && (err != nil || found.object.UID == forUID) {
			return found, err
		}
	}
	// Only a consistent read proves that an object does not exist, or is another one.
	return r.read(ctx, k, key, metav1.GetOptions{})
}

// read sends the request for one object.
func (r *reader) read(ctx context.Context, k *kind, key objectKey, options metav1.GetOptions) (answer, error) {
	var meta *metav1.PartialObjectMetadata
	var requestedAt time.Duration
	err := r.limiter.send(ctx, func(ctx context.Context) (err error) {
		requestedAt = r.now()
		meta, err = r.resource(k, key.collection).Get(ctx, key.name, options)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	r.refusals.note(key.collection, "")
	return answer{object: r.store(k, key.collection, meta, requestedAt)}, nil
}

// failed caches the failure of a request, also if the callers have left.
func (r *reader) failed(key objectKey, forUID types.UID, err error) answer {
	failure := failureOf(err)
	r.refusals.note(key.collection, failure)
	if isAboutPath(err) {
		return answer{failure: failure, unserved: true}
	}
	if !r.limiter.background.isClosed() {
		r.cache.fail(key, forUID, failure, true)
	}
	return answer{failure: failure}
}

// store caches what was read and returns it.
func (r *reader) store(k *kind, in collection, meta *metav1.PartialObjectMetadata, requestedAt time.Duration) *Object {
	object := r.trimmer.object(k, meta)
	return r.cache.store(objectKey{collection: in, name: object.Name}, object, requestedAt)
}

// resource returns the client for objects of the kind in the collection.
func (r *reader) resource(k *kind, in collection) metadata.ResourceInterface {
	client := r.client.Resource(k.resource)
	if k.namespaced {
		return client.Namespace(in.namespace.Value())
	}
	return client
}
