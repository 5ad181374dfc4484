// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	records "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

var update = flag.Bool("update", false, "write what the stories say now")

// TestStories reads the stories in testdata/stories. Each line is a record: see the package story.
// After a line that begins with "at", the file has what the model says at this time.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			told := tell(t, string(content))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(told), 0o600))
			}
			assert.Equal(t, string(content), told)
		})
	}
}

var began = records.Epoch

// tell returns the story with what the model says in the place of what the file says.
func tell(t *testing.T, content string) string {
	s := &story{t: t, model: incident.NewModel(began.Add(-incident.Horizon)), namespace: "shop", counts: map[string]int64{}, firsts: map[string]string{}}
	var out strings.Builder
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") || line == "" && strings.HasSuffix(out.String(), "\n\n") {
			continue // What the model says is written again.
		}
		fmt.Fprintln(&out, line)
		out.WriteString(s.read(line))
	}
	return out.String()
}

// story is a model with what its Events were so far.
type story struct {
	t         *testing.T
	model     *incident.Model
	namespace string
	harmless  []string
	counts    map[string]int64
	firsts    map[string]string
}

// add adds records to a model.
func add(m *incident.Model, logs plog.Logs, now time.Time, harmless ...string) {
	m.AddFacts(incident.FactsOf(record.Read(logs, harmless...), now, false), now)
}

// read reads a line, and returns what the model says if the line asks.
func (s *story) read(line string) string {
	head, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "", strings.HasPrefix(line, "#"):
	case head == "since": // when the model began
		s.model = incident.NewModel(began.Add(records.Time(rest)))
	case head == "namespace":
		s.namespace = rest
	case head == "at":
		return s.answer(rest)
	default:
		s.record(line)
	}
	return ""
}

func (s *story) record(line string) {
	for _, r := range records.Records(line) {
		r.Settings["namespace"] = cmp.Or(r.Settings["namespace"], s.namespace)
		_, what, _ := strings.Cut(line, " ")
		event := s.namespace + "\n" + what
		if s.counts[event]++; s.counts[event] == 1 {
			s.firsts[event] = r.At.String()
		}
		r.Settings["event"], r.Settings["count"], r.Settings["since"] = event, strconv.FormatInt(s.counts[event], 10), s.firsts[event]
		if count, since, ok := strings.Cut(r.Settings["of"], "/"); ok { // It has occurred several times.
			event = r.Name + r.Reason + r.Message
			n, err := strconv.ParseInt(count, 10, 64)
			require.NoError(s.t, err)
			r.Settings["event"], r.Settings["count"], r.Settings["since"], r.Settings["new"] = event, count, since, strconv.FormatInt(n-s.counts[event], 10)
			s.counts[event] = n
		}
		add(s.model, r.Logs(began), began.Add(r.At), s.harmless...)
	}
}

// answer returns what the model says. After the time, the line can have FIELD=VALUE of a query.
func (s *story) answer(line string) string {
	parts := strings.Fields(line)
	now, q := began.Add(records.Time(parts[0])), incident.Query{}
	for _, part := range parts[1:] {
		field, value, _ := strings.Cut(part, "=")
		switch field {
		case "last":
			length, err := time.ParseDuration(value)
			require.NoError(s.t, err)
			q.From = now.Add(-length)
		case "until":
			q.Until = began.Add(records.Time(value))
		case "since":
			since := s.model.Since(now).Sub(began)
			return fmt.Sprintf("  complete since %d:%02d\n", int(since.Minutes()), int(since.Seconds())%60)
		case "reason":
			q.Reason = value
		case "namespace":
			q.Namespace = value
		case "changes":
			return describeChanges(s.model, q, now)
		default:
			require.Fail(s.t, "a query has last, until, reason, namespace, since and changes", part)
		}
	}
	return describe(s.model, q, now)
}

// TestWhatCameLaterChangesNothing: an answer about a time is the same when more has happened since.
func TestWhatCameLaterChangesNothing(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var whole *incident.Model
		for _, isLater := range []bool{false, true} {
			s := newStory(t)
			s.model = incident.NewModel(began.Add(-incident.Horizon))
			for line := range strings.Lines(string(content)) {
				line = strings.TrimRight(line, "\n")
				time, isQuestion := strings.CutPrefix(line, "at ")
				switch {
				case strings.HasPrefix(line, "  "):
				case !isQuestion:
					s.read(line)
				case isLater && !strings.Contains(string(content), "\n"+time+" "): // Else a record of this time comes later.
					want := s.answer(time)
					own := s.model
					s.model = whole
					assert.Equal(t, want, s.answer(time), "%s: at %s", file, time)
					s.model = own
				}
			}
			whole = s.model
		}
	}
}

func describeChanges(m *incident.Model, q incident.Query, now time.Time) string {
	var b strings.Builder
	for _, c := range m.At(context.Background(), now, q).Changes() {
		fmt.Fprintf(&b, "  %s %s: %s\n", clock(c.At, began), c.Kind, c.Text)
	}
	return b.String()
}

func describe(m *incident.Model, q incident.Query, now time.Time) string {
	return describeFrom(m, q, now, began)
}

// describeFrom has times since the start of the story.
func describeFrom(m *incident.Model, q incident.Query, now, start time.Time) string {
	since := func(at time.Time) string { return clock(at, start) }
	var b strings.Builder
	for _, p := range m.At(context.Background(), now, q).Problems() {
		state := "goes on"
		if !p.Over.IsZero() {
			state = "over since " + since(p.Over) + ": " + p.Because
		}
		container := ""
		if p.Container != "" {
			container = " of " + p.Container
		}
		fmt.Fprintf(&b, "  %s in %s: %s %s%s ×%d since %s, %s\n", p.Key.Top, p.Key.Namespace, p.Class, p.Reason, container, p.Count, since(p.Onset), state)
		for _, at := range p.Earlier {
			fmt.Fprintf(&b, "    earlier: %s\n", since(at))
		}
		for _, text := range p.Scope {
			fmt.Fprintf(&b, "    scope: %s\n", text)
		}
		if p.Ended != "" {
			fmt.Fprintf(&b, "    ended: %s\n", p.Ended)
		}
		fmt.Fprintf(&b, "    message: %s\n", p.Message)
		for _, c := range p.Causes {
			fmt.Fprintf(&b, "    cause, %d s before, %s %s: %s\n", int(time.Duration(c.Before).Seconds()), c.Where, c.Kind, c.Text)
		}
		if p.Unknown != "" {
			fmt.Fprintf(&b, "    %s\n", p.Unknown)
		}
		if c := p.LastChange; c != nil {
			fmt.Fprintf(&b, "    last change, %d s before: %s\n", int(time.Duration(c.Before).Seconds()), c.Text)
		}
	}
	if b.Len() == 0 {
		return "  no problem\n"
	}
	return b.String()
}

// TestAnEarlierQuestionChangesNoAnswer: what a look keeps for the next one is what that would compute.
func TestAnEarlierQuestionChangesNoAnswer(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		whole := func() (s *story) {
			s = newStory(t)
			for line := range strings.Lines(string(content)) {
				if line = strings.TrimRight(line, "\n"); !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "at ") {
					s.read(line)
				}
			}
			return s
		}
		asked := whole()
		for minute := range 75 {
			now := fmt.Sprintf("%d:00", minute)
			assert.Equal(t, whole().answer(now), asked.answer(now), "%s at %s", file, now)
		}
	}
}
