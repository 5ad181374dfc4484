// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

var (
	seeds   = flag.Uint64("seeds", defaultSeeds(), "how many random environments to simulate")
	oneSeed = flag.Uint64("seed", 0, "simulate only this environment")
)

// defaultSeeds returns fewer with the race detector, which makes the simulation many times slower.
func defaultSeeds() uint64 {
	if isRace() {
		return 30
	}
	return 400
}

func isRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// maxFailures is after how many seeds that failed a test ends.
const maxFailures = 5

// TestSimulatedEnvironments: whatever restarts and repeats happen, a backend has each rollout and each pod in the end, with the
// ids that the model of all records has. Nothing is delivered twice, except around a kill -9.
func TestSimulatedEnvironments(t *testing.T) {
	eachSeed(t, func(t *testing.T, e environment, random *rand.Rand) {
		quiet := simulate(t, &simulation{e: e})
		quiet.require(t, quiet.differences())
		disturbed := simulate(t, &simulation{e: e, random: random, faults: faults})
		disturbed.require(t, disturbed.differences())
	})
}

// eachSeed ends after some seeds that failed.
func eachSeed(t *testing.T, test func(*testing.T, environment, *rand.Rand)) {
	t.Helper()
	stories, first, last := corpus(t), uint64(1), *seeds
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	for seed, failed := first, 0; seed <= last && failed < maxFailures; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { test(t, newEnvironment(stories, seed), rand.New(rand.NewPCG(seed, 2))) }) {
			failed++
		}
	}
}

// environment has what happens to some workloads: stories of the package rollout.
type environment struct {
	records []story.Record
	note    string // an attribute of all workloads
}

// corpus returns the stories of at most two hours.
func corpus(t *testing.T) (all [][]story.Record) {
	t.Helper()
	files, err := filepath.Glob("../internal/rollout/testdata/stories/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		lines, _, _ := strings.Cut(string(content), "\n\n")
		lines, _, _ = strings.Cut(lines, "\nnow ")
		if records := story.Records(lines); records[len(records)-1].At <= 2*time.Hour {
			all = append(all, records)
		}
	}
	require.Greater(t, len(all), 50)
	return all
}

// newEnvironment chooses stories. Each is in a namespace of its own. Kubelets and controllers drop some Events.
func newEnvironment(stories [][]story.Record, seed uint64) (e environment) {
	random := rand.New(rand.NewPCG(seed, 1))
	drops := []float64{0, 0, 0.1, 0.4}[random.IntN(4)]
	if seed%20 == 0 {
		e.note = strings.Repeat("x", 1_200_000) // So that the journal writes snapshots.
	}
	for i := range 1 + random.IntN(3) {
		for _, r := range stories[random.IntN(len(stories))] {
			if r.Warning || random.Float64() >= drops {
				r.Settings = maps.Clone(r.Settings)
				r.Settings["namespace"] += fmt.Sprint("shop", i)
				e.records = append(e.records, r)
			}
		}
	}
	slices.SortStableFunc(e.records, func(a, b story.Record) int { return cmp.Compare(a.At, b.At) })
	return e
}

// logsOf returns records as the receiver emits them.
func (e *environment) logsOf(all []story.Record, epoch time.Time) plog.Logs {
	return with(logsOf(all, epoch), "k8s.namespace.label.note", e.note)
}

// simulation sends the records of an environment to a connector, in simulated time.
type simulation struct {
	e      environment
	random *rand.Rand // nil: no faults
	faults []func(*simulation)
	rarity int // how many batches there are between two faults

	t     *testing.T
	epoch time.Time
	disk  *disk
	*process
	sent     int // how many records are acknowledged
	from     int // the first record that this process got
	requests []ptrace.Traces
	happened []string // for the story of a seed that failed
}

// shortIdle is longer than a rollout waits for what ended the pods of the old one.
const shortIdle = 70 * time.Second

func simulate(t *testing.T, s *simulation) *simulation {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.t, s.epoch = t, time.Now()
		s.disk = &disk{values: map[string][]byte{}}
		s.rarity = 2 + s.upTo(30)
		s.begin()
		for s.sent < len(s.e.records) {
			s.sendNext()
		}
		s.heal()
		time.Sleep(20 * shortIdle)
		s.end()
	})
	return s
}

func (s *simulation) begin() {
	s.process = start(s.t, s.disk, func(c *Config) { c.IdleTimeout, c.SettleTime = shortIdle, 5*time.Second })
	s.from = s.sent
}

// end stops the process. Its backend has what it delivered meanwhile.
func (s *simulation) end() {
	s.stop(s.t)
	s.requireOnce()
	s.requests = append(s.requests, s.received()...)
}

// requireOnce checks that the process has delivered each span once.
func (s *simulation) requireOnce() {
	seen := map[string]bool{}
	for _, request := range s.received() {
		for span := range allSpans(request) {
			id := span.TraceID().String() + span.SpanID().String()
			require.False(s.t, seen[id], "%s twice: %v", span.Name(), s.happened)
			seen[id] = true
		}
	}
}

func (s *simulation) heal() {
	s.fail(nil)
	s.next(nil)
	s.disk.fail(nil)
}

// sendNext sends the next batch when its records come.
func (s *simulation) sendNext() {
	time.Sleep(time.Until(s.epoch.Add(s.e.records[s.sent].At)))
	if s.random != nil && s.upTo(s.rarity) == 0 {
		s.faults[s.upTo(len(s.faults))](s)
	}
	batch := s.batch()
	require.NoError(s.t, s.send(batch))
	s.sent += len(batch)
}

// batch returns records that have come, at least one.
func (s *simulation) batch() []story.Record {
	most := 1 + s.upTo(10)
	for i, r := range s.e.records[s.sent:] {
		if i > 0 && (i == most || s.epoch.Add(r.At).After(time.Now())) {
			return s.e.records[s.sent : s.sent+i]
		}
	}
	return s.e.records[s.sent:]
}

func (s *simulation) send(batch []story.Record) error {
	return s.ConsumeLogs(s.t.Context(), s.e.logsOf(batch, s.epoch))
}

// upTo returns a random number below another one; 0 without faults.
func (s *simulation) upTo(n int) int {
	if s.random == nil {
		return 0
	}
	return s.random.IntN(n)
}

// faults are what happens to a connector with storage.
var faults = []func(*simulation){
	(*simulation).kill,
	func(s *simulation) {
		s.note("a batch has no answer")
		_ = s.send(s.batch())
		s.kill()
	},
	func(s *simulation) {
		s.note("the disk is full for a while")
		s.disk.failAfter(s.upTo(3), errors.New("no space left on device"))
	},
	(*simulation).rejectSpans,
	(*simulation).takeSpansSlowly,
	(*simulation).takeSpans,
	(*simulation).repeat,
}

// kill ends the process with kill -9, and starts another one with what was saved.
func (s *simulation) kill() {
	s.disk.fail(nil)
	time.Sleep(maxBackoff + interval) // What could not be saved is saved now.
	synctest.Wait()
	s.requests = append(s.requests, s.received()...)
	saved := &disk{values: s.disk.content()}
	s.stop(s.t)
	down := time.Duration(s.upTo([]int{10, 20, 600}[s.upTo(3)])) * time.Second
	s.note("kill -9, and a start after %v", down)
	time.Sleep(down)
	s.disk = saved
	s.begin()
}

func (s *simulation) rejectSpans() {
	s.note("the backend rejects spans")
	s.fail(errors.New("unavailable"))
	back := s.sink
	time.AfterFunc(patience/2, func() { back.fail(nil) }) // What is rejected for longer is dropped.
}

func (s *simulation) takeSpans() {
	s.note("the backend takes spans")
	s.fail(nil)
}

func (s *simulation) takeSpansSlowly() {
	took := time.Duration(1+s.upTo(10)) * time.Second
	s.note("the next request to the backend takes %v", took)
	s.next(func() { time.Sleep(took) })
}

// repeat sends records again that the process has acknowledged: another exporter rejected them.
func (s *simulation) repeat() {
	first := max(s.from, s.sent-s.upTo(30))
	s.note("%d records are repeated", s.sent-first)
	_ = s.ConsumeLogs(s.t.Context(), s.e.logsOf(s.e.records[first:s.sent], s.epoch))
}

// differences returns which rollouts and pods are missing, or are not those of the model of all records.
func (s *simulation) differences() (all []string) {
	read, _ := rollout.Read(record.Read(s.e.logsOf(s.e.records, s.epoch)), &rollout.Model{})
	m := &rollout.Model{}
	m.Join(read)
	want, got := map[string]bool{}, map[string]bool{}
	note := func(request ptrace.Traces, to map[string]bool) {
		for span := range allSpans(request) {
			revision := fmt.Sprint(span.Attributes().AsRaw()["k8s.rollout.revision"])
			isJob := strings.HasPrefix(revision, "job.") // It can wait for its end for a day.
			if strings.HasPrefix(span.Name(), "rollout ") && !isJob || strings.HasPrefix(span.Name(), "pod ") {
				to[fmt.Sprint(span.Name(), " ", span.TraceID(), span.SpanID(), span.ParentSpanID())] = true
			}
		}
	}
	for _, w := range m.Workloads {
		for name, r := range w.Revisions {
			parts := w.Spans(name, rollout.Options{Idle: shortIdle, Now: s.epoch.Add(24 * time.Hour)})
			note(r.Write(parts, "", ""), want)
		}
	}
	for _, request := range s.requests {
		note(request, got)
	}
	for name := range want {
		if !got[name] {
			all = append(all, "missing: "+name)
		}
	}
	for name := range got {
		if !want[name] {
			all = append(all, "additional: "+name)
		}
	}
	return all
}

func (s *simulation) note(format string, arguments ...any) {
	s.happened = append(s.happened, fmt.Sprintf("%v ! "+format, append([]any{time.Since(s.epoch)}, arguments...)...))
}

// require fails with the story of the environment if spans differ.
func (s *simulation) require(t *testing.T, differences []string) {
	t.Helper()
	if len(differences) == 0 {
		return
	}
	all := slices.Clone(s.happened)
	for _, r := range s.e.records {
		all = append(all, fmt.Sprintf("%v %s/%s %s %v %s %s", r.At, r.Kind, r.Name, r.Reason, r.Settings, r.Container, r.Message))
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(atOf(a), atOf(b)) })
	t.Fatalf("%s\n%s", strings.Join(differences, "\n"), strings.Join(all, "\n"))
}

// atOf returns the time with which a line of a story begins.
func atOf(line string) time.Duration {
	at, _, _ := strings.Cut(line, " ")
	d, _ := time.ParseDuration(at) // All lines begin with one.
	return d
}
