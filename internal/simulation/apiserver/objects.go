// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/binary"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// get answers with one object: the newest version, or the cache's.
func (s *Server) get(c *call) error {
	version := c.http.URL.Query().Get("resourceVersion")
	if version != "" && version != "0" {
		return apierrors.NewBadRequest("GET with a resource version other than 0 is not simulated")
	}
	s.mu.Lock()
	records := c.table.live
	if version == "0" {
		records = c.table.asOf(s.cacheVersion(c.table))
	}
	r := find(records, c.table.key(c.Namespace, c.Name))
	s.mu.Unlock()
	if r == nil {
		return apierrors.NewNotFound(c.Resource, c.Name)
	}
	c.send(http.StatusOK, c.kind(), c.encoded(r))
	return nil
}

// write creates or updates an object.
func (s *Server) write(c *call) error {
	gvk := c.gvk()
	decoded, found, err := scheme.Codecs.UniversalDeserializer().Decode(c.body, &gvk, nil)
	object, ok := decoded.(Object)
	if err != nil || !ok || *found != gvk || object.GetNamespace() != c.Namespace ||
		c.Verb == "update" && object.GetName() != c.Name {
		return apierrors.NewBadRequest("the body is not the object of the path")
	}
	r, code, err := s.createOrUpdate(c, object)
	if err != nil {
		return err
	}
	c.send(code, c.kind(), c.encoded(r))
	return nil
}

// createOrUpdate writes the object. As on the real server, an update of an Event or a Lease creates
// one that does not exist, which client-go's leader election makes use of.
func (s *Server) createOrUpdate(c *call, object Object) (r *record, code int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	exists := find(c.table.live, c.table.key(c.Namespace, object.GetName())) != nil
	isLease, isEvent := c.Resource == leasesResource, c.Resource == eventsResource
	switch {
	case c.Verb == "create" || !exists && (isLease || isEvent):
		object.SetUID("")
		r, err = s.create(c.table, object)
		return r, http.StatusCreated, err
	case isLease && object.GetResourceVersion() == "":
		return nil, 0, apierrors.NewBadRequest("an update of a Lease needs a resource version")
	}
	r, err = s.update(c.table, object)
	return r, http.StatusOK, err
}

func (c *call) wantsMetadata() bool { return strings.HasPrefix(c.as, "PartialObjectMetadata") }

func (c *call) gvk() schema.GroupVersionKind {
	gv := schema.GroupVersion{Group: c.Resource.Group, Version: c.version}
	return gv.WithKind(c.table.Kind.Kind)
}

// kind is the type of the objects in the answers.
func (c *call) kind() schema.GroupVersionKind {
	if c.wantsMetadata() {
		return metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	return c.gvk()
}

// encoded returns an object without its type, as it is an item of a list.
func (c *call) encoded(r *record) []byte {
	if _, isPartial := r.object.(*metav1.PartialObjectMetadata); isPartial || !c.wantsMetadata() {
		return r.encoded
	}
	return encode(meta.AsPartialObjectMetadata(r.object))
}

func encode(object interface{ Marshal() ([]byte, error) }) []byte { return must(object.Marshal()) }

func must[V any](value V, err error) V {
	if err != nil {
		panic(err) // All types of Kubernetes' API can be encoded.
	}
	return value
}

// document returns a whole answer, or the object in a message of a watch.
func document(gvk schema.GroupVersionKind, body []byte) []byte {
	unknown := runtime.Unknown{Raw: body}
	unknown.APIVersion, unknown.Kind = gvk.ToAPIVersionAndKind()
	return append([]byte("k8s\x00"), encode(&unknown)...)
}

// appendField appends a field of a protobuf message that has a length.
func appendField(out []byte, number byte, value []byte) []byte {
	out = binary.AppendUvarint(append(out, number<<3|2), uint64(len(value)))
	return append(out, value...)
}

// frame returns a message of a watch.
func frame(change watch.EventType, document []byte) []byte {
	message := metav1.WatchEvent{Type: string(change), Object: runtime.RawExtension{Raw: document}}
	encoded := encode(&message)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
}
