// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// kind is the type of the objects in the answers.
func (c *call) kind() schema.GroupVersionKind {
	if c.as.isMetadata() {
		return partialKind
	}
	return c.gvk()
}

// get answers with one object.
func (s *Server) get(c *call) error {
	asked := c.http.URL.Query().Get("resourceVersion")
	version, err := parseVersion(asked)
	if err != nil && !c.table.cached {
		err = apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	if err != nil {
		return err
	}
	if err := s.await(c, version); err != nil {
		return err
	}
	r, err := s.read(c, asked != "")
	if err != nil {
		return err
	}
	return c.answerWith(http.StatusOK, r)
}

// read returns the newest version of the requested object, or the cache's.
func (s *Server) read(c *call, cached bool) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.findTable(c); err != nil {
		return nil, err
	}
	records := c.table.live
	if cached {
		records = c.table.asOf(s.cacheVersion(c.table))
	}
	if i, found := findKey(records, c.table.key(c.Namespace, c.Name)); found {
		return records[i], nil
	}
	return nil, apierrors.NewNotFound(c.Resource, c.Name)
}

func (c *call) answerWith(code int, r *record) error {
	if c.as.as == "PartialObjectMetadataList" {
		return errNotAcceptable
	}
	write(c.w, code, c.as.format, c.kind(), r.body(c.as.format))
	return nil
}

// write creates or updates an object.
func (s *Server) write(c *call) error {
	object, err := c.decode()
	if err != nil {
		return err
	}
	r, created, err := s.createOrUpdate(c, object)
	if err != nil {
		return err
	}
	if created {
		return c.answerWith(http.StatusCreated, r)
	}
	return c.answerWith(http.StatusOK, r)
}

// decode reads the object of the request's body and checks that it belongs to the path.
func (c *call) decode() (Object, error) {
	mediaType, _, _ := mime.ParseMediaType(c.http.Header.Get("Content-Type"))
	if mediaType == "" {
		mediaType = runtime.ContentTypeJSON
	}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, httpError(http.StatusUnsupportedMediaType)
	}
	gvk := c.gvk()
	decoded, found, err := info.Serializer.Decode(c.body, &gvk, nil)
	object, ok := decoded.(Object)
	if err != nil || !ok || *found != gvk {
		return nil, apierrors.NewBadRequest("the body is not a " + gvk.String())
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(c.Namespace)
	}
	if object.GetNamespace() != c.Namespace {
		return nil, apierrors.NewBadRequest("the namespace is not that of the request")
	}
	if c.Verb == "update" && object.GetName() != c.Name {
		return nil, apierrors.NewBadRequest("the name is not that of the request")
	}
	return object, nil
}

// createOrUpdate writes the object. As on the real server, an update of an Event or a Lease creates
// one that does not exist, and an update of a Lease needs a resource version.
func (s *Server) createOrUpdate(c *call, object Object) (r *record, created bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.findTable(c); err != nil {
		return nil, false, err
	}
	exists := c.table.current(c.table.key(c.Namespace, object.GetName())) != nil
	isLease, isEvent := c.Resource == leasesResource, c.Resource == eventsResource
	version := object.GetResourceVersion()
	switch {
	case c.Verb == "create" || !exists && (isLease || isEvent):
		if c.Verb == "create" && version != "" && version != "0" {
			return nil, false, errVersionOnCreate
		}
		object.SetUID("")
		r, err = s.create(c.table, object)
		return r, true, err
	case isLease && (version == "" || version == "0"):
		missing := field.Invalid(field.NewPath("metadata", "resourceVersion"), 0,
			"must be specified for an update")
		kind := schema.GroupKind{Group: c.Resource.Group, Kind: c.Resource.Resource}
		return nil, false, apierrors.NewInvalid(kind, c.Name, field.ErrorList{missing})
	default:
		r, err = s.update(c.table, object)
		return r, false, err
	}
}
