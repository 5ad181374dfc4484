// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	records "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestRealIncidents replays records of incidents that were staged on real control planes and nodes:
// each testdata/real/NAME.json. NAME.md says what was done, and what the right answer is. NAME.txt
// has what the model says, each time its answer changes.
func TestRealIncidents(t *testing.T) {
	files, err := filepath.Glob("testdata/real/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			all, err := records.Recorded(file)
			require.NoError(t, err)
			told, golden := replay(all), strings.TrimSuffix(file, ".json")+".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(told), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), told)
		})
	}
}

// replay adds the records one by one, at the times at which the receiver observed them.
func replay(all []plog.Logs) string {
	start := records.Seen(all[0])
	model := incident.NewModel(start.Add(-incident.Horizon))
	var out strings.Builder
	before := ""
	const pause = 10 * time.Second // between two looks
	last := time.Time{}
	look := func(now time.Time) {
		if now.Sub(last) < pause {
			return
		}
		last = now
		if said := headlines(model, now, start); said != before {
			fmt.Fprintf(&out, "at %s\n%s", clock(now, start), said)
			before = said
		}
	}
	for i, one := range all {
		now := records.Seen(one)
		for i > 0 && now.Sub(records.Seen(all[i-1])) > 0 && now.Sub(start) > 0 {
			if next := records.Seen(all[i-1]).Add(15 * time.Second); next.Before(now) {
				look(next)
			}
			break
		}
		add(model, one, now)
		look(now.Add(2 * time.Second))
	}
	look(records.Seen(all[len(all)-1]).Add(20 * time.Minute))
	fmt.Fprintf(&out, "in full\n%s", describeFrom(model, incident.Query{}, records.Seen(all[len(all)-1]), start))
	return out.String()
}

func clock(at, start time.Time) string {
	d := at.Sub(start).Round(time.Second)
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// headlines has a line for each problem.
func headlines(m *incident.Model, now, start time.Time) string {
	var b strings.Builder
	for _, p := range m.At(context.Background(), now, incident.Query{}).Problems() {
		state := "goes on"
		if !p.Over.IsZero() {
			state = "over: " + p.Because
		}
		cause := "not known"
		if len(p.Causes) > 0 {
			cause = p.Causes[0].Text
		}
		fmt.Fprintf(&b, "  %s/%s %s since %s, %s; %s; %s\n", p.Key.Namespace, p.Key.Top, p.Class, clock(p.Onset, start), state, strings.Join(p.Scope, ", "), cause)
	}
	if b.Len() == 0 {
		return "  no problem\n"
	}
	return b.String()
}

// TestThePageHasTheSpansOfTheTraces: the page computes spans from its events, and the connector
// from records. Both say the same about each span.
func TestThePageHasTheSpansOfTheTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/real/*.json")
	require.NoError(t, err)
	for _, file := range files {
		all, err := records.Recorded(file)
		require.NoError(t, err)
		now := records.Seen(all[len(all)-1])
		page, connector := incident.NewModel(records.Seen(all[0])), &rollout.Model{}
		for _, one := range all {
			add(page, one, records.Seen(one))
			read, _ := rollout.Read(record.Read(one), connector)
			connector.Join(read)
		}
		var traced, shown []string
		for _, w := range connector.Workloads {
			for revision := range w.Revisions {
				for _, part := range w.Spans(revision, rollout.Options{Idle: 5 * time.Minute, Now: now}) {
					traced = append(traced, textsOf(part.Spans)...)
				}
			}
		}
		for _, s := range page.At(context.Background(), now, incident.Query{}).Workloads() {
			shown = append(shown, textsOf(page.At(context.Background(), now, incident.Query{Workload: s.Key.ID()}).Spans())...)
		}
		slices.Sort(traced)
		slices.Sort(shown)
		assert.Equal(t, traced, shown, file)
	}
}

func textsOf(spans []rollout.Span) (all []string) {
	for _, s := range spans {
		all = append(all, fmt.Sprint(s.Trace, s.ID, s.Name, s.Start, s.End, s.Error, s.Attributes))
	}
	return all
}
