// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var rolloutsScenario = scenario{name: "rollouts", title: "With a trace of each rollout", run: runRollouts}

const (
	rolloutsCPU    = "processor time, over that without the connector"
	rolloutsMemory = "peak memory (RSS), more than without the connector"
	rolloutsSpans  = "spans received"
)

// The setups of the scenario. The first one is what the others are compared with.
const (
	noRollouts     = "direct"
	withRollouts   = "rollouts"
	storedRollouts = "rollouts-storage"
)

// rollouts is how much the scenario rollouts does.
type rollouts struct {
	rates  sizes         // events a second, one after the other
	length time.Duration // at each rate
	settle time.Duration // before the first event and after the last one: until all traces are delivered
}

var fullRollouts = rollouts{rates: sizes{1000}, length: 30 * time.Second, settle: 75 * time.Second}

func (r *rollouts) addFlags(flags *flag.FlagSet) {
	flags.Var(&r.rates, "rollouts-rates", "the events a second of the scenario rollouts, one after the other")
	flags.DurationVar(&r.length, "rollouts-length", r.length, "how long the scenario rollouts measures each setup at each rate")
}

// rolloutSetups returns the same Collector with and without the connector.
func (b *benchmark) rolloutSetups() []setup {
	return []setup{
		{name: noRollouts, title: "Without the connector", column: kubeEventsReceiver, runner: b.traced, configure: runner.recommended},
		{name: withRollouts, title: "With the connector", column: kubeEventsReceiver, runner: b.traced, configure: func(c runner, directory string) runner {
			return c.recommended(directory).tracing("{}")
		}},
		{name: storedRollouts, title: "With the connector and its storage", column: kubeEventsReceiver, runner: b.traced, configure: func(c runner, directory string) runner {
			return c.recommended(directory).tracing("{storage: file_storage}")
		}},
	}
}

// tracing is the runner with the connector, with these settings, next to the exporter of records.
func (c runner) tracing(connector string) runner {
	c.over = append(c.over, "connectors: {kube_rollouts: "+connector+"}",
		"service::pipelines::logs::exporters: [otlp_http, kube_rollouts]",
		"service::pipelines::traces: {receivers: [kube_rollouts], exporters: [otlp_http]}")
	return c
}

func runRollouts(ctx context.Context, b *benchmark) (result, error) {
	setups, err := b.onlyChosen(b.rolloutSetups())
	if err != nil {
		return result{}, err
	}
	r := result{
		Text: fmt.Sprintf(`A simulated API server streams events for %s at each rate. Half of them are of pods that start: five events for each pod, ten pods for
each ReplicaSet, one ReplicaSet after another. The others are about %s pods that the Collector knows: warnings that repeat, and events that are of no
rollout. All Collectors are the same program, with storage and direct delivery. One has the connector `+"`kube_rollouts`"+` in addition, and one also has the
connector's storage. The measurement begins when the traces of the known pods are delivered, and ends %s after the last event.`, b.rollouts.length, thousands(replayPods), b.rollouts.settle),
		Notes: []string{"Differences are between medians."},
	}
	r.Groups = make([]group, len(setups))
	for i, s := range setups {
		r.Groups[i] = group{Title: s.title, Column: s.column}
	}
	for _, rate := range b.rollouts.rates {
		fleet, stream := b.rollouts.record(b.playback, rate)
		rounds, err := b.interleave(ctx, setups, func(ctx context.Context, c runner) (values, error) {
			return b.rolloutsOnce(ctx, c, fleet, stream, rate)
		})
		if err != nil {
			return result{}, fmt.Errorf("at %d events a second: %w", rate, err)
		}
		for i, s := range setups {
			r.Groups[i].Figures = append(r.Groups[i].Figures, rolloutFigures(rate, rounds[s.name], rounds[noRollouts])...)
		}
	}
	return r, nil
}

// rolloutFigures returns the rows of a setup at a rate.
func rolloutFigures(rate int, ours, without []values) (figures []figure) {
	of := func(name string, runs []values) float64 { return median(valuesOf(runs, name)) }
	all := []figure{
		{Name: cpuPerObservation, Unit: "µs", Ours: valuesOf(ours, cpuPerObservation)},
		{Name: peakRSS, Unit: "MiB", Ours: valuesOf(ours, peakRSS)},
		{Name: lost, Ours: valuesOf(ours, lost), Goal: oursAtMost(0)},
		{Name: rolloutsSpans, Ours: valuesOf(ours, rolloutsSpans)},
	}
	if of(rolloutsSpans, ours) > 0 && len(without) > 0 {
		all = append(all,
			figure{Name: rolloutsCPU, Ours: []float64{of(cpuPerObservation, ours) / of(cpuPerObservation, without)}, Goal: oursAtMost(1.15)},
			figure{Name: rolloutsMemory, Unit: "MiB", Ours: []float64{of(peakRSS, ours) - of(peakRSS, without)}, Goal: oursAtMost(15)})
	}
	for _, f := range measured(all) {
		f.Name += fmt.Sprintf(", %s a second", thousands(rate))
		figures = append(figures, f)
	}
	return figures
}

// podsEach is how many pods of a ReplicaSet start, and eventsEach how many events each of them has.
const (
	podsEach   = 10
	eventsEach = 5
)

// record encodes the events of a rate.
func (r rollouts) record(p playback, rate int) (*replay.Fleet, recorded) {
	n := int(float64(rate) * r.length.Seconds())
	// The pods of a fleet are spread over the Deployments, so all of them get as many.
	each := max(podsEach, (n/2/eventsEach+p.deployments-1)/p.deployments)
	fleet := &replay.Fleet{Namespaces: p.namespaces, Deployments: p.deployments, Pods: replayPods + each*p.deployments}
	s := &rolloutStream{fleet: fleet, each: each, begin: time.Now().Add(time.Hour), recorder: replay.NewRecorder()}
	for pod := range replayPods {
		s.put(watch.Added, fleet.Started(pod, s.begin))
	}
	s.warm = replayPods
	for i := range n {
		at := s.begin.Add(time.Duration(i+1) * time.Millisecond)
		if i%2 == 0 {
			s.put(watch.Added, s.starting(i/2, at))
		} else {
			s.putOther(i/2, at)
		}
	}
	return fleet, s.recorded
}

// rolloutStream is a stream that is recorded.
type rolloutStream struct {
	recorded
	fleet    *replay.Fleet
	each     int // pods of a ReplicaSet that start
	begin    time.Time
	recorder *replay.Recorder
	backOff  *corev1.Event // the last one, which is repeated
}

func (s *rolloutStream) put(kind watch.EventType, ev *corev1.Event) {
	s.frames = append(s.frames, s.recorder.Frame(kind, ev))
	s.about = append(s.about, observation{ev.Name, account.Occurrences(ev)})
}

// starting returns an event of a pod that starts: one pod after another, and one ReplicaSet after
// another.
func (s *rolloutStream) starting(i int, at time.Time) *corev1.Event {
	number := i / eventsEach
	pod := replayPods + number/s.each + number%s.each*s.fleet.Deployments
	if i%eventsEach == 0 {
		return s.fleet.Scheduled(pod, at)
	}
	ev := s.fleet.Started(pod, at)
	switch i % eventsEach {
	case 1:
		ev.Reason, ev.Message = "Pulling", `Pulling image "registry.example.com/team/app:1.2.3"`
	case 2:
		ev.Reason = "Pulled"
		ev.Message = `Successfully pulled image "registry.example.com/team/app:1.2.3" in 1.234s (1.234s including waiting). Image size: 123456789 bytes.`
	case 3:
		ev.Reason, ev.Message = "Created", "Container created"
	}
	return ev
}

// putOther puts an event about a pod that has started long before.
func (s *rolloutStream) putOther(i int, at time.Time) {
	const step = 7919 // It has no divisor in common with the number of pods.
	pod := i * step % replayPods
	switch i % 4 {
	case 0:
		s.backOff = s.fleet.BackOff(pod, at)
		s.put(watch.Added, s.backOff)
	case 1, 2:
		s.backOff = replay.Repeat(s.backOff, 1, at)
		s.put(watch.Modified, s.backOff)
	default:
		ev := s.fleet.Started(pod, at)
		ev.Reason, ev.Message = "Resized", "Volume app-data was resized to 20Gi"
		s.put(watch.Added, ev)
	}
}

// rolloutsOnce measures one Collector at one rate.
func (b *benchmark) rolloutsOnce(ctx context.Context, c runner, fleet *replay.Fleet, stream recorded, rate int) (v values, err error) {
	r, err := newRig(replay.Options{Fleet: fleet, Latency: b.playback.ownerLatency})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.startCollector(ctx, c); err != nil {
		return nil, err
	}
	if err := r.warmUp(ctx, stream); err != nil {
		return nil, err
	}
	// The traces of the pods that are known from now on are no part of the load.
	if err := wait(ctx, b.rollouts.settle); err != nil {
		return nil, err
	}
	r.sink.reset()
	used, err := b.useOf(ctx, r, fmt.Sprint("rollouts-", rate), b.rollouts.length+b.rollouts.settle, func() error {
		if err := r.releaseSteadily(ctx, stream, len(stream.frames), rate); err != nil {
			return err
		}
		if err := r.sink.wait(ctx, len(stream.frames)-stream.warm, 5*time.Second); err != nil {
			return err
		}
		return wait(ctx, b.rollouts.settle)
	})
	sum := r.sink.summary()
	return values{
		cpuPerObservation: float64(used.cpu.Microseconds()) / float64(max(1, sum.delivered)),
		peakRSS:           mebibytes(used.peakRSS),
		lost:              float64(sum.sent - sum.delivered),
		rolloutsSpans:     float64(r.sink.spansReceived()),
	}, err
}
