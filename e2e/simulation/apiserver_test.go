// SPDX-License-Identifier: Apache-2.0

// Package simulation compares the simulated API server with a real one: tests in simulated time are
// worth what it is worth.
package simulation

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

var (
	seeds = flag.Int("scripts", 20, "how many random scripts the servers are compared with")
	first = flag.Uint64("seed", 1, "the seed of the first script")
	steps = flag.Int("steps", 60, "how many steps a script has")
)

func TestTheSimulatedServerAnswersAsTheRealOne(t *testing.T) {
	authentic, model := servers(t)
	for i := range uint64(*seeds) {
		compare(t, *first+i, model(), authentic)
	}
	discovery(t, authentic, model())
	for _, s := range []*server{authentic, model()} {
		s.begin()
		newScript(0, 0).prepare(s)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			details(t, s)
		})
	}
}

// servers starts a real server, and returns it with what makes simulated ones.
func servers(t *testing.T) (authentic *server, model func() *server) {
	// A watch cache with snapshots notices a compaction only after up to 15 seconds.
	const features = "--feature-gates=ListFromCacheSnapshot=false,WatchList=false"
	cp := controlplanetest.Start(t, controlplane.Options{APIServerArgs: []string{features}})
	return realServer(t, cp), func() *server { return simulated(t, apiserver.Options{}) }
}

// compare runs a script on both servers.
func compare(t *testing.T, seed uint64, model, authentic *server) {
	script := newScript(seed, *steps)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var history []string
	for _, s := range []*server{model, authentic} {
		s.begin()
		script.prepare(s)
	}
	for i, step := range script.steps {
		history = append(history, fmt.Sprintf("%d. %s", i+1, step.name))
		var expected, got any
		both := sync.WaitGroup{}
		both.Go(func() { expected = step.do(ctx, authentic) })
		both.Go(func() { got = step.do(ctx, model) })
		both.Wait()
		same(t, seed, history, expected, got)
	}
	time.Sleep(quietTime)
	// On a busy machine, messages come much later than what they report.
	expected, got := authentic.seen(), model.seen()
	harness.Poll(longest, func() bool {
		expected, got = authentic.seen(), model.seen()
		return show(expected) == show(got)
	})
	for i := range expected {
		history = append(history, fmt.Sprintf("messages of watch %d", i+1))
		same(t, seed, history, expected[i], got[i])
	}
	cancel()
	script.clean(authentic)
}

func same(t *testing.T, seed uint64, history []string, expected, got any) {
	t.Helper()
	if want, have := show(expected), show(got); want != have {
		for _, line := range history {
			t.Log(line)
		}
		require.Equal(t, want, have, "-seed %d: expected is what the real server answers", seed)
	}
}
