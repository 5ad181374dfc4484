// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var startScenario = scenario{
	name:  "start",
	title: "Start with many existing events",
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

// fullStarts is how often each configuration of ours starts.
const fullStarts = 10

func startFigures(setup string) []figure {
	figures := []figure{
		{Name: timeToReady, Unit: "s", Goal: mostRunsAtMost(0.06)},
		{Name: cpuToReady, Unit: "s", Goal: ratioAtMost(0.5)},
		{Name: peakToReady, Unit: "MiB", Goal: ratioAtMost(0.38)},
		{Name: timeToAll, Unit: "s", Goal: ratioAtMost(0.5)},
		{Name: cpuToAll, Unit: "s"},
		{Name: peakToAll, Unit: "MiB"},
		{Name: allLost, Goal: oursAtMost(0)},
		{Name: allUnowned, Goal: oursAtMost(0)},
		{Name: requestsForAll},
	}
	if setup == restarted { // It never starts at the beginning again.
		return figures[:3]
	}
	return figures
}

// restarted is the setup with the storage of an earlier run of the Collector.
const restarted = "restart"

// startSetups returns the setups that the scenario measures, and what removes their storage. The
// setups of ours start several times.
func (b *benchmark) startSetups() (setups []setup, remove func() error, err error) {
	directory, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, nil, err
	}
	setups = b.setups(baseline, stored, inMemory)
	setups = append(setups, setup{
		name: restarted, title: "With storage, after a restart", column: kubeEventsReceiver, runner: b.ours,
		configure: func(c runner, _ string) runner { return c.storing(directory) },
	})
	for i := range setups {
		if setups[i].name != baseline {
			setups[i].runs = b.starts
		}
	}
	setups, err = b.onlyChosen(setups)
	return setups, func() error { return os.RemoveAll(directory) }, err
}

// runStart uses one control plane for all runs: a start of a Collector leaves only some probes.
func runStart(ctx context.Context, b *benchmark) (r result, err error) {
	setups, remove, err := b.startSetups()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, remove()) }()
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
	rounds, err := b.startRounds(ctx, kube, setups, existing)
	if err != nil {
		return r, err
	}
	for _, s := range setups {
		if s.name == baseline {
			continue
		}
		r.Groups = append(r.Groups, s.group(startFigures(s.name), rounds))
	}
	r.Text = fmt.Sprintf(`%s events about %s pods are in the API server before the Collector starts.`, thousands(len(existing)), thousands(len(kube.pods)))
	r.Notes = append(r.Notes,
		"The Collector is ready when the record of an event arrives that was created after the start of the process: one event is created every 100 ms. After a restart, an event that the Collector missed counts, too. Time is measured from the start of the process.",
		"`k8s_events` mostly waits: it lists in pages of 500, with client-go's default limit of 5 requests a second after the first 10.",
	)
	return r, nil
}

// startRounds measures starts at the end, and then starts at the beginning.
func (b *benchmark) startRounds(ctx context.Context, kube *cluster, setups []setup, existing []string) (map[string][]values, error) {
	for _, s := range setups {
		if s.name == restarted { // The first start has no storage to read.
			if _, err := b.startAtEnd(ctx, kube, s.configure(s.runner, "")); err != nil {
				return nil, err
			}
		}
	}
	rounds, err := b.interleave(ctx, setups, func(ctx context.Context, c runner) (values, error) {
		return b.startAtEnd(ctx, kube, c)
	})
	if err != nil {
		return nil, err
	}
	var fromBeginning []setup
	for _, s := range setups {
		if s.name == inMemory || s.name == stored {
			s.runs = 0
			fromBeginning = append(fromBeginning, s)
		}
	}
	all, err := b.interleave(ctx, fromBeginning, func(ctx context.Context, c runner) (values, error) {
		return b.startAtBeginning(ctx, kube, c, existing)
	})
	for name, v := range all {
		rounds[name] = append(rounds[name], v...)
	}
	// k8s_events cannot start at the beginning: its time until ready is what users wait for.
	for _, v := range rounds[baseline] {
		v[timeToAll], v[cpuToAll], v[peakToAll] = v[timeToReady], v[cpuToReady], v[peakToReady]
	}
	return rounds, err
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
func (b *benchmark) startAtBeginning(ctx context.Context, kube *cluster, c runner, existing []string) (v values, err error) {
	s, err := newSink()
	if err != nil {
		return nil, err
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
		return nil, err
	}
	col, err := startCollector(c.with("{auth_type: kubeConfig, start_at: beginning}"), kube.Kubeconfig(), s.url())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, col.stop()) }()
	profiled := b.profile(ctx, col, "beginning", 3*time.Second)
	if err := s.wait(ctx, len(existing)+len(probes.Items), 10*time.Second); err != nil {
		return nil, err
	}
	used, errUsage := col.usage()
	total, errAsked := kube.ownerRequests(ctx)
	sum, requests := s.summary(), total.since(asked)
	b.logf("%s requests owners: %v", col.runner, requests)
	return values{
		timeToAll: sum.last.Sub(col.Started).Seconds(), cpuToAll: used.cpu.Seconds(), peakToAll: mebibytes(used.peakRSS),
		allLost: float64(sum.sent - sum.delivered), allUnowned: float64(sum.delivered - sum.owned), requestsForAll: float64(requests.total()),
	}, errors.Join(errUsage, errAsked, <-profiled)
}
