// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"math"

	"github.com/kubeevents/kubeeventsreceiver/internal/fields"
)

// version is the first byte of all that is stored. It changes with the format.
const version = 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal closes a stored value with a checksum.
func seal(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unseal checks version and checksum and returns what is between them.
func unseal(b []byte) ([]byte, error) {
	if len(b) < 5 {
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrDamaged, len(b))
	}
	if b[0] != version {
		return nil, fmt.Errorf("%w: its version is %d, this program's is %d", ErrDamaged, b[0], version)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	return body[1:], nil
}

func (h *head) encode() []byte {
	b := binary.AppendUvarint([]byte{version}, h.nextID)
	b = binary.AppendUvarint(b, uint64(len(h.runs)))
	for _, r := range h.runs {
		b = binary.AppendUvarint(b, r.id)
		b = binary.AppendUvarint(b, uint64(r.entries))
		b = binary.AppendUvarint(b, uint64(r.values))
	}
	return seal(append(b, h.state...))
}

func decodeHead(stored []byte) (head, error) {
	body, err := unseal(stored)
	if err != nil {
		return head{}, err
	}
	r := fields.Reader{Left: body}
	h := head{nextID: r.Uvarint(math.MaxUint64)}
	for range r.Uvarint(math.MaxUint64) {
		h.runs = append(h.runs, run{r.Uvarint(math.MaxUint64), uint32(r.Uvarint(math.MaxUint64)), uint32(r.Uvarint(math.MaxUint64))})
		if r.Failed {
			break
		}
	}
	h.state = r.Left
	return h, whole(&r)
}

// encodeChunks writes the present values of the keys, as many into one as chunkBytes allows.
func encodeChunks(keys []Key, from Source) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		chunk := []byte{version}
		for i, key := range keys {
			value := from.Value(key)
			if i > 0 && len(chunk)+len(key)+len(value) > chunkBytes {
				if !yield(seal(chunk)) {
					return
				}
				chunk = []byte{version}
			}
			chunk = append(chunk, key[:]...)
			chunk = binary.AppendUvarint(chunk, uint64(len(value)))
			chunk = append(chunk, value...)
		}
		yield(seal(chunk))
	}
}

func decodeChunk(stored []byte, do func(Key, []byte) error) error {
	body, err := unseal(stored)
	if err != nil {
		return err
	}
	r := fields.Reader{Left: body}
	for len(r.Left) > 0 {
		key := r.Bytes(uint64(len(Key{})))
		value := r.Bytes(r.Uvarint(math.MaxUint64))
		if r.Failed {
			break
		}
		if len(value) == 0 {
			value = nil
		}
		if err := do(Key(key), value); err != nil {
			return err
		}
	}
	return whole(&r)
}

// whole says whether the fields were all there.
func whole(r *fields.Reader) error {
	if r.Failed {
		return fmt.Errorf("%w: it is cut short", ErrDamaged)
	}
	return nil
}
