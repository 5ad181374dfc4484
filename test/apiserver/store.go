// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Object is what the server stores: a type of Kubernetes' API, or *metav1.PartialObjectMetadata.
type Object interface {
	runtime.Object
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// record is one version of one object. It is never changed.
type record struct {
	version int64
	at      time.Time
	change  watch.EventType
	key     string  // namespace/name, or the name of a cluster-scoped object
	object  Object  // of a deletion: the last state, with the deletion's version
	encoded []byte  // the object
	prev    *record // the version before; nil: the object was created
	lease   *lease  // of an event
}

// newRecord takes over the object.
func newRecord(version int64, change watch.EventType, key string, object Object) *record {
	object.SetResourceVersion(strconv.FormatInt(version, 10))
	return &record{version: version, at: time.Now(), change: change, key: key, object: object,
		encoded: encode(object)}
}

// table holds the objects of one kind and all their versions. Compaction hides old versions but
// does not free them, so that a watch that falls behind still gets them, as from etcd's client.
type table struct {
	Kind
	cached  bool          // has a watch cache
	live    []*record     // by key
	log     []*record     // by version
	changed chan struct{} // closed with the next write
}

// contents is what a backup holds.
type contents struct {
	version   int64
	compacted int64 // what happened before this version is not known any more
	tables    []*table
	log       []*record // of all tables, by version
	leases    []*lease
}

func newContents(kinds []Kind) contents {
	c := contents{version: 1}
	for _, kind := range kinds {
		isCached := kind.groupResource() != eventsResource
		c.tables = append(c.tables,
			&table{Kind: kind, cached: isCached, changed: make(chan struct{})})
	}
	return c
}

// kinds returns all kinds that are served.
func (c *contents) kinds() (kinds []Kind) {
	for _, t := range c.tables {
		kinds = append(kinds, t.Kind)
	}
	return kinds
}

// clone shares the records and leases.
func (c *contents) clone() contents {
	copied := newContents(c.kinds())
	copied.version, copied.compacted = c.version, c.compacted
	copied.log, copied.leases = slices.Clone(c.log), slices.Clone(c.leases)
	for i, t := range copied.tables {
		t.live, t.log = slices.Clone(c.tables[i].live), slices.Clone(c.tables[i].log)
	}
	return copied
}

// table returns the table of a kind, or nil if it is not served.
func (c *contents) table(gr schema.GroupResource) *table {
	for _, t := range c.tables {
		if t.Resource == gr.Resource && t.Group == gr.Group {
			return t
		}
	}
	return nil
}

// next begins a write: everything that is written until the next call has the same version.
func (c *contents) next() { c.version++ }

func (t *table) key(namespace, name string) string {
	if t.Namespaced {
		return namespace + "/" + name
	}
	return name
}

func search(records []*record, key string) (int, bool) {
	return slices.BinarySearchFunc(records, key,
		func(r *record, key string) int { return strings.Compare(r.key, key) })
}

// find returns the record of a key, or nil.
func find(records []*record, key string) *record {
	if i, found := search(records, key); found {
		return records[i]
	}
	return nil
}

// set replaces the record of a key. The new one is nil if there is to be none.
func set(records []*record, key string, r *record) []*record {
	i, found := search(records, key)
	switch {
	case found && r == nil:
		return slices.Delete(records, i, i+1)
	case found:
		records[i] = r
	case r != nil:
		return slices.Insert(records, i, r)
	}
	return records
}

// after returns the records with a version above version.
func after(log []*record, version int64) []*record {
	return log[sort.Search(len(log), func(i int) bool { return log[i].version > version }):]
}

// asOf returns the records of the objects that existed at a version, by key.
func (t *table) asOf(version int64) []*record {
	later, records := after(t.log, version), t.live
	if len(later) > 0 {
		records = slices.Clone(records)
	}
	for _, r := range slices.Backward(later) {
		records = set(records, r.key, r.prev)
	}
	return records
}

// put stores a version of an object, or its deletion, at the current version. The object must not
// be used by the caller any more.
func (s *Server) put(t *table, change watch.EventType, key string, object Object) *record {
	r := newRecord(s.version, change, key, object)
	r.prev = find(t.live, key)
	if change == watch.Deleted {
		t.live = set(t.live, key, nil)
	} else {
		t.live = set(t.live, key, r)
	}
	if ev, ok := object.(*corev1.Event); ok {
		if change != watch.Deleted {
			r.lease = s.grant()
		}
		s.history = append(s.history,
			Write{Version: r.version, Epoch: s.epoch, At: r.at, Type: change, Event: ev})
	}
	t.log, s.log = append(t.log, r), append(s.log, r)
	close(t.changed)
	t.changed = make(chan struct{})
	return r
}

// remove deletes objects at one version.
func (s *Server) remove(t *table, keys []string) {
	if len(keys) > 0 {
		s.next()
	}
	for _, key := range keys {
		if last := find(t.live, key); last != nil {
			s.put(t, watch.Deleted, key, copyOf(last.object))
		}
	}
}

// cacheVersion is what the watch cache of the call's table has reached.
func (s *Server) cacheVersion(c *call) int64 {
	if !c.table.cached {
		return s.version
	}
	seen := time.Now().Add(-s.options.CacheLag)
	n := sort.Search(len(s.log), func(i int) bool { return s.log[i].at.After(seen) })
	if n == 0 {
		return 1
	}
	return s.log[n-1].version
}

func copyOf(object Object) Object { return object.DeepCopyObject().(Object) }

// asStored copies an object as etcd would return it: times lose what the encoding does not hold.
func asStored(object Object) Object {
	stored := reflect.New(reflect.TypeOf(object).Elem()).Interface().(Object)
	if err := stored.Unmarshal(encode(object)); err != nil {
		panic(err) // What was encoded can be decoded.
	}
	return stored
}

// create stores a copy of a new object.
func (s *Server) create(t *table, object Object) (*record, error) {
	if find(t.live, t.key(object.GetNamespace(), object.GetName())) != nil {
		return nil, apierrors.NewAlreadyExists(t.groupResource(), object.GetName())
	}
	s.created++
	stored := asStored(object)
	if stored.GetUID() == "" && !t.NoUIDs {
		stored.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.created)))
	}
	if created := stored.GetCreationTimestamp(); created.IsZero() || !s.options.KeepCreationTimes {
		stored.SetCreationTimestamp(metav1.Unix(time.Now().Unix(), 0))
	}
	s.next()
	return s.put(t, watch.Added, t.key(object.GetNamespace(), object.GetName()), stored), nil
}

// update stores a copy of a changed object. Whether its resource version must be set is the
// caller's concern.
func (s *Server) update(t *table, object Object) (*record, error) {
	old, err := s.updatable(t, object)
	if err != nil {
		return nil, err
	}
	stored := asStored(object)
	stored.SetUID(old.object.GetUID())
	stored.SetCreationTimestamp(old.object.GetCreationTimestamp())
	stored.SetResourceVersion(old.object.GetResourceVersion())
	if bytes.Equal(encode(stored), old.encoded) {
		return old, nil // What changes nothing is not written.
	}
	s.next()
	return s.put(t, watch.Modified, old.key, stored), nil
}

// updatable returns the object that an update replaces, unless the update is of another version of it.
func (s *Server) updatable(t *table, object Object) (old *record, err error) {
	name := object.GetName()
	if old = find(t.live, t.key(object.GetNamespace(), name)); old == nil {
		return nil, apierrors.NewNotFound(t.groupResource(), name)
	}
	version, uid := object.GetResourceVersion(), object.GetUID()
	if version != "" && version != old.object.GetResourceVersion() || uid != "" && uid != old.object.GetUID() {
		return nil, apierrors.NewConflict(t.groupResource(), name, errors.New("it has changed"))
	}
	return old, nil
}
