// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var dayScenario = scenario{name: "day", title: "A part of a working day", run: runDay, isLight: true}

// day is a cluster at work. It has few events for most of the time.
type day struct {
	length      time.Duration
	deployments int
	pods        int // that exist at the beginning
}

var fullDay = day{length: 20 * time.Minute, deployments: 300, pods: 6000}

func (d *day) addFlags(flags *flag.FlagSet) {
	flags.DurationVar(&d.length, "day-length", d.length, "how long the scenario day measures each Collector")
}

const (
	// rolloutEvery is how often a Deployment is updated, which replaces rolloutPods pods in rolloutTime.
	rolloutEvery = 4 * time.Minute
	rolloutPods  = 50
	rolloutTime  = 20 * time.Second
	// The pods of a node are drained once, after half of the time.
	drainPods = 20
	drainTime = time.Minute
	cronEvery = time.Minute
	// backOffEvery is how often the event of the container that always crashes is counted up.
	backOffEvery = 15 * time.Second
	// mostQuiet is how many events a second the rest of the cluster has at most. Each minute has another rate.
	mostQuiet = 5
)

func runDay(ctx context.Context, b *benchmark) (result, error) {
	fleet := b.day.fleet()
	changes := dayOf(fleet, b.day, time.Now().Add(time.Hour)) // k8s_events ignores what is older than its start.
	groups, err := b.compare(ctx, b.together, b.setups(baseline, direct), func(string) []figure {
		return []figure{
			{Name: cpuPerObservation, Unit: "µs", Goal: ratioAtMost(0.6)},
			{Name: peakRSS, Unit: "MiB", Goal: ratioAtMost(0.85)},
			{Name: latencyHalf, Unit: "ms", Goal: ratioAtMost(0.9)},
			{Name: latencyTail, Unit: "ms", Goal: ratioAtMost(1)},
			{Name: lost, Goal: oursAtMost(0)},
			{Name: surplus, Goal: oursAtMost(0)},
			{Name: stormOwned, Unit: "%"},
		}
	}, func(ctx context.Context, c runner) (values, error) { return b.dayOnce(ctx, c, fleet, changes) })
	return result{
		Groups: groups,
		Text: fmt.Sprintf(`A simulated API server has %s pods of %d Deployments in %d namespaces, and %s changes of events in %s: 0 to %d a second for most of the time. Each %s,
updates replace %d pods in %s. A CronJob runs each minute, a container crashes all the time, and once a node with %d pods is drained. The Collector knows no
owner before. A response about an owner takes %s. Both Collectors run at the same time, once, together with those of the section "When nothing happens".`,
			thousands(b.day.pods), b.day.deployments, b.playback.namespaces, thousands(len(changes)), b.day.length, mostQuiet, rolloutEvery, rolloutPods, rolloutTime, drainPods, b.playback.ownerLatency),
		Notes: []string{"Latency is the time from just before the server streams an event to the arrival of its record."},
	}, err
}

// fleet has the pods of the beginning, and then those that are made on this day.
func (d day) fleet() *replay.Fleet {
	return &replay.Fleet{Namespaces: fullPlayback.namespaces, Deployments: d.deployments, Pods: d.pods + d.created()}
}

// created returns how many pods are made: by updates, the drain and the CronJob.
func (d day) created() int {
	return int(d.length/rolloutEvery)*rolloutPods + drainPods + int(d.length/cronEvery)
}

// dayOf returns all that happens on a day, in its order.
func dayOf(fleet *replay.Fleet, d day, begin time.Time) []change {
	p := &planner{fleet: fleet, begin: begin, next: d.pods, random: rand.New(rand.NewPCG(1, 3))}
	for at := rolloutEvery / 2; at+rolloutTime < d.length; at += rolloutEvery {
		p.replace(rolloutPods, at, rolloutTime)
	}
	p.replace(drainPods, d.length/2, min(drainTime, d.length/4))
	for at := time.Duration(0); at+startTime < d.length; at += cronEvery {
		p.start(p.newPod(), at)
	}
	p.crash(0, d.length)
	p.rest(d)
	slices.SortStableFunc(p.changes, func(a, b change) int { return int(a.at - b.at) })
	return p.changes
}

// planner plans what happens.
type planner struct {
	fleet   *replay.Fleet
	begin   time.Time
	next    int // the next pod that is made
	random  *rand.Rand
	changes []change
}

// moment returns the time of the next event. UIDs are made of it, so no two events have the same.
func (p *planner) moment(at time.Duration) time.Time {
	return p.begin.Add(at + time.Duration(len(p.changes)))
}

func (p *planner) put(kind watch.EventType, at time.Duration, ev *corev1.Event) {
	p.changes = append(p.changes, change{at, kind, ev})
}

// startTime is how long a pod takes to start, at most.
const startTime = 3 * time.Second

func (p *planner) newPod() int {
	p.next++
	return p.next - 1
}

// start plans the events of a pod that starts.
func (p *planner) start(pod int, at time.Duration) {
	p.put(watch.Added, at, p.fleet.Scheduled(pod, p.moment(at)))
	for _, step := range []struct{ reason, message string }{
		{"Pulling", `Pulling image "registry.example.com/team/app:1.42.0"`},
		{"Pulled", `Successfully pulled image "registry.example.com/team/app:1.42.0" in 611ms (611ms including waiting). Image size: 48213904 bytes.`},
		{"Created", "Container created"},
		{"Started", "Container started"},
	} {
		at += time.Duration(1 + p.random.Int64N(int64(startTime/4)))
		p.put(watch.Added, at, p.fleet.FromKubelet(pod, step.reason, step.message, p.moment(at)))
	}
}

// replace plans the events of pods that are replaced one after the other.
func (p *planner) replace(pods int, begin, length time.Duration) {
	first := p.random.IntN(p.next - pods)
	for i := range pods {
		at := begin + length*time.Duration(i)/time.Duration(pods) + time.Duration(p.random.Int64N(int64(time.Millisecond)))
		p.start(p.newPod(), at)
		at += startTime
		p.put(watch.Added, at, p.fleet.Killing(first+i, p.moment(at)))
	}
}

// crash plans the events of a container that crashes again and again.
func (p *planner) crash(pod int, length time.Duration) {
	ev := p.fleet.BackOff(pod, p.moment(0))
	p.put(watch.Added, 0, ev)
	for at := backOffEvery; at < length; at += backOffEvery {
		ev = replay.Repeat(ev, 1, p.moment(at))
		p.put(watch.Modified, at, ev)
	}
}

// rest plans events of other pods, at a rate that changes each minute.
func (p *planner) rest(d day) {
	for minute := time.Duration(0); minute < d.length; minute += time.Minute {
		perSecond := p.random.Float64() * mostQuiet
		for at := minute; at < min(minute+time.Minute, d.length); {
			pod := 1 + p.random.IntN(d.pods-1)
			p.put(watch.Added, at, p.fleet.Started(pod, p.moment(at)))
			at += time.Millisecond + time.Duration(p.random.ExpFloat64()*float64(time.Second)/perSecond)
		}
	}
}

// dayOnce measures one Collector on a day.
func (b *benchmark) dayOnce(ctx context.Context, c runner, fleet *replay.Fleet, changes []change) (v values, err error) {
	r, err := newRig(replay.Options{Fleet: fleet, Latency: b.playback.ownerLatency})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.startCollector(ctx, c); err != nil {
		return nil, err
	}
	used, err := b.useOf(ctx, r, "day", b.day.length, func() error {
		if err := r.releaseAll(ctx, time.Now(), changes); err != nil {
			return err
		}
		return r.sink.wait(ctx, len(changes), 10*time.Second)
	})
	sum := r.sink.summary()
	return values{
		cpuPerObservation: float64(used.cpu.Microseconds()) / float64(max(1, sum.delivered)), peakRSS: mebibytes(used.peakRSS),
		latencyHalf: sum.latency(0.5), latencyTail: sum.latency(0.99),
		lost: float64(sum.sent - sum.delivered), surplus: float64(sum.surplus), stormOwned: percent(sum.owned, sum.sent),
	}, err
}
