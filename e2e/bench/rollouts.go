// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	rolloutsCPU    = "processor time, over that without them"
	rolloutsMemory = "peak memory (RSS), more than without them"
	// podsEach is how many pods of a Deployment start.
	podsEach = 10
)

// The connector's outputs, and the page.
const (
	tracesOnly, problemsOnly, pageOnly, problemsAndPage = "rollouts", "problems", "page", "problems+page"
)

// rolloutSetups returns the same Collector with and without the connector and the page. The others are
// compared with the first one.
func (b *benchmark) rolloutSetups() ([]setup, error) {
	problems := []string{
		"connectors: {kube_incidents: {storage: file_storage}}",
		"service::pipelines::logs/problems: {receivers: [kube_incidents], exporters: [otlp_http]}",
		"service::pipelines::metrics/problems: {receivers: [kube_incidents], exporters: [otlp_http]}",
	}
	page := []string{
		"exporters: {event_page: {endpoint: 127.0.0.1:0}}", "extensions: {kube_events_status: {}}",
		"service::extensions: [file_storage, kube_events_status]",
	}
	add := func(exporters string, over ...string) func(runner, string) runner {
		return func(c runner, directory string) runner {
			return c.recommended(directory).with(append(over, "service::pipelines::logs::exporters: [otlp_http, "+exporters+"]")...)
		}
	}
	return b.onlyChosen([]setup{
		{name: direct, title: "Without them", runner: b.ours, configure: runner.recommended},
		{name: tracesOnly, title: "Traces", runner: b.ours, configure: add("kube_incidents",
			"connectors: {kube_incidents: {"+b.connector+"}}", "service::pipelines::traces: {receivers: [kube_incidents], exporters: [otlp_http]}")},
		{name: problemsOnly, title: "Problems", runner: b.ours, configure: add("kube_incidents", problems...)},
		{name: pageOnly, title: "Page", runner: b.ours, configure: add("event_page", page...)},
		{name: problemsAndPage, title: "Problems and page", runner: b.ours, configure: add("kube_incidents, event_page", append(problems, page...)...)},
	})
}

func runRollouts(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.rolloutSetups()
	if err != nil {
		return r, err
	}
	sz, changes := b.planRollouts()
	m := measurements{}
	if err := m.interleave(ctx, b, b.rounds, setups, "", func(ctx context.Context, c runner) (values, error) {
		return b.rolloutsOnce(ctx, c, sz, changes)
	}); err != nil {
		return r, err
	}
	for setup, all := range m {
		for _, v := range all {
			if setup != tracesOnly {
				delete(v, spans)
			}
		}
	}
	r.Groups = m.groups(setups, rolloutFigures)
	for i := range r.Groups {
		r.Groups[i].Figures = append(r.Groups[i].Figures, compareRollouts(m, setups[i].name)...)
	}
	r.Text = fmt.Sprintf(`A real API server gets %s events at %s a second. Half of them are of pods that start: five events for each pod, %d pods
for each Deployment, one Deployment after another. The others are about %s pods that the Collector knows: warnings that repeat, and
events that are of no rollout. All Collectors are the same program, with storage and direct delivery. Some have the connector
`+"`kube_incidents`"+` in addition, with its traces, or with problems and the metric, or the page. The measurement begins %s after the last event of the known
pods, and ends as long after the last event.`,
		thousands(len(changes)), thousands(b.size.perSecond), podsEach, thousands(b.size.pods), b.tracesSettle)
	r.Notes = []string{"Differences are between medians."}
	return r, nil
}

func rolloutFigures(setup string) []figure {
	all := []figure{{Name: cpuPerRecord, Unit: "µs"}, {Name: peakRSS, Unit: "MiB"}, {Name: lost, Goal: oursAtMost(0)}}
	if setup == tracesOnly {
		all = append(all, figure{Name: spans, Goal: oursAtLeast(1)})
	}
	return all
}

// compareRollouts compares a setup with the connector with the one without.
func compareRollouts(m measurements, setup string) []figure {
	if setup == direct || len(m[direct]) == 0 {
		return nil
	}
	cpu := median(m.of(setup, cpuPerRecord)) / median(m.of(direct, cpuPerRecord))
	memory := m.extra(setup)
	more := []figure{{Name: rolloutsCPU, Ours: []float64{cpu}, Goal: oursAtMost(1.15)}, {Name: rolloutsMemory, Unit: "MiB", Ours: []float64{memory}}}
	if one := max(m.extra(problemsOnly), m.extra(pageOnly)); setup == problemsAndPage && one > 0 {
		more = append(more, figure{Name: "this memory, over that of the larger one alone", Ours: []float64{memory / one}, Goal: oursAtMost(1.2)})
	}
	return more
}

// extra returns how much more memory a setup takes, in MiB; 0 if it was not measured.
func (m measurements) extra(setup string) float64 {
	if len(m[setup]) == 0 || len(m[direct]) == 0 {
		return 0
	}
	return median(m.of(setup, peakRSS)) - median(m.of(direct, peakRSS))
}

// planRollouts returns the cluster and its events. The first pods of the cluster are known; the others
// start.
func (b *benchmark) planRollouts() (size, []change) {
	n := int(3 * float64(b.size.perSecond) * b.rateLength.Seconds())
	known := b.size.pods
	starting := n / 2 / len(startSteps)
	sz := b.size
	sz.deployments = (known + starting + podsEach - 1) / podsEach
	sz.pods = sz.deployments * podsEach
	changes := make([]change, n)
	for i := range changes {
		c, turn := &changes[i], i/2
		c.at = time.Duration(i) * time.Second / time.Duration(b.size.perSecond)
		if step := startSteps[turn%len(startSteps)]; i%2 == 0 {
			c.pod, c.reason, c.message = known+turn/len(startSteps)%(sz.pods-known), step.reason, step.message
			continue
		}
		const prime = 7919 // It has no divisor in common with the number of pods.
		switch turn % 4 {
		case 0:
			c.pod = turn * prime % known
		case 1, 2:
			c.pod, c.repeat = changes[i-2].pod, true
		default:
			c.pod, c.reason, c.message = turn*prime%known, "Resized", "Volume app-data was resized to 20Gi"
		}
	}
	return sz, changes
}

func (b *benchmark) rolloutsOnce(ctx context.Context, c runner, sz size, changes []change) (values, error) {
	return b.onCluster(ctx, sz, func(kube *cluster) (values, error) {
		return kube.onRig(c, func(r *rig) (values, error) {
			if err := errors.Join(r.settle(ctx), r.warmUp(ctx, b.size.pods)); err != nil {
				return nil, err
			}
			// The traces of the pods that are known from now on are no part of the load.
			if err := wait(ctx, b.tracesSettle); err != nil {
				return nil, err
			}
			r.sink.reset()
			return r.measure(ctx, changes, b.tracesSettle)
		})
	})
}
