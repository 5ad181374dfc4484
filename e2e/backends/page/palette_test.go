// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// withPalette returns a picture with 256 colors: less than half the bytes.
func withPalette(t *testing.T, picture []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	small := image.NewPaletted(full.Bounds(), paletteOf(full))
	draw.Draw(small, small.Bounds(), full, small.Bounds().Min, draw.Src)
	var written bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&written, small))
	return written.Bytes()
}

// paletteOf returns the most frequent colors, and then one of each group of similar ones. Without groups, the shades
// of letters would leave no place for the color of a small mark.
func paletteOf(picture image.Image) (palette color.Palette) {
	counts := map[color.RGBA]int{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			counts[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	frequentFirst := func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), bytes.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B}))
	}
	seen := map[color.RGBA]bool{}
	for _, c := range slices.SortedFunc(maps.Keys(counts), frequentFirst) {
		group := color.RGBA{c.R >> 5, c.G >> 5, c.B >> 5, 0}
		if len(palette) < 128 || !seen[group] {
			palette, seen[group] = append(palette, c), true
		}
	}
	return palette[:min(len(palette), 256)]
}
