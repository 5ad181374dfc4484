// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
)

// longestField bounds the fields of a reference that are worth a lookup: an
// object's name has at most 253 characters, and the other fields have less.
// Events carry references that nobody validated, and a longer field could name
// nothing, but would be remembered.
const longestField = 317 // an API version: a group of 253, a slash and a version of 63

// Reference names one object the way an event's involved object or an owner
// reference does. Any field but Kind and Name may be empty; an empty UID means
// whatever object bears the name now.
type Reference struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	UID        types.UID
}

// nameable reports whether an object could exist that the reference names. The
// name and the namespace become segments of a request's path, so one that would
// lead to another path must not get there.
func (r Reference) nameable() bool {
	return r.Kind != "" && len(r.Kind) <= longestField &&
		len(r.APIVersion) <= longestField &&
		len(r.UID) <= longestField &&
		isSegment(r.Name) &&
		(r.Namespace == "" || isSegment(r.Namespace))
}

// isSegment reports whether s can stand as one segment of a request's path.
func isSegment(s string) bool {
	return s != "" && len(s) <= longestField && len(content.IsPathSegmentName(s)) == 0
}

// Object returns what the reference itself says of its object, without any
// lookup. A kubelet writes its node's name in place of the UID, which is left
// out.
func (r Reference) Object() *Object {
	object := &Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
	if isNode(object) && string(r.UID) == r.Name {
		object.UID = ""
	}
	return object
}
