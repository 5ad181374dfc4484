// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode"
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

func TestWhatNobodySeesLeavesATextBeforeItIsCut(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"lines and columns stay":      {"a\n\tb", "a\n\tb"},
		"a carriage return":           {"a\r\nb", "a\nb"},
		"colors of a terminal":        {"\x1b[31mred", "[31mred"},
		"a null, a delete":            {"a\x00b\x7fc", "abc"},
		"a control after ASCII":       {"a\u0085b", "ab"},
		"a zero-width space":          {"pay\u200bment", "payment"},
		"a soft hyphen":               {"pay\u00adment", "payment"},
		"a reversed order":            {"a\u202eb\u2066c", "abc"},
		"tags":                        {"a\U000e0041\U000e007fb", "ab"},
		"variation selectors":         {"a\ufe0fb\U000e0100c", "abc"},
		"a letter that no font shows": {"a\u3164b", "ab"},
		"a byte order mark":           {"\ufeffa", "a"},
		"a joiner of emoji":           {"👩\u200d🚀", "👩🚀"},
		"accents and other scripts":   {"größe é 日本 ع", "größe é 日本 ع"},
		"next to invalid bytes":       {"\xff\u200b\xff", "\uFFFD\uFFFD"},
		"only that":                   {"\u200b\u200b", ""},
		"a text of invisible ones":    {strings.Repeat("\u200b", 80) + "a", "a"},
		"a text that hides most of itself is not read to its end": {strings.Repeat("\u200b", 1000) + "a", "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, Cut(test.text, 64))
		})
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() { Cut("größe", 64) }), "a text that stays the same is not copied")
}

// TestATextRetainsNothingOfWhatNobodySees: anyone who may write events can make one of megabytes.
func TestATextRetainsNothingOfWhatNobodySees(t *testing.T) {
	const texts, size = 20, 1 << 20
	all := make([]string, 0, texts)
	for range texts {
		all = append(all, Cut("a"+strings.Repeat("\u200b", size/3), size))
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	assert.Less(t, memory.HeapAlloc, uint64(texts*size/2))
	runtime.KeepAlive(all)
}

func FuzzCut(f *testing.F) {
	f.Add("a\xff…ä", 5)
	f.Add("\xff\u200b\xff\n\x7f", 9)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = len(mark) + max(0, most)%100
		got := Cut(s, most)
		assert.True(t, utf8.ValidString(got))
		assert.LessOrEqual(t, len(got), most)
		assert.Equal(t, got, Cut(got, most))
		for _, r := range got {
			assert.True(t, r == '\n' || r == '\t' || !unicode.In(r, invisible...), "%q", got)
		}
		if utf8.ValidString(s) && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, invisible...) }) {
			assert.Equal(t, s, got)
		}
	})
}

func every(string) bool { return true }

// kept are the labels that are kept of an object without annotations.
func kept(labels map[string]string, keep func(string) bool) map[string]string {
	labels, _ = Keys{Label: keep}.Entries(labels, nil)
	return labels
}

func TestOnlyABoundedNumberOfEntriesIsKept(t *testing.T) {
	many, large := map[string]string{}, map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprintf("k%05d", i)] = "v"
		large[fmt.Sprintf("k%05d", i)] = strings.Repeat("v", 10<<10)
	}
	assert.Len(t, kept(many, every), MaxEntries)
	assert.Contains(t, kept(many, every), "k00000", "of the same length, the first keys are kept")
	assert.Contains(t, kept(many, func(key string) bool { return key == "k09999" }), "k09999")
	assert.LessOrEqual(t, sizeOf(kept(large, every)), MaxEntriesBytes)
	assert.Nil(t, kept(many, nil))
	assert.Nil(t, kept(nil, every))
}

func sizeOf(sets ...map[string]string) (size int) {
	for _, set := range sets {
		for key, value := range set {
			size += len(key) + len(value)
		}
	}
	return size
}

func TestTheLongestEntriesOfAnObjectAreLeftOut(t *testing.T) {
	labels, annotations := map[string]string{"tilt-manifest": "shop"}, map[string]string{}
	for i := range 60 {
		labels[fmt.Sprint("platform.example.com/label-", i)] = strings.Repeat("v", 63)
		annotations[fmt.Sprint("a-", i)] = strings.Repeat("v", 2*MaxValue)
	}
	keys := Keys{Label: every, Annotation: every}
	keptLabels, keptAnnotations := keys.Entries(labels, annotations)
	assert.Len(t, keptLabels, 61, "a short label has room, however many long annotations there are")
	assert.Len(t, keptAnnotations, 2)
	assert.LessOrEqual(t, sizeOf(keptLabels, keptAnnotations), MaxEntriesBytes)
	assert.Greater(t, sizeOf(keptLabels, keptAnnotations), MaxEntriesBytes-MaxValue-3)

	_, keptAnnotations = keys.Entries(labels, map[string]string{"long": strings.Repeat("v", MaxValue)})
	assert.Len(t, keptAnnotations, 1)

	keys.First = func(key string) bool { return key == "a-7" }
	_, keptAnnotations = keys.Entries(labels, annotations)
	assert.Contains(t, keptAnnotations, "a-7", "a rule names it")
}

func TestKeysThatBecomeTheSameGiveTheSameEntriesEachTime(t *testing.T) {
	long := strings.Repeat("k", 2*MaxValue)
	for range 20 {
		same := kept(map[string]string{"k\xfe": "first", "k\xff": "second", long + "a": "first", long + "b": "second"}, every)
		require.Equal(t, map[string]string{"k\uFFFD": "second", Value(long): "second"}, same)
	}
}
