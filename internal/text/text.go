// SPDX-License-Identifier: Apache-2.0

// Package text bounds texts that anybody may write into Events and objects. What is read from the
// API server is bounded where it enters the receiver, so that everything that keeps it is bounded,
// and texts that look the same outside are the same inside.
package text

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxValue is the maximum length in bytes of an attribute's name or value.
	MaxValue = 1 << 10
	// MaxBody is the maximum length of a record's body.
	MaxBody = 64 << 10
	// MaxName is the maximum length of an object's name. Kubernetes allows no longer ones.
	MaxName = 253
	// MaxEntries and MaxEntriesBytes bound the labels or annotations of an object that are kept.
	// 128 is also OpenTelemetry's default limit of attributes.
	MaxEntries      = 128
	MaxEntriesBytes = 32 << 10
)

// mark is the end of a text that was cut.
const mark = "…"

// Value returns a text as an attribute may have it.
func Value(s string) string { return Cut(s, MaxValue) }

// Cut returns a text in valid UTF-8, cut to a number of bytes, which include the mark. A sequence of
// invalid bytes becomes one U+FFFD. What was cut retains nothing of the original.
func Cut(s string, most int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	if len(s) <= most {
		return s
	}
	end := most - len(mark)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// Entries returns the labels or annotations to keep, nil if there are none. Beyond the bounds, the
// keys that come last are left out. If two keys become the same, the greater of the original keys
// wins, so that the same object always has the same entries. It retains nothing of the original.
func Entries(all map[string]string, keep func(key string) bool) map[string]string {
	if keep == nil {
		return nil
	}
	var raw []string
	for key := range all {
		if keep(Value(key)) {
			raw = append(raw, key)
		}
	}
	if len(raw) == 0 {
		return nil
	}
	slices.Sort(raw)
	kept, size := make(map[string]string, min(len(raw), MaxEntries)), 0
	for _, key := range raw {
		k, v := strings.Clone(Value(key)), strings.Clone(Value(all[key]))
		size += len(k) + len(v)
		if _, again := kept[k]; size > MaxEntriesBytes || !again && len(kept) == MaxEntries {
			break
		}
		kept[k] = v
	}
	return kept
}

// AreBounded reports whether Entries would keep every entry as it is.
func AreBounded(all map[string]string) bool {
	size := 0
	for key, value := range all {
		if size += len(key) + len(value); Value(key) != key || Value(value) != value {
			return false
		}
	}
	return len(all) <= MaxEntries && size <= MaxEntriesBytes
}
