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

// outage is an end of the leader under load.
type outage struct {
	name    string
	live    int  // events that exist before the first start
	standby bool // another replica waits; otherwise, the leader is started again at once
	orderly bool // with SIGTERM
	load    size
}

// outages returns the ends of a leader that are measured.
func (b *benchmark) outages() []outage {
	all := []outage{
		{name: "kill -9 of the only replica", live: b.live[0], load: b.killed},
		{name: "restart of the only replica", live: b.live[0], orderly: true, load: b.handOver},
	}
	for _, live := range b.live {
		name := "kill -9 of the leader next to a standby, " + thousands(live) + " live"
		all = append(all, outage{name: name, live: live, standby: true, load: b.handOver})
	}
	return all
}

func (o outage) figures() []figure {
	figures := []figure{
		{Name: sinceEnd, Unit: "s"}, {Name: sinceFree, Unit: "s"}, {Name: sinceElection, Unit: "s", Goal: oursAtMost(5)},
		{Name: lost, Goal: oursAtMost(0)}, {Name: repeated}, {Name: unrecognized, Goal: oursAtMost(0)},
		{Name: unowned, Goal: oursAtMost(0)}, {Name: nextRSS, Unit: "MiB"},
	}
	for i := range figures {
		if o.orderly && figures[i].Name == repeated {
			figures[i].Goal = oursAtMost(0)
		}
	}
	return suffixed(figures, ", "+o.name)
}

func runHA(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.setups(elected)
	if err != nil {
		return r, err
	}
	m := measurements{}
	if err := b.atEachRate(ctx, m, setups); err != nil {
		return r, err
	}
	var figures []figure
	for _, perSecond := range b.rates {
		figures = append(figures, rateFigures(perSecond)...)
	}
	for _, o := range b.outages() {
		figures = append(figures, o.figures()...)
		err := m.interleave(ctx, b, b.rounds, setups, ", "+o.name, func(ctx context.Context, c runner) (values, error) {
			return b.outageOnce(ctx, c, o)
		})
		if err != nil {
			return r, err
		}
	}
	r.Groups = m.groups(setups, func(string) []figure { return figures })
	r.Text = fmt.Sprintf(`The Collector has leader election, no storage, no batch processor and no exporter queue, as with the chart's default
`+"`mode: ha`"+`. The first rows are of one replica with the load of the section "At the rates of most clusters".

In the other rows, the API server has %s pods, and %s events unless the row names another number. The only replica is killed at
%s events a second and started again at once; it gets SIGTERM at %s a second and is started again; or it is the leader, and is
killed at this rate next to a standby.`,
		thousands(b.size.pods), thousands(b.live[0]), thousands(b.killed.perSecond), thousands(b.handOver.perSecond))
	r.Notes = []string{
		"The elector does not give its Lease up when it ends, so a next leader waits until nobody has renewed it for 15 s, and looks at it every 2 s to 4.4 s.",
		"An event counts as lost if it has no record 30 s after the last record arrived.",
	}
	return r, nil
}

// outageOnce measures one end of a leader.
func (b *benchmark) outageOnce(ctx context.Context, c runner, o outage) (values, error) {
	if b.lease != "" {
		c = c.with(b.lease)
	}
	return b.onCluster(ctx, b.size, func(kube *cluster) (values, error) {
		if _, err := kube.writeEvents(ctx, o.live); err != nil {
			return nil, err
		}
		return kube.onRig(c, func(r *rig) (v values, err error) {
			if err := r.settle(ctx); err != nil {
				return nil, err
			}
			var next *collector
			if o.standby {
				if next, err = startCollector(c, kube.Kubeconfig(), r.sink.url()); err != nil {
					return nil, err
				}
				defer func() { err = errors.Join(err, next.stop()) }()
				if err := wait(ctx, 2*time.Second); err != nil {
					return nil, err
				}
			}
			written := make(chan error, 1)
			go func() {
				_, err := r.write(ctx, steady(o.load))
				written <- err
			}()
			v, err = o.handOver(ctx, r, next)
			if err := errors.Join(err, <-written); err != nil {
				return nil, err
			}
			return v, o.account(ctx, r, v)
		})
	})
}

// handOver ends the leader, and waits for a record of the next one. The rig then has the next one.
func (o outage) handOver(ctx context.Context, r *rig, next *collector) (values, error) {
	if err := wait(ctx, outageAfter); err != nil {
		return nil, err
	}
	ended, end := time.Now(), r.col.Kill
	if o.orderly {
		end = r.col.stop
	}
	err := end()
	before, errLease := r.kube.lease(ctx)
	// The sink may still read the last request of the leader. The Lease lasts for much longer than this.
	if err := errors.Join(err, errLease, wait(ctx, 200*time.Millisecond)); err != nil {
		return nil, err
	}
	r.sink.forgetFirst()
	if next != nil {
		r.col = next
	} else if err := r.restart(); err != nil {
		return nil, err
	}
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
func (o outage) account(ctx context.Context, r *rig, v values) error {
	if err := r.sink.wait(ctx, o.load.observations, 30*time.Second); err != nil {
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
