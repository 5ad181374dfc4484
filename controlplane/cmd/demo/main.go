// SPDX-License-Identifier: Apache-2.0

// Demo shows the output of the kube_events receiver: it runs the Collector. Without a kubeconfig
// file, it first starts a control plane with simulated nodes, and applies workloads to it. It runs
// until Ctrl-C or until the Collector ends, and leaves nothing behind. If it is killed with kill -9,
// it leaves the directory of the control plane, which the next demo removes. Its exit code is the
// Collector's, or 0 after Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// collectorGrace is how long the Collector may take to deliver its data at the end.
const collectorGrace = 15 * time.Second

// show is one run of the demo.
type show struct {
	binaries   string    // directory of the control plane's programs
	collector  string    // the Collector's program
	config     string    // the files of the Collector's configuration, with commas
	kubeconfig string    // of the cluster to show, in the form of KUBECONFIG; empty means a demo's
	page       string    // where the Collector serves its page, if known
	addresses  []address // where the Collector will listen
}

func main() {
	s := show{page: os.Getenv(pageVariable), addresses: addressesOf(os.Getenv)}
	flag.StringVar(&s.binaries, "binaries", "build/controlplane", "directory of the control plane's programs")
	flag.StringVar(&s.collector, "collector", "build/otelcol-kubeevents", "the Collector's program")
	flag.StringVar(&s.config, "config", "distribution/config.yaml,distribution/problems.yaml", "the files of the Collector's configuration, with commas")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "show the cluster of this kubeconfig file, or list of files; empty: start a cluster for the demo")
	flag.Parse()

	code, err := s.run(untilAsked())
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// untilAsked returns a context that ends with Ctrl-C, SIGTERM, or the end of the terminal.
func untilAsked() context.Context {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, _ := signal.NotifyContext(context.Background(), signals...)
	// The second Ctrl-C ends this process immediately, and the other processes end with it. SIGHUP
	// stays handled: the kernel and the shell may both send it when a terminal ends.
	context.AfterFunc(ctx, func() { signal.Reset(syscall.SIGINT, syscall.SIGTERM) })
	// The reader of the output may be gone while the demo stops.
	signal.Ignore(syscall.SIGPIPE)
	return ctx
}

// run returns the exit code of a Collector that ended without a request, or 0.
func (s show) run(ctx context.Context) (code int, err error) {
	if err := s.checkAddresses(); err != nil {
		return 1, err
	}
	if s.kubeconfig != "" {
		return s.showCluster(ctx)
	}
	return s.showDemo(ctx)
}

// showCluster changes nothing in the cluster.
func (s show) showCluster(ctx context.Context) (code int, err error) {
	kubeconfig, err := findKubeconfig(s.kubeconfig)
	if err != nil {
		return 1, err
	}
	say("showing the cluster of KUBECONFIG=%s; the demo changes nothing in it", kubeconfig)
	return s.perform(ctx, kubeconfig, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
}

func (s show) showDemo(ctx context.Context) (code int, err error) {
	say("starting a Kubernetes control plane ...")
	cp, err := controlplane.Start(ctx, controlplane.Options{Binaries: s.binaries, ControllerManager: true, Scheduler: true, Nodes: 3})
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return 0, nil
		}
		return 1, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	say("it is ready; to look at it from another terminal: export KUBECONFIG=%s", cp.Kubeconfig())
	if err := demo.Define(ctx, cp.RESTConfig()); err != nil {
		return 1, err
	}
	say("API server, controllers and scheduler are real; nodes and pods are simulated (kwok): no container runs, and every image exists")
	say("to cause a problem: "+breakage, cp.Kubeconfig())
	say("to end it: "+repair, cp.Kubeconfig())
	return s.perform(ctx, cp.Kubeconfig(), func(ctx context.Context) error { return demo.Run(ctx, cp.RESTConfig()) })
}

// breakage is a command that makes a workload fail: no node has this label. It names the demo's
// kubeconfig, so that it cannot reach another cluster.
const breakage = `KUBECONFIG=%s kubectl --namespace demo patch deployment shop --patch '{"spec": {"template": {"spec": {"nodeSelector": {"disk": "gold"}}}}}'`

// repair is the command that ends this problem.
const repair = `KUBECONFIG=%s kubectl --namespace demo rollout undo deployment shop`

// perform runs the Collector and happen concurrently, until ctx or one of the two ends. Then it
// stops the Collector before happen.
func (s show) perform(ctx context.Context, kubeconfig string, happen func(context.Context) error) (code int, err error) {
	var arguments []string
	for file := range strings.SplitSeq(s.config, ",") {
		arguments = append(arguments, "--config", file)
	}
	collector, err := process.Start(process.Command{
		Path: s.collector, Args: arguments,
		Env:    []string{"KUBECONFIG=" + kubeconfig},
		Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return 1, fmt.Errorf("%w: `make build` builds the Collector", err)
	}
	s.welcome(ctx, collector.Done())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- happen(ctx) }()

	select {
	case <-ctx.Done():
		say("stopping ...")
	case <-collector.Done():
		code = collector.ExitCode()
		say("the Collector ended with exit code %d; stopping ...", code)
	case err = <-ended:
		ended <- nil // for the receive below
	}
	err = errors.Join(err, collector.Stop(collectorGrace))
	cancel()
	return code, errors.Join(err, <-ended)
}

// welcome reports that the Collector runs, and the address of its page when the page answers.
func (s show) welcome(ctx context.Context, ended <-chan struct{}) {
	answers := s.page != "" && awaitPage(ctx, "http://"+s.page, ended)
	select {
	case <-ctx.Done():
		return
	case <-ended:
		return
	default:
	}
	say("the Collector is running; Ctrl-C stops everything")
	if answers {
		say("in a browser: http://%s", s.page)
	}
}

// say writes a message to standard error, because standard output has the events.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "demo: "+format+"\n", args...)
}
