// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	sinceEnd      = "time from the end of the leader to the next record"
	sinceFree     = "time from the end of its Lease to the next record"
	sinceElection = "time from the election of the next leader to its first record"
	nextRSS       = "peak memory (RSS) of the next leader"
)

// outage is an end of the leader under load.
type outage struct {
	part, name string
	live       int  // events that exist before the first start
	standby    bool // another replica waits; otherwise, the leader is started again at once
	orderly    bool // with SIGTERM
	load       size
	after      time.Duration // since the begin of the load
}

func (o outage) figures() []figure {
	figures := []figure{
		{Name: sinceEnd, Unit: "s"}, {Name: sinceFree, Unit: "s"}, {Name: sinceElection, Unit: "s", Goal: oursAtMost(5)},
		{Name: lost, Goal: oursAtMost(0)}, {Name: killRepeated}, {Name: killUnrecognized, Goal: oursAtMost(0)},
		{Name: unowned, Goal: oursAtMost(0)}, {Name: nextRSS, Unit: "MiB"},
	}
	for i := range figures {
		if o.orderly && figures[i].Name == killRepeated {
			figures[i].Goal = oursAtMost(0)
		}
		figures[i].Name += ", " + o.name
	}
	return figures
}

// outageOnce measures one end of a leader on a control plane of its own.
func (b *benchmark) outageOnce(ctx context.Context, c runner, o outage) (v values, err error) {
	kube, err := newCluster(ctx, b.controlPlane, b.size)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kube.Stop()) }()
	return b.outageOn(ctx, kube, c, o)
}

func (b *benchmark) outageOn(ctx context.Context, kube *cluster, c runner, o outage) (v values, err error) {
	if _, err := kube.writeEvents(ctx, o.live); err != nil {
		return nil, err
	}
	s, err := newSink()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.owners = belongsToDeployment
	leader, err := startCollector(c, kube.Kubeconfig(), s.url())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, leader.stop()) }()
	if err := settle(ctx, kube, s); err != nil {
		return nil, errors.Join(err, leader.failure("does not watch"))
	}
	var next *collector
	defer func() {
		if next != nil {
			err = errors.Join(err, next.stop())
		}
	}()
	if o.standby {
		if next, err = startCollector(c, kube.Kubeconfig(), s.url()); err != nil {
			return nil, err
		}
		if err := wait(ctx, b.playback.settle); err != nil {
			return nil, err
		}
	}
	written := make(chan error, 1)
	go func() {
		_, err := (&traffic{cluster: kube, sink: s, size: o.load}).run(ctx)
		written <- err
	}()
	v, next, err = o.handOver(ctx, kube, s, leader, next)
	if err := errors.Join(err, <-written); err != nil {
		return nil, err
	}
	return v, o.account(ctx, s, next, v)
}

// handOver ends the leader, and waits for a record of the next one.
func (o outage) handOver(ctx context.Context, kube *cluster, s *sink, leader, next *collector) (values, *collector, error) {
	if err := wait(ctx, o.after); err != nil {
		return nil, next, err
	}
	ended := time.Now()
	if o.orderly {
		if err := leader.stop(); err != nil {
			return nil, next, err
		}
	} else {
		leader.Kill()
	}
	before, err := kube.lease(ctx)
	// The sink may still read the last request of the leader. The Lease lasts for much longer than this.
	if err := errors.Join(err, wait(ctx, 200*time.Millisecond)); err != nil {
		return nil, next, err
	}
	s.forgetFirst()
	if next == nil {
		if next, err = startCollector(leader.runner, kube.Kubeconfig(), s.url()); err != nil {
			return nil, nil, err
		}
	}
	err = until(ctx, 2*time.Minute, "a record of the next leader", func() bool { return !s.firstArrival().IsZero() })
	if err != nil {
		return nil, next, errors.Join(err, next.failure("emits nothing"))
	}
	now, err := kube.lease(ctx)
	if err != nil {
		return nil, next, err
	}
	if *now.Spec.HolderIdentity == *before.Spec.HolderIdentity {
		return nil, next, next.failure("emits, but does not lead")
	}
	first, free := s.firstArrival(), before.Spec.RenewTime.Add(time.Duration(*before.Spec.LeaseDurationSeconds)*time.Second)
	return values{
		sinceEnd: first.Sub(ended).Seconds(), sinceFree: first.Sub(free).Seconds(), sinceElection: first.Sub(now.Spec.AcquireTime.Time).Seconds(),
	}, next, nil
}

// account waits for all records and counts them.
func (o outage) account(ctx context.Context, s *sink, next *collector, v values) error {
	if err := s.wait(ctx, o.load.observations, 30*time.Second); err != nil {
		return err
	}
	if err := wait(ctx, time.Second); err != nil { // for repeated records that are late
		return err
	}
	used, err := next.usage()
	sum := s.summary()
	v[lost], v[unowned], v[nextRSS] = float64(sum.sent-sum.delivered), float64(sum.delivered-sum.owned), mebibytes(used.peakRSS)
	v[killRepeated], v[killUnrecognized] = float64(sum.recognizable), float64(sum.surplus-sum.recognizable)
	return err
}

// lease returns that of the election.
func (c *cluster) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	return c.client.CoordinationV1().Leases(metav1.NamespaceDefault).Get(ctx, leaseName, metav1.GetOptions{})
}
