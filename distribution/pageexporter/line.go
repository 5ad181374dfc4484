// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // Lines have local times, but the image has no time zones.
	"unicode"
)

// maxLineMessage is the number of bytes of a message that a line shows.
const maxLineMessage = 240

// line returns the entry as one line of a terminal. The line leaves out what the entry does not
// have.
func (e *entry) line() string {
	fields := []string{fmt.Sprintf("%s %-7s %-20s", e.at.Local().Format(time.TimeOnly), e.of[traitType], e.of[traitReason])}
	if namespace := e.of[traitNamespace]; namespace != clusterScoped {
		fields = append(fields, namespace)
	}
	fields = append(fields, e.owners())
	if manifest := e.of[traitManifest]; manifest != "" {
		fields = append(fields, "["+manifest+"]")
	}
	if e.count > 1 {
		fields = append(fields, fmt.Sprintf("×%d", e.count))
	}
	if 1 < e.occurrences && e.occurrences < e.count {
		fields = append(fields, fmt.Sprintf("(+%d)", e.occurrences))
	}
	return printable(strings.Join(fields, " ")+"  "+cut(e.message, maxLineMessage)) + "\n"
}

// owners returns the involved object, followed by its owners.
func (e *entry) owners() string {
	last := len(e.chain) - 1
	names := make([]string, len(e.chain))
	for i, o := range e.chain {
		names[last-i] = o.String()
	}
	return strings.Join(names, " ← ")
}

// printable makes a text safe to show on one line of a terminal. Anybody who may create events may
// write any text into them. The text must not move the cursor, set the title of the window, change
// the direction of text, or begin a new line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}
