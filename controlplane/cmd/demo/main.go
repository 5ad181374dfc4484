// SPDX-License-Identifier: Apache-2.0

// Demo shows what the kube_events receiver sees: it starts a control plane with
// fake nodes, workloads on it, and the Collector, whose output it passes on. It
// runs until Ctrl-C or until the Collector ends, and leaves nothing behind. Its
// exit code is the Collector's, or 0 after Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/process"
)

// collectorGrace is how long the Collector may take to deliver what it holds.
const collectorGrace = 15 * time.Second

// show is one run of the demo.
type show struct {
	binaries  string // directory of the control plane's programs
	collector string // the Collector's program
	config    string // the Collector's configuration
}

func main() {
	var s show
	flag.StringVar(&s.binaries, "binaries", "build/controlplane", "directory of the control plane's programs")
	flag.StringVar(&s.collector, "collector", "build/otelcol", "the Collector's program")
	flag.StringVar(&s.config, "config", "distribution/config.yaml", "the Collector's configuration")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// The second Ctrl-C does not ask: it ends this process, and its end theirs.
	context.AfterFunc(ctx, stop)

	code, err := s.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit code of a Collector that ended of itself, or 0.
func (s show) run(ctx context.Context) (code int, err error) {
	say("starting a Kubernetes control plane ...")
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Binaries: s.binaries, ControllerManager: true, Scheduler: true, Nodes: 3,
	})
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return 0, nil
		}
		return 1, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	say("it is ready; to look at it from another terminal: export KUBECONFIG=%s", cp.Kubeconfig())

	collector, err := process.Start(process.Command{
		Path: s.collector, Args: []string{"--config", s.config},
		Env:    []string{"KUBECONFIG=" + cp.Kubeconfig()},
		Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return 1, fmt.Errorf("%w: `make build` builds the Collector", err)
	}
	say("the Collector is running; Ctrl-C stops everything")
	if page := os.Getenv("PAGE_ENDPOINT"); page != "" { // which the Collector's configuration takes its address from
		say("in a browser: http://%s", page)
	}
	say("each line is an event: when, type, reason, namespace, object ← its owners [Tilt manifest] ×occurrences  message")
	return perform(ctx, cp, collector)
}

// perform keeps the demo going until ctx, the Collector or the demo itself ends,
// and then stops the Collector before the demo.
func perform(ctx context.Context, cp *controlplane.ControlPlane, collector *process.Process) (code int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- demo.Run(ctx, cp.RESTConfig()) }()

	select {
	case <-ctx.Done():
		say("stopping ...")
	case <-collector.Done():
		code = collector.ExitCode()
		say("the Collector ended with exit code %d; stopping the rest ...", code)
	case err = <-ended:
		ended <- nil // it is waited for below
	}
	err = errors.Join(err, collector.Stop(collectorGrace))
	cancel()
	return code, errors.Join(err, <-ended)
}

// say tells the user what is going on, apart from the events on standard output.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "demo: "+format+"\n", args...)
}
