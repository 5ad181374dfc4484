// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/fields"
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
		b = appendOffer(b, event.Name(records[i].Event), offeredAs(records[i].Event))
	}
	return b
}

func appendOffer(b []byte, name types.NamespacedName, of offered) []byte {
	b = fields.AppendString(b, name.Namespace)
	b = fields.AppendString(b, name.Name)
	b = fields.AppendString(b, string(of.uid))
	b = binary.AppendUvarint(b, uint64(of.count))
	return binary.AppendUvarint(b, of.resourceVersion)
}

// Restore adds what Encode wrote. The error says that it is something else; what was added by then has to be thrown away.
func (o *Offers) Restore(b []byte) error {
	r := fields.Reader{Left: b}
	for len(r.Left) > 0 {
		name := types.NamespacedName{Namespace: r.String(), Name: r.String()}
		of := offered{types.UID(r.String()), int64(r.Uvarint(math.MaxInt32)), r.Uvarint(math.MaxUint64)}
		if r.Failed {
			return errForeign
		}
		o.add(name, of)
	}
	return nil
}
