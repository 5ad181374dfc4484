// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// defaultNamespace holds the events of objects that have no namespace, and
// likewise an object whose namespace an event left out.
const defaultNamespace = "default"

// search looks for the one object that a reference names. It goes as far as it
// can without a request; then it is asked for what is missing, and goes on.
type search struct {
	want      Reference
	dependent *Object // whose owner is looked for; nil for the object asked for

	// The kinds that the reference may mean, and which of them is tried now.
	identified  bool
	everywhere  bool // not in core, so in all other groups
	kinds       []*kind
	guess       *kind      // the only one, where there was one at first
	kindFailure Resolution // why the kinds are those known before, or none
	try         int
	unserved    *kind // found not to be served as was thought, once

	// What was asked for, and what came of it.
	ticket    *ticket
	kindReply *kindAnswer
	reply     *answer
	asked     bool // something was, since the last reply
	listed    bool // a list of the object's place was, since the last reply
	repeated  bool // a reply was dropped that proved nothing

	// The end: one of the two.
	object  *Object
	failure Resolution
}

// ticket is something that was asked for. When done is closed, take brings the
// reply to the search; who does not wait for that must call leave.
type ticket struct {
	done  <-chan struct{}
	take  func()
	leave func()
}

// question returns what to ask about the kind.
func (s *search) question() kindQuestion {
	return kindQuestion{apiVersion: s.want.APIVersion, kind: s.want.Kind, everywhere: s.everywhere}
}

// candidate returns the kind that is tried now.
func (s *search) candidate() *kind { return s.kinds[s.try] }

// address returns where an object of the kind would be, or false when there
// can't be one.
func (s *search) address(k *kind) (address, bool) {
	namespace := ""
	switch {
	case !k.namespaced:
	case s.dependent == nil && s.want.Namespace == "":
		namespace = defaultNamespace
	case s.dependent == nil:
		namespace = s.want.Namespace
	case s.dependent.Namespace == "":
		// A cluster-scoped object can't have an owner in a namespace.
		return address{}, false
	default:
		namespace = s.dependent.Namespace
	}
	return address{place: placeOf(k, namespace), name: s.want.Name}, true
}

// uid returns the UID that an object of the kind must have; empty if any will do.
func (s *search) uid(k *kind) types.UID {
	if k.name == coreNode {
		return ""
	}
	return s.want.UID
}

// widen makes a reference without an API version be looked for in all groups
// after core. It returns false when there is nothing left to try.
func (s *search) widen() bool {
	if s.want.APIVersion != "" || s.everywhere || s.blocked() {
		return false
	}
	s.everywhere, s.identified = true, false
	return true
}

// reject notes that the candidate is not it.
func (s *search) reject(failure Resolution) {
	if s.failure == "" || s.failure == NotFound {
		s.failure = failure
	}
	s.try++
}

// blocked reports whether a candidate could not be asked for that may be the one.
// Then a later candidate is only taken when its UID proves it.
func (s *search) blocked() bool {
	return s.failure != "" && s.failure != NotFound && s.want.UID == ""
}

// unfound returns what the reference alone says of its object.
func (s *search) unfound() *Object {
	object := s.want.Object()
	if s.guess != nil && !s.guess.namespaced {
		object.Namespace = ""
	}
	if s.guess != nil && s.guess.namespaced && s.dependent != nil {
		object.Namespace = s.dependent.Namespace
	}
	return object
}

func isNode(o *Object) bool { return unique.Make(o.GroupKind()) == coreNode }
