// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

// smallPlayback is to fullPlayback what smallSize is to fullSize.
var smallPlayback = playback{
	ownerLatency: time.Millisecond, namespaces: 2, deployments: 4,
	changes: 500, storm: time.Second, lifetime: time.Second, idle: time.Second,
	live: sizes{300, 600}, updating: time.Second, perSecond: 200, settle: time.Second,
}

// playbackLab is one that needs no control plane. Without theirs, what the benchmarks compare with
// is missing: make test does not build it.
func playbackLab(t *testing.T) (b *benchmark, theirs bool) {
	t.Helper()
	b = smallBenchmark()
	b.playback = smallPlayback
	if _, err := os.Stat(b.ours.binary); err != nil && os.Getenv("CI") == "" {
		t.Skip("make build builds what is missing: ", err)
	}
	_, err := os.Stat(b.theirs.binary)
	return b, err == nil
}

func TestReplay(t *testing.T) {
	t.Parallel()
	l, theirs := playbackLab(t)
	fleet := &replay.Fleet{Namespaces: 2, Deployments: 4, Pods: 40}
	stream := recordTraffic(fleet, l.playback.changes, time.Now().Add(time.Hour))
	require.Len(t, stream.frames, 540)
	runners := []runner{l.ours}
	if theirs {
		runners = append(runners, l.theirs)
	}
	for _, c := range runners {
		for _, nop := range []bool{false, true} {
			v, err := l.replayOnce(t.Context(), c, stream, nop)
			require.NoError(t, err)
			assert.Zero(t, v[lost], "%s nop=%v", c.name, nop)
		}
	}
}

func TestCurves(t *testing.T) {
	t.Parallel()
	b, theirs := playbackLab(t)
	fleet := &replay.Fleet{Namespaces: 2, Deployments: 4, Pods: 40}
	stream := recordSteady(fleet, 400, time.Now().Add(time.Hour))
	seen := map[observation]bool{}
	for _, o := range stream.about {
		assert.False(t, seen[o], "no two are the same: %v", o)
		seen[o] = true
	}
	b.curves = curves{length: time.Second}
	b.ha.program = b.ours.binary
	setups, err := b.haSetups()
	require.NoError(t, err)
	setups = append(setups, b.setups(direct)...)
	if theirs {
		setups = append(setups, b.setups(baseline)...)
	}
	for _, s := range setups {
		v, err := s.once(t.Context(), func(ctx context.Context, c runner) (values, error) {
			return b.curveOnce(ctx, c, steady{fleet: fleet, stream: stream, perSecond: 300, delay: 10 * time.Millisecond})
		})
		require.NoError(t, err, s.name)
		assert.Zero(t, v[lost], s.name)
		assert.GreaterOrEqual(t, v[latencyHalf], 10.0, "%s: latency includes the delay of the backend", s.name)
		assert.Positive(t, v[recordsEach], s.name)
		assert.Positive(t, v[cpuPerObservation], s.name)
	}
}

func TestADayIsQuietForMostOfTheTime(t *testing.T) {
	fleet := fullDay.fleet()
	changes := dayOf(fleet, fullDay, time.Now())
	seen, perSecond := map[observation]bool{}, map[time.Duration]int{}
	for i, c := range changes {
		o := observation{c.event.Name, account.Occurrences(c.event)}
		assert.False(t, seen[o], "no two are the same: %v", o)
		seen[o] = true
		perSecond[c.at/time.Second]++
		assert.True(t, i == 0 || changes[i-1].at <= c.at, "in order")
	}
	quiet := 0
	for second := range fullDay.length / time.Second {
		if perSecond[second] <= mostQuiet {
			quiet++
		}
	}
	assert.Greater(t, quiet, int(fullDay.length/time.Second)*3/4)
	update := 0
	for second := range rolloutTime / time.Second {
		update += perSecond[rolloutEvery/2/time.Second+second]
	}
	assert.InDelta(t, 6*rolloutPods, update, 100, "events of an update")
}

func TestDay(t *testing.T) {
	t.Parallel()
	b, theirs := playbackLab(t)
	b.day = day{length: 8 * time.Second, deployments: 4, pods: 60}
	fleet := b.day.fleet()
	changes := dayOf(fleet, b.day, time.Now().Add(time.Hour))
	setups := b.setups(direct)
	if theirs {
		setups = append(setups, b.setups(baseline)...)
	}
	for _, s := range setups {
		v, err := s.once(t.Context(), func(ctx context.Context, c runner) (values, error) { return b.dayOnce(ctx, c, fleet, changes) })
		require.NoError(t, err, s.name)
		assert.Zero(t, v[lost], s.name)
		assert.Zero(t, v[surplus], s.name)
	}
}

func TestRollouts(t *testing.T) {
	t.Parallel()
	b, _ := playbackLab(t)
	b.rollouts = rollouts{length: time.Second, settle: 4 * time.Second}
	const rate = 200
	fleet, stream := b.rollouts.record(b.playback, rate)
	require.Len(t, stream.frames, replayPods+rate)
	for name, settings := range map[string]string{"in memory": "{settle_time: 1s, idle_timeout: 1s}", "stored": "{settle_time: 1s, idle_timeout: 1s, storage: file_storage}"} {
		v, err := b.rolloutsOnce(t.Context(), b.ours.recommended(t.TempDir()).tracing(settings), fleet, stream, rate)
		require.NoError(t, err, name)
		assert.Zero(t, v[lost], name)
		assert.Positive(t, v[rolloutsSpans], name)
	}
	without, err := b.rolloutsOnce(t.Context(), b.ours.recommended(t.TempDir()), fleet, stream, rate)
	require.NoError(t, err)
	assert.Zero(t, without[rolloutsSpans])
}

func TestStorm(t *testing.T) {
	t.Parallel()
	l, _ := playbackLab(t)
	v, err := l.storm(t.Context(), l.ours, 50, l.playback.storm)
	require.NoError(t, err)
	assert.Zero(t, v[lost])
	assert.Zero(t, v[surplus])
	assert.NotZero(t, v[stormOwned])
	assert.NotZero(t, v[stormRequests])
	assert.LessOrEqual(t, v[stormCached], 50.0)
}

func TestTheStormIsTheOneThatWasSeen(t *testing.T) {
	fleet := &replay.Fleet{
		Namespaces: 10, Deployments: 200, Pods: stormPods, Every: stormTime / stormPods, Lifetime: fullPlayback.lifetime, Begin: time.Now(),
	}
	all := stormOf(fleet)
	assert.Len(t, all, 145_000)
	seen, afterwards := map[observation]bool{}, 0
	for i, h := range all {
		require.True(t, i == 0 || all[i-1].at <= h.at, "they are in order")
		o := observation{h.event.Name, account.Occurrences(h.event)}
		require.False(t, seen[o], "no two are the same: %v", o)
		seen[o] = true
		if h.event.Reason == "Killing" {
			afterwards++
		}
	}
	assert.Equal(t, stormPods, afterwards)
}

func TestIdle(t *testing.T) {
	t.Parallel()
	l, _ := playbackLab(t)
	v, err := l.idleOnce(t.Context(), l.ours)
	require.NoError(t, err)
	assert.Zero(t, v[idleRequests])
	assert.Zero(t, v[idleWatches])
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	l, theirs := playbackLab(t)
	v, err := l.growthOnce(t.Context(), l.ours, 300)
	require.NoError(t, err)
	assert.Zero(t, v[growthUnseen])
	assert.NotZero(t, v[written])
	assert.NotZero(t, v[storedSize])
	if !theirs {
		t.Skip("make comparison builds what is missing")
	}
	v, err = l.growthOnce(t.Context(), l.theirs, 300)
	require.NoError(t, err)
	assert.NotZero(t, v[liveHeap])
}

func TestMemoryFigures(t *testing.T) {
	const printed = `goos: linux
BenchmarkMemory/10000-2         	       1	        91.87 B/event
BenchmarkMemory/1000000         	       1	       117.2 B/event
PASS
`
	assert.Equal(t, []figure{
		{Name: "each of 10,000", Unit: "B", Ours: []float64{91.87}, Goal: oursAtMost(96)},
		{Name: "each of 1,000,000", Unit: "B", Ours: []float64{117.2}, Goal: oursAtMost(96)},
	}, memoryFigures(printed, "B/event", "each of %s", 96))
}

func TestCharts(t *testing.T) {
	drawn, err := draw([]chart{
		{Title: "up & down", Unit: "MiB", Lines: []line{{Name: "a", X: []int{1000, 100_000}, Y: []float64{12, 0}}, {Name: "b"}}},
		{Title: "nothing"},
	})
	require.NoError(t, err)
	decoder := xml.NewDecoder(strings.NewReader(string(drawn)))
	for err == nil {
		_, err = decoder.Token()
	}
	assert.ErrorIs(t, err, io.EOF)
	assert.Contains(t, string(drawn), ">100,000<")
}

func TestSizes(t *testing.T) {
	var s sizes
	require.NoError(t, s.Set("10,2000"))
	assert.Equal(t, "10,2000", s.String())
	assert.Error(t, s.Set("10,0"))
	assert.Error(t, s.Set("many"))
}

func TestClusters(t *testing.T) {
	t.Parallel()
	b, _ := playbackLab(t)
	b.clusters = clusters{healthy: 2, broken: 3, live: 50, perSecond: 20, length: time.Second, slow: time.Second}
	v, err := b.clustersOnce(t.Context(), runner.waiting, b.clusters.broken)
	require.NoError(t, err)
	assert.Zero(t, v[clustersKilled])
	assert.Positive(t, v[latencyTail])
}

func TestListing(t *testing.T) {
	t.Parallel()
	b, _ := playbackLab(t)
	b.listing = 700 // More than a page.
	v, err := b.listOnce(t.Context())
	require.NoError(t, err)
	assert.Positive(t, v[peakRSS])
}
