// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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
}

// record is one version of one object. It is never changed, only its encodings are added.
type record struct {
	version int64
	at      time.Time
	change  watch.EventType
	key     string  // namespace/name, or the name of a cluster-scoped object
	object  Object  // of a deletion: the last state, with the deletion's version
	prev    *record // the version before; nil: the object was created

	encoded [formats]atomic.Pointer[[]byte]
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
	tables    map[schema.GroupResource]*table
	log       []*record // of all tables, by version
	leases    []*lease
}

func newContents(kinds []Kind) contents {
	c := contents{version: 1, tables: map[schema.GroupResource]*table{}}
	for _, kind := range kinds {
		c.tables[kind.groupResource()] = newTable(kind)
	}
	return c
}

func newTable(kind Kind) *table {
	isCached := kind.groupResource() != eventsResource
	return &table{Kind: kind, cached: isCached, changed: make(chan struct{})}
}

// clone shares the records, which never change.
func (c *contents) clone() contents {
	copied := *c
	copied.log, copied.tables = slices.Clone(c.log), map[schema.GroupResource]*table{}
	for gr, t := range c.tables {
		table := newTable(t.Kind)
		table.live, table.log = slices.Clone(t.live), slices.Clone(t.log)
		copied.tables[gr] = table
	}
	copied.leases = nil
	for _, l := range c.leases {
		copied.leases = append(copied.leases, l.clone())
	}
	return copied
}

// next begins a write: everything that is written until the next call has the same version.
func (c *contents) next() { c.version++ }

func (t *table) key(namespace, name string) string {
	if t.Namespaced {
		return namespace + "/" + name
	}
	return name
}

func (t *table) find(key string) (int, bool) { return findKey(t.live, key) }

func findKey(records []*record, key string) (int, bool) {
	return slices.BinarySearchFunc(records, key,
		func(r *record, key string) int { return strings.Compare(r.key, key) })
}

// current returns the newest version of an object, or nil.
func (t *table) current(key string) *record {
	if i, found := t.find(key); found {
		return t.live[i]
	}
	return nil
}

// after returns the records with a version above version.
func after(log []*record, version int64) []*record {
	i, _ := slices.BinarySearchFunc(log, version+1,
		func(r *record, v int64) int { return int(r.version - v) })
	return log[i:]
}

// asOf returns the records of the objects that existed at a version, by key.
func (t *table) asOf(version int64) []*record {
	later := after(t.log, version)
	if len(later) == 0 {
		return t.live
	}
	changed := make(map[string]*record)
	for _, r := range later {
		if _, found := changed[r.key]; !found {
			changed[r.key] = r.prev
		}
	}
	isChanged := func(r *record) bool { _, found := changed[r.key]; return found }
	records := slices.DeleteFunc(slices.Clone(t.live), isChanged)
	for _, r := range changed {
		if r != nil {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b *record) int { return strings.Compare(a.key, b.key) })
	return records
}

// put writes a version of an object, which must not be used by the caller any more.
func (s *Server) put(t *table, key string, object Object) (*record, error) {
	i, found := t.find(key)
	object.SetResourceVersion(strconv.FormatInt(s.version+1, 10))
	r := &record{version: s.version + 1, at: time.Now(), change: watch.Added, key: key}
	encoded, err := marshal(object)
	if err != nil {
		return nil, err
	}
	if err := r.store(object, encoded); err != nil {
		return nil, err
	}
	s.next()
	if found {
		r.change, r.prev = watch.Modified, t.live[i]
		t.live[i] = r
	} else {
		t.live = slices.Insert(t.live, i, r)
	}
	if t.groupResource() == eventsResource {
		s.attach(key)
	}
	s.note(t, r)
	return r, nil
}

func marshal(object Object) ([]byte, error) {
	if message, ok := object.(interface{ Marshal() ([]byte, error) }); ok {
		return message.Marshal()
	}
	return nil, fmt.Errorf("a %T cannot be stored: it has no protobuf encoding", object)
}

// store keeps an object as etcd would return it: times lose what the encoding does not hold.
func (r *record) store(object Object, encoded []byte) error {
	kept := reflect.New(reflect.TypeOf(object).Elem()).Interface()
	if err := kept.(interface{ Unmarshal([]byte) error }).Unmarshal(encoded); err != nil {
		return err
	}
	r.object = kept.(Object)
	r.encoded[protobufWhole].Store(&encoded)
	return nil
}

// remove deletes an object at the current version.
func (s *Server) remove(t *table, key string) {
	i, found := t.find(key)
	if !found {
		return
	}
	last := t.live[i]
	gone := shallow(last.object)
	gone.SetResourceVersion(strconv.FormatInt(s.version, 10))
	t.live = slices.Delete(t.live, i, i+1)
	deletion := &record{version: s.version, at: time.Now(), change: watch.Deleted, key: key}
	deletion.object, deletion.prev = gone, last
	s.note(t, deletion)
}

// shallow copies an object so that its metadata can be changed.
func shallow(object Object) Object {
	copied := reflect.New(reflect.TypeOf(object).Elem())
	copied.Elem().Set(reflect.ValueOf(object).Elem())
	return copied.Interface().(Object)
}

// note adds a record to the logs and wakes the watches.
func (s *Server) note(t *table, r *record) {
	t.log, s.log = append(t.log, r), append(s.log, r)
	if ev, ok := r.object.(*corev1.Event); ok {
		s.history = append(s.history, Write{
			Version: r.version, Epoch: s.epoch, At: r.at, Type: r.change, Event: ev,
		})
	}
	t.wake()
}

func (t *table) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// cacheVersion is what the watch cache of a table has reached.
func (s *Server) cacheVersion(t *table) int64 {
	if !t.cached || s.options.CacheLag <= 0 {
		return s.version
	}
	seen := time.Now().Add(-s.options.CacheLag)
	i, _ := slices.BinarySearchFunc(s.log, seen, func(r *record, at time.Time) int {
		if r.at.After(at) {
			return 1
		}
		return -1
	})
	if i == 0 {
		return 1
	}
	return s.log[i-1].version
}

// create stores a new object.
func (s *Server) create(t *table, object Object) (*record, error) {
	key := t.key(object.GetNamespace(), object.GetName())
	if _, found := t.find(key); found {
		return nil, apierrors.NewAlreadyExists(t.groupResource(), object.GetName())
	}
	s.created++
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.created)))
	}
	object.SetCreationTimestamp(metav1.Now())
	return s.put(t, key, object)
}

// update changes an object. Whether its resource version must be set is the caller's concern.
func (s *Server) update(t *table, object Object) (*record, error) {
	name := object.GetName()
	old := t.current(t.key(object.GetNamespace(), name))
	if old == nil {
		return nil, apierrors.NewNotFound(t.groupResource(), name)
	}
	if v := object.GetResourceVersion(); v != "" && v != "0" &&
		v != old.object.GetResourceVersion() {
		return nil, apierrors.NewConflict(t.groupResource(), name, errModified)
	}
	if uid := object.GetUID(); uid != "" && uid != old.object.GetUID() {
		return nil, apierrors.NewConflict(t.groupResource(), name,
			fmt.Errorf("precondition failed: UID %s is not %s", uid, old.object.GetUID()))
	}
	object.SetUID(old.object.GetUID())
	object.SetCreationTimestamp(old.object.GetCreationTimestamp())
	object.SetResourceVersion(old.object.GetResourceVersion())
	encoded, err := marshal(object)
	if err != nil || bytes.Equal(encoded, old.body(protobufWhole)) {
		return old, err // What changes nothing is not written.
	}
	return s.put(t, old.key, object)
}
