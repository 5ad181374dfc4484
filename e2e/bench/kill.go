// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func killFigures(string) []figure {
	return []figure{
		{Name: lost, Goal: oursAtMost(0)}, {Name: repeated}, {Name: unrecognized, Goal: oursAtMost(0)}, {Name: unowned},
		{Name: latencyMost, Unit: "ms"},
	}
}

func runKill(ctx context.Context, b *benchmark) (r result, err error) {
	r.Groups, err = b.compare(ctx, b.rounds, []string{baseline, direct}, killFigures, b.killOnce)
	r.Text = fmt.Sprintf(`The load is that of the section "Under load", with %s observations at %s a second. The benchmark kills the
Collector %d times, at regular intervals, and restarts it at once with the same configuration and the same storage.`,
		thousands(b.killed.observations), thousands(b.killed.perSecond), b.kills)
	r.Notes = []string{
		"The benchmark waits until no record has arrived for 10 s. It then counts an observation as lost if it has no record.",
		"The greatest latency includes the time without a Collector, but only if the events of that time are not lost.",
		"An exporter's queue in memory, and the batch processor, acknowledge records before they have delivered them. A kill loses these records, with any receiver.",
	}
	return r, err
}

func (b *benchmark) killOnce(ctx context.Context, c runner) (values, error) {
	return b.onCluster(ctx, b.killed, func(kube *cluster) (values, error) {
		return kube.onRig(c, func(r *rig) (values, error) {
			if err := r.settle(ctx); err != nil {
				return nil, err
			}
			written := make(chan error, 1)
			go func() {
				_, err := r.write(ctx, steady(b.killed))
				written <- err
			}()
			interval := time.Duration(b.killed.observations) * time.Second / time.Duration(b.killed.perSecond*(b.kills+1))
			var err error
			for range b.kills {
				if err = errors.Join(wait(ctx, interval), r.col.Kill()); err != nil {
					break
				}
				if err = r.restart(); err != nil {
					break
				}
			}
			if err := errors.Join(<-written, err, r.await(ctx, b.killed.observations, 10*time.Second)); err != nil {
				return nil, err
			}
			return r.sink.summary().values(), nil
		})
	})
}

// restart starts a Collector that has ended again.
func (r *rig) restart() error {
	restarted, err := startCollector(r.col.runner, r.kube.Kubeconfig(), r.sink.url())
	if err == nil {
		r.col = restarted
	}
	return err
}
