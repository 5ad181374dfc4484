// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// defaultNamespace holds the events of objects that have no namespace. It is also the namespace of
// an object whose event leaves the namespace out.
const defaultNamespace = "default"

// usualLength is the number of objects of most chains: a pod, a ReplicaSet, a Deployment, and what
// has made it.
const usualLength = 4

// climb follows one chain from the requested object to its end.
type climb struct {
	cache    *cache
	loader   *loader
	maxDepth int
	// ctx ends the waiting; nil: the climb never waits, and what needs a request is unavailable.
	ctx context.Context

	objects   []*Object
	ambiguous bool
	isCold    bool // it needs a request, and never waits
	known     int  // objects that needed no request
}

// chain returns the chain of an object. It returns false if the climb needs a request and never
// waits.
func (c *climb) chain(from Reference) (Chain, bool) {
	c.objects = make([]*Object, 0, usualLength)
	ref, dependent := from, (*Object)(nil)
	for {
		object, failure := c.find(ref, dependent)
		switch {
		case failure != "":
			return c.end(failure, object)
		case c.hasUID(object.UID): // Its reference did not have it.
			return c.end(ResolutionCycle, nil)
		case object.owner == none && c.ambiguous:
			return c.end(ResolutionAmbiguous, object)
		case object.owner == none:
			return c.end(ResolutionComplete, object)
		}
		c.objects = append(c.objects, object)
		up := object.owner.Value()
		c.ambiguous = c.ambiguous || up.ambiguous
		if c.hasUID(up.uid) {
			return c.end(ResolutionCycle, nil)
		}
		if len(c.objects) > c.maxDepth {
			return c.end(ResolutionDepth, nil)
		}
		ref = Reference{APIVersion: up.apiVersion, Kind: up.kind, Name: up.name, UID: up.uid}
		dependent = object
	}
}

// end returns the chain. last is its last object; nil: the climb has it already.
func (c *climb) end(resolution Resolution, last *Object) (Chain, bool) {
	if last != nil {
		c.objects = append(c.objects, last)
	}
	return Chain{Objects: c.objects, Resolution: resolution}, !c.isCold
}

// hasUID reports whether an object with the UID is already in the chain.
func (c *climb) hasUID(uid types.UID) bool {
	return uid != "" && slices.ContainsFunc(c.objects, func(o *Object) bool { return o.UID == uid })
}

// find returns the object that a reference means. If it is not found, find returns why, and the
// object as the reference describes it. dependent is the object whose owner this is; nil for the
// requested object.
func (c *climb) find(ref Reference, dependent *Object) (object *Object, failure Resolution) {
	if !ref.nameable() {
		return ref.Object(), ResolutionNotFound
	}
	s := search{climb: c, ref: ref, dependent: dependent}
	candidates, err := c.candidates(ref)
	a := s.among(candidates)
	if a.unserved {
		// Look again how the kind is served.
		candidates, err = c.candidates(ref)
		a = s.among(candidates)
	}
	switch {
	case c.isCold:
		return nil, ResolutionUnavailable
	case err != nil:
		a = s.withoutKind(err)
	case a.unserved:
		a = s.withoutKind(kinds.ErrNotServed)
	}
	if a.object == nil {
		return s.described(candidates, a.failure), a.failure
	}
	return a.object, ""
}

// candidates returns the kinds that the reference may mean, or why there are none.
func (c *climb) candidates(ref Reference) ([]*kinds.Kind, error) {
	for {
		found, ok, err := c.loader.catalogue.Find(ref.APIVersion, ref.Kind)
		switch {
		case ok:
			return found, err
		case c.ctx == nil:
			c.isCold = true
			return nil, nil
		}
		if err := c.loader.awaitKinds(c.ctx, ref); err != nil {
			return nil, err
		}
	}
}

// search looks for the object of one reference.
type search struct {
	climb     *climb
	ref       Reference
	dependent *Object
}

// among looks for the object as each of the kinds.
func (s *search) among(candidates []*kinds.Kind) answer {
	result := answer{failure: ResolutionNotFound}
	for _, k := range candidates {
		key, possible := s.key(k)
		if !possible {
			continue
		}
		found := s.get(k, key)
		switch {
		case found.object != nil:
			return answer{object: found.object.servedAs(k.APIVersion)}
		case found.unserved || s.climb.isCold:
			return found
		case found.failure != ResolutionNotFound && s.ref.UID == "":
			// This may be the right kind. Only a UID could prove that a later one is.
			return found
		case result.failure == ResolutionNotFound:
			result = found
		}
	}
	return result
}

// get returns what is known of the object, or requests it. A Node is known by its name alone. But
// if the reference has a UID that was never seen, the Node may have been created again since it was
// read.
func (s *search) get(k *kinds.Kind, key objectKey) answer {
	if k.Name != coreNode {
		return s.getWith(k, key, s.ref.UID)
	}
	uid := s.ref.UID
	if uid != "" && string(uid) != s.ref.Name && !s.climb.cache.has(key, uid) {
		if a := s.getWith(k, key, uid); a.object != nil || s.climb.isCold {
			return a
		}
	}
	return s.getWith(k, key, "")
}

// getWith is get for the object with the UID; empty means the one that has the name.
func (s *search) getWith(k *kinds.Kind, key objectKey, uid types.UID) answer {
	if found, known := s.climb.cache.find(key, uid); known {
		s.climb.known++
		return found
	}
	if s.climb.ctx == nil {
		s.climb.isCold = true
		return answer{failure: ResolutionUnavailable}
	}
	return s.climb.loader.load(s.climb.ctx, target{k, key}, uid)
}

// withoutKind returns the known part of the object while its kind cannot be looked up.
func (s *search) withoutKind(err error) answer {
	kind := unique.Make(groupKind(s.ref.APIVersion, s.ref.Kind))
	object := s.climb.cache.stored(kind, s.namespace(), s.ref.Name, s.uid(kind))
	switch {
	case object != nil:
		return answer{object: object}
	case s.climb.ctx != nil && s.climb.ctx.Err() != nil:
		return answer{failure: ResolutionTimeout}
	case errors.Is(err, kinds.ErrNotServed):
		return answer{failure: ResolutionNotFound}
	default:
		return answer{failure: ResolutionOf(err)}
	}
}

// namespace returns where the object is if its kind is namespaced; empty: nowhere.
func (s *search) namespace() string {
	switch {
	case s.dependent != nil:
		return s.dependent.Namespace
	case s.ref.Namespace == "":
		return defaultNamespace
	default:
		return s.ref.Namespace
	}
}

// key returns the key of an object of the kind. It returns false if such an object cannot exist: a
// cluster-scoped object cannot have an owner in a namespace.
func (s *search) key(k *kinds.Kind) (key objectKey, possible bool) {
	namespace := ""
	if k.Namespaced {
		namespace = s.namespace()
	}
	key = objectKey{collection: collectionOf(k, namespace), name: s.ref.Name}
	return key, !k.Namespaced || namespace != ""
}

// uid returns the UID that an object of the kind must have; empty means any.
func (s *search) uid(kind unique.Handle[schema.GroupKind]) types.UID {
	if kind == coreNode {
		return ""
	}
	return s.ref.UID
}

// described returns the object as the reference alone describes it. If only one kind is possible,
// its scope shows whether the object is in a namespace. An object that may not be read gets the
// version that it would have if it could be read: its chain ends the same before and after the
// permission is granted.
func (s *search) described(candidates []*kinds.Kind, failure Resolution) *Object {
	object := s.ref.Object()
	if len(candidates) != 1 {
		return object
	}
	only := candidates[0]
	switch {
	case !only.Namespaced:
		object.Namespace = ""
	case s.dependent != nil:
		object.Namespace = s.dependent.Namespace
	}
	if failure == ResolutionForbidden {
		object.APIVersion = only.APIVersion
	}
	return object
}
