// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// story is what happened in a run: who did what when. Lines are formatted only when a run fails.
// Its methods may be called concurrently.
type story struct {
	began time.Time

	mu    sync.Mutex // guards lines
	lines []line
}

type line struct {
	at     time.Time
	who    string
	about  string // the event's namespace/name; empty: everything
	format string
	args   []any
}

// note adds a line about everything.
func (s *story) note(who, format string, args ...any) {
	s.add(line{time.Now(), who, "", format, args})
}

func (s *story) add(l line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, l)
}

// write writes the lines about everything and those about one event.
func (s *story) write(w io.Writer, event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := slices.Clone(s.lines)
	slices.SortStableFunc(lines, func(a, b line) int {
		// Of one instant, the API server comes first: the others react.
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(rank(a), rank(b)))
	})
	for _, l := range lines {
		if l.about == "" || l.about == event {
			at, text := l.at.Sub(s.began).Round(time.Millisecond), fmt.Sprintf(l.format, l.args...)
			fmt.Fprintf(w, "%12v  %-16s %s\n", at, cmp.Or(l.who, "-"), text)
		}
	}
}

// rank orders lines of one instant.
func rank(l line) int {
	if l.who == "API server" {
		return 0
	}
	return 1
}
