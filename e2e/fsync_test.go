// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

// TestNothingIsLostIfEachWriteReachesTheDisk: file_storage waits for the disk at each write, events
// come at 5,000 a second, and the Collector is killed in the middle.
func TestNothingIsLostIfEachWriteReachesTheDisk(t *testing.T) {
	t.Parallel()
	const events, perTick, tick = 15_000, 10, 2 * time.Millisecond
	fleet := &replay.Fleet{Namespaces: 10, Deployments: 50, Pods: 500}
	server, err := replay.Start(replay.Options{Fleet: fleet})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, server.WriteKubeconfig(kubeconfig))
	directory := t.TempDir()
	start := func() *collector {
		return startCollector(t, kubeconfig,
			"receivers::kube_events::storage: file_storage",
			fmt.Sprintf("extensions::file_storage: {directory: %q, fsync: true}", directory),
			"service::extensions: [file_storage]")
	}
	accepted := func(col *collector) float64 { return scrape(t, col.internal).Sum("otelcol_kube_events_accepted") }

	var frames []replay.Frame
	recorder, begin := replay.NewRecorder(), time.Now()
	for i := range events {
		ev := fleet.Started(i%fleet.Pods, begin.Add(time.Duration(i)*time.Microsecond))
		frames = append(frames, recorder.Frame(watch.Added, ev))
	}
	first := start()
	eventually(t, func() bool {
		asked := server.Requests()
		return asked[replay.EventsWatch]+asked[replay.EventsStream] > 0
	}, "a watch")
	released := make(chan struct{})
	go func() {
		defer close(released)
		for len(frames) > 0 {
			time.Sleep(tick)
			server.Release(frames[:perTick]...)
			frames = frames[perTick:]
		}
	}()
	eventually(t, func() bool { return accepted(first) > events/4 }, "a part of the records")
	require.NoError(t, first.Kill())
	second := start()
	<-released
	last := recorder.Frame(watch.Added, fleet.Started(0, begin.Add(time.Hour)))
	server.Release(last)

	times := map[string]int{}
	eventually(t, func() bool {
		clear(times)
		for _, col := range []*collector{first, second} {
			for _, r := range col.emitted() {
				times[r.text("k8s.event.uid")]++
			}
		}
		return len(times) >= events+1
	}, "each event")
	repeated := 0
	for _, n := range times {
		repeated += n - 1
	}
	perSecond := int(perTick * time.Second / tick)
	assert.LessOrEqual(t, repeated, perSecond, "only what was delivered in the last second comes twice")
}
