// SPDX-License-Identifier: Apache-2.0

package linesexporter

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapeSequences matches what a terminal interprets as a command: control sequences (ESC [ …
// letter), operating system commands (ESC ] … BEL or ESC \), and short sequences (ESC and one
// character).
var escapeSequences = regexp.MustCompile(
	`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?`)

// plain makes s safe to show on one line of a terminal. Anybody who may create events may write any
// text into them. The text must not move the cursor, set the title of the window, change the
// direction of text, or begin a new line.
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

// cut shortens s to at most limit characters. If any are missing, the last one is an ellipsis.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// pad fills s with spaces to width characters. A longer s stays as it is.
func pad(s string, width int) string {
	if missing := width - utf8.RuneCountInString(s); missing > 0 {
		return s + strings.Repeat(" ", missing)
	}
	return s
}
