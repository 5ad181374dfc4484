// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	idleRequests = "requests other than the watch"
	idleCPU      = "processor time in a minute"
	// idleLive is how many events exist. They are from before the start.
	idleLive = 2000
	// idleSettle is how long what a Collector does after its start may take.
	idleSettle = 5 * time.Second
)

func runIdle(ctx context.Context, b *benchmark) (r result, err error) {
	r.Groups, err = b.compare(ctx, 1, []string{baseline, direct}, func(string) []figure {
		return []figure{
			{Name: idleRequests}, // One when the server ends a watch, after 5 to 10 minutes.
			{Name: idleCPU, Unit: "ms", Goal: ratioAtMost(1)},
			{Name: peakRSS, Unit: "MiB", Goal: ratioAtMost(0.9)},
		}
	}, b.idleOnce)
	r.Text = fmt.Sprintf(`The cluster has %s events, and no other comes for %s. There is no leader election. The first %s after the
start of the watch are not measured. Each Collector is measured once.`, thousands(idleLive), b.idle, idleSettle)
	return r, err
}

// idleOnce looks at one Collector that has nothing to do.
func (b *benchmark) idleOnce(ctx context.Context, c runner) (values, error) {
	resources := append([]string{"events"}, ownerResources...)
	return b.onCluster(ctx, b.size, func(kube *cluster) (values, error) {
		if err := kube.writeEvents(ctx, idleLive); err != nil {
			return nil, err
		}
		return kube.onRig(c, func(r *rig) (values, error) {
			if err := errors.Join(r.settle(ctx), wait(ctx, idleSettle)); err != nil {
				return nil, err
			}
			asked, errAsked := kube.reads(ctx, resources...)
			before, errBefore := r.col.usage()
			errWait := wait(ctx, b.idle)
			after, errAfter := r.col.usage()
			total, errTotal := kube.reads(ctx, resources...)
			return values{
				idleRequests: total - asked, peakRSS: mebibytes(after.peakRSS),
				idleCPU: milliseconds(after.cpu-before.cpu) * float64(time.Minute) / float64(b.idle),
			}, errors.Join(errAsked, errBefore, errWait, errAfter, errTotal)
		})
	})
}
