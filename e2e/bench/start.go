// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	timeToReady = "`start_at: end`: time until ready"
	cpuToReady  = "`start_at: end`: processor time until ready"
	peakToReady = "`start_at: end`: peak memory (RSS) until ready"
	timeToAll   = "`start_at: beginning`: time until all are delivered"
	allLost     = "`start_at: beginning`: records lost"
	allUnowned  = "`start_at: beginning`: records without all owners"
)

func startFigures(string) []figure {
	return []figure{
		{Name: timeToReady, Unit: "s", Goal: ratioAtMost(0.06)},
		{Name: cpuToReady, Unit: "s", Goal: ratioAtMost(0.5)},
		{Name: peakToReady, Unit: "MiB", Goal: ratioAtMost(0.38)},
		{Name: timeToAll, Unit: "s"},
		{Name: allLost, Goal: oursAtMost(0)},
		{Name: allUnowned, Goal: oursAtMost(0)},
	}
}

// runStart uses one control plane for all runs: a start of a Collector leaves only some probes.
func runStart(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.setups(baseline, stored, inMemory)
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
	existing, err := kube.writeEvents(ctx, b.existing)
	if err != nil {
		return r, err
	}
	m := measurements{}
	if err := b.starts(ctx, m, kube, append(setups, restarted), existing); err != nil {
		return r, err
	}
	r.Groups = m.groups(append(setups, restarted), startFigures)
	r.Text = fmt.Sprintf("%s events about %s pods are in the API server before the Collector starts.", thousands(len(existing)), thousands(len(kube.pods)))
	r.Notes = []string{
		"The Collector is ready when the record of an event arrives that was created after the start of the process: one event is created every 100 ms. After a restart, an event that the Collector missed counts, too. Time is measured from the start of the process.",
		"`k8s_events` mostly waits: it lists in pages of 500, with client-go's default limit of 5 requests a second after the first 10. It cannot start at the beginning.",
	}
	return r, nil
}

// starts measures starts at the end, and then starts at the beginning. The last setup starts once
// before, so that it has storage to read.
func (b *benchmark) starts(ctx context.Context, m measurements, kube *cluster, setups []setup, existing []string) error {
	atEnd := func(ctx context.Context, c runner) (values, error) { return kube.startAtEnd(ctx, c) }
	if _, err := atEnd(ctx, setups[len(setups)-1].runner); err != nil {
		return err
	}
	if err := m.interleave(ctx, b, b.rounds, setups, "", atEnd); err != nil {
		return err
	}
	for _, s := range setups[:len(setups)-1] {
		if s.name == baseline {
			continue
		}
		err := m.interleave(ctx, b, b.rounds, []setup{s}, "", func(ctx context.Context, c runner) (values, error) {
			return kube.startAtBeginning(ctx, c, existing)
		})
		if err != nil {
			return err
		}
	}
	return nil
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

// startAtBeginning measures how long it takes until a Collector has delivered what exists.
func (c *cluster) startAtBeginning(ctx context.Context, runner runner, existing []string) (values, error) {
	// Earlier probes exist as well, and so are delivered.
	probes, err := c.client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return c.onRig(runner.with("receivers::"+runner.name+"::start_at: beginning"), func(r *rig) (values, error) {
		for _, name := range existing {
			r.sink.note(name, 1, r.col.Started)
		}
		err := r.sink.wait(ctx, len(existing)+len(probes.Items), 10*time.Second)
		sum := r.sink.summary()
		return values{
			timeToAll: sum.last.Sub(r.col.Started).Seconds(),
			allLost:   float64(sum.sent - sum.delivered), allUnowned: float64(sum.delivered - sum.owned),
		}, err
	})
}
