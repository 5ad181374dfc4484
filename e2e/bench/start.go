// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var startScenario = scenario{
	name:  "start",
	title: "Start beside many events",
	run:   runStart,
}

const (
	timeToReady    = "`start_at: end`: time until ready"
	cpuToReady     = "`start_at: end`: processor time until ready"
	peakToReady    = "`start_at: end`: peak memory (RSS) until ready"
	timeToAll      = "`start_at: beginning`: time until all are delivered; k8s_events: until ready"
	cpuToAll       = "`start_at: beginning`: processor time until then"
	peakToAll      = "`start_at: beginning`: peak memory (RSS) until then"
	allLost        = "`start_at: beginning`: records lost"
	allUnowned     = "`start_at: beginning`: records without all owners"
	requestsForAll = "`start_at: beginning`: requests for owners"
)

func startFigures(string) []figure {
	return []figure{
		{Name: timeToReady, Unit: "s", Goal: ratioAtMost(0.2)},
		{Name: cpuToReady, Unit: "s", Goal: ratioAtMost(0.5)},
		{Name: peakToReady, Unit: "MiB", Goal: ratioAtMost(0.4)},
		{Name: timeToAll, Unit: "s", Goal: ratioAtMost(0.5)},
		{Name: cpuToAll, Unit: "s"},
		{Name: peakToAll, Unit: "MiB"},
		{Name: allLost, Goal: oursAtMost(0)},
		{Name: allUnowned, Goal: oursAtMost(0)},
		{Name: requestsForAll},
	}
}

// runStart uses one control plane throughout: starting a Collector leaves nothing behind but some
// probes.
func runStart(ctx context.Context, b *benchmark) (r result, err error) {
	kube, err := newCluster(ctx, b.controlPlane, b.size)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, kube.Stop()) }()
	existing, err := kube.writeEvents(ctx, b.size.existing)
	if err != nil {
		return r, err
	}
	b.logf("%d events exist", len(existing))
	r.Groups, err = b.compare(ctx, b.setups(baseline, inMemory, stored), startFigures, func(ctx context.Context, c runner) (values, error) {
		v, err := b.startAtEnd(ctx, kube, c)
		if err != nil {
			return nil, err
		}
		if c.name == b.ours.name {
			return v, b.startAtBeginning(ctx, kube, c, existing, v)
		}
		// It cannot start at the beginning. What it is compared with is what it takes until it is
		// of any use.
		v[timeToAll], v[cpuToAll], v[peakToAll] = v[timeToReady], v[cpuToReady], v[peakToReady]
		return v, nil
	})
	r.Text = fmt.Sprintf(`%d events about %d pods are in the API server before the Collector starts.`, len(existing), len(kube.pods))
	r.Notes = []string{
		"Ready is when the record of an event arrives that was created while the Collector started: one is created each 100 ms. Time counts from the start of the process.",
		"`k8s_events` cannot deliver what exists. Its time until ready stands beside our time until everything is delivered, with owners.",
		"That time of `k8s_events` is mostly waiting: it lists in pages of 500, at client-go's default of 5 requests a second after the first 10.",
	}
	return r, err
}

// writeEvents makes n events about the cluster's pods, and returns their names.
func (c *cluster) writeEvents(ctx context.Context, n int) ([]string, error) {
	names := make([]string, n)
	now := time.Now()
	err := inParallel(n, func(i int) error {
		pod := c.pods[i%len(c.pods)]
		e := kubeletEvent(fmt.Sprintf("%s.%x-%d", pod.Name, now.UnixNano(), i), pod, now)
		names[i] = e.Name
		_, err := c.client.CoreV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
		return err
	})
	return names, err
}

// startAtEnd measures how long it takes until a Collector is ready.
func (b *benchmark) startAtEnd(ctx context.Context, kube *cluster, c runner) (v values, err error) {
	s, err := newSink()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	col, err := startCollector(c, kube.Kubeconfig(), s.url())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, col.stop()) }()
	profiled := b.profile(ctx, col, "start", time.Second)
	ready, err := kube.probeUntilReceived(ctx, s)
	used, errUsage := col.usage()
	if err := errors.Join(err, errUsage); err != nil {
		return nil, errors.Join(err, col.failure("is not ready"))
	}
	return values{
		timeToReady: ready.Sub(col.Started).Seconds(), cpuToReady: used.cpu.Seconds(), peakToReady: mebibytes(used.peakRSS),
	}, <-profiled
}

// startAtBeginning measures how long it takes until a Collector has delivered what exists.
func (b *benchmark) startAtBeginning(ctx context.Context, kube *cluster, c runner, existing []string, v values) (err error) {
	s, err := newSink()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.owners = belongsToDeployment
	for _, name := range existing {
		s.note(name, 1, time.Now())
	}
	// Earlier probes exist as well, and so are delivered.
	probes, err := kube.client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	asked, errAsked := kube.ownerRequests(ctx)
	if err := errors.Join(err, errAsked); err != nil {
		return err
	}
	col, err := startCollector(c.with("{auth_type: kubeConfig, start_at: beginning}"), kube.Kubeconfig(), s.url())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, col.stop()) }()
	profiled := b.profile(ctx, col, "beginning", 3*time.Second)
	if err := s.wait(ctx, len(existing)+len(probes.Items), 10*time.Second); err != nil {
		return err
	}
	used, errUsage := col.usage()
	total, errAsked := kube.ownerRequests(ctx)
	sum, requests := s.summary(), total.since(asked)
	b.logf("%s asks for owners: %v", col.name, requests)
	v[timeToAll], v[cpuToAll], v[peakToAll] = sum.last.Sub(col.Started).Seconds(), used.cpu.Seconds(), mebibytes(used.peakRSS)
	v[allLost], v[allUnowned], v[requestsForAll] = float64(sum.sent-sum.delivered), float64(sum.delivered-sum.owned), float64(requests.total())
	return errors.Join(errUsage, errAsked, <-profiled)
}
