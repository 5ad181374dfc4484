// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var namespacesScenario = scenario{name: "namespaces", title: "A cold start in many namespaces", run: runNamespaces}

const (
	coldComplete = "records with all owners"
	coldTagged   = "records with the tag"
	coldRequests = "requests"
	coldEach     = "requests for each namespace"
	coldObjects  = "objects read for each that was needed"
	coldCPU      = "processor time"
	coldRatio    = "latency, 99th percentile, over that of the fewest namespaces"

	// lookupTimeout is the receiver's default.
	lookupTimeout = 2 * time.Second
)

// cold is how much the scenario namespaces does.
type cold struct {
	real, simulated   sizes           // numbers of namespaces; ratios are over the first of them
	delays            []time.Duration // of each answer of the simulated API server
	deployments, pods int             // in each namespace
	perSecond         int
}

var fullCold = cold{
	real: sizes{10, 200}, simulated: sizes{10, 1000}, delays: []time.Duration{0, 50 * time.Millisecond},
	deployments: 1, pods: 10, perSecond: 1000,
}

// size is what a real API server has.
func (c cold) size(namespaces int) size {
	return size{
		namespaces: namespaces, deployments: namespaces * c.deployments, pods: namespaces * c.pods, retired: 1,
		observations: namespaces * c.pods, perSecond: c.perSecond,
	}
}

// fleet is what a simulated one has.
func (c cold) fleet(namespaces int) *replay.Fleet {
	return &replay.Fleet{Namespaces: namespaces, Deployments: namespaces * c.deployments, Pods: namespaces * c.pods, Retired: 1}
}

// needed is how many objects are on the chains of all pods.
func (c cold) needed(namespaces int) int { return namespaces * (c.pods + 2*c.deployments) }

func runNamespaces(ctx context.Context, b *benchmark) (result, error) {
	simulated, err := b.coldSimulated(ctx)
	if err != nil {
		return result{}, err
	}
	onReal, err := b.coldReal(ctx)
	return result{
		Figures: append(onReal, simulated...),
		Text: fmt.Sprintf(`Each Deployment has two ReplicaSets, one of them without pods. Each namespace has %d of these Deployments, and %d pods.
The Collector knows none of these objects. After it has started its watch, each pod has one event, in random order, %d a second in all. The Collector has the
default settings and, as the README recommends, `+"`file_storage`"+`, no batch processor and no exporter queue. A real API server has up to %s namespaces. A
simulated one has up to %s, and takes 0 or 50 ms for each response.`,
			b.cold.deployments, b.cold.pods, b.cold.perSecond, thousands(b.cold.real.most()), thousands(b.cold.simulated.most())),
		Notes: []string{
			"Latency is from just before an event is written to the arrival of its record.",
			"Requests are GET and LIST of pods, ReplicaSets and Deployments. A list is one for each page. Those to the simulated API server include discovery.",
		},
	}, err
}

// most is the greatest of the sizes.
func (s sizes) most() (most int) {
	for _, n := range s {
		most = max(most, n)
	}
	return most
}

// variant is one that the scenario measures.
type variant struct {
	suffix     string // of its figures
	namespaces int
	delay      time.Duration
	fewest     bool // whether the others of the same delay are compared with it
}

func variantsOf(where string, counts sizes, delay time.Duration) (all []variant) {
	for i, n := range counts {
		suffix := ", " + thousands(n) + " namespaces" + where
		if delay > 0 {
			suffix += fmt.Sprintf(", %d ms", delay.Milliseconds())
		}
		all = append(all, variant{suffix, n, delay, i == 0})
	}
	return all
}

// coldFigures are those of some variants.
func coldFigures(variants []variant) (figures []figure) {
	for _, v := range variants {
		tail, ratio := (*goal)(nil), oursAtMost(1.5)
		if v.delay > 0 {
			tail, ratio = oursAtMost(milliseconds(lookupTimeout)), nil
		}
		some := []figure{
			{Name: coldComplete, Unit: "%", Goal: oursAtLeast(100)},
			{Name: coldTagged, Unit: "%", Goal: oursAtLeast(100)},
			{Name: latencyHalf, Unit: "ms"},
			{Name: latencyTail, Unit: "ms", Goal: tail},
			{Name: coldRatio, Goal: ratio},
			{Name: coldRequests, Goal: oursAtMost(float64(3*v.namespaces + 20))},
			{Name: coldEach},
			{Name: coldObjects, Goal: oursAtMost(5)},
			{Name: coldCPU, Unit: "ms"},
			{Name: peakRSS, Unit: "MiB"},
		}
		for _, f := range some {
			f.Name += v.suffix
			figures = append(figures, f)
		}
	}
	return figures
}

// coldRounds measures the variants in turn, round after round.
func (b *benchmark) coldRounds(ctx context.Context, variants []variant, measure func(context.Context, variant) (values, error)) ([]figure, error) {
	figures := coldFigures(variants)
	for round := range b.rounds {
		tails := map[time.Duration]float64{}
		for _, variant := range variants {
			v, err := measure(ctx, variant)
			if err != nil {
				return nil, fmt.Errorf("round %d%s: %w", round+1, variant.suffix, err)
			}
			if variant.fewest {
				tails[variant.delay] = v[latencyTail]
			} else if tails[variant.delay] > 0 {
				v[coldRatio] = v[latencyTail] / tails[variant.delay]
			}
			b.logf("round %d%s: %v", round+1, variant.suffix, v)
			add(figures, v.suffixed(variant.suffix), true)
		}
	}
	return measured(figures), nil
}

// coldSimulated measures with simulated API servers.
func (b *benchmark) coldSimulated(ctx context.Context) ([]figure, error) {
	var variants []variant
	for _, delay := range b.cold.delays {
		variants = append(variants, variantsOf(" (simulated)", b.cold.simulated, delay)...)
	}
	return b.coldRounds(ctx, variants, b.coldSimulatedOnce)
}

func (b *benchmark) coldSimulatedOnce(ctx context.Context, variant variant) (v values, err error) {
	fleet := b.cold.fleet(variant.namespaces)
	r, err := newRig(replay.Options{Fleet: fleet, Latency: variant.delay})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	owned := countOwned(r.sink, func(deployment string) string {
		number, _ := strconv.Atoi(strings.TrimPrefix(deployment, "app-"))
		return "manifest-" + strconv.Itoa(number)
	})
	if err := r.startCollector(ctx, b.ours.recommended(r.directory)); err != nil {
		return nil, err
	}
	if err := wait(ctx, b.playback.settle/5); err != nil {
		return nil, err
	}
	before, err := r.col.usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	changes := b.cold.eachPodOnce(fleet, began)
	if err := r.releaseAll(ctx, began, changes); err != nil {
		return nil, err
	}
	if err := r.sink.wait(ctx, len(changes), 5*time.Second); err != nil {
		return nil, err
	}
	asked := r.server.Requests()
	b.logf("requests%s: %v", variant.suffix, asked)
	requests := asked[replay.OwnerGet] + asked[replay.OwnerList] + asked[replay.Discovery]
	return b.coldValues(variant, r.sink, r.col, owned, before, requests, r.server.Objects())
}

// eachPodOnce is one event of each pod, in random order.
func (c cold) eachPodOnce(fleet *replay.Fleet, begin time.Time) (all []change) {
	for i, pod := range rand.New(rand.NewPCG(1, 2)).Perm(fleet.Pods) {
		at := time.Duration(i) * time.Second / time.Duration(c.perSecond)
		all = append(all, change{at, watch.Added, fleet.Started(pod, begin.Add(at))})
	}
	return all
}

// coldReal measures with real API servers, all of which run at the same time.
func (b *benchmark) coldReal(ctx context.Context) (figures []figure, err error) {
	clusters := map[int]*cluster{}
	defer func() {
		for _, kube := range clusters {
			err = errors.Join(err, kube.Stop())
		}
	}()
	for _, n := range b.cold.real {
		if clusters[n], err = newCluster(ctx, b.controlPlane, b.cold.size(n)); err != nil {
			delete(clusters, n)
			return nil, err
		}
		clusters[n].shuffle()
	}
	return b.coldRounds(ctx, variantsOf("", b.cold.real, 0), func(ctx context.Context, variant variant) (values, error) {
		return b.coldRealOnce(ctx, clusters[variant.namespaces], variant)
	})
}

func (b *benchmark) coldRealOnce(ctx context.Context, kube *cluster, variant variant) (v values, err error) {
	s, err := newSink()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	owned := countOwned(s, func(deployment string) string { return deployment })
	col, stop, err := b.startRecommended(ctx, kube, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	asked, errAsked := kube.ownerRequests(ctx)
	read, errRead := kube.listedOwners(ctx)
	before, errBefore := col.usage()
	if err := errors.Join(errAsked, errRead, errBefore); err != nil {
		return nil, err
	}
	load := &traffic{cluster: kube, sink: s, size: b.cold.size(variant.namespaces)}
	if _, err := load.run(ctx); err != nil {
		return nil, err
	}
	if err := s.wait(ctx, load.size.observations, 5*time.Second); err != nil {
		return nil, err
	}
	total, errAsked := kube.ownerRequests(ctx)
	listed, errRead := kube.listedOwners(ctx)
	if err := errors.Join(errAsked, errRead); err != nil {
		return nil, err
	}
	requests := total.since(asked)
	b.logf("requests%s: %v", variant.suffix, requests)
	return b.coldValues(variant, s, col, owned, before, requests.total(), listed-read+requests.gets())
}

// startRecommended starts the Collector as the README recommends, and waits until it watches.
func (b *benchmark) startRecommended(ctx context.Context, kube *cluster, s *sink) (col *collector, stop func() error, err error) {
	directory, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, nil, err
	}
	if col, err = startCollector(b.ours.recommended(directory), kube.Kubeconfig(), s.url()); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(directory))
	}
	stop = func() error { return errors.Join(col.stop(), os.RemoveAll(directory)) }
	if err := kube.awaitWatching(ctx, s); err != nil {
		return nil, nil, errors.Join(err, col.failure("does not watch"), stop())
	}
	return col, stop, nil
}

// coldValues are what one Collector did.
func (b *benchmark) coldValues(variant variant, s *sink, col *collector, owned *ownedCounts, before usage, requests, objects int) (values, error) {
	after, err := col.usage()
	sum := s.summary()
	return values{
		coldComplete: percent(int(owned.complete.Load()), sum.sent),
		coldTagged:   percent(int(owned.tagged.Load()), sum.sent),
		latencyHalf:  sum.latency(0.5),
		latencyTail:  sum.latency(0.99),
		coldRequests: float64(requests),
		coldEach:     float64(requests) / float64(variant.namespaces),
		coldObjects:  float64(objects) / float64(b.cold.needed(variant.namespaces)),
		coldCPU:      milliseconds(after.cpu - before.cpu),
		peakRSS:      mebibytes(after.peakRSS),
	}, err
}

// ownedCounts are numbers of records, each of another observation.
type ownedCounts struct{ complete, tagged atomic.Int64 }

// countOwned counts the records of a sink that have the chain to the Deployment, and of these the
// ones that have the tag that belongs to it.
func countOwned(s *sink, tagOf func(deployment string) string) *ownedCounts {
	counts := &ownedCounts{}
	s.owners = func(resource, log pcommon.Map) bool {
		deployment := otlpsink.Text(resource, "k8s.deployment.name")
		whole := hasOwners(resource, log) && otlpsink.Text(resource, "k8s.workload.kind") == "Deployment"
		if whole {
			counts.complete.Add(1)
		}
		if deployment != "" && otlpsink.Text(resource, "tilt.manifest") == tagOf(deployment) {
			counts.tagged.Add(1)
		}
		return whole
	}
	return counts
}
