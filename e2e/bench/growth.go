// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

var growthScenario = scenario{name: "growth", title: "Growth with the number of live events", run: runGrowth}

const (
	// mostForTheirs is how many events k8s_events is shown: it holds all of them, and this
	// machine's memory is needed.
	mostForTheirs = 100_000
	growthPods    = 1000

	liveHeap        = "heap"
	written         = "checkpoint bytes for a change"
	writtenPerTime  = "checkpoint bytes"
	storedSize      = "size of the checkpoint"
	growthUnseen    = "changes lost"
	writtenIncrease = "checkpoint bytes for a change, most live events over fewest"
)

// growth is what came of the scenario, size by size.
type growth struct {
	figures     []figure
	memory      [2]line // peak RSS of ours and of theirs
	heap        [2]line
	checkpoints line // of ours, bytes for a change and a second
	changes     line
}

func runGrowth(ctx context.Context, b *benchmark) (result, error) {
	g := growth{memory: [2]line{{Name: b.ours.name}, {Name: b.theirs.name}}, checkpoints: line{Name: b.ours.name}}
	for _, live := range b.playback.live {
		if err := g.add(ctx, b, live); err != nil {
			return result{}, err
		}
	}
	inProcess, err := memoryBenchmarks(ctx)
	return result{
		Figures: slices.Concat(g.figures, g.summary(), inProcess),
		Charts: []chart{
			{Title: "Memory of the Collector (peak RSS)", Unit: "MiB", Lines: g.memory[:]},
			{Title: fmt.Sprintf("Checkpoints while %d events change a second", b.playback.perSecond), Unit: "KiB/s", Lines: []line{g.checkpoints}},
		},
		Text: fmt.Sprintf(`A simulated API server has this number of events when the Collector starts, with `+"`file_storage`"+`. Then %d updates a second increase the count
of some of them, for %s. k8s_events keeps every event in memory and saves no checkpoint. It is measured with up to %s events.

![Memory and checkpoint bytes over the number of live events](performance-growth.svg)`, b.playback.perSecond, b.playback.updating, thousands(mostForTheirs)),
		Notes: []string{
			"Checkpoint bytes are what the Collector passes to the kernel to write. Its exporter writes nothing.",
			"The ledger and the resolver were measured by Go benchmarks: `go test -bench Memory ./internal/ledger ./resolver`.",
		},
	}, err
}

// add measures the Collectors with that many live events.
func (g *growth) add(ctx context.Context, b *benchmark, live int) error {
	some := growthFigures(live)
	for i, c := range []runner{b.ours, b.theirs} {
		ours := i == 0
		if !ours && live > mostForTheirs {
			continue
		}
		v, err := b.growthOnce(ctx, c, live)
		if err != nil {
			return err
		}
		b.logf("%s live, %s: %v", thousands(live), c.name, v)
		add(some, v.suffixed(ofLive(live)), ours)
		g.memory[i].add(live, v[peakRSS])
		g.heap[i].add(live, v[liveHeap])
		if ours {
			g.checkpoints.add(live, v[writtenPerTime])
			g.changes.add(live, v[written])
		}
	}
	g.figures = append(g.figures, measured(some)...)
	return nil
}

// summary compares the least and the greatest number of live events.
func (g *growth) summary() []figure {
	return []figure{
		{Name: "peak memory (RSS) for each live event more", Unit: "B", Ours: perEvent(g.memory[0]), Theirs: perEvent(g.memory[1])},
		{Name: "heap for each live event more", Unit: "B", Ours: perEvent(g.heap[0]), Theirs: perEvent(g.heap[1])},
		{Name: writtenIncrease, Ours: []float64{g.changes.Y[len(g.changes.Y)-1] / g.changes.Y[0]}, Goal: oursAtMost(2)},
	}
}

// perEvent is how steep a line of mebibytes is; nothing for a line of one point.
func perEvent(l line) []float64 {
	last := len(l.X) - 1
	if last < 1 {
		return nil
	}
	return []float64{(l.Y[last] - l.Y[0]) * (1 << 20) / float64(l.X[last]-l.X[0])}
}

func growthFigures(live int) []figure {
	figures := []figure{
		{Name: peakRSS, Unit: "MiB"},
		{Name: liveHeap, Unit: "MiB"},
		{Name: writtenPerTime, Unit: "KiB/s"},
		{Name: written, Unit: "B"},
		{Name: storedSize, Unit: "MiB"},
		{Name: growthUnseen, Goal: oursAtMost(0)},
	}
	for i := range figures {
		figures[i].Name += ofLive(live)
	}
	return figures
}

func ofLive(live int) string { return ", " + thousands(live) + " live" }

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// liveEvents are events of a fleet's pods.
type liveEvents struct {
	fleet *replay.Fleet
	n     int
	begin time.Time
}

func (l liveEvents) Len() int { return l.n }

func (l liveEvents) Event(i int) *corev1.Event {
	return l.fleet.BackOff(i%l.fleet.Pods, l.begin.Add(time.Duration(i)*time.Millisecond))
}

// growthOnce measures one Collector with that many live events.
func (b *benchmark) growthOnce(ctx context.Context, c runner, live int) (v values, err error) {
	fleet := &replay.Fleet{Namespaces: b.playback.namespaces, Deployments: b.playback.deployments, Pods: growthPods}
	events := liveEvents{fleet, live, time.Now().Add(time.Hour)}
	r, err := newRig(replay.Options{Fleet: fleet, Live: events, Latency: b.playback.ownerLatency})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	stores := c.name == b.ours.name
	c.over = append(c.over, nopPipeline(c)...)
	if stores {
		c = c.storing(r.directory)
	}
	if err := r.startCollector(ctx, c); err != nil {
		return nil, err
	}
	if err := r.awaitListing(ctx, stores, live); err != nil {
		return nil, err
	}
	if err := wait(ctx, b.playback.settle); err != nil {
		return nil, err
	}
	v = values{}
	if err := r.weigh(ctx, v); err != nil || !stores {
		return v, err
	}
	return v, b.changeSome(ctx, r, events, v)
}

// awaitListing waits until the Collector has received all live events. One that does not report how
// many it received watches only after its list, or gets the list in its watch.
func (r *rig) awaitListing(ctx context.Context, reports bool, live int) error {
	return until(ctx, 5*time.Minute, "all live events are listed", func() bool {
		if !reports {
			return r.server.Requests()[replay.EventsWatch] > 0 || r.server.Streamed() > 0
		}
		n, err := r.col.ownMetric("otelcol_kube_events_received")
		return err == nil && int(n) >= live
	})
}

// weigh measures the memory of the Collector.
func (r *rig) weigh(ctx context.Context, v values) error {
	heap, err := r.col.heap(ctx)
	if err != nil {
		return err
	}
	used, err := r.col.usage()
	v[liveHeap], v[peakRSS] = mebibytes(heap), mebibytes(used.peakRSS)
	return err
}

// changeSome counts events up and looks at what is written for it.
func (b *benchmark) changeSome(ctx context.Context, r *rig, live liveEvents, v values) error {
	before, err := r.col.writtenBytes()
	if err != nil {
		return err
	}
	const tick = 100 * time.Millisecond
	recorder, changes := replay.NewRecorder(), 0
	began := time.Now()
	for i := 0; time.Since(began) < b.playback.updating; i++ {
		var frames []replay.Frame
		for range b.playback.perSecond / int(time.Second/tick) {
			// The step is a prime, so that each event has its turn.
			ev := live.Event(changes * 104_729 % live.n)
			frames = append(frames, recorder.Frame(watch.Modified, replay.Repeat(ev, int32(1+changes/live.n), time.Now())))
			changes++
		}
		r.server.Release(frames...)
		if err := wait(ctx, time.Until(began.Add(time.Duration(i+1)*tick))); err != nil {
			return err
		}
	}
	// Nothing is asked of the Collector meanwhile, because answers are written as well.
	if err := wait(ctx, time.Second); err != nil {
		return err
	}
	after, err := r.col.writtenBytes()
	if err != nil {
		return err
	}
	size, err := sizeOf(r.directory)
	v[writtenPerTime] = float64(after-before) / 1024 / time.Since(began).Seconds()
	v[written] = float64(after-before) / float64(changes)
	v[storedSize] = mebibytes(size)
	v[growthUnseen] = float64(changes - awaitCount(ctx, changes, r.col.accepted))
	return err
}

// sizeOf is how large the files of a directory are.
func sizeOf(directory string) (total int64, err error) {
	entries, err := os.ReadDir(directory)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
	}
	return total, err
}

// heap is what is alive on the Collector's heap after a collection.
func (c *collector) heap(ctx context.Context) (int64, error) {
	page, err := c.profiled(ctx, "heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	found := heapAlloc.FindSubmatch(page)
	if found == nil {
		return 0, errors.New("the heap profile has no HeapAlloc")
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

var heapAlloc = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// memoryBenchmarks runs the Go benchmarks of what is kept in memory.
func memoryBenchmarks(ctx context.Context) (figures []figure, err error) {
	for _, b := range []struct {
		path, unit, name string
		most             float64
	}{
		{"./internal/ledger", "B/event", "ledger, for each of %s live events", 96},
		{"./resolver", "B/object", "resolver, for each of %s objects", 400},
	} {
		printed, err := goBenchmark(ctx, b.path, "^BenchmarkMemory$", "1x")
		if err != nil {
			return nil, err
		}
		figures = append(figures, memoryFigures(printed, b.unit, b.name, b.most)...)
	}
	return figures, nil
}

// benchmarked matches a line of a benchmark that has a size for its name.
var benchmarked = regexp.MustCompile(`(?m)^BenchmarkMemory/(\d+)\S*\s+\d+\s+([\d.]+) (\S+)$`)

func memoryFigures(printed, unit, name string, most float64) (figures []figure) {
	for _, found := range benchmarked.FindAllStringSubmatch(printed, -1) {
		n, errSize := strconv.Atoi(found[1])
		value, errValue := strconv.ParseFloat(found[2], 64)
		if found[3] == unit && errSize == nil && errValue == nil {
			figures = append(figures, figure{Name: fmt.Sprintf(name, thousands(n)), Unit: "B", Ours: []float64{value}, Goal: oursAtMost(most)})
		}
	}
	return figures
}

// goBenchmark runs Go benchmarks of a package of the receiver's module and returns what they print.
func goBenchmark(ctx context.Context, path, pattern, benchtime string) (string, error) {
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-cpu", "1", "-bench", pattern, "-benchtime", benchtime, path)
	command.Dir = ".."
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go test -bench %s %s: %w\n%s", pattern, path, err, printed)
	}
	return string(printed), nil
}
