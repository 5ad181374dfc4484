// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	stories "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

var update = flag.Bool("update", false, "write the expected trees")

// modelOf joins the records of a story, one after another.
func modelOf(s story) *rollout.Model {
	m := &rollout.Model{}
	for _, logs := range s {
		read, _ := rollout.Read(record.Read(logs), &rollout.Model{})
		m.Join(read)
	}
	return m
}

// late is when nothing fails any more.
var late = rollout.Options{Idle: 5 * time.Minute, Now: stories.Epoch.AddDate(1, 0, 0)}

// spansOf returns the spans of all revisions.
func spansOf(m *rollout.Model, o rollout.Options) (all []rollout.Span) {
	for _, w := range m.Workloads {
		for name := range w.Revisions {
			for _, part := range w.Spans(name, o) {
				all = append(all, part.Spans...)
			}
		}
	}
	slices.SortFunc(all, func(a, b rollout.Span) int {
		return strings.Compare(fmt.Sprint(a.Start, a.End, a.Name, a.ID), fmt.Sprint(b.Start, b.End, b.Name, b.ID))
	})
	return all
}

// tree writes spans for people. Traces are numbered, and times are relative to the first span.
func tree(spans []rollout.Span) string {
	var out strings.Builder
	traces := map[pcommon.TraceID]int{}
	for _, s := range spans {
		if _, ok := traces[s.Trace]; !ok {
			traces[s.Trace] = len(traces) + 1
		}
	}
	for _, trace := range slices.SortedFunc(maps.Keys(traces), func(a, b pcommon.TraceID) int { return traces[a] - traces[b] }) {
		_, _ = fmt.Fprintf(&out, "trace %d\n", traces[trace])
		own := slices.DeleteFunc(slices.Clone(spans), func(s rollout.Span) bool { return s.Trace != trace })
		writeChildren(&out, own, pcommon.SpanID{}, spans[0].Start, "  ")
	}
	return out.String()
}

func writeChildren(out *strings.Builder, spans []rollout.Span, parent pcommon.SpanID, zero int64, indent string) {
	for _, s := range spans {
		known := slices.ContainsFunc(spans, func(other rollout.Span) bool { return other.ID == s.Parent })
		if s.Parent != parent && (known || !parent.IsEmpty()) {
			continue
		}
		_, _ = fmt.Fprintf(out, "%s%s  %s … %s%s\n", indent, s.Name, time.Duration(s.Start-zero), time.Duration(s.End-zero), notes(s))
		for _, w := range s.Warnings {
			_, _ = fmt.Fprintf(out, "%s  ! %s %s ×%d %.60s\n", indent, time.Duration(w.At-zero), w.Reason, w.Attributes["k8s.event.count"], w.Attributes["message"])
		}
		if s.ID != parent {
			writeChildren(out, spans, s.ID, zero, indent+"  ")
		}
	}
}

func notes(s rollout.Span) (notes string) {
	for _, name := range []string{"outcome", "revision", "reason", "images", "pods.planned", "pods.started", "pods.failed", "missing"} {
		if value, ok := s.Attributes["k8s.rollout."+name]; ok {
			notes += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	if s.Error != "" {
		notes += fmt.Sprintf(" ERROR %.60q", s.Error)
	}
	return notes
}

// TestSpansOfRealRecords: the trees of what real kubelets, schedulers and controllers emit.
func TestSpansOfRealRecords(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/producers/kubernetes/*.logs.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 15)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".logs.yaml")
		t.Run(name, func(t *testing.T) {
			logs, err := golden.ReadLogs(file)
			require.NoError(t, err)
			read, _ := rollout.Read(record.Read(logs), &rollout.Model{})
			assert.Empty(t, read.Lacks)
			requireTree(t, filepath.Join("testdata", "producers", name+".txt"), spansOf(read, late))
		})
	}
}

func requireTree(t *testing.T, file string, spans []rollout.Span) {
	t.Helper()
	got := tree(spans)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	expected, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -args -update")
	assert.Equal(t, string(expected), got)
}
