// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

// TestScenariosWork runs each scenario with small loads and without k8s_events, which make test does
// not build. No record may be lost or lack owners. Times and sizes have no meaning here.
func TestScenariosWork(t *testing.T) {
	otelcol := cmp.Or(os.Getenv("OTELCOL"), filepath.Join("..", "..", "build", "otelcol-kubeevents"))
	for _, path := range []string{otelcol, filepath.Join(controlplanetest.Binaries(), "kube-apiserver")} {
		if _, err := os.Stat(path); err != nil && os.Getenv("CI") == "" {
			t.Skip("make build controlplane builds what is missing: ", err)
		}
	}
	b := &benchmark{
		lengths: shortLengths, ours: kubeEvents(otelcol), rounds: 1, controlPlane: controlplanetest.Binaries(),
		only: strings.Join([]string{direct, stored, elected, "rollouts"}, ","),
	}
	// On a machine that is busy with other tests, an owner may take longer than the default.
	b.ours.receiver = "{auth_type: kubeConfig, owners: {lookup_timeout: 1m}}"
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r, err := s.run(t.Context(), b)
			require.NoError(t, err)
			require.NotEmpty(t, r.Groups)
			for _, g := range r.Groups {
				require.NotEmpty(t, g.Figures)
				for _, f := range g.Figures {
					if text, missed := f.missed(); missed && countsRecords.MatchString(f.Name) {
						t.Error(g.Title, text)
					}
				}
			}
		})
	}
}

var countsRecords = regexp.MustCompile(`^(healthy )?records (lost|without|repeated)|^spans`)

func TestTheLoadHasItsUpdates(t *testing.T) {
	for _, sz := range []size{fullSize, smallSize} {
		made, repeats := map[int]bool{}, 0
		for _, c := range steady(sz) {
			assert.False(t, c.repeat && !made[c.pod], "there is nothing to repeat yet")
			made[c.pod] = true
			if c.repeat {
				repeats++
			}
		}
		assert.Len(t, made, sz.pods)
		assert.Equal(t, sz.updates, repeats)
	}
}

func TestUnknownScenario(t *testing.T) {
	_, _, _, err := parse([]string{"lod"})
	require.ErrorContains(t, err, `no scenario "lod"`)
	assert.ErrorContains(t, err, "load")
}

func TestSection(t *testing.T) {
	m := measurements{
		direct:   {{latencyHalf: 30, lost: 0}, {latencyHalf: 40, lost: 1}},
		baseline: {{latencyHalf: 100, lost: 3}, {latencyHalf: 110, lost: 5}},
	}
	setups := []setup{{name: baseline}, {name: direct, title: "Direct"}}
	r := result{Text: "The text.", Notes: []string{"A note.", "Another."}, Groups: m.groups(setups, loadFigures)}
	section := r.section(scenario{name: "load"}, versions{"0123", "v1", "v2", "v3"}, "2026-01-02")
	assert.Contains(t, section, `The text.

| | | Direct | k8s_events |
|---|---|--:|--:|
| latency, median | ms | 35 (30–40) | 105 (100–110) |
| records lost |  | 0.5 (0–1) | 4 (3–5) |

A note. Another.

Goals that were not met:

- Direct: records lost: 0.5 (0–1) (goal: ≤ 0)

`+"Measured on 2026-01-02 at commit `0123`: Collector v1, k8s_events v2, Kubernetes v3, ")

	page, err := replaced("# Page\n\n## One\n\nOld.\n\n## Two\n\nKept.\n", "One", "New.")
	require.NoError(t, err)
	assert.Equal(t, "# Page\n\n## One\n\nNew.\n\n## Two\n\nKept.\n", page)
	_, err = replaced(page, "Three", "New.")
	assert.ErrorContains(t, err, `no section "Three"`)
}

func TestRatesTable(t *testing.T) {
	v := values{}
	for _, perSecond := range []int{1, 100} {
		for i, shown := range ratesShown {
			v[shown.figure+atRate(perSecond)] = float64(perSecond * (i + 1))
		}
	}
	m := measurements{direct: {v}, baseline: {v}}
	assert.Equal(t, `| events a second | | processor time for a record | peak memory (RSS) | latency, median | latency, 99th percentile | bytes for a record, compressed |
|--:|---|--:|--:|--:|--:|--:|
| 1 | k8s_events | 1 µs | 2 MiB | 3 ms | 4 ms | 5 B |
| | kube_events | 1 µs | 2 MiB | 3 ms | 4 ms | 5 B |
| 100 | k8s_events | 100 µs | 200 MiB | 300 ms | 400 ms | 500 B |
| | kube_events | 100 µs | 200 MiB | 300 ms | 400 ms | 500 B |`, ratesTable([]int{1, 100}, m))
}
