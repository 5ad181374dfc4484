// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"
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
	if len(c.open)+len(key)+len(value) > chunkBytes {
		c.flush()
	}
	if c.open == nil {
		c.open = make([]byte, 0, max(chunkBytes, len(key)+binary.MaxVarintLen64+len(value))+crc32.Size)
	}
	c.open = append(c.open, key[:]...)
	// An entry that is gone has length 0, any other its length plus 1.
	if value == nil {
		c.open = protowire.AppendVarint(c.open, 0)
		return
	}
	c.open = protowire.AppendVarint(c.open, uint64(len(value))+1)
	c.open = append(c.open, value...)
}

func (c *chunks) flush() {
	if len(c.open) == 0 {
		return
	}
	c.emit(seal(c.open))
	c.open = nil
}

// decodeChunk passes the entries of a chunk to restore, nil for one that is gone. An entry that
// restore cannot read costs only itself: its error is the caller's to report.
func decodeChunk(stored []byte, restore func(Key, []byte) error) error {
	body, err := unseal(stored)
	if err != nil {
		return err
	}
	for len(body) > 0 {
		var key, value []byte
		var length uint64
		if key, body, err = consume(body, uint64(len(Key{}))); err != nil {
			return err
		}
		if length, body, err = consumeVarint(body); err != nil {
			return err
		}
		if length > 0 {
			if value, body, err = consume(body, length-1); err != nil {
				return err
			}
		}
		_ = restore(Key(key), value)
	}
	return nil
}

// consume returns the first n bytes, never nil, and the rest. The error is ErrCorrupt.
func consume(b []byte, n uint64) (first, rest []byte, err error) {
	if n > uint64(len(b)) {
		return nil, nil, errCutShort()
	}
	return b[:n:n], b[n:], nil
}

// consumeVarint returns the number at the beginning, and the rest. The error is ErrCorrupt.
func consumeVarint(b []byte) (value uint64, rest []byte, err error) {
	value, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, nil, errCutShort()
	}
	return value, b[n:], nil
}

func errCutShort() error { return fmt.Errorf("%w: it is cut short", ErrCorrupt) }
