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

// story is what happened in a run: who did what when. Its methods may be called concurrently.
type story struct {
	began time.Time

	mu    sync.Mutex // guards lines
	lines []Line
}

// Line is one line of a story.
type Line struct {
	At    time.Duration // since the start of the run
	Who   string
	About string // the event's namespace/name; empty: everything
	Text  string
}

// note adds a line about everything.
func (s *story) note(who, format string, args ...any) { s.add(time.Now(), who, "", format, args...) }

func (s *story) add(at time.Time, who, about, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, Line{at.Sub(s.began), who, about, fmt.Sprintf(format, args...)})
}

// told returns the story in its order.
func (s *story) told() []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := slices.Clone(s.lines)
	slices.SortStableFunc(lines, func(a, b Line) int {
		// Of one instant, the API server comes first: the others react.
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.rank(), b.rank()))
	})
	return lines
}

// rank orders lines of one instant.
func (l Line) rank() int {
	if l.Who == "API server" {
		return 0
	}
	return 1
}

func (l Line) String() string {
	return fmt.Sprintf("%12v  %-16s %.2000s", l.At.Round(time.Millisecond), cmp.Or(l.Who, "-"), l.Text)
}

// write writes the lines about everything and those about one event.
func write(w io.Writer, lines []Line, event string) {
	for _, l := range lines {
		if l.About == "" || l.About == event {
			fmt.Fprintln(w, l)
		}
	}
}
