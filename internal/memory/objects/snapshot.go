// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"iter"
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Keys returns the keys of all objects, the one that was used last at the end. Objects may change
// while it is read.
func (o *Objects) Keys() iter.Seq[Key] {
	return func(yield func(Key) bool) { slices.Values(o.used.Values())(yield) }
}

// Value is an object in the form that Restore takes; nil means that there is none.
func (o *Objects) Value(k Key) []byte {
	object, ok := o.byKey[k]
	if !ok {
		return nil
	}
	return encode(object)
}

// Restore puts an object back, or takes it away if the value is nil. If there are too many, it
// forgets the first ones. It returns an error if the value is none of Value's.
func (o *Objects) Restore(k Key, value []byte) error {
	switch {
	case value == nil:
		o.forget(k)
		return nil
	case o.size == 0:
		o.Note(k) // The next save removes it.
		return nil
	}
	object := &resolver.Object{}
	if err := object.UnmarshalBinary(value); err != nil {
		return err
	}
	o.remember(k, object)
	return nil
}
