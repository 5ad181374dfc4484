// SPDX-License-Identifier: Apache-2.0

package linesexporter

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapeSequences matches what a terminal would take as a command: control
// sequences (ESC [ … letter), operating system commands (ESC ] … BEL or ESC \),
// and the short ones (ESC and one character).
var escapeSequences = regexp.MustCompile(
	`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?`)

// plain makes s safe to show on one line of a terminal. Events are written by
// whoever may create them, so nothing in them may move the cursor, set the
// window's title, turn the text's direction or begin a new line.
func plain(s string) string {
	s = escapeSequences.ReplaceAllString(s, "")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// cut shortens s to at most limit characters, the last an ellipsis if any are missing.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// pad fills s with spaces to width characters. Longer ones stay as they are.
func pad(s string, width int) string {
	if missing := width - utf8.RuneCountInString(s); missing > 0 {
		return s + strings.Repeat(" ", missing)
	}
	return s
}
