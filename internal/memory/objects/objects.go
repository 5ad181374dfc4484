// SPDX-License-Identifier: Apache-2.0

// Package objects remembers the objects of the chains that records used, so that a restart does not
// forget objects that were deleted in the meantime. It has no clock and no I/O.
package objects

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/kubeevents/kubeeventsreceiver/internal/large"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/dirty"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// usualBytes is what most objects take in a checkpoint at most.
const usualBytes = 192

// Key names an object.
type Key = dirty.Key

// Objects remembers a bounded number of objects, few of which are large: those that were used last.
// It is not safe for concurrent use.
type Objects struct {
	dirty.Set

	size int
	// used has the key of each object. The resolver returns the same pointer until it has read the
	// object again, so nearly every use is found here.
	used  *simplelru.LRU[*resolver.Object, Key]
	byKey map[Key]*resolver.Object
	large *large.Objects[Key]
}

// New returns Objects that remember at most size objects; 0: none.
func New(size int) *Objects {
	// The LRU itself removes nothing: remember makes room first.
	used, err := simplelru.NewLRU[*resolver.Object, Key](size+1, nil)
	if err != nil {
		panic(err) // The size is negative.
	}
	return &Objects{size: size, used: used, byKey: map[Key]*resolver.Object{}, large: large.New[Key]()}
}

// keyOf returns the key of an object. A name that is used again names another object.
func keyOf(o *resolver.Object) Key {
	kind := o.GroupKind()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{kind.Group, kind.Kind, o.Namespace, o.Name, string(o.UID)}))
	return Key(sum[:16])
}

// Use notes that objects are used. It remembers those that were found, and that can be restored.
func (o *Objects) Use(objects []*resolver.Object) {
	for _, object := range objects {
		if k, known := o.used.Get(object); known {
			o.large.Use(k)
		} else if encode(object) != nil {
			o.useNew(object)
		}
	}
}

// useNew notes the use of an object that was not remembered, or that was read again.
func (o *Objects) useNew(object *resolver.Object) {
	if o.size == 0 {
		return
	}
	k := keyOf(object)
	if known, ok := o.byKey[k]; !ok {
		o.NoteNew(k)
	} else if !equal(known, object) {
		o.Note(k)
	}
	o.remember(k, object)
}

// equal reports whether both versions of an object have the same content. The API version is the
// one that the reference asked for.
func equal(known, read *resolver.Object) bool {
	same := *read
	same.APIVersion = known.APIVersion
	return bytes.Equal(encode(known), encode(&same))
}

// encode returns the form that is saved; nil: the object has none.
func encode(object *resolver.Object) []byte {
	b, err := object.AppendBinary(make([]byte, 0, usualBytes))
	if err != nil {
		return nil
	}
	return b
}

// remember remembers the object as the one that was used last.
func (o *Objects) remember(k Key, object *resolver.Object) {
	o.forget(k)
	for len(o.byKey) >= o.size {
		_, oldest, _ := o.used.GetOldest()
		o.drop(oldest)
	}
	o.used.Add(object, k)
	o.byKey[k] = object
	o.large.Add(k, object.Labels, object.Annotations)
	for oldest, ok := o.large.Excess(); ok; oldest, ok = o.large.Excess() {
		o.drop(oldest)
	}
}

// drop forgets an object to make room.
func (o *Objects) drop(k Key) {
	o.forget(k)
	o.NoteGone(k)
}

func (o *Objects) forget(k Key) {
	if known, ok := o.byKey[k]; ok {
		o.used.Remove(known)
		delete(o.byKey, k)
		o.large.Remove(k)
	}
}

// All returns all objects, the one that was used last at the end.
func (o *Objects) All() []*resolver.Object { return o.used.Keys() }
