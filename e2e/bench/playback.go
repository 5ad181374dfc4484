// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apiwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/promtext"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

// playback is how much the scenarios do that use a simulated API server: the server answers as fast
// as it is asked, and streams faster than etcd could.
type playback struct {
	ownerLatency time.Duration // how long an answer about owners takes
	namespaces   int
	deployments  int // in all namespaces

	changes   int           // of the scenario replay
	storm     time.Duration // how long pods are created, at the rate of stormPods in stormTime
	lifetime  time.Duration // of the pods of the storm
	idle      time.Duration // how long nothing happens
	live      sizes         // how many events are alive, in the scenario growth
	updating  time.Duration // how long some of them change, at each size
	perSecond int           // how many change each second
	settle    time.Duration // how long what a Collector does at its start may take
}

var fullPlayback = playback{
	ownerLatency: 20 * time.Millisecond, namespaces: 10, deployments: 200,
	changes: 200_000,
	storm:   stormTime, lifetime: 20 * time.Second, idle: 10 * time.Minute,
	live: sizes{1000, 10_000, 100_000, 1_000_000}, updating: 30 * time.Second, perSecond: 200, settle: 5 * time.Second,
}

// sizes is a flag with numbers between commas.
type sizes []int

func (s *sizes) String() string {
	parts := make([]string, len(*s))
	for i, n := range *s {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ",")
}

// Set implements flag.Value.
func (s *sizes) Set(text string) error {
	*s = nil
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no size", part)
		}
		*s = append(*s, n)
	}
	return nil
}

// rig is a simulated API server, a sink, and a Collector between them.
type rig struct {
	server     *replay.Server
	sink       *sink
	col        *collector
	directory  string
	kubeconfig string
}

// newRig starts the server and the sink.
func newRig(options replay.Options) (*rig, error) {
	server, err := replay.Start(options)
	if err != nil {
		return nil, err
	}
	r := &rig{server: server}
	if r.sink, err = newSink(); err != nil {
		server.Close()
		return nil, err
	}
	if r.directory, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	r.kubeconfig = filepath.Join(r.directory, "kubeconfig")
	if err := server.WriteKubeconfig(r.kubeconfig); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

// startCollector starts the Collector and waits until it watches.
func (r *rig) startCollector(ctx context.Context, c runner) (err error) {
	if r.col, err = startCollector(c, r.kubeconfig, r.sink.url()); err != nil {
		return err
	}
	return until(ctx, time.Minute, c.name+" watches", func() bool {
		asked := r.server.Requests()
		return asked[replay.EventsWatch]+asked[replay.EventsStream] > 0
	})
}

// stop stops everything.
func (r *rig) stop() error {
	var err error
	if r.col != nil {
		err = r.col.stop()
	}
	r.server.Close()
	return errors.Join(err, r.sink.close(), os.RemoveAll(r.directory))
}

// until polls until a condition holds.
func until(ctx context.Context, timeout time.Duration, what string, condition func() bool) error {
	err := apiwait.PollUntilContextTimeout(ctx, 10*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("not within %s: %s", timeout, what)
	}
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// ownMetric is the sum over the series of one of the Collector's own metrics.
func (c *collector) ownMetric(name string) (sum float64, err error) {
	metrics, err := promtext.Get(context.Background(), "http://"+c.metrics+"/metrics")
	return metrics.Sum(name), err
}

// accepted is how many records the receiver has passed to its pipeline.
func (c *collector) accepted() int {
	n, err := c.ownMetric("otelcol_receiver_accepted_log_records")
	if err != nil {
		return 0
	}
	return int(n)
}

// received is how many records have arrived, with repeated ones.
func (s *sink) received() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records
}

// awaitCount waits until a count has come so far, or has not changed for 5 s, or the context ends.
// It returns how far it has come. To count may be work for the Collector, so it is not done too
// often.
func awaitCount(ctx context.Context, want int, count func() int) int {
	const quiet = 5 * time.Second
	last, moved := count(), time.Now()
	_ = apiwait.PollUntilContextCancel(ctx, 100*time.Millisecond, false, func(context.Context) (bool, error) {
		if last >= want || time.Since(moved) >= quiet {
			return true, nil
		}
		if now := count(); now > last {
			last, moved = now, time.Now()
		}
		return last >= want, nil
	})
	return last
}
