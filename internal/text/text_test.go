// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATextIsCutAtACharacterAndMarked(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"fits":                        {"größer", "größer"},
		"fits exactly":                {"12345678", "12345678"},
		"too long":                    {"123456789", "12345…"},
		"a character at the end":      {"1234äbcde", "1234…"},
		"a character before the end":  {"123äbcdef", "123ä…"},
		"invalid":                     {"a\xff\xfeb", "a\uFFFDb"},
		"too long once it is valid":   {"123456\xff8", "12345…"},
		"valid as it is after a cut":  {"12345…", "12345…"},
		"a long one of invalid bytes": {strings.Repeat("a\xff", 5), "a\uFFFDa…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Cut(test.text, 8)
			assert.Equal(t, test.want, got)
			assert.Equal(t, got, Cut(got, 8), "it is cut once")
		})
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a\xff…ä", 5)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = len(mark) + max(0, most)%100
		got := Cut(s, most)
		assert.True(t, utf8.ValidString(got))
		assert.LessOrEqual(t, len(got), most)
		assert.Equal(t, got, Cut(got, most))
		if utf8.ValidString(s) && len(s) <= most {
			assert.Equal(t, s, got)
		}
	})
}

func every(string) bool { return true }

func TestOnlyABoundedNumberOfEntriesIsKept(t *testing.T) {
	many, large := map[string]string{}, map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprintf("k%05d", i)] = "v"
		large[fmt.Sprintf("k%05d", i)] = strings.Repeat("v", 10<<10)
	}
	kept := Entries(many, every)
	assert.Len(t, kept, MaxEntries)
	assert.Contains(t, kept, "k00000", "the first keys are kept")
	assert.Contains(t, Entries(many, func(key string) bool { return key == "k09999" }), "k09999")
	size := 0
	for key, value := range Entries(large, every) {
		size += len(key) + len(value)
		assert.LessOrEqual(t, len(value), MaxValue)
	}
	assert.LessOrEqual(t, size, MaxEntriesBytes)
	assert.Greater(t, size, MaxEntriesBytes/2)
	for _, unbounded := range []map[string]string{many, large, {"k": "\xff"}, {"\xff": "v"}} {
		assert.False(t, AreBounded(unbounded))
		assert.True(t, AreBounded(Entries(unbounded, every)))
	}
	assert.Nil(t, Entries(many, nil))
	assert.Nil(t, Entries(nil, every))
}

func TestKeysThatBecomeTheSameGiveTheSameEntriesEachTime(t *testing.T) {
	long := strings.Repeat("k", 2*MaxValue)
	for range 20 {
		kept := Entries(map[string]string{"k\xfe": "first", "k\xff": "second", long + "a": "first", long + "b": "second"}, every)
		require.Equal(t, map[string]string{"k\uFFFD": "second", Value(long): "second"}, kept)
	}
}
