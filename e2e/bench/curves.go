// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var curvesScenario = scenario{name: "curves", title: "Latency and processor time over load", run: runCurves}

// curves is how much the scenario curves does.
type curves struct {
	rates  sizes         // events a second, one after the other
	length time.Duration // at each rate
	rounds int           // at each rate
}

var fullCurves = curves{rates: sizes{1, 10, 100, 1000, 10_000}, length: 10 * time.Second, rounds: 3}

// fewestRecords is how many records each Collector gets at least: at low rates, this takes longer.
const fewestRecords = 60

func (c *curves) addFlags(flags *flag.FlagSet) {
	flags.Var(&c.rates, "curve-rates", "the events a second of the scenario curves, one after the other")
	flags.DurationVar(&c.length, "curve-length", c.length, "how long the scenario curves measures each Collector at each rate")
	flags.IntVar(&c.rounds, "curve-rounds", c.rounds, "how often the scenario curves measures each Collector at each rate")
}

// gridFigure is a figure that has a table with a column for each Collector.
type gridFigure struct{ name, unit, file string } // file: of its chart; empty: it has none

// curveFigures are what the scenario measures at each rate, in the order of its tables.
var curveFigures = []gridFigure{
	{latencyHalf, "ms", "latency"},
	{latencyTail, "ms", "latency"},
	{cpuPerObservation, "µs", "cpu"},
	{peakRSS, "MiB", "memory"},
	{lost, "", ""},
}

// measureEach measures the setups under each load: of each of the numbers.
func (b *benchmark) measureEach(ctx context.Context, setups []setup, numbers sizes, loadOf func(int) steady) (map[int]map[string][]values, error) {
	measured := map[int]map[string][]values{}
	at := *b
	at.rounds = b.curves.rounds
	for _, number := range numbers {
		load := loadOf(number)
		of, err := at.interleave(ctx, setups, func(ctx context.Context, c runner) (values, error) {
			return b.curveOnce(ctx, c, load)
		})
		if err != nil {
			return nil, fmt.Errorf("at %d events a second, with a backend that takes %v: %w", load.perSecond, load.delay, err)
		}
		measured[number] = of
	}
	return measured, nil
}

func runCurves(ctx context.Context, b *benchmark) (result, error) {
	setups, err := b.onlyChosen(b.setups(direct, baseline))
	if err != nil {
		return result{}, err
	}
	fleet := &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: replayPods}
	stream := recordSteady(fleet, b.curves.records(b.curves.rates.most()), time.Now().Add(time.Hour))
	b.logf("%d events are recorded", len(stream.frames))
	measured, err := b.measureEach(ctx, setups, b.curves.rates, func(perSecond int) steady {
		return steady{fleet: fleet, stream: stream, perSecond: perSecond}
	})
	if err != nil {
		return result{}, err
	}
	r := result{
		Text: fmt.Sprintf(`A simulated API server streams events for %s at each rate, and for longer until there are %d, because etcd cannot write 10,000 events a
second on two cores. Four of five are new events; each fifth increases the count of an event. The owners of all pods are known: the Collector has seen an
event of each of the %s pods before. Each value is %s. kube_events has storage and direct delivery, k8s_events the batch processor and the exporter's default queue.

![Latency over load](performance-latency.svg)
![Processor time over load](performance-cpu.svg)
![Memory over load](performance-memory.svg)`, b.curves.length, fewestRecords, thousands(replayPods), runsOf(b.curves.rounds)),
		Notes: []string{
			"Latency is the time from just before the server streams an event to the arrival of its record.",
			"An event counts as lost if it has no record 5 s after the last record arrived.",
		},
	}
	r.Grids, r.Charts = gridsOf(curveFigures, perSecondAxis, b.curves.rates, setups, measured)
	return r, nil
}

// records is how many records each Collector gets at a rate.
func (c *curves) records(perSecond int) int {
	return max(fewestRecords, int(float64(perSecond)*c.length.Seconds()))
}

func runsOf(n int) string {
	if n == 1 {
		return "of one run"
	}
	return fmt.Sprintf("the median of %d runs", n)
}

const perSecondAxis = "events a second"

// gridsOf makes tables and charts of what was measured at each value of a parameter.
func gridsOf(figures []gridFigure, parameter string, at sizes, setups []setup, measured map[int]map[string][]values) (grids []grid, charts []chart) {
	for _, f := range figures {
		g, c := grid{Title: f.name, Unit: f.unit, Rows: parameter}, chart{File: f.file, Title: f.name, Unit: f.unit, Across: parameter}
		for _, s := range setups {
			g.Columns, c.Lines = append(g.Columns, s.curve()), append(c.Lines, line{Name: s.curve()})
		}
		for _, n := range at {
			row := gridRow{Name: thousands(n)}
			for i, s := range setups {
				value := median(valuesOf(measured[n][s.name], f.name))
				row.Cells = append(row.Cells, value)
				c.Lines[i].add(n, value)
			}
			g.Values = append(g.Values, row)
		}
		grids = append(grids, g)
		if c.File != "" {
			charts = append(charts, c)
		}
	}
	return grids, charts
}

// curve returns the name of the setup's curve.
func (s setup) curve() string {
	switch s.name {
	case direct:
		return kubeEventsReceiver + ", direct"
	case waiting:
		return kubeEventsReceiver + ", wait_for_result"
	}
	return s.column
}

// valuesOf returns the values of a figure, run by run.
func valuesOf(runs []values, figure string) (all []float64) {
	for _, v := range runs {
		if value, ok := v[figure]; ok {
			all = append(all, value)
		}
	}
	return all
}

// recordSteady encodes traffic of kubelets: an event of each pod, and then n changes.
func recordSteady(fleet *replay.Fleet, n int, begin time.Time) recorded {
	recorder := replay.NewRecorder()
	r := recorded{warm: fleet.Pods}
	put := func(kind watch.EventType, ev *corev1.Event) {
		r.frames = append(r.frames, recorder.Frame(kind, ev))
		r.about = append(r.about, observation{ev.Name, account.Occurrences(ev)})
	}
	for pod := range fleet.Pods {
		put(watch.Added, fleet.Started(pod, begin))
	}
	const step = 7919 // It has no divisor in common with the number of pods.
	for i := range n {
		pod, at := i*step%fleet.Pods, begin.Add(time.Duration(i+1)*time.Millisecond)
		switch i % 5 {
		case 3:
			put(watch.Added, fleet.BackOff(pod, at))
		case 4:
			before := begin.Add(time.Duration(i) * time.Millisecond)
			put(watch.Modified, replay.Repeat(fleet.BackOff((i-1)*step%fleet.Pods, before), 1, at))
		default:
			put(watch.Added, fleet.Started(pod, at))
		}
	}
	return r
}

// steady is a load at one rate.
type steady struct {
	fleet     *replay.Fleet
	stream    recorded
	perSecond int
	delay     time.Duration // how long the backend takes for each request
}

// curveOnce measures one Collector at one rate.
func (b *benchmark) curveOnce(ctx context.Context, c runner, load steady) (v values, err error) {
	r, err := newRig(replay.Options{Fleet: load.fleet, Latency: b.playback.ownerLatency})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.startCollector(ctx, c); err != nil {
		return nil, err
	}
	stream := load.stream
	if err := r.warmUp(ctx, stream); err != nil {
		return nil, err
	}
	r.sink.delay.Store(int64(load.delay))
	last := min(len(stream.frames), stream.warm+b.curves.records(load.perSecond))
	used, err := b.useOf(ctx, r, fmt.Sprint("curves-", load.perSecond), time.Duration(last-stream.warm)*time.Second/time.Duration(load.perSecond), func() error {
		if err := r.releaseSteadily(ctx, stream, last, load.perSecond); err != nil {
			return err
		}
		return r.sink.wait(ctx, last-stream.warm, 5*time.Second+2*load.delay)
	})
	sum := r.sink.summary()
	return values{
		latencyHalf: sum.latency(0.5), latencyTail: sum.latency(0.99), lost: float64(sum.sent - sum.delivered),
		cpuPerObservation: float64(used.cpu.Microseconds()) / float64(max(1, sum.delivered)), peakRSS: mebibytes(used.peakRSS),
		recordsEach: float64(sum.delivered) / float64(max(1, sum.requests)),
	}, err
}

// useOf returns the processor time that the Collector uses while load runs, and its peak of memory
// until then. It takes the profiles that are wanted.
func (b *benchmark) useOf(ctx context.Context, r *rig, what string, length time.Duration, load func() error) (usage, error) {
	before, err := r.col.usage()
	if err != nil {
		return usage{}, err
	}
	profiled := b.profile(ctx, r.col, what, length)
	if err := load(); err != nil {
		return usage{}, err
	}
	used, err := r.col.usage()
	used.cpu -= before.cpu
	return used, errors.Join(err, <-profiled)
}

// warmUp makes the owners of all pods known.
func (r *rig) warmUp(ctx context.Context, stream recorded) error {
	r.server.Release(stream.frames[:stream.warm]...)
	if warm := awaitCount(ctx, stream.warm, r.sink.received); warm < stream.warm {
		return r.col.failure(fmt.Sprintf("has taken %d events of %d", warm, stream.warm))
	}
	r.sink.reset()
	return nil
}

// releaseSteadily releases the changes after the first ones at a rate, and notes each in the sink.
func (r *rig) releaseSteadily(ctx context.Context, stream recorded, last, perSecond int) error {
	begin := time.Now()
	for next := stream.warm; next < last; {
		if err := wait(ctx, stormTick); err != nil {
			return err
		}
		now := time.Now()
		due := min(last, stream.warm+int(now.Sub(begin).Seconds()*float64(perSecond)))
		for _, o := range stream.about[next:due] {
			r.sink.note(o.event, o.count, now)
		}
		r.server.Release(slices.Clone(stream.frames[next:due])...)
		next = due
	}
	return nil
}
