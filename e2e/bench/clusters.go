// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var clustersScenario = scenario{name: "clusters", title: "A hundred clusters in one Collector", run: runClusters}

// clusters is how much the scenario clusters does.
type clusters struct {
	healthy   int
	broken    int // a third of each: the API server refuses connections, never answers, or is slow
	live      int // events in each cluster
	perSecond int // in each cluster
	length    time.Duration
	slow      time.Duration // how long a slow API server takes for an answer about owners and kinds
}

var fullClusters = clusters{healthy: 80, broken: 20, live: 10_000, perSecond: 10, length: 30 * time.Second, slow: 5 * time.Second}

const (
	clustersReady   = "time until all events are listed"
	clustersBusy    = "processors kept busy"
	clustersKilled  = "records lost over a kill -9"
	clustersUnowned = "records without all owners"
)

// chartLimit is what the chart sets for its default memory limit.
const chartLimit = "GOMEMLIMIT=378MiB"

func runClusters(ctx context.Context, b *benchmark) (result, error) {
	size := b.clusters
	r := result{
		Text: fmt.Sprintf(`One Collector has a receiver for each of %d simulated API servers, with storage and `+"`%s`"+`, as the chart sets it. Each of them has %s events
when the Collector starts, and then %d a second. In the first %s, the owners become known; the next %s are measured. Then the Collector is killed and restarted while
events come as before. *Broken* clusters come in addition: a third each refuses connections, never answers, and takes %s for each answer about an owner.
With direct delivery, each receiver sends requests of its own. The exporter keeps two idle connections by default, so most requests open one.`,
			size.healthy, chartLimit, thousands(size.live), size.perSecond, size.length, size.length, size.slow),
		Notes: []string{"Latency is that of the healthy clusters, before the kill."},
	}
	for _, v := range []struct {
		title     string
		configure func(c runner, directory string) runner
		broken    int
		figures   []figure
	}{
		{"direct delivery", runner.recommended, 0, withoutGoals(clustersFigures())},
		{"`wait_for_result`", runner.waiting, 0, clustersFigures()},
		{fmt.Sprintf("`wait_for_result`, and %d broken clusters", size.broken), runner.waiting, size.broken, clustersFigures()},
	} {
		of, err := b.clustersOnce(ctx, v.configure, v.broken)
		if err != nil {
			return r, err
		}
		b.logf("%s: %v", v.title, of)
		add(v.figures, of, true)
		r.Groups = append(r.Groups, group{Title: v.title, Column: kubeEventsReceiver, Figures: measured(v.figures)})
	}
	return r, nil
}

func clustersFigures() []figure {
	return []figure{
		{Name: clustersReady, Unit: "s"},
		{Name: peakRSS, Unit: "MiB", Goal: oursAtMost(512)},
		{Name: clustersBusy, Goal: oursAtMost(0.5)},
		{Name: latencyHalf, Unit: "ms"},
		{Name: latencyTail, Unit: "ms", Goal: oursAtMost(500)},
		{Name: lost, Goal: oursAtMost(0)},
		{Name: clustersKilled, Goal: oursAtMost(0)},
		{Name: clustersUnowned},
	}
}

// withoutGoals returns the figures of what is measured only for comparison.
func withoutGoals(figures []figure) []figure {
	for i := range figures {
		figures[i].Goal = nil
	}
	return figures
}

// site is one cluster.
type site struct {
	server     *replay.Server // nil: it does not answer
	kubeconfig string
	recorder   *replay.Recorder
	fleet      *replay.Fleet
	begin      time.Time
	sent       int
	unmeasured int // of those that were sent
	close      func()
}

// clustersOnce measures one Collector with all healthy clusters, and some broken ones.
func (b *benchmark) clustersOnce(ctx context.Context, configure func(runner, string) runner, broken int) (v values, err error) {
	directory, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	var sites []*site
	defer func() {
		for _, s := range sites {
			s.close()
		}
	}()
	for i := range b.clusters.healthy + broken {
		s, err := b.newSite(directory, i, i-b.clusters.healthy)
		if err != nil {
			return nil, err
		}
		sites = append(sites, s)
	}
	backend, err := newSink()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, backend.close()) }()
	c := watching(configure(b.ours, directory), sites)
	c.env = append(c.env, chartLimit)
	col, err := startCollector(c, sites[0].kubeconfig, backend.url())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, col.stop()) }()
	return b.measureClusters(ctx, &col, sites[:b.clusters.healthy], backend)
}

// newSite starts the API server of a cluster. A number of a broken one is not negative.
func (b *benchmark) newSite(directory string, number, broken int) (*site, error) {
	s := &site{
		kubeconfig: filepath.Join(directory, fmt.Sprintf("kubeconfig-%03d", number)),
		recorder:   replay.NewRecorder(),
		fleet:      &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: growthPods},
		// Names of events are made of times: no two clusters have the same.
		begin: time.Now().Add(time.Hour).Truncate(time.Second).Add(time.Duration(number)),
	}
	options := replay.Options{
		Fleet: s.fleet, Latency: b.playback.ownerLatency,
		Live: liveEvents{s.fleet, b.clusters.live, s.begin.Add(-24 * time.Hour)},
	}
	if broken >= 0 && broken%3 == 2 {
		options.Latency = b.clusters.slow
	}
	server, err := replay.Start(options)
	if err != nil {
		return nil, err
	}
	s.server, s.close = server, server.Close
	if err := server.WriteKubeconfig(s.kubeconfig); err != nil || broken < 0 || broken%3 == 2 {
		return s, err
	}
	return s, s.breakDown(broken%3 == 0)
}

// breakDown replaces the API server by an address that refuses connections, or never answers.
func (s *site) breakDown(refuses bool) error {
	address := strings.TrimPrefix(s.server.URL(), "https://")
	s.server.Close()
	s.server, s.close = nil, func() {}
	if refuses {
		return nil
	}
	listener, err := net.Listen("tcp", address) // Nobody accepts: the kernel does.
	if err == nil {
		s.close = func() { _ = listener.Close() }
	}
	return err
}

// watching returns the runner with a receiver for each cluster.
func watching(c runner, sites []*site) runner {
	var receivers, names []string
	for i, s := range sites {
		name := fmt.Sprintf("%s/%03d", c.name, i)
		names = append(names, name)
		receivers = append(receivers, fmt.Sprintf("%s: {auth_type: kubeConfig, kubeconfig: %q, cluster_name: %q, storage: file_storage}", name, s.kubeconfig, fmt.Sprintf("cluster-%03d", i)))
	}
	c.over = append(c.over, "receivers: {"+strings.Join(receivers, ", ")+"}")
	for _, signal := range c.signals() {
		c.over = append(c.over, "service::pipelines::"+signal+"::receivers: ["+strings.Join(names, ", ")+"]")
	}
	return c
}

// measureClusters measures the Collector while the clusters have events. It kills and replaces it.
func (b *benchmark) measureClusters(ctx context.Context, col **collector, sites []*site, backend *sink) (v values, err error) {
	listed := func() bool {
		n, err := (*col).ownMetric("otelcol_kube_events_received")
		return err == nil && int(n) >= len(sites)*b.clusters.live
	}
	if err := until(ctx, 5*time.Minute, "all live events are listed", listed); err != nil {
		return nil, errors.Join(err, (*col).failure("does not list"))
	}
	ready := time.Since((*col).Started)
	if err := wait(ctx, b.playback.settle); err != nil {
		return nil, err
	}
	if err := b.warmClusters(ctx, sites, backend); err != nil {
		return nil, err
	}
	before, err := (*col).usage()
	if err != nil {
		return nil, err
	}
	profiled := b.profile(ctx, *col, "clusters", b.clusters.length)
	if err := b.releaseInAll(ctx, sites, backend); err != nil {
		return nil, err
	}
	if err := <-profiled; err != nil {
		return nil, err
	}
	after, err := (*col).usage()
	if err != nil {
		return nil, err
	}
	if err := backend.wait(ctx, b.sentTo(sites), 10*time.Second); err != nil {
		return nil, err
	}
	steady := backend.summary()
	v = values{
		clustersReady: ready.Seconds(), peakRSS: mebibytes(after.peakRSS),
		clustersBusy: (after.cpu - before.cpu).Seconds() / b.clusters.length.Seconds(),
		latencyHalf:  steady.latency(0.5), latencyTail: steady.latency(0.99),
		clustersUnowned: float64(steady.delivered - steady.owned),
	}
	lostBefore := steady.sent - steady.delivered
	if err := b.killAmongClusters(ctx, col, sites, backend); err != nil {
		return nil, err
	}
	sum := backend.summary()
	v[clustersKilled] = float64(sum.sent - sum.delivered - lostBefore)
	v[lost] = float64(lostBefore)
	return v, nil
}

// warmClusters lets the clusters have events until most of their owners are known.
func (b *benchmark) warmClusters(ctx context.Context, sites []*site, backend *sink) error {
	if err := b.releaseInAll(ctx, sites, backend); err != nil {
		return err
	}
	if err := backend.wait(ctx, b.sentTo(sites), 10*time.Second); err != nil {
		return err
	}
	backend.reset()
	for _, s := range sites {
		s.unmeasured = s.sent
	}
	return nil
}

// killAmongClusters kills the Collector while the clusters have events, and replaces it.
func (b *benchmark) killAmongClusters(ctx context.Context, col **collector, sites []*site, backend *sink) error {
	released := make(chan error, 1)
	go func() { released <- b.releaseInAll(ctx, sites, backend) }()
	if err := wait(ctx, b.clusters.length/3); err != nil {
		return errors.Join(err, <-released)
	}
	old := *col
	old.Kill()
	restarted, err := startCollector(old.runner, sites[0].kubeconfig, backend.url())
	if err != nil {
		return errors.Join(err, <-released)
	}
	*col = restarted
	if err := <-released; err != nil {
		return err
	}
	return backend.wait(ctx, b.sentTo(sites), 20*time.Second)
}

func (*benchmark) sentTo(sites []*site) (n int) {
	for _, s := range sites {
		n += s.sent - s.unmeasured
	}
	return n
}

// releaseInAll lets the clusters have events for a while, at their rate.
func (b *benchmark) releaseInAll(ctx context.Context, sites []*site, backend *sink) error {
	interval := time.Second / time.Duration(b.clusters.perSecond*len(sites))
	began := time.Now()
	for next := 0; time.Since(began) < b.clusters.length; {
		if err := wait(ctx, stormTick); err != nil {
			return err
		}
		for due := int(time.Since(began) / interval); next < due; next++ {
			sites[next%len(sites)].release(backend)
		}
	}
	return nil
}

// release lets the cluster have one more event.
func (s *site) release(backend *sink) {
	const step = 7919 // It has no divisor in common with the number of pods.
	ev := s.fleet.BackOff(s.sent*step%s.fleet.Pods, s.begin.Add(time.Duration(s.sent)*time.Millisecond))
	s.sent++
	frame := s.recorder.Frame(watch.Added, ev)
	backend.note(ev.Name, account.Occurrences(ev), time.Now())
	s.server.Release(frame)
}
