// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var replayScenario = scenario{name: "replay", title: "At full speed", run: runReplay}

const (
	replayPods = 2000
	// throughNop is a suffix for what is measured with an exporter that does nothing.
	throughNop = ", `nop` exporter"

	recordsPerCoreSecond = "records a second of processor time"
	recordsPerSecond     = "records a second"
)

func runReplay(ctx context.Context, b *benchmark) (result, error) {
	fleet := &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: replayPods}
	// k8s_events drops what is older than its own start.
	stream := recordTraffic(fleet, b.playback.changes, time.Now().Add(time.Hour))
	b.logf("%d events are recorded", len(stream.frames))
	var groups []group
	for _, way := range []struct {
		suffix string
		nop    bool
	}{{"", false}, {throughNop, true}} {
		some, err := b.compare(ctx, b.interleave, b.setups(baseline, stored, inMemory), replayFigures(way.suffix), func(ctx context.Context, c runner) (values, error) {
			v, err := b.replayOnce(ctx, c, stream, way.nop)
			return v.suffixed(way.suffix), err
		})
		if err != nil {
			return result{}, err
		}
		for _, g := range some {
			if way.nop {
				g.Title = strings.TrimSuffix(g.Title, withBatches) + throughNop
			}
			groups = append(groups, g)
		}
	}
	return result{
		Groups: groups,
		Text: fmt.Sprintf(`A simulated API server streams %s changes of events that were encoded before, as fast as the Collector reads. Of ten changes, seven are new
events, and three increase the count of an event. They have the forms of all three kinds of producers. The Collector has seen an event of each of
the %s pods of %s Deployments before, so it knows their owners.`, thousands(b.playback.changes), thousands(replayPods), thousands(b.playback.deployments)),
		Notes: []string{
			"The values are those of the whole Collector. They include HTTP/2, TLS and decoding, and with `otlp_http` also encoding and gzip.",
			"kube_events requests protobuf from the API server. k8s_events requests JSON.",
		},
	}, nil
}

// replayGoals are the goals for the processor time of a record.
var replayGoals = map[string]*goal{inMemory: ratioAtMost(0.25), stored: ratioAtMost(0.35)}

func replayFigures(suffix string) func(setup string) []figure {
	return func(setup string) []figure {
		figures := []figure{
			{Name: recordsPerCoreSecond, Unit: "1/s"},
			{Name: cpuPerObservation, Unit: "µs", Goal: replayGoals[setup]},
			{Name: recordsPerSecond, Unit: "1/s"},
			{Name: peakRSS, Unit: "MiB"},
			{Name: lost, Goal: oursAtMost(0)},
		}
		for i := range figures {
			figures[i].Name += suffix
		}
		return figures
	}
}

// suffixed are the values under longer names.
func (v values) suffixed(suffix string) values {
	longer := values{}
	for name, value := range v {
		longer[name+suffix] = value
	}
	return longer
}

// recorded is traffic that was encoded ahead of time.
type recorded struct {
	warm   int // changes that make all owners known; they come first
	frames []replay.Frame
	about  []observation // what each frame reports; empty if nothing needs it
}

func recordTraffic(fleet *replay.Fleet, changes int, begin time.Time) recorded {
	recorder := replay.NewRecorder()
	r := recorded{warm: fleet.Pods, frames: make([]replay.Frame, 0, fleet.Pods+changes)}
	for pod := range fleet.Pods {
		r.frames = append(r.frames, recorder.Frame(watch.Added, fleet.Started(pod, begin)))
	}
	var backOff, unschedulable *corev1.Event // the last of each, which are repeated
	for i := range changes {
		// The step has no divisor in common with the number of pods, so all have their turn.
		pod, at := i*7919%fleet.Pods, begin.Add(time.Duration(i+1)*time.Millisecond)
		kind := watch.Added
		var ev *corev1.Event
		switch i % 10 {
		case 0, 1:
			ev = fleet.Scheduled(pod, at)
		case 2, 3:
			ev = fleet.Started(pod, at)
		case 4:
			backOff = fleet.BackOff(pod, at)
			ev = backOff
		case 5:
			unschedulable = fleet.FailedScheduling(pod, at)
			ev = unschedulable
		case 6:
			ev = fleet.HandMade(pod, at)
		case 7, 8:
			backOff = replay.Repeat(backOff, int32(i%10-6), at)
			kind, ev = watch.Modified, backOff
		default:
			kind, ev = watch.Modified, replay.Repeat(unschedulable, 1, at)
		}
		r.frames = append(r.frames, recorder.Frame(kind, ev))
	}
	return r
}

// replayOnce measures one Collector.
func (b *benchmark) replayOnce(ctx context.Context, c runner, stream recorded, nop bool) (v values, err error) {
	fleet := &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: stream.warm}
	r, err := newRig(replay.Options{Fleet: fleet, Latency: b.playback.ownerLatency})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if nop {
		c.over = append(c.over, nopPipeline(c)...)
	}
	if err := r.startCollector(ctx, c); err != nil {
		return nil, err
	}
	received := r.sink.received
	if nop {
		received = r.col.accepted
	}
	r.server.Release(stream.frames[:stream.warm]...)
	if warm := awaitCount(ctx, stream.warm, received); warm < stream.warm {
		return nil, r.col.failure(fmt.Sprintf("has taken %d events of %d", warm, stream.warm))
	}

	profiled := b.profile(ctx, r.col, "replay", 5*time.Second)
	before, err := r.col.usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r.server.Release(stream.frames[stream.warm:]...)
	counted := awaitCount(ctx, len(stream.frames), received)
	took := time.Since(began)
	after, err := r.col.usage()
	if err := errors.Join(err, <-profiled, ctx.Err()); err != nil {
		return nil, err
	}
	if !nop {
		_, last := r.sink.observations()
		took = last.Sub(began)
	}
	taken, cpu := float64(counted-stream.warm), after.cpu-before.cpu
	return values{
		recordsPerCoreSecond: taken / cpu.Seconds(),
		cpuPerObservation:    float64(cpu.Microseconds()) / taken,
		recordsPerSecond:     taken / took.Seconds(),
		peakRSS:              mebibytes(after.peakRSS),
		lost:                 float64(len(stream.frames) - counted),
	}, nil
}

// nopPipeline makes a Collector throw away what its receiver delivers.
func nopPipeline(c runner) []string {
	over := []string{"exporters: {nop: }"}
	for _, signal := range c.signals() {
		over = append(over, "service::pipelines::"+signal+": {receivers: ["+c.name+"], processors: [], exporters: [nop]}")
	}
	return over
}
