// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

// The storm is one that was seen: 145,000 events in 5 minutes, while 50,000 pods came and went.
const (
	stormTime = 5 * time.Minute
	stormPods = 50_000
	// stormTick is how often events are released: those of recorders come in bursts.
	stormTick = 5 * time.Millisecond
	// defaultCache is the receiver's default.
	defaultCache = 100_000
)

const (
	stormOwned    = "records with all owners"
	stormRequests = "requests for owners for each 50 records"
	stormSingles  = "single reads among them"
	stormCached   = "objects in the cache"
	stormCPU      = "processors kept busy"
	latencyMost   = "latency, greatest"
)

var stormScenario = scenario{name: "storm", title: "A storm: 145,000 events of 50,000 pods that come and go in 5 minutes", run: runStorm}

func runStorm(ctx context.Context, b *benchmark) (result, error) {
	var figures []figure
	for _, c := range []struct {
		name      string
		setup     string
		cacheSize int
		length    time.Duration
	}{
		{"", direct, defaultCache, b.playback.storm},
		{", without storage", inMemory, defaultCache, min(b.playback.storm, time.Minute)},
		{", cache_size 5,000", direct, 5_000, min(b.playback.storm, time.Minute)},
	} {
		v, err := b.setups(c.setup)[0].once(ctx, func(ctx context.Context, run runner) (values, error) {
			return b.storm(ctx, run, c.cacheSize, c.length)
		})
		if err != nil {
			return result{}, err
		}
		b.logf("storm%s: %v", c.name, v)
		some := stormFigures(c.cacheSize)
		add(some, v, true)
		for _, f := range measured(some) {
			f.Name += c.name
			figures = append(figures, f)
		}
	}
	return result{
		Figures: figures,
		Text: fmt.Sprintf(`A simulated API server creates pods for %s, one every %s, and deletes each after %s, in %d namespaces with %d Deployments. A pod has an
event of the scheduler at its creation. A second later, it has events of its kubelet, some of them repeated, or of a program that creates events itself. The
last event comes after its deletion. This makes %.1f events on average. A response about an owner takes %s. The Collector is configured as the README
recommends: with storage, and direct delivery. Then follow one minute of the same load without storage and with the batch processor, and one minute as
recommended, but with a small cache.`,
			b.playback.storm, stormTime/stormPods, b.playback.lifetime, b.playback.namespaces, b.playback.deployments, eventsPerPod, b.playback.ownerLatency),
		Notes: []string{
			"Latency is the time from just before the server streams an event to the arrival of its record. With the batch processor, it includes its 200 ms.",
			"Each page of a list is one request.",
		},
	}, nil
}

func stormFigures(cacheSize int) []figure {
	return []figure{
		{Name: lost, Goal: oursAtMost(0)},
		{Name: surplus, Goal: oursAtMost(0)},
		{Name: stormOwned, Unit: "%", Goal: oursAtLeast(99)},
		{Name: stormRequests, Goal: oursAtMost(1)},
		{Name: stormSingles, Unit: "%"},
		{Name: latencyHalf, Unit: "ms"},
		{Name: latencyTail, Unit: "ms", Goal: oursAtMost(2000)},
		{Name: latencyMost, Unit: "ms"},
		{Name: stormCached, Goal: oursAtMost(float64(cacheSize))},
		{Name: peakRSS, Unit: "MiB"},
		{Name: stormCPU},
	}
}

// storm measures one Collector in a storm.
func (b *benchmark) storm(ctx context.Context, c runner, cacheSize int, length time.Duration) (v values, err error) {
	fleet := &replay.Fleet{
		Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: int(length * stormPods / stormTime),
		Every: stormTime / stormPods, Lifetime: b.playback.lifetime,
	}
	r, err := newRig(replay.Options{Latency: b.playback.ownerLatency})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.startCollector(ctx, c.with(fmt.Sprintf("{auth_type: kubeConfig, owners: {cache_size: %d}}", cacheSize))); err != nil {
		return nil, err
	}
	before, err := r.col.usage()
	if err != nil {
		return nil, err
	}
	fleet.Begin = time.Now().Add(time.Second)
	r.server.SetFleet(fleet)
	changes := stormOf(fleet)
	if err := r.releaseAll(ctx, fleet.Begin, changes); err != nil {
		return nil, err
	}
	if err := r.sink.wait(ctx, len(changes), 10*time.Second); err != nil {
		return nil, err
	}
	return b.stormValues(r, before, time.Since(fleet.Begin))
}

func (b *benchmark) stormValues(r *rig, before usage, took time.Duration) (values, error) {
	after, err := r.col.usage()
	if err != nil {
		return nil, err
	}
	cached, err := r.col.ownMetric("otelcol_kube_events_owner_cache_size")
	if err != nil {
		return nil, err
	}
	sum, asked := r.sink.summary(), r.server.Requests()
	owners := asked[replay.OwnerGet] + asked[replay.OwnerList]
	b.logf("requests: %v", asked)
	return values{
		lost:          float64(sum.sent - sum.delivered),
		surplus:       float64(sum.surplus),
		stormOwned:    percent(sum.owned, sum.sent),
		stormRequests: 50 * float64(owners) / float64(sum.sent),
		stormSingles:  percent(asked[replay.OwnerGet], owners),
		latencyHalf:   sum.latency(0.5),
		latencyTail:   sum.latency(0.99),
		latencyMost:   sum.latency(1),
		stormCached:   cached,
		peakRSS:       mebibytes(after.peakRSS),
		stormCPU:      (after.cpu - before.cpu).Seconds() / took.Seconds(),
	}, nil
}

// change is a change to an event, at a time after the beginning.
type change struct {
	at    time.Duration
	kind  watch.EventType
	event *corev1.Event
}

// eventsPerPod is how many changes there are for each pod on average: 145,000 of 50,000.
const eventsPerPod = 2.9

// stormOf is all that happens to a fleet, in its order.
func stormOf(fleet *replay.Fleet) []change {
	chance := rand.New(rand.NewPCG(1, 2))
	upTo := func(d time.Duration) time.Duration { return time.Duration(chance.Int64N(int64(d))) }
	var all []change
	for pod := range fleet.Pods {
		created := fleet.Created(pod).Sub(fleet.Begin)
		put := func(kind watch.EventType, at time.Duration, ev *corev1.Event) {
			all = append(all, change{at, kind, ev})
		}
		scheduled := created + upTo(50*time.Millisecond)
		put(watch.Added, scheduled, fleet.Scheduled(pod, fleet.Begin.Add(scheduled)))
		later := scheduled + time.Second + upTo(time.Second)
		switch at := fleet.Begin.Add(later); pod % 10 {
		case 0, 1, 2, 3, 4, 5:
			put(watch.Added, later, fleet.Started(pod, at))
		case 6:
			backOff := fleet.BackOff(pod, at)
			put(watch.Added, later, backOff)
			put(watch.Modified, later+fleet.Lifetime/2, replay.Repeat(backOff, 2, at.Add(fleet.Lifetime/2)))
		case 7:
			put(watch.Added, later, fleet.HandMade(pod, at))
		}
		killed := fleet.Deleted(pod).Sub(fleet.Begin) + upTo(time.Second)
		put(watch.Added, killed, fleet.Killing(pod, fleet.Begin.Add(killed)))
	}
	slices.SortFunc(all, func(a, b change) int { return int(a.at - b.at) })
	return all
}

// releaseAll releases each change at its time, and notes it in the sink.
func (r *rig) releaseAll(ctx context.Context, begin time.Time, all []change) error {
	recorder := replay.NewRecorder()
	for next := 0; next < len(all); {
		if err := wait(ctx, stormTick); err != nil {
			return err
		}
		var due []replay.Frame
		now := time.Now()
		for ; next < len(all) && !begin.Add(all[next].at).After(now); next++ {
			due = append(due, recorder.Frame(all[next].kind, all[next].event))
			r.sink.note(all[next].event.Name, account.Occurrences(all[next].event), now)
		}
		r.server.Release(due...)
	}
	return nil
}
