// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAChunkThatIsCutShortIsCorrupt(t *testing.T) {
	k := key(1)
	tests := map[string][]byte{
		"no checksum":                 {1, 2, 3},
		"half a key":                  seal(slices.Clone(k[:8])),
		"no length":                   seal(slices.Clone(k[:])),
		"a length that does not end":  seal(slices.Concat(k[:], bytes.Repeat([]byte{0xff}, 11))),
		"a value that is shorter":     seal(slices.Concat(k[:], []byte{6}, []byte("four"))),
		"half a key behind an entry":  seal(slices.Concat(k[:], []byte{5}, []byte("four"), k[:8])),
		"another checksum than it is": append([]byte("body"), 0, 0, 0, 0),
	}
	for name, stored := range tests {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, decodeChunk(stored, func(Key, []byte) error { return nil }), ErrCorrupt)
		})
	}
}

func TestAChunkHasTheEntriesThatWereAdded(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 2*chunkBytes)
	added := map[Key][]byte{key(1): nil, key(2): {}, key(3): []byte("four"), key(4): large}
	var stored [][]byte
	c := &chunks{emit: func(sealed []byte) { stored = append(stored, sealed) }}
	for _, k := range []Key{key(4), key(1), key(2), key(3)} {
		c.add(k, added[k])
	}
	c.flush()
	c.flush()
	require.Len(t, stored, 2, "the large one, and the others")
	restored := map[Key][]byte{}
	for _, chunk := range stored {
		require.NoError(t, decodeChunk(chunk, func(k Key, value []byte) error {
			restored[k] = value
			return nil
		}))
	}
	assert.Equal(t, added, restored)
}
