// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

func loadFigures(string) []figure {
	return []figure{
		{Name: cpuPerRecord, Unit: "µs", Goal: ratioAtMost(0.4)},
		{Name: peakRSS, Unit: "MiB", Goal: ratioAtMost(0.65)},
		{Name: latencyHalf, Unit: "ms", Goal: ratioAtMost(0.4)},
		{Name: latencyTail, Unit: "ms", Goal: ratioAtMost(0.6)},
		{Name: lost, Goal: oursAtMost(0)},
		{Name: repeated, Goal: oursAtMost(0)},
		{Name: unrecognized, Goal: oursAtMost(0)},
		{Name: unowned, Goal: oursAtMost(0)},
		{Name: ownerRequests},
		{Name: rate, Unit: "1/s"},
	}
}

func runLoad(ctx context.Context, b *benchmark) (r result, err error) {
	sz := b.size
	r.Groups, err = b.compare(ctx, b.rounds, []string{baseline, direct}, loadFigures, func(ctx context.Context, c runner) (values, error) {
		return b.loadOnce(ctx, c, sz, false)
	})
	r.Text = fmt.Sprintf(`A real API server has %s pods of %s Deployments in %s namespaces. The Collector knows none of them. After
the Collector has started its watch, %s observations are written at %s a second: %s new events, and %s updates that increase
the count of an event.

- k8s_events has the batch processor and the exporter's default queue.
- Direct delivery: no batch processor and no exporter queue. The exporter sends each request of the receiver as it is.`,
		thousands(sz.pods), thousands(sz.deployments), thousands(sz.namespaces), thousands(sz.observations), thousands(sz.perSecond),
		thousands(sz.observations-sz.updates), thousands(sz.updates))
	r.Notes = []string{
		"Processor time is that of the whole Collector, from the start of the load to the arrival of the last record.",
		"Latency is the time from just before an event is written to the arrival of its record. It includes the time of the API server.",
		"Requests for owners are GET and LIST of pods, ReplicaSets and Deployments, as the API server counts them.",
	}
	return r, err
}

// loadOnce measures one Collector at one rate. With warm, it knows the owners of all pods before.
func (b *benchmark) loadOnce(ctx context.Context, c runner, sz size, warm bool) (values, error) {
	return b.onCluster(ctx, sz, func(kube *cluster) (values, error) {
		return kube.onRig(c, func(r *rig) (values, error) {
			if err := r.settle(ctx); err != nil {
				return nil, err
			}
			if warm {
				if err := r.warmUp(ctx, sz.pods); err != nil {
					return nil, err
				}
			}
			return r.measure(ctx, steady(sz), 0)
		})
	})
}
