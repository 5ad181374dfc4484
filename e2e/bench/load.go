// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

var loadScenario = scenario{
	name:  "load",
	title: "Under load",
	run:   runLoad,
}

const (
	cpuPerObservation = "processor time for a record"
	peakRSS           = "peak memory (RSS)"
	latencyHalf       = "latency, median"
	latencyTail       = "latency, 99th percentile"
	lost              = "records lost"
	surplus           = "records too many"
	unowned           = "records without all owners"
	requests          = "requests for owners"
	rate              = "rate that was reached"
)

// loadGoals are the goals of each setup that differ between the setups.
var loadGoals = map[string]map[string]*goal{
	inMemory: {cpuPerObservation: ratioAtMost(0.35), latencyTail: ratioAtMost(1)},
	direct:   {cpuPerObservation: ratioAtMost(0.4), peakRSS: ratioAtMost(0.65), latencyHalf: ratioAtMost(0.4), latencyTail: ratioAtMost(0.6)},
}

func loadFigures(setup string) []figure {
	figures := []figure{
		{Name: cpuPerObservation, Unit: "µs"},
		{Name: peakRSS, Unit: "MiB"},
		{Name: latencyHalf, Unit: "ms"},
		{Name: latencyTail, Unit: "ms"},
		{Name: lost, Goal: oursAtMost(0)},
		{Name: surplus, Goal: oursAtMost(0)},
		{Name: unowned, Goal: oursAtMost(0)},
		{Name: requests},
		{Name: rate, Unit: "1/s"},
	}
	for i := range figures {
		if goal := loadGoals[setup][figures[i].Name]; goal != nil {
			figures[i].Goal = goal
		}
	}
	return figures
}

func runLoad(ctx context.Context, b *benchmark) (result, error) {
	groups, err := b.compare(ctx, b.interleave, b.setups(baseline, direct, inMemory), loadFigures, func(ctx context.Context, c runner) (values, error) {
		run, err := b.loadOnce(ctx, c)
		return run.values(), err
	})
	return result{
		Groups: groups,
		Text: fmt.Sprintf(`A real API server has %s pods of %s Deployments in %s namespaces. The Collector knows none of them. After the Collector
has started its watch, %s observations are written at %s a second: %s new events, and %s updates that increase the count of an event.

- k8s_events has the batch processor and the exporter's default queue.
- Direct delivery: no batch processor and no exporter queue. The exporter sends each request of the receiver as it is. A batch is one request, or several of at most 1 MiB.
- Batch processor: this and the exporter's default queue acknowledge records before they have delivered them.`,
			thousands(b.size.pods), thousands(b.size.deployments), thousands(b.size.namespaces), thousands(b.size.observations), thousands(b.size.perSecond),
			thousands(b.size.observations-b.size.updates), thousands(b.size.updates)),
		Notes: []string{
			"Processor time is that of the whole Collector, from the start of the load to the arrival of the last record.",
			"Latency is the time from just before an event is written to the arrival of its record. It includes the time of the API server, and the timeout of a batch processor or queue.",
			"Requests for owners are GET and LIST of pods, ReplicaSets and Deployments, as the API server counts them.",
		},
	}, err
}

// loadRun is what came of the load with one Collector.
type loadRun struct {
	summary
	cpu       time.Duration
	peak      int64
	requests  requestCounts
	perSecond float64
}

func (r loadRun) values() values {
	return values{
		cpuPerObservation: float64(r.cpu.Microseconds()) / float64(max(1, r.delivered)),
		peakRSS:           mebibytes(r.peak),
		latencyHalf:       r.latency(0.5),
		latencyTail:       r.latency(0.99),
		lost:              float64(r.sent - r.delivered),
		surplus:           float64(r.surplus),
		unowned:           float64(r.delivered - r.owned),
		requests:          float64(r.requests.total()),
		rate:              r.perSecond,
	}
}

// loadOnce measures one Collector on a control plane of its own, since what an earlier run left
// behind would slow down the later ones.
func (b *benchmark) loadOnce(ctx context.Context, c runner) (run loadRun, err error) {
	kube, err := newCluster(ctx, b.controlPlane, b.size)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, kube.Stop()) }()
	return b.loadOn(ctx, kube, c)
}

func (b *benchmark) loadOn(ctx context.Context, kube *cluster, c runner) (run loadRun, err error) {
	s, err := newSink()
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.owners = belongsToDeployment
	col, err := startCollector(c, kube.Kubeconfig(), s.url())
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, col.stop()) }()
	if err := settle(ctx, kube, s); err != nil {
		return run, errors.Join(err, col.failure("does not watch"))
	}
	return b.measureLoad(ctx, kube, s, col)
}

// settle waits until the Collector watches and what it does at its start is over.
func settle(ctx context.Context, kube *cluster, s *sink) error {
	if _, err := kube.probeUntilReceived(ctx, s); err != nil {
		return err
	}
	// Long enough for late probes, which come later on a busy machine; and events' times are in whole
	// seconds, which k8s_events compares with that of its start.
	const pause = 1500 * time.Millisecond
	for quiet := time.Duration(0); quiet < pause; {
		if err := wait(ctx, pause-quiet); err != nil {
			return err
		}
		_, last := s.observations()
		quiet = time.Since(last)
	}
	s.reset()
	return nil
}

func (b *benchmark) measureLoad(ctx context.Context, kube *cluster, s *sink, col *collector) (run loadRun, err error) {
	before, errBefore := col.usage()
	asked, errAsked := kube.ownerRequests(ctx)
	if err := errors.Join(errBefore, errAsked); err != nil {
		return run, err
	}
	profiled := b.profile(ctx, col, "load", time.Duration(b.size.observations/b.size.perSecond)*time.Second)
	load := &traffic{cluster: kube, sink: s, size: b.size}
	if run.perSecond, err = load.run(ctx); err != nil {
		return run, err
	}
	if err := s.wait(ctx, b.size.observations, 5*time.Second); err != nil {
		return run, err
	}
	after, err := col.usage()
	if err != nil {
		return run, err
	}
	run.summary, run.cpu, run.peak = s.summary(), after.cpu-before.cpu, after.peakRSS
	total, err := kube.ownerRequests(ctx)
	run.requests = total.since(asked)
	b.logf("%s requests owners: %v", col.runner, run.requests)
	return run, errors.Join(err, <-profiled)
}

// belongsToDeployment reports whether a record about a pod of deploy has the whole and the right
// chain.
func belongsToDeployment(resource, log pcommon.Map) bool {
	return hasOwners(resource, log) &&
		otlpsink.Text(resource, "k8s.workload.kind") == "Deployment" &&
		otlpsink.Text(resource, "k8s.workload.name") == deploymentOf(otlpsink.Text(resource, "k8s.object.name"))
}
