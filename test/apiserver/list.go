// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// cachePatience is how long a request waits for a watch cache.
	cachePatience = 3 * time.Second
	cachePoll     = 50 * time.Millisecond
)

// readOptions reads and checks the options of a list or watch, and returns their version.
func (s *Server) readOptions(c *call) (version int64, err error) {
	o := &internalversion.ListOptions{}
	query := c.http.URL.Query()
	err = metascheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, o)
	if err != nil {
		return 0, apierrors.NewBadRequest(err.Error())
	}
	const streamsLists = false
	internalversion.SetListOptionsDefaults(o, streamsLists)
	if errs := validation.ValidateListOptions(o, streamsLists); len(errs) > 0 {
		kind := schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}
		return 0, apierrors.NewInvalid(kind, "", errs)
	}
	if o.LabelSelector != nil && !o.LabelSelector.Empty() {
		return 0, apierrors.NewBadRequest("label selectors are not simulated")
	}
	if o.FieldSelector == nil {
		o.FieldSelector = fields.Everything()
	}
	for _, requirement := range o.FieldSelector.Requirements() {
		if c.Resource != eventsResource || !fieldsOf(&corev1.Event{}).Has(requirement.Field) {
			return 0, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
		}
	}
	c.options = o
	// As in the real server, which has no key without a namespace.
	if name, ok := o.FieldSelector.RequiresExactMatch("metadata.name"); ok && c.Namespace != "" {
		c.only = c.Namespace + "/" + name
	}
	return parseVersion(o.ResourceVersion)
}

func parseVersion(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	parsed, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	return int64(parsed), nil
}

// fieldsOf returns the fields of an event that selectors can name.
func fieldsOf(ev *corev1.Event) fields.Set {
	return fields.Set{
		"metadata.name": ev.Name, "reason": ev.Reason, "type": ev.Type,
		"involvedObject.kind":      ev.InvolvedObject.Kind,
		"involvedObject.name":      ev.InvolvedObject.Name,
		"involvedObject.uid":       string(ev.InvolvedObject.UID),
		"involvedObject.namespace": ev.InvolvedObject.Namespace,
	}
}

// matches reports whether the call's field selector selects an object. Only events have any.
func (c *call) matches(object Object) bool {
	ev, ok := object.(*corev1.Event)
	return !ok || c.options.FieldSelector.Empty() || c.options.FieldSelector.Matches(fieldsOf(ev))
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
	at, err := s.snapshot(c)
	if err != nil {
		return err
	}
	records, list, err := s.page(c, at)
	if err != nil {
		return err
	}
	if at.from == "" {
		s.reportList(c, list.ResourceVersion, false)
	}
	if c.answer.SameToken {
		list.Continue = encodeContinue("", must(parseVersion(list.ResourceVersion)))
	}
	meta, items := encode(&list), make([][]byte, len(records))
	size := len(meta) + fieldOverhead
	for i, r := range records {
		items[i] = c.encoded(r)
		s.reportSent(c, watch.Added, r, len(items[i]))
		size += len(items[i]) + fieldOverhead
	}
	body := appendField(make([]byte, 0, size), 1, meta)
	for _, item := range items {
		body = appendField(body, 2, item)
	}
	if list.Continue == "" {
		s.reportList(c, list.ResourceVersion, true)
	}
	s.reportRead(c, len(records))
	gvk := c.kind()
	gvk.Kind += "List"
	c.send(http.StatusOK, gvk, body)
	return nil
}

func (s *Server) reportList(c *call, version string, complete bool) {
	if s.options.Listed != nil && c.Resource == eventsResource && c.isReported() {
		s.options.Listed(List{
			Client: c.Client, Namespace: c.Namespace, Version: must(parseVersion(version)),
			Exact:    c.options.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
			Complete: complete,
		})
	}
}

func (s *Server) reportSent(c *call, change watch.EventType, r *record, size int) {
	if ev, ok := r.object.(*corev1.Event); ok && s.options.Sent != nil && c.isReported() {
		s.options.Sent(c.Client, change, ev, size)
	}
}

// isReported reports whether the client gets an answer that shows it events. A list of a single
// name only asks for the store's version.
func (c *call) isReported() bool { return !c.answer.LoseAnswer && !c.Single }

// snapshot finds out which version a list is to show, and waits until the cache has it.
func (s *Server) snapshot(c *call) (at snapshot, err error) {
	version, err := s.readOptions(c)
	if err != nil {
		return at, err
	}
	match, limit := c.options.ResourceVersionMatch, c.options.Limit
	switch {
	case c.only != "" && match != metav1.ResourceVersionMatchExact:
		// A list of a single key has no pages: neither tokens nor limits change it.
		return snapshot{}, s.await(c, version)
	case c.options.Continue != "" && c.only == "":
		token, err := decodeContinue(c.options.Continue)
		if err != nil || version > 0 {
			return at, apierrors.NewBadRequest("the continue token is not valid for this list")
		}
		from := c.prefix + token.StartKey
		return snapshot{version: token.ResourceVersion, from: from, limit: limit}, nil
	case c.options.ResourceVersion == "":
		return snapshot{limit: limit}, nil
	case match == metav1.ResourceVersionMatchExact || match == "" && limit > 0 && version > 0:
		return snapshot{version: version, limit: limit}, nil
	case version == 0 && c.table.cached:
		limit = 0 // The cache has no pages at any version.
	}
	return snapshot{cached: true, limit: limit}, s.await(c, version)
}

// await waits until the watch cache of the call's table has reached a version.
func (s *Server) await(c *call, version int64) error {
	for deadline := time.Now().Add(cachePatience); ; {
		s.mu.Lock()
		reached := s.cacheVersion(c)
		s.mu.Unlock()
		switch {
		case reached >= version:
			return nil
		case !c.table.cached:
			return tooLarge(0)
		case !time.Now().Before(deadline):
			return tooLarge(1)
		case !sleep(c.http.Context(), cachePoll):
			return c.http.Context().Err()
		}
	}
}

func tooLarge(retryAfter int) error {
	const message = "Too large resource version"
	err := apierrors.NewTimeoutError(message, retryAfter)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: message},
	}
	return err
}

// page returns the records of a page and what the page says about itself. While the call waited, a
// backup may have been restored.
func (s *Server) page(c *call, at snapshot) (page []*record, list metav1.ListMeta, err error) {
	defer s.lock()()
	version := s.version
	if c.table = s.table(c.Resource); c.table == nil {
		return nil, list, errNoSuchPath
	}
	switch {
	case at.version > s.version:
		return nil, list, tooLarge(0)
	case at.version > 0 && at.version < s.compacted:
		return nil, list, apierrors.NewResourceExpired("The resource version is too old.")
	case at.version > 0:
		version = at.version
	case at.cached:
		version = s.cacheVersion(c)
	}
	list.ResourceVersion = strconv.FormatInt(version, 10)
	scope := c.inScope(c.table.asOf(version), at.from)
	for i, r := range scope {
		if !c.matches(r.object) {
			continue
		}
		page = append(page, r)
		if left := int64(len(scope) - i - 1); int64(len(page)) == at.limit && left > 0 {
			list.Continue = encodeContinue(strings.TrimPrefix(r.key, c.prefix)+"\x00", version)
			if c.options.FieldSelector.Empty() {
				list.RemainingItemCount = &left
			}
			break
		}
	}
	return page, list, nil
}

// inScope returns the records that a list is about and whose key is not before from.
func (c *call) inScope(records []*record, from string) []*record {
	first, _ := search(records, max(c.prefix, c.only, from))
	end := first
	for end < len(records) && c.isAbout(records[end]) {
		end++
	}
	return records[first:end]
}

// isAbout reports whether a record has the key, or the prefix, that a list or watch is about.
func (c *call) isAbout(r *record) bool {
	return strings.HasPrefix(r.key, c.prefix) && (c.only == "" || r.key == c.only)
}

// continueToken is kube-apiserver's, so that tokens of either can be compared.
type continueToken struct {
	APIVersion      string `json:"v"`
	ResourceVersion int64  `json:"rv"`
	StartKey        string `json:"start"`
}

func encodeContinue(key string, version int64) string {
	token := continueToken{"meta.k8s.io/v1", version, key}
	return base64.RawURLEncoding.EncodeToString(must(json.Marshal(token)))
}

func decodeContinue(token string) (decoded continueToken, err error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return decoded, err
	}
	if err := json.Unmarshal(data, &decoded); err != nil {
		return decoded, err
	}
	if clean := path.Clean("/" + decoded.StartKey); clean != "/"+decoded.StartKey { // As DecodeContinue of apiserver's storage package.
		return decoded, fmt.Errorf("the key %q is not clean", decoded.StartKey)
	}
	return decoded, nil
}
