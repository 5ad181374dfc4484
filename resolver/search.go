// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// defaultNamespace holds the events of objects that have no namespace. It is also the namespace of
// an object whose event leaves the namespace out.
const defaultNamespace = "default"

// search looks for the one object that a reference names. It goes as far as it can without a
// request. After the missing request is done, it continues.
type search struct {
	ref       Reference
	dependent *Object // the object whose owner this is; nil for the requested object

	// The kinds that the reference may mean, and the index of the one that is tried now.
	kindsKnown  bool
	allGroups   bool // search all groups except core, because core does not have the kind
	kinds       []*kind
	guess       *kind      // the only kind, if there was only one at first
	kindFailure Resolution // why the kinds are out of date or missing
	current     int
	unserved    *kind // the kind that was found not to be served at its path; at most once

	// The pending request, and the replies.
	pending   *pending
	kindReply *kindAnswer
	reply     *answer
	requested bool // a request was sent since the last reply
	listed    bool // this includes a list of the object's collection
	retried   bool // a reply that proved nothing was dropped

	// The result: one of the two.
	object  *Object
	failure Resolution
}

// pending is a request that is pending. When done is closed, take passes the reply to the search.
// Callers that do not wait must call leave.
type pending struct {
	done  <-chan struct{}
	take  func()
	leave func()
}

// kindQuery returns the query for the kind.
func (s *search) kindQuery() kindQuery {
	return kindQuery{apiVersion: s.ref.APIVersion, kind: s.ref.Kind, allGroups: s.allGroups}
}

// candidate returns the kind that is tried now.
func (s *search) candidate() *kind { return s.kinds[s.current] }

// key returns the key of an object of the kind. It returns false if such an object cannot exist.
func (s *search) key(k *kind) (objectKey, bool) {
	namespace := ""
	switch {
	case !k.namespaced:
	case s.dependent == nil && s.ref.Namespace == "":
		namespace = defaultNamespace
	case s.dependent == nil:
		namespace = s.ref.Namespace
	case s.dependent.Namespace == "":
		// A cluster-scoped object cannot have an owner in a namespace.
		return objectKey{}, false
	default:
		namespace = s.dependent.Namespace
	}
	return objectKey{collection: collectionOf(k, namespace), name: s.ref.Name}, true
}

// uid returns the UID that an object of the kind must have; empty means any.
func (s *search) uid(k *kind) types.UID {
	if k.name == coreNode {
		return ""
	}
	return s.ref.UID
}

// widen extends the search for a reference without an API version to all groups after core. It
// returns false if nothing is left to try.
func (s *search) widen() bool {
	if s.ref.APIVersion != "" || s.allGroups || s.blocked() {
		return false
	}
	s.allGroups, s.kindsKnown = true, false
	return true
}

// reject records that the candidate is not the object.
func (s *search) reject(failure Resolution) {
	if s.failure == "" || s.failure == NotFound {
		s.failure = failure
	}
	s.current++
}

// blocked reports whether the right candidate may be one that could not be read. Then only a UID
// can prove that a later candidate is right.
func (s *search) blocked() bool {
	return s.failure != "" && s.failure != NotFound && s.ref.UID == ""
}

// fromReference returns the object as the reference alone describes it.
func (s *search) fromReference() *Object {
	object := s.ref.Object()
	if s.guess != nil && !s.guess.namespaced {
		object.Namespace = ""
	}
	if s.guess != nil && s.guess.namespaced && s.dependent != nil {
		object.Namespace = s.dependent.Namespace
	}
	return object
}

func isNode(o *Object) bool { return unique.Make(o.GroupKind()) == coreNode }
