// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var idleScenario = scenario{name: "idle", title: "When nothing happens", run: runIdle, isLight: true}

const (
	idleRequests = "requests other than the watch"
	idleWatches  = "watches that restart"
	idleCPU      = "processor time in a minute"
)

// idleLive is how many events exist. They are from before the start.
const idleLive = 2000

func runIdle(ctx context.Context, b *benchmark) (result, error) {
	groups, err := b.compare(ctx, b.together, b.setups(baseline, direct), func(string) []figure {
		return []figure{
			{Name: idleRequests}, // One when the server ends a watch, after 5 to 10 minutes.
			{Name: idleWatches},
			{Name: idleCPU, Unit: "ms", Goal: ratioAtMost(1)},
			{Name: peakRSS, Unit: "MiB", Goal: ratioAtMost(0.9)},
		}
	}, b.idleOnce)
	return result{Groups: groups, Text: fmt.Sprintf(
		"The cluster has %s events, and no other comes for %s. There is no leader election. The first %s after the start of the watch are not measured. Both Collectors run at the same time, once, together with those of the section \"A part of a working day\".",
		thousands(idleLive), b.playback.idle, b.playback.settle)}, err
}

// idleOnce looks at one Collector that has nothing to do.
func (b *benchmark) idleOnce(ctx context.Context, c runner) (v values, err error) {
	fleet := &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: replayPods}
	r, err := newRig(replay.Options{Fleet: fleet, Live: liveEvents{fleet, idleLive, time.Now().Add(-time.Hour)}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.startCollector(ctx, c); err != nil {
		return nil, err
	}
	if err := wait(ctx, b.playback.settle); err != nil {
		return nil, err
	}
	asked := r.server.Requests()
	used, err := b.useOf(ctx, r, "idle", b.playback.idle, func() error { return wait(ctx, b.playback.idle) })
	v = values{
		idleWatches: 0, idleRequests: 0,
		idleCPU: milliseconds(used.cpu) * float64(time.Minute) / float64(b.playback.idle),
		peakRSS: mebibytes(used.peakRSS),
	}
	for kind, n := range r.server.Requests() {
		name := idleRequests
		if kind == replay.EventsWatch {
			name = idleWatches
		}
		v[name] += float64(n - asked[kind])
	}
	return v, err
}
