// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var killScenario = scenario{name: "kill", title: "kill -9 under load", run: runKill}

const (
	killRepeated     = "records repeated, with the `log.record.uid` of the first"
	killUnrecognized = "records repeated, without this"
)

// kills is how much the scenario kill does.
type kills struct {
	observations int
	times        int // how often the Collector is killed
}

var fullKills = kills{observations: 10_000, times: 2}

// size returns the load of the scenario: that of the scenario load, but shorter.
func (k kills) size(load size) size {
	load.updates = k.observations * load.updates / max(1, load.observations)
	load.observations = k.observations
	return load
}

func killFigures(setup string) []figure {
	figures := []figure{
		{Name: lost},
		{Name: killRepeated},
		{Name: killUnrecognized},
		{Name: unowned},
		{Name: latencyMost, Unit: "ms"},
	}
	if setup == direct || setup == waiting {
		for i := range figures {
			if name := figures[i].Name; name == lost || name == killUnrecognized || name == unowned {
				figures[i].Goal = oursAtMost(0)
			}
		}
	}
	return figures
}

func runKill(ctx context.Context, b *benchmark) (result, error) {
	sz := b.kills.size(b.size)
	groups, err := b.compare(ctx, b.interleave, b.setups(baseline, direct, inMemory), killFigures, func(ctx context.Context, c runner) (values, error) {
		return b.killOnce(ctx, c, sz)
	})
	return result{
		Groups: groups,
		Text: fmt.Sprintf(`The load is that of the section "Under load", with %s observations at %s a second. The benchmark kills the Collector %d times, at
regular intervals, and restarts it at once with the same configuration and the same storage.`, thousands(sz.observations), thousands(sz.perSecond), b.kills.times),
		Notes: []string{
			"The benchmark waits until no record has arrived for 10 s. It then counts an observation as lost if it has no record.",
			"The greatest latency includes the time without a Collector, but only if the events of that time are not lost.",
			"An exporter's queue in memory, and the batch processor, acknowledge records before they have delivered them. A kill loses these records, with any receiver.",
		},
	}, err
}

// killOnce measures one Collector on a control plane of its own.
func (b *benchmark) killOnce(ctx context.Context, c runner, sz size) (v values, err error) {
	kube, err := newCluster(ctx, b.controlPlane, sz)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kube.Stop()) }()
	return b.killOn(ctx, kube, c, sz)
}

func (b *benchmark) killOn(ctx context.Context, kube *cluster, c runner, sz size) (v values, err error) {
	s, err := newSink()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.owners = belongsToDeployment
	col, err := startCollector(c, kube.Kubeconfig(), s.url())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, col.stop()) }()
	if err := settle(ctx, kube, s); err != nil {
		return nil, errors.Join(err, col.failure("does not watch"))
	}
	if col, err = b.loadAndKill(ctx, kube, s, col, sz); err != nil {
		return nil, err
	}
	sum := s.summary()
	return values{
		lost:             float64(sum.sent - sum.delivered),
		killRepeated:     float64(sum.recognizable),
		killUnrecognized: float64(sum.surplus - sum.recognizable),
		unowned:          float64(sum.delivered - sum.owned),
		latencyMost:      sum.latency(1),
	}, nil
}

// loadAndKill writes the load, kills and restarts the Collector meanwhile, and waits for the
// records. It returns the Collector that runs at the end.
func (b *benchmark) loadAndKill(ctx context.Context, kube *cluster, s *sink, col *collector, sz size) (*collector, error) {
	load := &traffic{cluster: kube, sink: s, size: sz}
	written := make(chan error, 1)
	go func() {
		_, err := load.run(ctx)
		written <- err
	}()
	interval := time.Duration(sz.observations) * time.Second / time.Duration(sz.perSecond*(b.kills.times+1))
	var errStart error
	for range b.kills.times {
		if errStart = wait(ctx, interval); errStart != nil {
			break
		}
		col.Kill()
		restarted, err := startCollector(col.runner, kube.Kubeconfig(), s.url())
		if errStart = err; err != nil {
			break
		}
		col = restarted
	}
	if err := errors.Join(<-written, errStart); err != nil {
		return col, err
	}
	const quiet = 10 * time.Second
	return col, s.wait(ctx, sz.observations, quiet)
}
