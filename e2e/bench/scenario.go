// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// scenario is one comparison of the two Collectors.
type scenario struct {
	name  string // on the command line and in the file of the results
	title string // in test/PERFORMANCE.md
	run   func(ctx context.Context, l *benchmark) (result, error)
	// isLight is whether it needs almost no processor for a long time. Such scenarios that follow each
	// other run at the same time.
	isLight bool
}

// scenarios are all there are, in the order in which they are run and reported. A scenario has a
// file of its own and a line here.
var scenarios = []scenario{
	curvesScenario,
	dayScenario,
	idleScenario,
	loadScenario,
	killScenario,
	haScenario,
	startScenario,
	listingScenario,
	replayScenario,
	backendScenario,
	growthScenario,
	stormScenario,
	namespacesScenario,
	hangingScenario,
	clustersScenario,
	rolloutsScenario,
}

// scenariosNamed are those that are asked for; all of them if none is named.
func scenariosNamed(names []string) ([]scenario, error) {
	if len(names) == 0 {
		return scenarios, nil
	}
	var chosen []scenario
	for _, name := range names {
		s, ok := scenarioNamed(name)
		if !ok {
			return nil, fmt.Errorf("there is no scenario %q; there are: %s", name, strings.Join(scenarioNames(), ", "))
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

func scenarioNamed(name string) (scenario, bool) {
	for _, s := range scenarios {
		if s.name == name {
			return s, true
		}
	}
	return scenario{}, false
}

func scenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// runner is a Collector that is measured.
type runner struct {
	name     string // of its receiver
	label    string // of its setup, for progress reports; empty: the name is enough
	binary   string
	receiver string   // YAML: the receiver's settings, in braces
	over     []string // YAML over the rest of the configuration, as the Collector's --config yaml: takes it
	env      []string // in addition to that of the benchmark
}

// kubeEventsReceiver is the type of the receiver that the benchmarks measure.
const kubeEventsReceiver = "kube_events"

func kubeEvents(binary string) runner {
	return runner{name: kubeEventsReceiver, binary: binary, receiver: "{auth_type: kubeConfig}"}
}

func k8sEvents(binary string) runner {
	return runner{name: "k8s_events", binary: binary, receiver: "{auth_type: kubeConfig}"}
}

// String returns the label for progress reports.
func (c runner) String() string { return cmp.Or(c.label, c.name) }

// with is the runner with other settings of its receiver, as YAML in braces.
func (c runner) with(receiver string) runner {
	c.receiver = receiver
	return c
}

// storing is the runner with a storage extension that uses a directory.
func (c runner) storing(directory string) runner {
	c.over = append(slices.Clone(c.over), "extensions: {file_storage: {directory: "+directory+"}}",
		"service::extensions: [pprof, file_storage]", "receivers::"+c.name+"::storage: file_storage")
	return c
}

// recommended is the runner as the README recommends: with storage, and without what acknowledges
// records before they are delivered.
func (c runner) recommended(directory string) runner {
	return c.storing(directory).exporting("{sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}")
}

// leaseName is the name of the Lease in the namespace default.
const leaseName = "bench"

// electing is the runner as the chart installs it by default, in what its records need. The
// extensions for probes are left out.
func (c runner) electing(string) runner {
	c = c.exporting("{sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}")
	c.env = append(slices.Clone(c.env), "GOMEMLIMIT=378MiB")
	c.over = append(c.over, "service::extensions: [pprof, k8s_leader_elector]", "receivers::"+c.name+"::k8s_leader_elector: k8s_leader_elector",
		"extensions: {k8s_leader_elector: {auth_type: kubeConfig, lease_name: "+leaseName+", lease_namespace: default}}",
		"processors: {memory_limiter: {check_interval: 1s, limit_mib: 400, spike_limit_mib: 102}, resource/source: {attributes: [{key: log.source, value: kube_events, action: upsert}]}}",
		"service::pipelines::logs::processors: [memory_limiter, resource/source]", "service::pipelines::metrics::processors: [memory_limiter]")
	return c
}

// waiting is the runner with storage and with an exporter queue that acknowledges records after it
// has delivered them. Its flush_timeout makes the requests larger.
func (c runner) waiting(directory string) runner {
	return c.storing(directory).exporting("{sending_queue: {wait_for_result: true, sizer: items, queue_size: 100000, " +
		"batch: {flush_timeout: 50ms, sizer: bytes, min_size: 1000000, max_size: 3000000}}, retry_on_failure: {enabled: false}}")
}

// exporting is the runner with other settings of its exporter, and without the batch processor.
func (c runner) exporting(exporter string) runner {
	c.over = append(slices.Clone(c.over), "exporters::otlp_http: "+exporter)
	for _, signal := range c.signals() {
		c.over = append(c.over, "service::pipelines::"+signal+"::processors: []")
	}
	return c
}

// signals are the pipelines of the runner: all that its receiver has.
func (c runner) signals() []string {
	if c.name == kubeEventsReceiver {
		return []string{"logs", "metrics"}
	}
	return []string{"logs"}
}

// size is how much a scenario does.
type size struct {
	namespaces, deployments, pods int // pods in all, of all deployments
	retired                       int // ReplicaSets without pods that each Deployment has in addition
	observations, updates         int // of the scenario load; updates are among the observations
	perSecond                     int
	existing                      int // events that are there before a Collector starts
}

var fullSize = size{
	namespaces: 10, deployments: 200, pods: 2000,
	observations: 20_000, updates: 4_072, perSecond: 1000,
	existing: 50_000,
}

// benchmark is what scenarios work with.
type benchmark struct {
	ours, theirs runner
	traced       runner // ours, with the connector kube_rollouts
	rounds       int
	starts       int    // of each setup of ours, in the scenario start
	only         string // the names of the setups to measure, with commas; empty: all
	size         size
	controlPlane string // the directory of its programs
	profiles     string // a directory for profiles; empty: none are wanted
	playback     playback
	cold         cold
	clusters     clusters
	listing      int // events that exist in the scenario listing
	hanging      hanging
	kills        kills
	ha           ha
	curves       curves
	day          day
	backend      backend
	rollouts     rollouts
}

// logf reports progress to the user.
func (*benchmark) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// values are what one run of one Collector measured, by the figure's name.
type values map[string]float64

// String lists them by name, for the progress report.
func (v values) String() string {
	parts := make([]string, 0, len(v))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, name+" "+decimal(v[name]))
	}
	return strings.Join(parts, ", ")
}

// add adds the values of one run to the figures.
func add(figures []figure, v values, ours bool) {
	for i := range figures {
		f := &figures[i]
		value, ok := v[f.Name]
		switch {
		case !ok:
		case ours:
			f.Ours = append(f.Ours, value)
		default:
			f.Theirs = append(f.Theirs, value)
		}
	}
}

// measured are the figures that have values.
func measured(figures []figure) (some []figure) {
	for _, f := range figures {
		if len(f.Ours)+len(f.Theirs) > 0 {
			some = append(some, f)
		}
	}
	return some
}
