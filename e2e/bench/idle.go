// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var idleScenario = scenario{name: "idle", title: "When nothing happens", run: runIdle}

const (
	idleRequests = "requests beside the watch"
	idleWatches  = "watches that begin anew"
	idleCPU      = "processor time in a minute"
)

func runIdle(ctx context.Context, l *lab) (result, error) {
	figures, err := l.compare(ctx, []figure{
		{Name: idleRequests, Goal: oursAtMost(0)},
		{Name: idleWatches, Goal: oursAtMost(0)},
		{Name: idleCPU, Unit: "ms"},
		{Name: peakRSS, Unit: "MiB"},
	}, l.idleOnce)
	return result{Figures: figures, Text: fmt.Sprintf(
		"No event comes for %s. Nobody is elected. What the Collector does in the first %s after it has begun to watch is left out.", l.playback.idle, l.playback.settle)}, err
}

// idleOnce looks at one Collector that has nothing to do.
func (l *lab) idleOnce(ctx context.Context, c contestant) (v values, err error) {
	st, err := set(replay.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.strike()) }()
	if err := st.enter(ctx, c); err != nil {
		return nil, err
	}
	if err := wait(ctx, l.playback.settle); err != nil {
		return nil, err
	}
	asked := st.server.Requests()
	before, err := st.col.usage()
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, l.playback.idle); err != nil {
		return nil, err
	}
	after, err := st.col.usage()
	v = values{
		idleWatches: 0, idleRequests: 0,
		idleCPU: milliseconds(after.cpu-before.cpu) * float64(time.Minute) / float64(l.playback.idle),
		peakRSS: mebibytes(after.peakRSS),
	}
	for kind, n := range st.server.Requests() {
		name := idleRequests
		if kind == replay.EventsWatch {
			name = idleWatches
		}
		v[name] += float64(n - asked[kind])
	}
	return v, err
}
