// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/types"
)

// This file has what lets objects outlive the process: their binary form, and the way back into the
// cache.

// The fields of an object in its binary form, which is that of a protobuf message. A number never
// changes its meaning. A UID is usually 16 bytes in hexadecimal, so it has a shorter form, too.
const (
	apiVersionField  = 1
	kindField        = 2
	namespaceField   = 3
	nameField        = 4
	uidField         = 5 // any text
	shortUIDField    = 6 // 16 bytes
	labelField       = 7 // a message with a key and a value
	annotationField  = 8 // likewise
	ownerField       = 9 // a message with the same fields, and ambiguousField
	ambiguousField   = 10
	mirroredField    = 11 // any text
	entryKeyField    = 1
	entryValueField  = 2
	shortUIDBytes    = 16
	textOfUIDPattern = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
)

// storedSets lets unmarshalled objects with equal labels share one map.
var storedSets = newStringSets()

// errCutShort is returned for a binary form that ends too early.
var errCutShort = errors.New("it is cut short")

// errNoName is returned for an object that no reference can name. One without a UID can be named:
// an aggregated API server may compute it, as it does PodMetrics.
var errNoName = errors.New("its kind or name is missing")

// Found reports whether the object was read from the API server, by this process or by an earlier
// one that stored it. Otherwise it is known only from a reference.
func (o *Object) Found() bool { return o.found }

// AppendBinary implements encoding.BinaryAppender. Equal objects have equal forms. Only an object
// that was found has one.
func (o *Object) AppendBinary(b []byte) ([]byte, error) {
	switch {
	case !o.found:
		return b, fmt.Errorf("%s %q is known only from a reference", o.Kind, o.Name)
	case o.Kind == "" || o.Name == "":
		return b, errNoName
	}
	b = appendText(b, apiVersionField, o.APIVersion)
	b = appendText(b, kindField, o.Kind)
	b = appendText(b, namespaceField, o.Namespace)
	b = appendText(b, nameField, o.Name)
	b = appendUID(b, o.UID)
	b = appendText(b, mirroredField, string(o.mirrored))
	b = appendEntries(b, labelField, o.Labels)
	b = appendEntries(b, annotationField, o.Annotations)
	if o.owner == none {
		return b, nil
	}
	return appendMessage(b, ownerField, o.owner.Value().append(nil)), nil
}

func (o owner) append(b []byte) []byte {
	b = appendText(b, apiVersionField, o.apiVersion)
	b = appendText(b, kindField, o.kind)
	b = appendText(b, nameField, o.name)
	b = appendUID(b, o.uid)
	if o.ambiguous {
		b = protowire.AppendTag(b, ambiguousField, protowire.VarintType)
		b = protowire.AppendVarint(b, protowire.EncodeBool(true))
	}
	return b
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, text)
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, message)
}

func appendUID(b []byte, uid types.UID) []byte {
	if len(uid) == len(textOfUIDPattern) {
		short, err := hex.DecodeString(strings.ReplaceAll(string(uid), "-", ""))
		if err == nil && len(short) == shortUIDBytes && textOfUID(short) == string(uid) {
			return appendMessage(b, shortUIDField, short)
		}
	}
	return appendText(b, uidField, string(uid))
}

// textOfUID returns the usual text of a UID.
func textOfUID(short []byte) string {
	digits := hex.EncodeToString(short)
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

func appendEntries(b []byte, field protowire.Number, set map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		b = appendMessage(b, field, appendText(appendText(nil, entryKeyField, key), entryValueField, set[key]))
	}
	return b
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It retains nothing of b, and skips fields
// that it does not know.
func (o *Object) UnmarshalBinary(b []byte) error {
	read := Object{found: true}
	err := eachField(b, read.readField)
	if err == nil && (read.Kind == "" || read.Name == "") {
		err = errNoName
	}
	if err != nil {
		return fmt.Errorf("a stored object cannot be read: %w", err)
	}
	read.Labels, read.Annotations = storedSets.shared(read.Labels), storedSets.shared(read.Annotations)
	*o = read
	return nil
}

func (o *Object) readField(field protowire.Number, value []byte) error {
	switch field {
	case apiVersionField:
		o.APIVersion = interned(value)
	case kindField:
		o.Kind = interned(value)
	case namespaceField:
		o.Namespace = interned(value)
	case nameField:
		o.Name = string(value)
	case uidField, shortUIDField:
		return readUID(&o.UID, field, value)
	case mirroredField:
		o.mirrored = types.UID(value)
	case labelField:
		return readEntry(&o.Labels, value)
	case annotationField:
		return readEntry(&o.Annotations, value)
	case ownerField:
		return o.readOwner(value)
	}
	return nil
}

// readOwner reads the owner, which has no owner itself.
func (o *Object) readOwner(b []byte) error {
	var read Object
	ambiguous := false
	err := eachField(b, func(field protowire.Number, value []byte) error {
		ambiguous = ambiguous || field == ambiguousField
		if field == ownerField {
			return nil
		}
		return read.readField(field, value)
	})
	o.owner = unique.Make(owner{read.APIVersion, read.Kind, read.Name, read.UID, ambiguous})
	return err
}

// interned returns a text that many objects have.
func interned(value []byte) string { return unique.Make(string(value)).Value() }

func readUID(uid *types.UID, field protowire.Number, value []byte) error {
	switch {
	case field == uidField:
		*uid = types.UID(value)
	case len(value) == shortUIDBytes:
		*uid = types.UID(textOfUID(value))
	default:
		return fmt.Errorf("a UID has %d bytes", len(value))
	}
	return nil
}

func readEntry(set *map[string]string, b []byte) error {
	var key, text string
	err := eachField(b, func(field protowire.Number, value []byte) error {
		switch field {
		case entryKeyField:
			key = interned(value)
		case entryValueField:
			text = interned(value)
		}
		return nil
	})
	if *set == nil {
		*set = make(map[string]string)
	}
	(*set)[key] = text
	return err
}

// eachField passes the fields of a message to read. The value of a field that holds no bytes is
// nil.
func eachField(b []byte, read func(field protowire.Number, value []byte) error) error {
	for len(b) > 0 {
		field, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errCutShort
		}
		length := protowire.ConsumeFieldValue(field, wire, b[n:])
		if length < 0 {
			return errCutShort
		}
		var value []byte
		if wire == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(b[n:])
		}
		if err := read(field, value); err != nil {
			return err
		}
		b = b[n+length:]
	}
	return nil
}

// Restore puts objects that were found before a restart into the cache, the least recently used one
// first. They are expired: the next use refreshes them. A restored object is the answer only if it
// is gone, or cannot be read in time; without the UID in the reference, only if nothing of its name
// exists any more. Restore replaces nothing in the cache, and removes nothing to make room. If
// there is not enough, the most recently used ones are restored.
func (r *Resolver) Restore(objects []*Object) { r.cache.restore(objects) }
