// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// selection is which objects of a table a request is about.
type selection struct {
	prefix string // of the keys
	name   string // the whole key of the only object, if there can only be one
	fields fields.Selector
	labels labels.Selector
}

func (sel *selection) all() bool { return sel.fields.Empty() && sel.labels.Empty() }

func (sel *selection) inScope(key string) bool {
	return strings.HasPrefix(key, sel.prefix) && (sel.name == "" || key == sel.name)
}

func (sel *selection) matches(object Object) bool {
	return sel.all() || sel.labels.Matches(labels.Set(object.GetLabels())) &&
		sel.fields.Matches(fieldsOf(object))
}

// fieldsOf returns the fields that selectors can name.
func fieldsOf(object Object) fields.Set {
	ev, ok := object.(*corev1.Event)
	if !ok {
		name, namespace := object.GetName(), object.GetNamespace()
		return fields.Set{"metadata.name": name, "metadata.namespace": namespace}
	}
	involved, source := &ev.InvolvedObject, ev.Source.Component
	if source == "" {
		source = ev.ReportingController
	}
	return fields.Set{
		"metadata.name": ev.Name, "metadata.namespace": ev.Namespace,
		"reason": ev.Reason, "type": ev.Type, "source": source,
		"reportingComponent":             ev.ReportingController,
		"involvedObject.kind":            involved.Kind,
		"involvedObject.name":            involved.Name,
		"involvedObject.uid":             string(involved.UID),
		"involvedObject.namespace":       involved.Namespace,
		"involvedObject.apiVersion":      involved.APIVersion,
		"involvedObject.fieldPath":       involved.FieldPath,
		"involvedObject.resourceVersion": involved.ResourceVersion,
	}
}

// listOptions reads and checks the options of a list or watch.
func (s *Server) listOptions(c *call) (*internalversion.ListOptions, *selection, error) {
	o, streams := &internalversion.ListOptions{}, !s.options.NoStreamingLists
	query := c.http.URL.Query()
	err := metascheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, o)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	internalversion.SetListOptionsDefaults(o, streams)
	if errs := validation.ValidateListOptions(o, streams); len(errs) > 0 {
		kind := schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}
		return nil, nil, apierrors.NewInvalid(kind, "", errs)
	}
	sel, err := selectionOf(c, o)
	return o, sel, err
}

func selectionOf(c *call, o *internalversion.ListOptions) (*selection, error) {
	sel := &selection{fields: fields.Everything(), labels: labels.Everything()}
	if o.LabelSelector != nil {
		sel.labels = o.LabelSelector
	}
	if o.FieldSelector != nil {
		sel.fields = o.FieldSelector
	}
	known := fieldsOf(empty(c.gvk()))
	for _, requirement := range sel.fields.Requirements() {
		if !known.Has(requirement.Field) {
			return nil, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
		}
	}
	namespace := c.Namespace
	if only, ok := sel.fields.RequiresExactMatch("metadata.namespace"); ok && namespace == "" {
		namespace = only
	}
	if c.table.Namespaced && namespace != "" {
		sel.prefix = namespace + "/"
	}
	name, single := sel.fields.RequiresExactMatch("metadata.name")
	if single && (namespace != "" || !c.table.Namespaced) {
		sel.name = c.table.key(namespace, name)
	}
	return sel, nil
}

// snapshot is what a list shows: the objects at a version, from a key on.
type snapshot struct {
	version int64 // 0: the newest, or what the cache has reached
	from    string
	cached  bool  // the cache may answer
	limit   int64 // 0: none
}

// list answers with a list or a page of it.
func (s *Server) list(c *call) error {
	o, sel, err := s.listOptions(c)
	if err != nil {
		return err
	}
	at, err := s.snapshotOf(c, o, sel)
	if err != nil {
		return err
	}
	records, list, err := s.page(c, sel, at)
	if err != nil {
		return err
	}
	if c.as.as == "PartialObjectMetadata" {
		return errNotAcceptable
	}
	items := make([][]byte, len(records))
	for i, r := range records {
		items[i] = r.body(c.as.format)
	}
	gvk := c.gvk()
	gvk.Kind += "List"
	if c.as.isMetadata() {
		gvk = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
	}
	s.reportPage(c, records, items, list)
	write(c.w, http.StatusOK, c.as.format, gvk, listBody(list, items, c.as.format))
	return nil
}

// reportPage tells the observers what is about to be written.
func (s *Server) reportPage(c *call, records []*record, items [][]byte, list metav1.ListMeta) {
	version, _ := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if c.http.URL.Query().Get("continue") == "" {
		s.reportList(c, version, false)
	}
	for i, r := range records {
		s.reportSent(c, watch.Added, r, len(items[i]))
	}
	if list.Continue == "" {
		s.reportList(c, version, true)
	}
}

func (s *Server) reportList(c *call, version int64, complete bool) {
	if s.options.Listed != nil && c.Resource == eventsResource && !c.answer.LoseAnswer {
		s.options.Listed(c.Client, c.Namespace, version, complete)
	}
}

func (s *Server) reportSent(c *call, change watch.EventType, r *record, size int) {
	if ev, ok := r.object.(*corev1.Event); ok && s.options.Sent != nil && !c.answer.LoseAnswer {
		s.options.Sent(c.Client, change, ev, size)
	}
}

// snapshotOf finds out which version a list is to show, and waits until the cache has it.
func (s *Server) snapshotOf(
	c *call, o *internalversion.ListOptions, sel *selection,
) (at snapshot, err error) {
	at.limit = o.Limit
	if sel.name == "" && o.Continue != "" {
		from, version, err := decodeContinue(o.Continue)
		if err == nil && o.ResourceVersion != "" && o.ResourceVersion != "0" {
			err = errors.New("specifying resource version is not allowed when using continue")
		}
		if err != nil {
			return at, apierrors.NewBadRequest("invalid continue token: " + err.Error())
		}
		at.from, at.version = sel.prefix+from, max(0, version)
		return at, nil
	}
	version, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return at, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && sel.name == "" && o.Limit > 0 && version > 0
	switch {
	case o.ResourceVersion == "":
		return at, nil
	case exact:
		at.version = version
		return at, nil
	}
	if at.cached = true; version == 0 && c.table.cached {
		at.limit = 0 // The cache has no pages at any version.
	}
	return at, s.await(c, version)
}

func parseVersion(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	parsed, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), version, err.Error())
	}
	return int64(parsed), nil
}

// page returns the records of a page and what the page says about itself.
func (s *Server) page(c *call, sel *selection, at snapshot) ([]*record, metav1.ListMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.findTable(c); err != nil {
		return nil, metav1.ListMeta{}, err
	}
	version := s.version
	switch {
	case at.version > s.version:
		return nil, metav1.ListMeta{}, tooLarge(at.version, s.version, false)
	case at.version > 0 && at.version < s.compacted:
		return nil, metav1.ListMeta{}, expiredList(at.from, sel)
	case at.version > 0:
		version = at.version
	case at.cached:
		version = s.cacheVersion(c.table)
	}
	page, scope := []*record{}, inScope(c.table.asOf(version), sel, at.from)
	list := metav1.ListMeta{ResourceVersion: strconv.FormatInt(version, 10)}
	for i, r := range scope {
		if !sel.matches(r.object) {
			continue
		}
		page = append(page, r)
		if left := int64(len(scope) - i - 1); int64(len(page)) == at.limit && left > 0 {
			list.Continue = encodeContinue(strings.TrimPrefix(r.key, sel.prefix)+"\x00", version)
			if sel.all() {
				list.RemainingItemCount = &left
			}
			break
		}
	}
	return page, list, nil
}

// inScope returns the records with a key in the selection's scope that is not before from.
func inScope(records []*record, sel *selection, from string) []*record {
	first := max(sel.prefix, from, sel.name)
	i, _ := findKey(records, first)
	records = records[i:]
	for n, r := range records {
		if !sel.inScope(r.key) {
			return records[:n]
		}
	}
	return records
}

// expiredList is the error for a list at a version that was compacted. A page comes with a token
// for the rest of the list as it is now.
func expiredList(from string, sel *selection) error {
	if from == "" {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old.")
	err.ErrStatus.Continue = encodeContinue(strings.TrimPrefix(from, sel.prefix), -1)
	return err
}

// continueToken is kube-apiserver's, so that tokens of either can be compared.
type continueToken struct {
	APIVersion      string `json:"v"`
	ResourceVersion int64  `json:"rv"`
	StartKey        string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

func encodeContinue(key string, version int64) string {
	token := continueToken{APIVersion: tokenVersion, ResourceVersion: version, StartKey: key}
	return base64.RawURLEncoding.EncodeToString(must(json.Marshal(token)))
}

func decodeContinue(token string) (from string, version int64, err error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", 0, err
	}
	var decoded continueToken
	if err := json.Unmarshal(data, &decoded); err != nil {
		return "", 0, err
	}
	rooted := "/" + strings.TrimPrefix(decoded.StartKey, "/")
	switch {
	case decoded.APIVersion != tokenVersion:
		return "", 0, fmt.Errorf("the server does not recognize the version %q", decoded.APIVersion)
	case decoded.ResourceVersion == 0:
		return "", 0, errors.New("no resource version")
	case decoded.StartKey == "" || path.Clean(rooted) != rooted:
		return "", 0, fmt.Errorf("%q is not a valid start key", decoded.StartKey)
	}
	return rooted[1:], decoded.ResourceVersion, nil
}
