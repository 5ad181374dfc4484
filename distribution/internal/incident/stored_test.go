// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	records "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// restarted returns a Live that has read from JSON what another one knows.
func restarted(t *testing.T, l *incident.Live, clock func() time.Time) *incident.Live {
	t.Helper()
	var read []*incident.Fact
	for f := range l.Facts {
		encoded, err := json.Marshal(f.Stored())
		require.NoError(t, err)
		var stored incident.StoredFact
		require.NoError(t, json.Unmarshal(encoded, &stored))
		fact, err := stored.Fact()
		require.NoError(t, err)
		read = append(read, fact)
	}
	next := incident.NewLive(clock)
	next.Replay(read)
	return next
}

// TestARestartChangesNoAnswer: what is stored of each Event is all that answers need.
func TestARestartChangesNoAnswer(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		now := began
		clock := func() time.Time { return now }
		live := incident.NewLive(clock)
		s := newStory(t)
		live.Use(func(m *incident.Model) { s.model = m })
		for line := range strings.Lines(string(content)) {
			line = strings.TrimRight(line, "\n")
			if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "at ") || strings.HasPrefix(line, "since ") {
				continue
			}
			s.read(line)
			if head, _, _ := strings.Cut(line, " "); head != "" && head != "#" && head != "namespace" {
				now = later(now, began.Add(records.Time(head)))
			}
		}
		answer := func(l *incident.Live) (said string) {
			l.Use(func(m *incident.Model) {
				said = describe(m, incident.Query{}, now) + describeChanges(m, incident.Query{}, now)
			})
			// Of the time before the first record, one that was restarted does not know that nothing happened.
			return strings.ReplaceAll(said, "it began before the time from which records are complete", "no record shows a change that can have caused it")
		}
		want := answer(live)
		next := restarted(t, live, clock)
		assert.Equal(t, want, answer(next), file)
		assert.Equal(t, want, answer(restarted(t, next, clock)), "%s: again", file)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestWhatIsNoFact: of a file that has something else, nothing is read.
func TestWhatIsNoFact(t *testing.T) {
	stored := factOf("0s Pod/web-aaa-1 !BackOff{app}: again").Stored()
	for name, change := range map[string]func(s *incident.StoredFact){
		"without an object": func(s *incident.StoredFact) { s.Record.Subject = nil },
		"without a name":    func(s *incident.StoredFact) { s.Record.Subject = &record.Subject{} },
		"without a time":    func(s *incident.StoredFact) { s.Moments = nil },
		"nothing":           func(s *incident.StoredFact) { *s = incident.StoredFact{} },
	} {
		other := *stored
		change(&other)
		_, err := other.Fact()
		assert.EqualError(t, err, "it is no fact", name)
	}
	fact, err := stored.Fact()
	require.NoError(t, err)
	assert.Equal(t, stored, fact.Stored())
}

// factOf returns the fact of a line.
func factOf(line string) *incident.Fact {
	r := records.Records(line)[0]
	return incident.FactOf(record.Read(r.Logs(began))[0], began.Add(r.At))
}

// TestAttributesOfAWorkload: those of its newest record, without what only one of its objects has, and not too many.
func TestAttributesOfAWorkload(t *testing.T) {
	logs := records.Logs("0s Pod/web-aaa-1 !BackOff{app} node=node-0: again")[0]
	attributes := logs.ResourceLogs().At(0).Resource().Attributes()
	attributes.PutStr("team", "shop")
	attributes.PutStr("k8s.replicaset.name", "web-aaa")
	got := incident.ResourceOf(attributes)
	assert.Equal(t, []string{
		"k8s.cluster.uid", "k8s.namespace.name", "k8s.workload.api_version", "k8s.workload.kind", "k8s.workload.name", "k8s.workload.uid", "team",
	}, slices.Sorted(maps.Keys(got)))
	assert.Equal(t, "shop", got["team"])
	for i := range 100 {
		attributes.PutStr(fmt.Sprint("label.", i), strings.Repeat("x", 100))
	}
	size := 0
	for name, value := range incident.ResourceOf(attributes) {
		size += len(name) + len(value)
	}
	assert.Greater(t, size, 3<<10)
	assert.LessOrEqual(t, size, 4<<10)
}
