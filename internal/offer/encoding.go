// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// errForeign is what Restore returns for bytes that Encode did not write.
var errForeign = errors.New("the list of offered records cannot be read")

// Encode writes the offers, and the records that are about to be offered, in the form that Restore takes. It is nil if
// there are none.
func (o *Offers) Encode(records []observation.Observation) (b []byte) {
	for name, of := range o.byEvent {
		for _, each := range of {
			b = appendOffer(b, name, each)
		}
	}
	b = slices.Grow(b, 128*len(records))
	for i := range records {
		b = appendOffer(b, nameOf(records[i].Event), offeredAs(records[i].Event))
	}
	return b
}

func appendOffer(b []byte, name types.NamespacedName, of offered) []byte {
	b = appendString(b, name.Namespace)
	b = appendString(b, name.Name)
	b = appendString(b, string(of.uid))
	b = binary.AppendUvarint(b, uint64(of.count))
	return binary.AppendUvarint(b, of.resourceVersion)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Restore adds what Encode wrote. The error says that it is something else; what was added by then has to be thrown away.
func (o *Offers) Restore(b []byte) error {
	d := decoder{left: b}
	for len(d.left) > 0 {
		name := types.NamespacedName{Namespace: d.string(), Name: d.string()}
		of := offered{types.UID(d.string()), int64(d.uvarint(math.MaxInt32)), d.uvarint(math.MaxUint64)}
		if d.failed {
			return errForeign
		}
		o.add(name, of)
	}
	return nil
}

// decoder reads fields and notes when one is not there, so that one check at the end does.
type decoder struct {
	left   []byte
	failed bool
}

func (d *decoder) uvarint(most uint64) uint64 {
	value, n := binary.Uvarint(d.left)
	if n <= 0 || value > most {
		d.left, d.failed = nil, true
		return 0
	}
	d.left = d.left[n:]
	return value
}

func (d *decoder) string() string {
	length := d.uvarint(uint64(len(d.left)))
	if length > uint64(len(d.left)) {
		d.left, d.failed = nil, true
		return ""
	}
	s := string(d.left[:length])
	d.left = d.left[length:]
	return s
}
