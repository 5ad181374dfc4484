// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
)

// maxFieldLength bounds the fields of a reference that are worth a lookup. An object's name has at
// most 253 characters, and the other fields have fewer. Nobody validates the references in events.
// A longer field cannot name an object, but would take memory in the cache.
const maxFieldLength = 317 // an API version: a group of 253, a slash and a version of 63

// Reference names one object the way an event's involved object or an owner reference does. Every
// field except Kind and Name may be empty. An empty UID means the object that has the name now.
type Reference struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	UID        types.UID
}

// nameable reports whether an object with this reference can exist. The name and the namespace
// become segments of a request's path, so they must not change the path.
func (r Reference) nameable() bool {
	return r.Kind != "" && len(r.Kind) <= maxFieldLength &&
		len(r.APIVersion) <= maxFieldLength &&
		len(r.UID) <= maxFieldLength &&
		isSegment(r.Name) &&
		(r.Namespace == "" || isSegment(r.Namespace))
}

// isSegment reports whether s is valid as one segment of a request's path.
func isSegment(s string) bool {
	return s != "" && len(s) <= maxFieldLength && len(content.IsPathSegmentName(s)) == 0
}

// Object returns the object as the reference describes it, without a lookup. A kubelet writes its
// node's name as the UID; Object leaves such a UID out.
func (r Reference) Object() *Object {
	object := &Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
	if isNode(object) && string(r.UID) == r.Name {
		object.UID = ""
	}
	return object
}
