// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	sinceEnd      = "time from the end of the leader to the next record"
	sinceFree     = "time from the end of its Lease to the next record"
	sinceElection = "time from the election of the next leader to its first record"
	nextRSS       = "peak memory (RSS) of the next leader"
	// outageAfter is how long the load lasts before the leader ends.
	outageAfter = 2 * time.Second
)

// afterOutage is the suffix of the figures of a change of the leader while there are so many events.
func afterOutage(live int) string { return ", kill -9 of the leader, " + thousands(live) + " live" }

func outageFigures(live int) []figure {
	return suffixed([]figure{
		{Name: sinceEnd, Unit: "s"}, {Name: sinceFree, Unit: "s"}, {Name: sinceElection, Unit: "s", Goal: oursAtMost(5)},
		{Name: lost, Goal: oursAtMost(0)}, {Name: repeated}, {Name: unrecognized, Goal: oursAtMost(0)},
		{Name: unowned, Goal: oursAtMost(0)}, {Name: nextRSS, Unit: "MiB"},
	}, afterOutage(live))
}

func runHA(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.setups(elected)
	if err != nil {
		return r, err
	}
	m := measurements{}
	var figures []figure
	for _, live := range b.live {
		figures = append(figures, outageFigures(live)...)
		err := m.interleave(ctx, b, b.rounds, setups, afterOutage(live), func(ctx context.Context, c runner) (values, error) {
			return b.outageOnce(ctx, c, live)
		})
		if err != nil {
			return r, err
		}
	}
	r.Groups = m.groups(setups, func(string) []figure { return figures })
	r.Text = fmt.Sprintf(`The Collector has leader election, no storage, no batch processor and no exporter queue, as with the chart's default
`+"`mode: ha`"+`. The API server has %s pods. The leader is killed at %s events a second next to a standby.`,
		thousands(b.size.pods), thousands(b.handOver.perSecond))
	r.Notes = []string{
		"The elector does not give its Lease up when it ends, so a next leader waits until nobody has renewed it for 15 s, and looks at it every 2 s to 4.4 s.",
		"An event counts as lost if it has no record 30 s after the last record arrived.",
	}
	return r, nil
}

// outageOnce measures one end of a leader under load, next to a standby.
func (b *benchmark) outageOnce(ctx context.Context, c runner, live int) (values, error) {
	if b.lease != "" {
		c = c.with(b.lease)
	}
	return b.onCluster(ctx, b.size, func(kube *cluster) (values, error) {
		if err := kube.writeEvents(ctx, live); err != nil {
			return nil, err
		}
		return kube.onRig(c, func(r *rig) (v values, err error) {
			if err := r.settle(ctx); err != nil {
				return nil, err
			}
			next, err := startCollector(c, kube.Kubeconfig(), r.sink.url())
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, next.stop()) }()
			if err := wait(ctx, 2*time.Second); err != nil {
				return nil, err
			}
			written := make(chan error, 1)
			go func() {
				_, err := r.write(ctx, steady(b.handOver))
				written <- err
			}()
			v, err = r.handOver(ctx, next)
			if err := errors.Join(err, <-written); err != nil {
				return nil, err
			}
			return v, r.account(ctx, b.handOver.observations, v)
		})
	})
}

// handOver kills the leader, and waits for a record of the next one. The rig then has the next one.
func (r *rig) handOver(ctx context.Context, next *collector) (values, error) {
	if err := wait(ctx, outageAfter); err != nil {
		return nil, err
	}
	ended, err := time.Now(), r.col.Kill()
	before, errLease := r.kube.lease(ctx)
	// The sink may still read the last request of the leader. The Lease lasts for much longer than this.
	if err := errors.Join(err, errLease, wait(ctx, 200*time.Millisecond)); err != nil {
		return nil, err
	}
	r.sink.forgetFirst()
	r.col = next
	err = until(ctx, 2*time.Minute, "a record of the next leader", func() bool { return !r.sink.firstArrival().IsZero() })
	now, errLease := r.kube.lease(ctx)
	if err := errors.Join(err, errLease); err != nil {
		return nil, errors.Join(err, r.col.failure("emits nothing"))
	}
	if *now.Spec.HolderIdentity == *before.Spec.HolderIdentity {
		return nil, r.col.failure("emits, but does not lead")
	}
	first, free := r.sink.firstArrival(), before.Spec.RenewTime.Add(time.Duration(*before.Spec.LeaseDurationSeconds)*time.Second)
	return values{
		sinceEnd: first.Sub(ended).Seconds(), sinceFree: first.Sub(free).Seconds(),
		sinceElection: first.Sub(now.Spec.AcquireTime.Time).Seconds(),
	}, nil
}

// account waits for all records and counts them.
func (r *rig) account(ctx context.Context, observations int, v values) error {
	if err := r.await(ctx, observations, 30*time.Second); err != nil {
		return err
	}
	if err := wait(ctx, time.Second); err != nil { // for repeated records that are late
		return err
	}
	used, err := r.col.usage()
	for name, value := range r.sink.summary().values() {
		v[name] = value
	}
	v[nextRSS] = mebibytes(used.peakRSS)
	return err
}

// lease returns that of the election.
func (c *cluster) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	return c.client.CoordinationV1().Leases(metav1.NamespaceDefault).Get(ctx, leaseName, metav1.GetOptions{})
}
