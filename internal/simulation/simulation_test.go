// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

var (
	seeds     = flag.Int("seeds", 100, "how many random environments to run")
	firstSeed = flag.Uint64("first", 1, "the first seed")
	oneSeed   = flag.Uint64("seed", 0, "the one seed to replay, and to tell the story of")
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard()) // The leader election logs to it.
	directory, err := os.MkdirTemp("", "simulation")
	if err == nil {
		var path string
		path, err = Kubeconfig(directory)
		_ = os.Setenv("KUBECONFIG", path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

func TestRandomEnvironments(t *testing.T) {
	if *oneSeed != 0 {
		outcome := NewWorker(0).Run(t, NewPlan(*oneSeed), Scenario{})
		outcome.Print(os.Stdout)
		require.Empty(t, outcome.Violations)
		return
	}
	var next atomic.Uint64
	next.Store(*firstSeed)
	began := time.Now()
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			w := NewWorker(worker)
			for {
				seed := next.Add(1) - 1
				if seed >= *firstSeed+uint64(*seeds) {
					return
				}
				b := time.Now()
				outcome := w.Run(t, NewPlan(seed), Scenario{})
				if d := time.Since(b); d > 300*time.Millisecond {
					fmt.Println("slow", seed, d, outcome.Plan)
				}
				if len(outcome.Violations) > 0 {
					t.Fail()
					fmt.Println("FAIL", seed, len(outcome.Violations), outcome.Violations[0].Promise.Name, outcome.Violations[0].Text)
				}
				_ = io.Discard
			}
		})
	}
	t.Cleanup(func() { fmt.Println("took", time.Since(began)) })
}
