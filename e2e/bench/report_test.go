// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

func TestColumns(t *testing.T) {
	for row, f := range map[string]figure{
		"| time | s | 2 (1–3) | 8 | 0.25 | ratio ≤ 0.2 | no |":    {Name: "time", Unit: "s", Ours: []float64{3, 1, 2}, Theirs: []float64{8}, Goal: ratioAtMost(0.2)},
		"| time | s | 1.5 (1–2) | 8 | 0.19 | ratio ≤ 0.2 | yes |": {Name: "time", Unit: "s", Ours: []float64{1, 2}, Theirs: []float64{8}, Goal: ratioAtMost(0.2)},
		"| lost |  | 0 | 12 | 0.00 | ≤ 0 | yes |":                 {Name: "lost", Ours: []float64{0, 0}, Theirs: []float64{12}, Goal: oursAtMost(0)},
		"| lost |  | 1 | – | – | ≤ 0 | no |":                      {Name: "lost", Ours: []float64{1}, Goal: oursAtMost(0)},
		"| rate | 1/s | 12346 | 0.125 | 98764.00 | ≥ 60 | yes |":  {Name: "rate", Unit: "1/s", Ours: []float64{12345.5}, Theirs: []float64{0.125}, Goal: oursAtLeast(60)},
		"| size | MiB | 1.23 | 12.3 | 0.10 |  |  |":               {Name: "size", Unit: "MiB", Ours: []float64{1.234}, Theirs: []float64{12.34}},
	} {
		assert.Equal(t, row, "| "+strings.Join(f.columns(), " | ")+" |")
	}
}

func TestTheWorstRoundCounts(t *testing.T) {
	f := figure{Ours: []float64{0, 0, 1}, Goal: oursAtMost(0)}
	assert.Equal(t, "no", f.Met())
	f = figure{Ours: []float64{100, 99}, Goal: oursAtLeast(100)}
	assert.Equal(t, "no", f.Met())
	f = figure{Theirs: []float64{1}, Goal: ratioAtMost(1)}
	assert.Equal(t, "no", f.Met(), "nothing was measured")
}

func TestNineOfTenRuns(t *testing.T) {
	f := figure{Ours: []float64{9, 1, 1, 1, 1, 1, 1, 1, 1, 5}, Theirs: []float64{100}, Goal: mostRunsAtMost(0.05)}
	assert.Equal(t, "yes", f.Met(), "one of ten may be slower")
	f.Ours[1] = 6
	assert.Equal(t, "no", f.Met(), "two may not")
	assert.Equal(t, "ratio ≤ 0.05 in 9 of 10 runs", f.Goal.String())
	f.Ours = []float64{6}
	assert.Equal(t, "no", f.Met())
}

// TestThePageHasAllScenarios, in the order in which they run.
func TestThePageHasAllScenarios(t *testing.T) {
	results := map[string]result{}
	for _, s := range scenarios {
		results[s.name] = result{Title: s.title, Figures: []figure{{Name: "of " + s.name, Ours: []float64{1}}}}
	}
	page, err := render(results)
	require.NoError(t, err)
	rest := string(page)
	for _, s := range scenarios {
		var found bool
		_, rest, found = strings.Cut(rest, "\n## "+s.title+"\n")
		require.True(t, found, s.name)
		assert.Contains(t, rest, "| of "+s.name+" |")
		assert.Contains(t, rest, "(`SCENARIOS="+s.name+"`)")
	}
}

func TestUsage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	p, err := process.Run(exec.Command("sleep", "60"))
	require.NoError(t, err)
	defer p.Kill()
	col := &collector{Process: p}
	used, err := col.usage()
	require.NoError(t, err)
	assert.Positive(t, used.peakRSS)
	_, err = col.writtenBytes()
	assert.NoError(t, err)
	p.Kill()
	_, err = col.usage()
	assert.ErrorContains(t, err, "has ended and cannot be measured")
}
