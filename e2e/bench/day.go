// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A day of a cluster at work has few events for most of the time.
const (
	// rolloutEvery is how often a Deployment is updated, which replaces rolloutPods pods in rolloutTime.
	rolloutEvery = 4 * time.Minute
	rolloutPods  = 50
	rolloutTime  = 20 * time.Second
	// The pods of a node are drained once, after half of the time.
	drainPods = 20
	drainTime = time.Minute
	cronEvery = time.Minute
	// startTime is how long a pod takes to start, at most.
	startTime = 3 * time.Second
	// backOffEvery is how often the event of the container that always crashes is counted up.
	backOffEvery = 15 * time.Second
	// mostQuiet is how many events a second the rest of the cluster has at most. Each minute has another
	// rate.
	mostQuiet = 5
)

func runDay(ctx context.Context, b *benchmark) (r result, err error) {
	changes := planDay(b.day, b.size.pods)
	r.Groups, err = b.compare(ctx, 1, []string{baseline, direct}, func(string) []figure {
		return []figure{
			{Name: cpuPerRecord, Unit: "µs", Goal: ratioAtMost(1)},
			{Name: peakRSS, Unit: "MiB", Goal: ratioAtMost(1.05)},
			{Name: latencyHalf, Unit: "ms", Goal: ratioAtMost(1)},
			{Name: latencyTail, Unit: "ms", Goal: ratioAtMost(1)},
			{Name: recordBytes, Unit: "B", Goal: ratioAtMost(1.75)},
			{Name: rawBytes, Unit: "B"},
			{Name: lost, Goal: oursAtMost(0)},
			{Name: unowned, Goal: oursAtMost(0)},
		}
	}, func(ctx context.Context, c runner) (values, error) {
		return b.onCluster(ctx, b.size, func(kube *cluster) (values, error) {
			return kube.onRig(c, func(r *rig) (values, error) {
				if err := r.settle(ctx); err != nil {
					return nil, err
				}
				return r.measure(ctx, changes, 0)
			})
		})
	})
	r.Text = fmt.Sprintf(`A real API server has %s pods, and %s changes of events in %s: 0 to %d a second for most of the time. Each
%s, updates replace %d pods in %s. A CronJob runs each minute, a container crashes all the time, and once a node with %d pods
is drained. The Collector knows no owner before. Each Collector is measured once.`,
		thousands(b.size.pods), thousands(len(changes)), b.day, mostQuiet, rolloutEvery, rolloutPods, rolloutTime, drainPods)
	return r, err
}

// planner plans what happens on a day.
type planner struct {
	pods    int // of the cluster
	random  *rand.Rand
	changes []change
}

// planDay returns all that happens on a day, in its order. The same length gives the same day.
func planDay(length time.Duration, pods int) []change {
	p := &planner{pods: pods, random: rand.New(rand.NewPCG(1, 3))}
	for at := rolloutEvery / 2; at+rolloutTime < length; at += rolloutEvery {
		p.replace(rolloutPods, at, rolloutTime)
	}
	p.replace(drainPods, length/2, min(drainTime, length/4))
	for at := time.Duration(0); at+startTime < length; at += cronEvery {
		p.start(p.anyPod(), at)
	}
	p.changes = append(p.changes, change{})
	for at := backOffEvery; at < length; at += backOffEvery {
		p.changes = append(p.changes, change{at: at, repeat: true})
	}
	p.rest(length)
	slices.SortStableFunc(p.changes, func(a, b change) int { return int(a.at - b.at) })
	return p.changes
}

// anyPod returns a pod other than the first one, whose container crashes.
func (p *planner) anyPod() int { return 1 + p.random.IntN(p.pods-1) }

// startSteps are the events of a pod that starts.
var startSteps = []struct{ reason, message string }{
	{"Scheduled", "Successfully assigned the pod to node-0"},
	{"Pulling", `Pulling image "registry.example.com/team/app:1.42.0"`},
	{"Pulled", `Successfully pulled image "registry.example.com/team/app:1.42.0" in 611ms (611ms including waiting). Image size: 48213904 bytes.`},
	{"Created", "Container created"},
	{"Started", "Container started"},
}

// start plans the events of a pod that starts.
func (p *planner) start(pod int, at time.Duration) {
	for _, step := range startSteps {
		p.changes = append(p.changes, change{at: at, pod: pod, reason: step.reason, message: step.message})
		at += time.Duration(1 + p.random.Int64N(int64(startTime/4)))
	}
}

// replace plans the events of pods that are replaced one after the other.
func (p *planner) replace(pods int, begin, length time.Duration) {
	for i := range pods {
		at := begin + length*time.Duration(i)/time.Duration(pods)
		p.start(p.anyPod(), at)
		p.changes = append(p.changes, change{at: at + startTime, pod: p.anyPod(), reason: "Killing", message: "Stopping container main"})
	}
}

// rest plans events of other pods, at a rate that changes each minute.
func (p *planner) rest(length time.Duration) {
	for minute := time.Duration(0); minute < length; minute += time.Minute {
		perSecond := p.random.Float64() * mostQuiet
		for at := minute; at < min(minute+time.Minute, length); {
			p.changes = append(p.changes, change{at: at, pod: p.anyPod(), reason: "Started", message: "Container started"})
			at += time.Millisecond + time.Duration(p.random.ExpFloat64()*float64(time.Second)/perSecond)
		}
	}
}
