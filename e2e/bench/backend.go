// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var backendScenario = scenario{name: "backend", title: "With a slow backend", run: runBackend}

const recordsEach = "records in a request"

// backend is how much the scenario backend does.
type backend struct {
	delays    sizes // milliseconds for each request
	perSecond int
}

var fullBackend = backend{delays: sizes{1, 100, 1000}, perSecond: 1000}

var backendFigures = []gridFigure{
	{latencyHalf, "ms", ""},
	{latencyTail, "ms", ""},
	{recordsEach, "", ""},
	{cpuPerObservation, "µs", ""},
	{lost, "", ""},
}

func runBackend(ctx context.Context, b *benchmark) (result, error) {
	setups, err := b.onlyChosen(b.setups(direct, waiting, baseline))
	if err != nil {
		return result{}, err
	}
	fleet := &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: replayPods}
	stream := recordSteady(fleet, int(float64(b.backend.perSecond)*b.curves.length.Seconds()), time.Now().Add(time.Hour))
	measured, err := b.measureEach(ctx, setups, b.backend.delays, func(delay int) steady {
		return steady{fleet, stream, b.backend.perSecond, time.Duration(delay) * time.Millisecond}
	})
	if err != nil {
		return result{}, err
	}
	r := result{
		Text: fmt.Sprintf(`A simulated API server streams %s events a second for %s, and the backend waits for the delay in the table before it responds to a request.
Each value is %s.

- kube_events, direct: one batch is undelivered at a time. While the exporter waits, the next batch gathers, so requests grow with the delay, up to 1 MiB, about 500 records.
- kube_events, `+"`wait_for_result`"+`: the exporter's queue acknowledges records after it has delivered them. The receiver has one request in flight, so the queue has nothing to gather, and each request also waits for its flush_timeout of 50 ms.
- k8s_events: the exporter's default queue sends up to ten requests at a time, and acknowledges records before it has delivered them.`,
			thousands(b.backend.perSecond), b.curves.length, runsOf(b.curves.rounds)),
		Notes: []string{"A record arrives when the backend has finished with its request, so latency includes the delay."},
	}
	r.Grids, _ = gridsOf(backendFigures, "delay of each request (ms)", b.backend.delays, setups, measured)
	return r, nil
}
