// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
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
	d := decoder{body: body}
	h := head{nextID: d.uvarint()}
	for range d.uvarint() {
		h.runs = append(h.runs, run{id: d.uvarint(), entries: uint32(d.uvarint()), values: uint32(d.uvarint())})
		if d.short {
			break
		}
	}
	h.state = d.body
	return h, d.err()
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
	d := decoder{body: body}
	for len(d.body) > 0 {
		key := Key(d.bytes(uint64(len(Key{}))))
		value := d.bytes(d.uvarint())
		if d.short {
			break
		}
		if len(value) == 0 {
			value = nil
		}
		if err := do(key, value); err != nil {
			return err
		}
	}
	return d.err()
}

// decoder reads fields and notes when there is too little left, so that one check at the end does.
type decoder struct {
	body  []byte
	short bool
}

func (d *decoder) uvarint() uint64 {
	value, n := binary.Uvarint(d.body)
	if n <= 0 {
		d.short = true
		d.body = nil
		return 0
	}
	d.body = d.body[n:]
	return value
}

// bytes returns as many bytes as asked for, zeros if there are too few.
func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.body)) {
		d.short = true
		d.body = nil
		return make([]byte, min(n, uint64(len(Key{}))))
	}
	b := d.body[:n]
	d.body = d.body[n:]
	return b
}

func (d *decoder) err() error {
	if d.short {
		return fmt.Errorf("%w: it is cut short", ErrDamaged)
	}
	return nil
}
