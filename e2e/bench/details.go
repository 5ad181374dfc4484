// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

const (
	withoutDetails = "without-details"

	requests        = "requests for owners and details"
	requestsRatio   = "requests, over those without details"
	detailsRate     = "requests for details in a second"
	detailsCPU      = "processor time, over that without details"
	detailsMemory   = "peak memory (RSS), more than without details"
	otherTail       = "records about other pods: latency, 99th percentile"
	otherTailRatio  = "records about other pods: latency, 99th percentile, over that without details"
	endsUnexplained = "ends of containers without a reason"
	revisionsKnown  = "new revisions whose changes are known"

	// crashesBegin is the time in which all containers crash for the first time.
	crashesBegin = time.Minute
	// othersPerSecond are the events about pods that do not crash.
	othersPerSecond = 50
	// detailedVariables make a pod as large as that of an application: 13 KiB of JSON.
	detailedVariables = 60
)

// runDetails compares the same Collector with and without details on a day.
func runDetails(ctx context.Context, b *benchmark) (r result, err error) {
	length, sz := b.day/2, b.detailed()
	changes := slices.DeleteFunc(planDay(length, sz.pods), func(c change) bool { return c.pod == 0 })
	changes = append(changes, planCrash(0, time.Second, length)...)
	updates := planUpdates(length, sz)
	changes = append(changes, updates...)
	r.Groups, err = b.compareDetails(ctx, func(ctx context.Context, r *rig) (values, error) {
		return r.measureDetails(ctx, changes)
	}, func(with, without func(string) float64) []figure {
		return []figure{
			{Name: requestsRatio, Ours: []float64{with(requests) / without(requests)}, Goal: oursAtMost(1.1)},
			{Name: detailsCPU, Ours: []float64{with(cpuPerRecord) / without(cpuPerRecord)}, Goal: oursAtMost(1.1)},
			{Name: endsUnexplained, Ours: []float64{with(endsUnexplained)}, Goal: oursAtMost(0)},
			{Name: revisionsKnown, Ours: []float64{with(revisionsKnown)}, Goal: oursAtLeast(1)},
		}
	})
	r.Text = fmt.Sprintf(`The events are those of the section "A part of a working day", for %s. In addition, the controllers
write %s events about new ReplicaSets. The container that crashes has the status that a kubelet writes. All Collectors are the
same program, with storage and direct delivery. One has `+"`details: {enabled: false}`"+`. None knows an owner before.`,
		length, thousands(len(updates)))
	r.Notes = detailsNotes
	return r, err
}

// runCrashes compares them while many containers crash.
func runCrashes(ctx context.Context, b *benchmark) (r result, err error) {
	sz := b.detailed()
	var changes []change
	for i := range b.crashing {
		begin := min(crashesBegin, b.crashes/4) * time.Duration(i) / time.Duration(b.crashing)
		changes = append(changes, planCrash(i, begin, b.crashes)...)
	}
	crashes := len(changes)
	for i := range int(b.crashes.Seconds() * othersPerSecond) {
		changes = append(changes, change{
			at: time.Duration(i) * time.Second / othersPerSecond, pod: b.crashing + i%(sz.pods-b.crashing),
			reason: "Resized", message: "Volume app-data was resized to 20Gi",
		})
	}
	r.Groups, err = b.compareDetails(ctx, func(ctx context.Context, r *rig) (values, error) {
		// A status that was read for an event of the warm-up serves others for a moment.
		if err := errors.Join(r.warmUp(ctx, sz.pods), wait(ctx, 5*time.Second)); err != nil {
			return nil, err
		}
		v, err := r.measureDetails(ctx, changes)
		if err == nil {
			v[otherTail] = r.sink.summaryOf(r.kube.isAfter(b.crashing)).latency(0.99)
		}
		return v, err
	}, func(with, without func(string) float64) []figure {
		return []figure{
			{Name: detailsRate, Ours: []float64{(with(requests) - without(requests)) / b.crashes.Seconds()}, Goal: oursAtMost(20 + 600/b.crashes.Seconds())},
			{Name: otherTailRatio, Ours: []float64{with(otherTail) / without(otherTail)}, Goal: oursAtMost(1.1)},
			{Name: detailsCPU, Ours: []float64{with(cpuPerRecord) / without(cpuPerRecord)}},
			{Name: endsUnexplained, Ours: []float64{with(endsUnexplained)}},
		}
	})
	r.Text = fmt.Sprintf(`A real API server has %s pods, of which the Collector knows the owners. The containers of %s of them begin to
crash within %s, and end %s times in %s. As a kubelet does, the benchmark writes their status, and waits 10s, 20s, 40s and so on
before the next start. %s events are about them, and %d a second about the other pods. All Collectors are the same program, with
storage and direct delivery. One has `+"`details: {enabled: false}`.",
		thousands(sz.pods), thousands(b.crashing), crashesBegin, thousands(ends(changes)), b.crashes, thousands(crashes), othersPerSecond)
	r.Notes = append(slices.Clone(detailsNotes), "At most 600 requests for details are sent at once, and 20 a second over a long time. An end that gets none has no reason, unless a later event asks again.")
	return r, err
}

var detailsNotes = []string{
	"Requests are GET and LIST of pods, ReplicaSets and Deployments, as the API server counts them.",
	fmt.Sprintf("Each container has %d variables, so that a pod is 13 KiB of JSON.", detailedVariables),
	"Ratios and differences are between medians.",
}

// detailed is the usual cluster with larger pods.
func (b *benchmark) detailed() size {
	sz := b.size
	sz.variables = detailedVariables
	return sz
}

// compareDetails measures both Collectors. Further figures get the median of a value with and without details.
func (b *benchmark) compareDetails(
	ctx context.Context, measure func(context.Context, *rig) (values, error), further func(with, without func(string) float64) []figure,
) ([]group, error) {
	setups, err := b.onlyChosen([]setup{
		{name: withoutDetails, title: "Without details", runner: b.ours.with("receivers::" + kubeEventsReceiver + "::details: {enabled: false}"), configure: runner.recommended},
		{name: direct, title: "With details", runner: b.ours, configure: runner.recommended},
	})
	if err != nil {
		return nil, err
	}
	m := measurements{}
	if err := m.interleave(ctx, b, b.rounds, setups, "", func(ctx context.Context, c runner) (values, error) {
		return b.onCluster(ctx, b.detailed(), func(kube *cluster) (values, error) {
			return kube.onRig(c, func(r *rig) (values, error) {
				if err := r.settle(ctx); err != nil {
					return nil, err
				}
				return measure(ctx, r)
			})
		})
	}); err != nil {
		return nil, err
	}
	groups := m.groups(setups, detailsFigures)
	if last := len(groups) - 1; last > 0 {
		with := func(figure string) float64 { return median(m.of(direct, figure)) }
		without := func(figure string) float64 { return median(m.of(withoutDetails, figure)) }
		groups[last].Figures = append(append(groups[last].Figures, further(with, without)...),
			figure{Name: detailsMemory, Unit: "MiB", Ours: []float64{with(peakRSS) - without(peakRSS)}, Goal: oursAtMost(3)})
	}
	return groups, nil
}

func detailsFigures(string) []figure {
	return []figure{
		{Name: requests}, {Name: cpuPerRecord, Unit: "µs"}, {Name: peakRSS, Unit: "MiB"},
		{Name: latencyTail, Unit: "ms"}, {Name: otherTail, Unit: "ms"},
		{Name: lost, Goal: oursAtMost(0)}, {Name: unowned, Goal: oursAtMost(0)},
	}
}

// measureDetails measures the changes, and counts what details say.
func (r *rig) measureDetails(ctx context.Context, changes []change) (values, error) {
	explained, revisions := map[string]bool{}, 0
	r.sink.owners = func(resource, log pcommon.Map) bool {
		if otlpsink.Text(log, "k8s.container.status.last_terminated_reason") != "" {
			explained[fmt.Sprint(otlpsink.Text(resource, "k8s.object.name"), " ", otlpsink.Number(log, "k8s.container.restart_count"))] = true
		}
		if _, ok := log.Get("k8s.rollout.changes"); ok {
			revisions++
		}
		return isOwned(resource, log) || otlpsink.Text(resource, "k8s.object.kind") == "Deployment"
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	v, err := r.measure(ctx, changes, 0)
	if err != nil {
		return nil, err
	}
	v[requests], v[endsUnexplained], v[revisionsKnown] = v[ownerRequests], float64(ends(changes)-len(explained)), float64(revisions)
	return v, nil
}

// isAfter returns whether an event is about one of the pods after the first ones.
func (c *cluster) isAfter(first int) func(event string) bool {
	others := map[string]bool{}
	for _, pod := range c.pods[first:] {
		others[pod.Name] = true
	}
	return func(event string) bool {
		pod, _, _ := strings.Cut(event, ".")
		return others[pod]
	}
}
