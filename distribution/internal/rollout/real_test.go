// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
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

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// TestRolloutsOfRealIncidents: what a real control plane and real kubelets recorded, in short.
func TestRolloutsOfRealIncidents(t *testing.T) {
	files, err := filepath.Glob("../incident/testdata/real/*.json")
	require.NoError(t, err)
	var lines []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(content)
		require.NoError(t, err)
		read, _ := rollout.Read(record.Read(logs), &rollout.Model{})
		m := &rollout.Model{}
		m.Join(read)
		lines = append(lines, summariesOf(strings.TrimSuffix(filepath.Base(file), ".json"), m)...)
	}
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "incidents.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	expected, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -args -update")
	assert.Equal(t, string(expected), got)
}

// summariesOf returns a line for each rollout.
func summariesOf(name string, m *rollout.Model) (lines []string) {
	for _, w := range m.Workloads {
		last := int64(0)
		_, pods := w.States(late)
		for _, pod := range pods {
			last = max(last, pod.Began, pod.Started, pod.Stopped)
		}
		o := rollout.Options{Idle: late.Idle, Now: time.Unix(0, last).Add(24 * time.Hour)}
		rollouts, _ := w.States(o)
		for _, r := range rollouts {
			lines = append(lines, fmt.Sprintf("%s: %s/%s %s: %s %s %v", name, strings.ToLower(w.Kind), w.Name, nameOf(r.Revision), r.Outcome, r.Reason, r.Images))
		}
	}
	slices.Sort(lines)
	return lines
}

// nameOf returns the name in a revision.
func nameOf(revision string) string { return revision[strings.LastIndex(revision, "/")+1:] }
