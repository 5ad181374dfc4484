// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	timeToReady = "`start_at: end`: time until ready"
	cpuToReady  = "`start_at: end`: processor time until ready"
	peakToReady = "`start_at: end`: peak memory (RSS) until ready"

	cpuCaughtUp  = "`start_at: beginning`: processor time for a record"
	peakCaughtUp = "`start_at: beginning`: peak memory (RSS)"

	beginning = "beginning" // the name of the setup that emits all events
)

func startFigures(setup string) []figure {
	if setup == beginning {
		return []figure{{Name: cpuCaughtUp, Unit: "µs"}, {Name: peakCaughtUp, Unit: "MiB"}, {Name: lost, Goal: oursAtMost(0)}}
	}
	return []figure{
		{Name: timeToReady, Unit: "s", Goal: ratioAtMost(0.06)},
		{Name: cpuToReady, Unit: "s", Goal: ratioAtMost(0.5)},
		{Name: peakToReady, Unit: "MiB", Goal: ratioAtMost(0.38)},
	}
}

// runStart uses one control plane for all runs: a start of a Collector leaves only some probes.
func runStart(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.setups(baseline, stored)
	if err != nil {
		return r, err
	}
	directory, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	restarted := setup{name: "restart", title: "With storage, after a restart", runner: b.ours.storing(directory)}
	kube, err := newCluster(ctx, b.controlPlane, b.size)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, kube.Stop()) }()
	if err := kube.writeEvents(ctx, b.existing); err != nil {
		return r, err
	}
	if _, err := kube.startAtEnd(ctx, restarted.runner); err != nil { // So that it has storage to read.
		return r, err
	}
	m := measurements{}
	if err := m.interleave(ctx, b, b.rounds, append(setups, restarted), "", kube.startAtEnd); err != nil {
		return r, err
	}
	all := setup{
		name: beginning, title: "With storage, direct delivery",
		runner: b.ours.with("receivers::" + b.ours.name + "::start_at: beginning"), configure: runner.recommended,
	}
	err = m.interleave(ctx, b, b.rounds, []setup{all}, "", func(ctx context.Context, c runner) (values, error) {
		return kube.catchUp(ctx, c, b.existing)
	})
	if err != nil {
		return r, err
	}
	r.Groups = m.groups(append(setups, restarted, all), startFigures)
	r.Text = fmt.Sprintf("%s events about %s pods are in the API server before the Collector starts.", thousands(b.existing), thousands(len(kube.pods)))
	r.Notes = []string{
		"The Collector is ready when the record of an event arrives that was created after the start of the process: one event is created every 100 ms. After a restart, an event that the Collector missed counts, too. Time is measured from the start of the process.",
		"With `start_at: beginning`, the Collector emits all events as fast as it can. Processor time is from the start of the process to the arrival of the last record.",
		"`k8s_events` mostly waits: it lists in pages of 500, with client-go's default limit of 5 requests a second after the first 10.",
	}
	return r, nil
}

// startAtEnd measures how long it takes until a Collector is ready.
func (c *cluster) startAtEnd(ctx context.Context, runner runner) (values, error) {
	return c.onRig(runner, func(r *rig) (values, error) {
		ready, err := r.awaitFirst(ctx)
		used, errUsage := r.col.usage()
		return values{
			timeToReady: ready.Sub(r.col.Started).Seconds(), cpuToReady: used.cpu.Seconds(), peakToReady: mebibytes(used.peakRSS),
		}, errors.Join(err, errUsage)
	})
}

// catchUp measures a Collector that emits all events that exist.
func (c *cluster) catchUp(ctx context.Context, runner runner, events int) (values, error) {
	return c.onRig(runner, func(r *rig) (values, error) {
		err := r.await(ctx, events, 30*time.Second)
		delivered, _ := r.sink.observations()
		used, errUsage := r.col.usage()
		return values{
			lost: float64(max(0, events-delivered)), cpuCaughtUp: float64(used.cpu.Microseconds()) / float64(max(1, delivered)), peakCaughtUp: mebibytes(used.peakRSS),
		}, errors.Join(err, errUsage)
	})
}
