// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// This file has the binary form of objects that outlive the process: texts, each after its length.
// They are the fields of the object and of its owner, the number of labels, the keys and values of
// labels and annotations, and generateName if it has one. A change of this form is a change of what callers have stored.

// fixedTexts is the number of texts before those of labels and annotations.
const fixedTexts = 12

// The first text of an owner: whether there is one.
const (
	onlyOwner  = "1"
	firstOwner = "*" // of several, none of which is the controller
)

// shortUIDBytes is the size of a UID that is written as usual, in hexadecimal with dashes. Instead of
// its length plus one, its short form has 0 before it.
const shortUIDBytes = 16

// storedSets lets unmarshalled objects with equal labels share one map.
var storedSets = newStringSets()

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
	has, up := "", owner{}
	if o.owner != none {
		if has, up = onlyOwner, o.owner.Value(); up.ambiguous {
			has = firstOwner
		}
	}
	for _, text := range [fixedTexts]string{
		o.APIVersion, o.Kind, o.Namespace, o.Name, string(o.UID), string(o.mirrored),
		has, up.apiVersion, up.kind, up.name, string(up.uid), strconv.Itoa(len(o.Labels)),
	} {
		b = appendText(b, text)
	}
	for _, set := range []map[string]string{o.Labels, o.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(set)) {
			b = appendText(appendText(b, key), set[key])
		}
	}
	if o.GenerateName != "" {
		b = appendText(b, o.GenerateName)
	}
	return b, nil
}

func appendText(b []byte, text string) []byte {
	if len(text) == len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
		short, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err == nil && len(short) == shortUIDBytes && textOfUID(short) == text {
			return append(append(b, 0), short...)
		}
	}
	return append(binary.AppendUvarint(b, uint64(len(text))+1), text...)
}

// textOfUID returns the usual text of a UID.
func textOfUID(short []byte) string {
	digits := hex.EncodeToString(short)
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It retains nothing of b.
func (o *Object) UnmarshalBinary(b []byte) error {
	var texts []string
	for len(b) > 0 {
		text, rest, ok := cutText(b)
		if !ok {
			return errors.New("a stored object is cut short")
		}
		texts, b = append(texts, text), rest
	}
	if len(texts) < fixedTexts {
		return errors.New("a stored object is incomplete")
	}
	fixed, sets, generateName := texts[:fixedTexts], texts[fixedTexts:], ""
	if last := len(sets) - 1; len(sets)%2 != 0 {
		sets, generateName = sets[:last], interned(sets[last])
	}
	labels, err := strconv.ParseUint(fixed[11], 10, 32)
	if err != nil || int(labels) > len(sets)/2 {
		return errors.New("a stored object has another number of labels")
	}
	if fixed[1] == "" || fixed[3] == "" {
		return fmt.Errorf("a stored object cannot be used: %w", errNoName)
	}
	*o = Object{
		APIVersion: interned(fixed[0]), Kind: interned(fixed[1]), Namespace: interned(fixed[2]), Name: fixed[3],
		UID: types.UID(fixed[4]), mirrored: types.UID(fixed[5]), found: true, GenerateName: generateName,
		Labels: setOf(sets[:2*labels]), Annotations: setOf(sets[2*labels:]),
	}
	if fixed[6] != "" {
		o.owner = unique.Make(owner{
			apiVersion: fixed[7], kind: fixed[8], name: fixed[9], uid: types.UID(fixed[10]), ambiguous: fixed[6] == firstOwner,
		})
	}
	return nil
}

// cutText returns the first text, and what follows it.
func cutText(b []byte) (text string, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	length := size - 1
	if size == 0 {
		length = shortUIDBytes
	}
	if n <= 0 || length > uint64(len(b)-n) {
		return "", nil, false
	}
	content, rest := b[n:n+int(length)], b[n+int(length):]
	if size == 0 {
		return textOfUID(content), rest, true
	}
	return string(content), rest, true
}

// setOf returns labels or annotations; nil if there are none.
func setOf(texts []string) map[string]string {
	set := make(map[string]string, len(texts)/2)
	for pair := range slices.Chunk(texts, 2) {
		set[interned(pair[0])] = interned(pair[1])
	}
	return storedSets.shared(set)
}

// interned returns a text that many objects have.
func interned(text string) string { return unique.Make(text).Value() }
