// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
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

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	stories "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestStatesOfStories: testdata/states.txt has the rollouts and pods of each story, as problems are compared with them,
// and for how long each of its parts waits for news before it is delivered.
func TestStatesOfStories(t *testing.T) {
	t.Parallel()
	all := allStories(t)
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintln(&got, name)
		m := &rollout.Model{}
		for _, logs := range all[name].records {
			read, _ := rollout.Read(record.Read(logs), m)
			read.ReceivedAt(timeOf(logs).UnixNano())
			m.Join(read)
		}
		for _, key := range slices.Sorted(maps.Keys(m.Workloads)) {
			writeStates(&got, m.Workloads[key], optionsAt(all[name].options.Now))
		}
	}
	file := filepath.Join("testdata", "states.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o600))
	}
	expected, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -args -update")
	assert.Equal(t, string(expected), got.String())
}

func writeStates(out *strings.Builder, w *rollout.Workload, o rollout.Options) {
	rollouts, pods := w.States(o)
	for _, r := range rollouts {
		fmt.Fprintf(out, "  %s of %s: %s %s", nameOf(r.Revision), r.Controller, r.Outcome, r.Reason)
		fmt.Fprintf(out, ", began %s", sinceEpoch(r.Start))
		if r.Record != "" {
			out.WriteString(" by a record")
		}
		if r.Replaced != "" {
			fmt.Fprintf(out, ", replaces %s", nameOf(r.Replaced))
		}
		for _, at := range []struct {
			name string
			time int64
		}{{"done", r.Done}, {"available", r.Available}, {"undone", r.Undone}, {"closed", r.Closed}, {"final", r.Final}} {
			if at.time != 0 {
				fmt.Fprintf(out, ", %s %s", at.name, sinceEpoch(at.time))
			}
		}
		if r.IsOver {
			out.WriteString(", over")
		}
		out.WriteString("\n")
	}
	for _, p := range pods {
		fmt.Fprintf(out, "  pod %s of %s on %q: %s … %s", p.Name, nameOf(p.Revision), p.Node, sinceEpoch(p.Began), sinceEpoch(p.Started))
		if p.Stopped != 0 {
			fmt.Fprintf(out, ", ended %s", sinceEpoch(p.Stopped))
		}
		out.WriteString("\n")
	}
	if replicas := w.Replicas(); len(replicas) > 0 {
		fmt.Fprintf(out, "  scaled to %v\n", replicas)
	}
	for _, revision := range slices.Sorted(maps.Keys(w.Revisions)) {
		for _, part := range w.Spans(revision, o) {
			goesOn := ""
			if part.Spans[0].GoesOn {
				goesOn = ", goes on"
			}
			fmt.Fprintf(out, "  %s has news at %s, waits for %s%s\n", part.Spans[0].Name, sinceEpoch(part.News), part.Wait.Round(time.Second), goesOn)
		}
	}
}

// sinceEpoch returns a time since the begin of the stories; 0 and the end of times have none.
func sinceEpoch(at int64) string {
	switch {
	case at == 0:
		return "-"
	case at > stories.Epoch.AddDate(10, 0, 0).UnixNano():
		return "never"
	}
	return time.Unix(0, at).Sub(stories.Epoch).String()
}
