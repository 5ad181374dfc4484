// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/kubeevents/kubeeventsreceiver/internal/fields"
)

// chunkBytes is how large a stored value with several entries may be. Storages keep values in
// pages, of 4 KiB in file_storage, and write a page again with each change in it: small values
// must not be next to large ones.
const chunkBytes = 1980

// Key names an entry. The first byte tells kinds of entries apart.
type Key [17]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal adds a checksum to a stored value.
func seal(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unseal checks the checksum and returns what is before it. The error is ErrCorrupt.
func unseal(b []byte) ([]byte, error) {
	if len(b) < crc32.Size {
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrCorrupt, len(b))
	}
	body, sum := b[:len(b)-crc32.Size], binary.BigEndian.Uint32(b[len(b)-crc32.Size:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrCorrupt)
	}
	return body, nil
}

// chunks collects entries in values of chunkBytes. A larger entry has a value of its own.
type chunks struct {
	open []byte
	emit func(sealed []byte)
}

func (c *chunks) add(key Key, value []byte) {
	if len(c.open) > 0 && len(c.open)+len(key)+len(value) > chunkBytes {
		c.flush()
	}
	c.open = append(c.open, key[:]...)
	// An entry that is gone has length 0, any other its length plus 1.
	if value == nil {
		c.open = binary.AppendUvarint(c.open, 0)
		return
	}
	c.open = binary.AppendUvarint(c.open, uint64(len(value))+1)
	c.open = append(c.open, value...)
}

func (c *chunks) flush() {
	if len(c.open) == 0 {
		return
	}
	c.emit(seal(c.open))
	c.open = nil
}

// decodeChunk passes the entries of a chunk to restore, nil for one that is gone.
func decodeChunk(stored []byte, restore func(Key, []byte) error) error {
	body, err := unseal(stored)
	if err != nil {
		return err
	}
	r := fields.Reader{Left: body}
	for len(r.Left) > 0 {
		key := r.Bytes(uint64(len(Key{})))
		length := r.Uvarint(math.MaxUint64)
		var value []byte
		if length > 0 {
			value = r.Bytes(length - 1)
		}
		if r.Failed {
			return fmt.Errorf("%w: it is cut short", ErrCorrupt)
		}
		if length > 0 && value == nil {
			value = []byte{}
		}
		if err := restore(Key(key), value); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	return nil
}
