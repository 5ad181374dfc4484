// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// benchmark is what scenarios work with.
type benchmark struct {
	lengths

	ours, theirs runner
	rounds       int
	only         string // the names of the setups to measure, with commas; empty: all
	controlPlane string // the directory of its programs
}

// lengths are how much the scenarios do.
type lengths struct {
	size         size
	existing     int           // events that exist before a Collector starts, in the scenario start
	rates        []int         // events a second, one after the other
	rateLength   time.Duration // at each rate, and of the scenario rollouts
	day, idle    time.Duration
	kills        int    // how often the scenario kill ends the Collector
	killed       size   // the load meanwhile
	handOver     size   // the load while a leader ends
	lease        string // YAML over the settings of the leader election
	live         []int  // events that exist when a standby takes over
	namespaces   []int  // the clusters of the scenario namespaces
	healthy      size   // of the scenario hanging
	dead         int    // workloads next to them
	connector    string // YAML: the settings of kube_incidents
	tracesSettle time.Duration
	crashing     int           // containers of the scenario crashes
	crashes      time.Duration // how long they crash
	owned        []size        // the clusters of the scenario owners
	knownTimes   int           // how often the data of pods comes whose owners are known
}

// size is a cluster and its load.
type size struct {
	namespaces, deployments, pods int // pods in all, of all Deployments
	retired                       int // ReplicaSets without pods that each Deployment has in addition
	variables                     int // of the environment of each container
	observations, updates         int // updates are among the observations
	perSecond                     int
}

var fullSize = size{namespaces: 10, deployments: 200, pods: 2000, observations: 20_000, updates: 4072, perSecond: 1000}

var fullLengths = lengths{
	size: fullSize, existing: 50_000,
	rates: []int{1, 10, 100, 1000}, rateLength: 10 * time.Second,
	day: 10 * time.Minute, idle: 10 * time.Minute,
	kills: 2, killed: fullSize.with(10_000, 2036, 1000),
	// It goes on for longer than a change of the leader, so the next leader gets old and new events.
	handOver: fullSize.with(4000, 800, 100), live: []int{2000, 50_000},
	namespaces: []int{10, 200},
	healthy:    size{namespaces: 100, deployments: 800, pods: 9600, retired: 1, observations: 9600, perSecond: 1000},
	dead:       30, tracesSettle: 75 * time.Second,
	crashing: 1000, crashes: 4 * time.Minute,
	owned: []size{ownersSize(10, 2000), ownersSize(50, 20_000)}, knownTimes: 100,
}

var smallSize = size{namespaces: 2, deployments: 4, pods: 40, observations: 400, updates: 80, perSecond: 400}

// shortLengths show whether the scenarios work. Their measurements have no meaning.
var shortLengths = lengths{
	size: smallSize, existing: 300,
	rates: []int{400}, rateLength: time.Second,
	day: 10 * time.Second, idle: time.Second,
	kills: 1, killed: smallSize.with(300, 60, 400),
	handOver: smallSize.with(300, 60, 50), live: []int{50},
	lease:      "extensions::k8s_leader_elector: {lease_duration: 4s, renew_deadline: 3s, retry_period: 1s}",
	namespaces: []int{2, 4},
	healthy:    size{namespaces: 2, deployments: 4, pods: 40, observations: 40, perSecond: 40},
	dead:       2, connector: "settle_time: 100ms, idle_timeout: 2s", tracesSettle: 5 * time.Second,
	crashing: 10, crashes: 15 * time.Second,
	owned: []size{ownersSize(2, 40)}, knownTimes: 3,
}

// with returns the same cluster with another load.
func (s size) with(observations, updates, perSecond int) size {
	s.observations, s.updates, s.perSecond = observations, updates, perSecond
	return s
}

// runner is a Collector that is measured.
type runner struct {
	name     string // of its receiver
	binary   string
	receiver string   // YAML: the receiver's settings, in braces
	over     []string // YAML over the rest of the configuration, as the Collector's --config yaml: takes it
	env      []string // in addition to that of the benchmark
	// quiet is the shortest silence after which the benchmark takes records that have not come for lost.
	quiet time.Duration
}

// kubeEventsReceiver is the type of the receiver that the benchmarks measure.
const kubeEventsReceiver = "kube_events"

func kubeEvents(binary string) runner {
	return runner{name: kubeEventsReceiver, binary: binary, receiver: "{auth_type: kubeConfig}"}
}

func k8sEvents(binary string) runner {
	return runner{name: "k8s_events", binary: binary, receiver: "{auth_type: kubeConfig}"}
}

// with returns the runner with YAML over its configuration.
func (c runner) with(over ...string) runner {
	c.over = append(slices.Clone(c.over), over...)
	return c
}

// storing is the runner with a storage extension that uses a directory.
func (c runner) storing(directory string) runner {
	return c.with("extensions: {file_storage: {directory: "+directory+"}}",
		"service::extensions: [file_storage]", "receivers::"+c.name+"::storage: file_storage")
}

// direct is the runner without what acknowledges records before they are delivered: the batch
// processor and the exporter's queue.
func (c runner) direct() runner {
	return c.unbatched().with("exporters::otlp_http: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}")
}

// unbatched is the runner without the batch processor.
func (c runner) unbatched() runner {
	for _, signal := range c.signals() {
		c = c.with("service::pipelines::" + signal + "::processors: []")
	}
	return c
}

// recommended is the runner as the README recommends.
func (c runner) recommended(directory string) runner { return c.storing(directory).direct() }

// leaseName is the name of the Lease in the namespace default.
const leaseName = "bench"

// electing is the runner as the chart installs it by default, in what its records need. The
// extensions for probes are left out.
func (c runner) electing(string) runner {
	c = c.direct().with("service::extensions: [k8s_leader_elector]",
		"receivers::"+c.name+"::k8s_leader_elector: k8s_leader_elector",
		"receivers::"+c.name+"::progress_config_map: default/"+leaseName+"-progress",
		"extensions: {k8s_leader_elector: {auth_type: kubeConfig, lease_name: "+leaseName+", lease_namespace: default}}",
		"processors: {memory_limiter: {check_interval: 1s, limit_mib: 400, spike_limit_mib: 102}, "+
			"resource/source: {attributes: [{key: log.source, value: kube_events, action: upsert}]}}",
		"service::pipelines::logs::processors: [memory_limiter, resource/source]",
		"service::pipelines::metrics::processors: [memory_limiter]")
	c.env = append(slices.Clone(c.env), "GOMEMLIMIT=378MiB")
	return c
}

// signals are the pipelines of the runner: all that its receiver has.
func (c runner) signals() []string {
	if c.name == kubeEventsReceiver {
		return []string{"logs", "metrics"}
	}
	return []string{"logs"}
}

// setup is a Collector in one of the configurations that scenarios compare.
type setup struct {
	name   string // on the command line and in progress reports
	title  string // of its column
	runner runner
	// configure adds to the runner what needs a directory; nil: nothing does.
	configure func(c runner, directory string) runner
}

// The names of the setups. The others are compared with the baseline, if the scenario has it.
const (
	baseline  = "k8s_events"
	unbatched = "unbatched"
	stored    = "storage"
	direct    = "direct"
	elected   = "ha"
)

// setups returns those with the given names that the user wants, in the order of the names.
func (b *benchmark) setups(names ...string) ([]setup, error) {
	all := []setup{
		{name: baseline, title: "k8s_events", runner: b.theirs},
		{name: unbatched, title: "k8s_events without its batch processor", runner: b.theirs.unbatched()},
		{name: stored, title: "With storage, batch processor", runner: b.ours, configure: runner.storing},
		{name: direct, title: "With storage, direct delivery (recommended)", runner: b.ours, configure: runner.recommended},
		{name: elected, title: "Leader election", runner: b.ours, configure: runner.electing},
	}
	var some []setup
	for _, name := range names {
		some = append(some, all[slices.IndexFunc(all, func(s setup) bool { return s.name == name })])
	}
	return b.onlyChosen(some)
}

// onlyChosen returns the setups that the user chose; all of them if the user chose none.
func (b *benchmark) onlyChosen(setups []setup) (chosen []setup, _ error) {
	if b.only == "" {
		return setups, nil
	}
	wanted := strings.Split(b.only, ",")
	for _, s := range setups {
		if slices.Contains(wanted, s.name) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("the scenario has none of the setups %s; its first is %s", b.only, setups[0].name)
	}
	return chosen, nil
}

// once measures the setup once, with a directory of its own for its storage.
func (s setup) once(measure func(runner) (values, error)) (v values, err error) {
	if s.configure == nil {
		return measure(s.runner)
	}
	directory, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	return measure(s.configure(s.runner, directory))
}

// measurements are the values of each setup, round by round.
type measurements map[string][]values

// interleave measures the setups in turn, round after round, so that a disturbance of the machine
// affects all of them. The names of the figures get the suffix.
func (m measurements) interleave(
	ctx context.Context, b *benchmark, rounds int, setups []setup, suffix string, measure func(context.Context, runner) (values, error),
) error {
	for round := range rounds {
		for _, s := range setups {
			v, err := s.once(func(c runner) (values, error) { return measure(ctx, c) })
			if err != nil {
				return fmt.Errorf("round %d of %s%s: %w", round+1, s.name, suffix, err)
			}
			b.logf("round %d of %s%s: %v", round+1, s.name, suffix, v)
			m[s.name] = append(m[s.name], v.suffixed(suffix))
		}
	}
	return nil
}

// groups returns the table of each setup, compared with the baseline. Figures without values are
// left out.
func (m measurements) groups(setups []setup, figures func(setup string) []figure) (groups []group) {
	for _, s := range setups {
		if s.name == baseline && len(setups) > 1 {
			continue
		}
		g := group{Title: s.title}
		for _, f := range figures(s.name) {
			f.Ours, f.Theirs = m.of(s.name, f.Name), m.of(baseline, f.Name)
			if len(f.Ours)+len(f.Theirs) > 0 {
				g.Figures = append(g.Figures, f)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// of returns the values of a figure of a setup, round by round.
func (m measurements) of(setup, figure string) (all []float64) {
	for _, v := range m[setup] {
		if value, ok := v[figure]; ok {
			all = append(all, value)
		}
	}
	return all
}

// compare measures the setups and compares each with the baseline.
func (b *benchmark) compare(
	ctx context.Context, rounds int, names []string, figures func(setup string) []figure, measure func(context.Context, runner) (values, error),
) ([]group, error) {
	setups, err := b.setups(names...)
	if err != nil {
		return nil, err
	}
	m := measurements{}
	err = m.interleave(ctx, b, rounds, setups, "", measure)
	return m.groups(setups, figures), err
}
