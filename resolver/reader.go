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

// reader gets the metadata of objects, one or many at a time, and puts what it
// finds into the cache.
type reader struct {
	client  metadata.Interface
	gate    *gate
	cache   *cache
	trimmer *trimmer
	now     func() time.Duration
	singles *calls[address, answer]
	refused *refusals
}

// refusedInARow is how many single reads have to be refused before a place is
// taken for one that may not be read.
const refusedInARow = 3

// get reads the object at the address in the background, for a reference with
// the UID but whatever the object's own is. Who asks must see the call done, or
// leave it.
//
// With cached, an answer from the API server's cache will do, if it is the object
// with the UID: what is only known to exist because its dependent refers to it is
// mostly older than that.
func (r *reader) get(k *kind, at address, askedFor types.UID, cached bool) *call[answer] {
	return r.singles.join(at, func(wanted context.Context) (answer, bool) {
		// Another call may have ended since the caller found nothing in the cache.
		found, known := r.cache.find(at, askedFor)
		var err error
		if !known {
			found, err = r.readAsOld(wanted, k, at, askedFor, cached)
		}
		if errors.Is(err, errNotSent) {
			return answer{}, false
		}
		if err != nil {
			r.gate.forbidden(err, "get", k, at.place)
			found = r.failed(at, askedFor, err)
		}
		found.askedFor = askedFor
		return found, true
	})
}

// readAsOld reads from the cache if that may do, and consistently if it does not.
func (r *reader) readAsOld(wanted context.Context, k *kind, at address, askedFor types.UID, cached bool) (answer, error) {
	if cached && askedFor != "" {
		found, err := r.read(wanted, k, at, metav1.GetOptions{ResourceVersion: "0"})
		if isAboutPath(err) || failureOf(err) != NotFound && (err != nil || found.object.UID == askedFor) {
			return found, err
		}
	}
	// Only a consistent read proves that an object is not there, or is another.
	return r.read(wanted, k, at, metav1.GetOptions{})
}

// read sends the request for one object.
func (r *reader) read(wanted context.Context, k *kind, at address, options metav1.GetOptions) (answer, error) {
	var meta *metav1.PartialObjectMetadata
	var asked time.Duration
	err := r.gate.send(wanted, func(ctx context.Context) (err error) {
		asked = r.now()
		meta, err = r.resource(k, at.place).Get(ctx, at.name, options)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	r.refused.note(at.place, "")
	return answer{object: r.keep(k, at.place, meta, asked)}, nil
}

// failed remembers the failure of a request. Whoever asked may have left.
func (r *reader) failed(at address, askedFor types.UID, err error) answer {
	failure := failureOf(err)
	r.refused.note(at.place, failure)
	if isAboutPath(err) {
		return answer{failure: failure, unserved: true}
	}
	if !r.gate.background.isClosed() {
		r.cache.fail(at, askedFor, failure, true)
	}
	return answer{failure: failure}
}

// keep puts what was read into the cache and returns it.
func (r *reader) keep(k *kind, in place, meta *metav1.PartialObjectMetadata, asked time.Duration) *Object {
	object := r.trimmer.object(k, meta)
	return r.cache.store(address{place: in, name: object.Name}, object, asked)
}

// resource returns the client for objects of the kind in the place.
func (r *reader) resource(k *kind, in place) metadata.ResourceInterface {
	client := r.client.Resource(k.resource)
	if k.namespaced {
		return client.Namespace(in.namespace.Value())
	}
	return client
}
