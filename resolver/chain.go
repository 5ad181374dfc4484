// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"unique"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// References to Nodes have a UID that means nothing: kubelets up to 1.36 write the node's name
// there, and later ones the UID of a Node that may have been created again. corePod has the kind
// whose objects may mirror a static pod.
var (
	coreNode      = unique.Make(schema.GroupKind{Kind: "Node"})
	coreNamespace = unique.Make(schema.GroupKind{Kind: "Namespace"})
	corePod       = unique.Make(schema.GroupKind{Kind: "Pod"})
)

// mirrorAnnotation has, on the mirror pod of a static pod, the UID that the kubelet gives the
// static pod in events: a hash of its manifest. See ConfigMirrorAnnotationKey in pkg/kubelet/types.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// maxFieldLength bounds the fields of a reference that are worth a lookup, except names. Nobody
// validates the references in events, nor the length of owner references. A longer field cannot
// name an object, but would take memory in the cache.
const (
	maxFieldLength = 317 // an API version: a group of 253, a slash and a version of 63
	maxNameLength  = 253 // Kubernetes allows no longer names
)

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
	return s != "" && len(s) <= maxNameLength && len(content.IsPathSegmentName(s)) == 0
}

// Object returns the object as the reference describes it, without a lookup. A kubelet writes its
// node's name as the UID; Object leaves such a UID out.
func (r Reference) Object() *Object {
	object := &Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
	if unique.Make(object.GroupKind()) == coreNode && string(r.UID) == r.Name {
		object.UID = ""
	}
	return object
}

// Object is one object of a chain. Objects are immutable and shared between chains: callers must
// not change them or their maps.
type Object struct {
	// APIVersion is a version in which the API server serves the object: the version of the
	// reference if it is served, else another version of the same group. If the object was not
	// found, it is the version of the reference.
	APIVersion string
	Kind       string
	Namespace  string // empty for cluster-scoped kinds
	Name       string
	// UID is the object's real UID. If the object was not found, it is the UID of the reference. It
	// is empty if neither is known.
	UID types.UID

	// GenerateName is metadata.generateName of an object that can be the end of a chain. It is empty
	// for objects with other owners than those that Chain.End skips, if the object's creator chose
	// the name, or if the object is known only from a reference.
	GenerateName string
	// Created is metadata.creationTimestamp in seconds since 1970; 0: the object is known only from a
	// reference.
	Created int64

	// Labels and Annotations hold what Settings.Trim leaves. They are nil if it leaves none, or if the
	// object is known only from a reference.
	Labels      map[string]string
	Annotations map[string]string

	// owner is none if the object has no owner, if its owner is not known, or if it is a core Node.
	// Objects with the same owner share it.
	owner unique.Handle[owner]
	// mirrored is the UID by which a kubelet's events refer to the static pod that this is the
	// mirror of; empty for any other object.
	mirrored types.UID
	found    bool // see Found
}

// GroupKind returns the object's API group and kind. A kind alone is not unique, because groups can
// have kinds with the same name. If a kind moved out of the group extensions, GroupKind returns its
// present group.
func (o *Object) GroupKind() schema.GroupKind { return groupKind(o.APIVersion, o.Kind) }

func groupKind(apiVersion, kind string) schema.GroupKind {
	return schema.GroupKind{Group: kinds.CurrentGroupVersion(apiVersion, kind).Group, Kind: kind}
}

// hasUID reports whether a reference with the UID may mean the object. An empty UID means any.
func (o *Object) hasUID(uid types.UID) bool {
	return uid == "" || o.UID == uid || o.mirrored == uid
}

// Found reports whether the object was read from the API server, and not only named by a reference.
func (o *Object) Found() bool { return o.found }

// servedAs returns the object as another version of its group serves it. The metadata is the same
// in all versions.
func (o *Object) servedAs(apiVersion string) *Object {
	if o.APIVersion == apiVersion {
		return o
	}
	other := *o
	other.APIVersion = apiVersion
	return &other
}

// owner is the one owner reference of an object that the resolver follows.
type owner struct {
	apiVersion string
	kind       string
	name       string
	uid        types.UID

	// ambiguous is set if this is the first of several references and none is the controller.
	ambiguous bool
}

func (o owner) groupKind() schema.GroupKind { return groupKind(o.apiVersion, o.kind) }

// none is the owner of an object without owners.
var none unique.Handle[owner]

// chooseOwner returns the reference to follow: the controller, else the only reference, else the
// first.
func chooseOwner(references []metav1.OwnerReference) unique.Handle[owner] {
	if len(references) == 0 {
		return none
	}
	chosen := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: references})
	ambiguous := chosen == nil && len(references) > 1
	if chosen == nil {
		chosen = &references[0]
	}
	// The API server limits none of these.
	return unique.Make(owner{
		apiVersion: cut(chosen.APIVersion),
		kind:       cut(chosen.Kind),
		name:       cut(chosen.Name),
		uid:        types.UID(cut(string(chosen.UID))),
		ambiguous:  ambiguous,
	})
}

// Chain is an object and its owners.
type Chain struct {
	// Objects always holds the requested object. Its owners follow; each one owns the object before
	// it.
	Objects []*Object

	// Resolution reports whether the chain reaches its end, and if not, why.
	Resolution Resolution
}

// notWorkloads are the kinds that hold data or addresses, and run nothing. Tools that mirror clusters
// let them own pods, so that these are deleted with them.
var notWorkloads = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:                                true,
	{Kind: "Endpoints"}:                                true,
	{Kind: "PersistentVolume"}:                         true,
	{Kind: "PersistentVolumeClaim"}:                    true,
	{Kind: "Secret"}:                                   true,
	{Kind: "Service"}:                                  true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
}

// End returns what the requested object belongs to, if nothing further up is needed to name it: the
// object without an owner, a core Node, or the object that may not be read, as the reference names
// it. It skips owners that run nothing, such as a Service; only the requested object may be one. It
// returns nil if the chain is cut short for another reason: then an object above the last one would
// be a better answer a moment later.
func (c Chain) End() *Object {
	switch c.Resolution {
	case ResolutionComplete, ResolutionAmbiguous, ResolutionForbidden:
	default:
		return nil
	}
	last := len(c.Objects) - 1
	for last > 0 && notWorkloads[c.Objects[last].GroupKind()] {
		last--
	}
	return c.Objects[last]
}

// Resolution reports how far the resolver could follow a chain.
type Resolution string

const (
	// ResolutionComplete means that the last object of the chain has no owner, or is a core Node:
	// what owns a machine, such as a NodePool of Karpenter, is not what runs there.
	ResolutionComplete Resolution = "complete"
	// ResolutionAmbiguous means that the chain is complete, but follows the first of several owners
	// of which none is the controller.
	ResolutionAmbiguous Resolution = "ambiguous"
	// ResolutionNotFound means that the last object of the chain does not exist, that another object
	// has its name, or that its kind is not served.
	ResolutionNotFound Resolution = "not_found"
	// ResolutionForbidden means that the permission to read the last object of the chain is missing.
	ResolutionForbidden Resolution = "forbidden"
	// ResolutionTimeout means that the last object of the chain was not found in time.
	ResolutionTimeout Resolution = "timeout"
	// ResolutionUnavailable means that the request for the last object of the chain failed, or that
	// the resolver is closed.
	ResolutionUnavailable Resolution = "unavailable"
	// ResolutionCycle means that the owner of the last object is already in the chain.
	ResolutionCycle Resolution = "cycle"
	// ResolutionDepth means that the last object has an owner beyond Settings.MaxDepth.
	ResolutionDepth Resolution = "depth"
)
