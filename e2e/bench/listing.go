// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var listingScenario = scenario{name: "listing", title: "A start next to 190,000 events", run: runListing}

// fullListing is how many events exist. A cluster with as many ended two Collectors that held all of
// them (opentelemetry-collector-contrib #50600).
const fullListing = 190_000

const (
	listedTime = "time until all events are listed"
	listedCPU  = "processor time until then"
)

func runListing(ctx context.Context, b *benchmark) (result, error) {
	r := result{Text: fmt.Sprintf("A simulated API server has %s events when the Collector starts, with `file_storage`. It makes each event when it sends it, on the same two processors.",
		thousands(b.listing))}
	figures := []figure{
		{Name: listedTime, Unit: "s", Goal: oursAtMost(7)},
		{Name: listedCPU, Unit: "s"},
		{Name: peakRSS, Unit: "MiB", Goal: oursAtMost(150)},
	}
	for range b.rounds {
		v, err := b.listOnce(ctx)
		if err != nil {
			return r, err
		}
		b.logf("%v", v)
		add(figures, v, true)
	}
	r.Groups = append(r.Groups, group{Title: "list in pages", Column: kubeEventsReceiver, Figures: figures})
	return r, nil
}

// listOnce measures a Collector until it has listed all events.
func (b *benchmark) listOnce(ctx context.Context) (v values, err error) {
	fleet := &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: growthPods}
	events := liveEvents{fleet, b.listing, time.Now().Add(time.Hour)}
	r, err := newRig(replay.Options{Fleet: fleet, Live: events, Latency: b.playback.ownerLatency})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	c := b.ours.storing(r.directory)
	c.over = append(c.over, nopPipeline(c)...)
	if err := r.startCollector(ctx, c); err != nil {
		return nil, err
	}
	if err := r.awaitListing(ctx, true, b.listing); err != nil {
		return nil, err
	}
	listed := time.Since(r.col.Started)
	used, err := r.col.usage()
	return values{listedTime: listed.Seconds(), listedCPU: used.cpu.Seconds(), peakRSS: mebibytes(used.peakRSS)}, err
}
