// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFieldsAreReadInTheirOrder(t *testing.T) {
	b := binary.AppendUvarint(AppendString(nil, "name"), 300)
	r := Reader{Left: append(b, 1, 2)}
	assert.Equal(t, "name", r.String())
	assert.Equal(t, uint64(300), r.Uvarint(300))
	assert.Equal(t, []byte{1, 2}, r.Bytes(2))
	assert.Empty(t, r.Left)
	assert.False(t, r.Failed)
}

func TestWhatIsNotThereIsNoted(t *testing.T) {
	for name, read := range map[string]func(*Reader){
		"a string that is cut short": func(r *Reader) { _ = r.String() },
		"too few bytes":              func(r *Reader) { r.Bytes(3) },
		"a number above its bound":   func(r *Reader) { r.Uvarint(4) },
	} {
		t.Run(name, func(t *testing.T) {
			r := Reader{Left: []byte{5, 'a'}}
			read(&r)
			assert.True(t, r.Failed)
			assert.Empty(t, r.Left)
			assert.Zero(t, r.Uvarint(9), "and nothing comes after it")
		})
	}
}
