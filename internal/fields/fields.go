// SPDX-License-Identifier: Apache-2.0

// Package fields reads and writes what is stored as numbers and byte strings, one after another.
package fields

import "encoding/binary"

// AppendString writes a string behind its length.
func AppendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Reader reads fields, and notes when one is not there, so that one check at the end does: the field is then zero, and nothing
// is left.
type Reader struct {
	Left   []byte
	Failed bool
}

// Uvarint reads a number that is not above most.
func (r *Reader) Uvarint(most uint64) uint64 {
	value, n := binary.Uvarint(r.Left)
	if n <= 0 || value > most {
		r.fail()
		return 0
	}
	r.Left = r.Left[n:]
	return value
}

// Bytes reads so many bytes; nil if there are fewer.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(r.Left)) {
		r.fail()
		return nil
	}
	b := r.Left[:n]
	r.Left = r.Left[n:]
	return b
}

// String reads what AppendString wrote.
func (r *Reader) String() string {
	return string(r.Bytes(r.Uvarint(uint64(len(r.Left)))))
}

func (r *Reader) fail() { r.Left, r.Failed = nil, true }
