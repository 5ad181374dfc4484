// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with the file of testdata.
func golden(t *testing.T, name string, text []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	expected, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(expected), string(text), "go test ./bench -update writes the file")
}

var someVersions = versions{
	Commit: "0123456789", Kubernetes: "v1.36.3", CPU: "a processor", Cores: 2,
	Ours: build{Receiver: "at 0123456789", Collector: "v0.161.0", Go: "go1.26"}, Theirs: build{Receiver: "v0.146.0", Collector: "v0.161.0", Go: "go1.26"},
}

// someCurves are two rates of two Collectors.
func someCurves() ([]grid, []chart) {
	at := func(half, tail, cpu float64) []values {
		return []values{{latencyHalf: half, latencyTail: tail, cpuPerObservation: cpu, peakRSS: 70, lost: 0}}
	}
	setups := []setup{{name: direct}, {name: waiting}, {name: baseline, column: "k8s_events v0.146.0"}}
	return gridsOf(curveFigures, perSecondAxis, sizes{100, 10_000}, setups, map[int]map[string][]values{
		100:    {direct: at(20, 50, 400), waiting: at(110, 205, 500), baseline: at(105, 201, 600)},
		10_000: {direct: at(400, 900, 60), waiting: at(300, 700, 50), baseline: at(4000, 7000, 200)},
	})
}

func TestPage(t *testing.T) {
	rounds := map[string][]values{
		direct:   {{latencyHalf: 30, latencyTail: 90, lost: 0}, {latencyHalf: 40, latencyTail: 80, lost: 0}},
		baseline: {{latencyHalf: 100, latencyTail: 150, lost: 3}, {latencyHalf: 110, latencyTail: 170, lost: 5}},
		waiting:  {{latencyHalf: 90, latencyTail: 150, lost: 0}},
	}
	load := result{
		Title: "Under load", Date: "2026-01-02", Versions: someVersions, Text: "The text.", Notes: []string{"A note.", "Another."},
		Groups: []group{
			setup{name: direct, title: "With storage, direct delivery", column: kubeEventsReceiver}.group(loadFigures(direct), rounds),
			setup{name: waiting, title: "With storage, exporter queue", column: kubeEventsReceiver}.group(loadFigures(waiting), rounds),
		},
	}
	curves := result{Title: "Over load", Date: "2026-01-03", Versions: someVersions}
	curves.Grids, curves.Charts = someCurves()
	idle := result{Title: "When nothing happens", Date: "2026-01-02", Versions: someVersions, Figures: []figure{{Name: "time", Unit: "ms", Ours: []float64{3}}}}
	text, err := render(map[string]result{"load": load, "curves": curves, "idle": idle})
	require.NoError(t, err)
	golden(t, "page.md", text)
}

// TestUsualRatesComeFirst: the page begins with the rates of most clusters, if they were measured.
func TestUsualRatesComeFirst(t *testing.T) {
	at := func(cpu float64) values {
		return values{cpuPerObservation: cpu, peakRSS: 70, latencyHalf: 20.5, latencyTail: 50, lost: 0}
	}
	measure := func(rates sizes) result {
		setups := []setup{{name: direct}, {name: baseline, column: "k8s_events v0.146.0"}}
		measured := map[int]map[string][]values{}
		for _, rate := range rates {
			measured[rate] = map[string][]values{direct: {at(100)}, baseline: {at(200)}}
		}
		r := result{Title: "Over load", Date: "2026-01-03", Versions: someVersions}
		r.Grids, r.Charts = gridsOf(curveFigures, perSecondAxis, rates, setups, measured)
		return r
	}
	text, err := render(map[string]result{"curves": measure(sizes{1, 10, 100, 1_000, 3_000, 10_000})})
	require.NoError(t, err)
	const begin = "| 1 | k8s_events | 200 µs | 70 MiB | 20.5 ms | 50 ms |\n| | kube_events | 100 µs | 70 MiB | 20.5 ms | 50 ms |\n| 10 | k8s_events |"
	assert.Contains(t, string(text), begin)
	text, err = render(map[string]result{"curves": measure(sizes{100, 1_000})})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "At the rates of most clusters")
}

func TestChartsOfSeveralCollectors(t *testing.T) {
	_, charts := someCurves()
	docs := t.TempDir()
	require.NoError(t, keepCharts(docs, "curves", charts))
	for _, file := range []string{"performance-latency.svg", "performance-cpu.svg"} {
		drawn, err := os.ReadFile(filepath.Join(docs, file))
		require.NoError(t, err)
		golden(t, file, drawn)
	}
}

// TestThePageIsFromOneCommit: a scenario replaces its own result, if all others are from its
// commit; and all scenarios together begin an empty page.
func TestThePageIsFromOneCommit(t *testing.T) {
	docs := t.TempDir()
	data := filepath.Join(docs, "results.json")
	one := func(commit string, value float64) (versions, result) {
		v := versions{Commit: commit}
		return v, result{Title: "Some", Date: "2026-01-02", Versions: v, Figures: []figure{{Name: "time", Ours: []float64{value}}}}
	}
	keep := func(commit, name string, value float64, all bool) error {
		v, r := one(commit, value)
		p, err := newPage(docs, data, v, all)
		if err != nil {
			return err
		}
		return p.keep(name, r)
	}
	require.ErrorContains(t, keep("a", "load", 1, false), "without SCENARIOS")
	require.NoError(t, keep("a", "load", 1, true))
	require.NoError(t, keep("a", "start", 2, false))
	require.NoError(t, keep("a", "load", 3, false))
	_, load := one("a", 3)
	_, start := one("a", 2)
	results, err := readResults(data)
	require.NoError(t, err)
	assert.Equal(t, map[string]result{"load": load, "start": start}, results)

	require.ErrorContains(t, keep("b", "load", 4, false), "SCENARIOS")
	require.ErrorContains(t, keep("a-dirty", "load", 4, false), "commit them")
	require.ErrorContains(t, keep("a-dirty", "load", 4, true), "commit them")
	require.NoError(t, keep("b", "load", 4, true))
	_, load = one("b", 4)
	results, err = readResults(data)
	require.NoError(t, err)
	assert.Equal(t, map[string]result{"load": load}, results, "nothing of another commit")
	text, err := os.ReadFile(filepath.Join(docs, "PERFORMANCE.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "These scenarios have no result: curves, day, idle, kill, ha, start")
}

func TestWithScenariosNothingIsWritten(t *testing.T) {
	clean := versions{Commit: "a"}
	for name, test := range map[string]struct {
		arguments []string
		writes    bool
	}{
		"all":                 {nil, true},
		"all, with a profile": {[]string{"-profile", "somewhere"}, false},
		"all, without docs":   {[]string{"-docs", ""}, false},
		"one":                 {[]string{"load"}, false},
		"one, with the flag":  {[]string{"-write", "load"}, true},
		"one, without docs":   {[]string{"-write", "-docs", "", "load"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			results := filepath.Join(t.TempDir(), "results.json")
			require.NoError(t, os.WriteFile(results, []byte("{}"), 0o600))
			o, _, err := parse(append([]string{"-docs", t.TempDir(), "-results", results}, test.arguments...))
			require.NoError(t, err)
			p, err := o.openPage(clean)
			require.NoError(t, err)
			assert.Equal(t, test.writes, p != nil)
		})
	}
}

func TestAPageHasAllSetups(t *testing.T) {
	o, _, err := parse([]string{"-docs", t.TempDir(), "-setups", direct})
	require.NoError(t, err)
	_, err = o.openPage(versions{Commit: "a"})
	require.ErrorContains(t, err, "-setups")

	o, _, err = parse([]string{"-docs", t.TempDir(), "-before", "another"})
	require.NoError(t, err)
	_, err = o.openPage(versions{Commit: "a"})
	assert.ErrorContains(t, err, "-before")
}

func TestRunsAreSpreadOverRounds(t *testing.T) {
	for _, runs := range []int{1, 3, 10} {
		all := 0
		for round := range 3 {
			n := setup{runs: runs}.runsIn(round, 3)
			assert.LessOrEqual(t, n, runs/3+1)
			all += n
		}
		assert.Equal(t, runs, all)
	}
	assert.Equal(t, 1, setup{}.runsIn(2, 3))
}

func TestUnknownSetup(t *testing.T) {
	b := smallBenchmark()
	b.only = "direct,k8s_events"
	chosen, err := b.onlyChosen(b.setups(baseline, direct, stored))
	require.NoError(t, err)
	assert.Equal(t, []string{direct, baseline}, namesOf(chosen))
	b.only = "drect"
	_, err = b.onlyChosen(b.setups(baseline, direct))
	assert.ErrorContains(t, err, "there are: k8s_events, direct")
}
