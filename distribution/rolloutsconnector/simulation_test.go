// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

var (
	seeds   = flag.Uint64("seeds", defaultSeeds(), "how many random environments to simulate")
	oneSeed = flag.Uint64("seed", 0, "simulate only this environment")
)

// defaultSeeds returns fewer with the race detector, which makes the simulation many times slower.
func defaultSeeds() uint64 {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return 50
	}
	return 1000
}

// maxFailures is after how many seeds that failed a test ends.
const maxFailures = 5

// TestSimulatedEnvironments: whatever restarts and repeats happen, a backend has the same spans in the end,
// byte for byte: those of the model of all records.
func TestSimulatedEnvironments(t *testing.T) {
	eachSeed(t, func(t *testing.T, e *environment, random *rand.Rand) {
		quiet := simulate(t, &simulation{e: e})
		quiet.require(t, differences(quiet.expected(), quiet.spans()))
		disturbed := simulate(t, &simulation{e: e, random: random, faults: ofOneProcess})
		disturbed.require(t, differences(quiet.expected(), disturbed.spans()))
	})
}

// TestSimulatedFailOvers: replicas without storage do not know what others knew. So only workloads of which
// one replica has all records have the same spans. Those of others have the same ids, except those
// that the records before decide: of rollbacks, and of the ends of pods.
func TestSimulatedFailOvers(t *testing.T) {
	eachSeed(t, func(t *testing.T, e *environment, random *rand.Rand) {
		s := simulate(t, &simulation{e: e, random: random, faults: ofReplicas, inMemory: true})
		s.require(t, s.differencesOfReplicas())
	})
}

// eachSeed ends after some seeds that failed.
func eachSeed(t *testing.T, test func(*testing.T, *environment, *rand.Rand)) {
	t.Helper()
	first, last := uint64(1), *seeds
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	for seed, failed := first, 0; seed <= last && failed < maxFailures; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { test(t, newEnvironment(seed), rand.New(rand.NewPCG(seed, 2))) }) {
			failed++
		}
	}
}

// simulation sends the records of an environment to a connector, in simulated time.
type simulation struct {
	e        *environment
	random   *rand.Rand // nil: no faults
	faults   []func(*simulation)
	rarity   int  // how many batches there are between two faults
	inMemory bool // there is no storage

	t     *testing.T
	epoch time.Time
	disk  *disk // nil: there is no storage
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
		if !s.inMemory {
			s.disk = &disk{values: map[string][]byte{}}
		}
		s.rarity = 2 + s.upTo(30)
		s.begin()
		for s.sent < len(s.e.records) {
			s.sendNext()
		}
		s.heal()
		time.Sleep(10 * shortIdle)
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
	s.requests = append(s.requests, s.received()...)
}

func (s *simulation) heal() {
	s.fail(nil)
	s.next(nil)
	if s.disk != nil {
		s.disk.fail(nil)
	}
}

// sendNext sends the next batch when its records come.
func (s *simulation) sendNext() {
	time.Sleep(time.Until(s.epoch.Add(s.e.records[s.sent].at)))
	if s.random != nil && s.upTo(s.rarity) == 0 {
		s.faults[s.upTo(len(s.faults))](s)
	}
	batch := s.batch()
	if s.send(batch) == nil {
		s.sent += len(batch)
		return
	}
	time.Sleep(2 * time.Second) // The receiver retries.
	if s.upTo(2) == 0 {
		s.note("the disk has space again")
		s.disk.fail(nil)
	}
}

// batch returns records that have come, at least one.
func (s *simulation) batch() []record {
	most := 1 + s.upTo(10)
	for i, r := range s.e.records[s.sent:] {
		if i > 0 && (i == most || s.epoch.Add(r.at).After(time.Now())) {
			return s.e.records[s.sent : s.sent+i]
		}
	}
	return s.e.records[s.sent:]
}

func (s *simulation) send(batch []record) error {
	return s.ConsumeLogs(s.t.Context(), s.e.logsOf(batch, s.epoch))
}

// upTo returns a random number below another one; 0 without faults.
func (s *simulation) upTo(n int) int {
	if s.random == nil {
		return 0
	}
	return s.random.IntN(n)
}

// ofOneProcess are what happens to a connector with storage.
var ofOneProcess = []func(*simulation){
	(*simulation).kill,
	func(s *simulation) {
		s.note("a batch has no answer")
		_ = s.send(s.batch())
		s.kill()
	},
	func(s *simulation) {
		s.note("nothing can be saved from the next request to the backend on")
		d := s.disk
		s.next(func() { d.fail(errors.New("the process is killed")) })
	},
	func(s *simulation) {
		s.note("the disk is full")
		s.disk.failAfter(s.upTo(3), errors.New("no space left on device"))
	},
	(*simulation).rejectSpans,
	(*simulation).takeSpansSlowly,
	(*simulation).takeSpans,
	(*simulation).repeat,
}

// ofReplicas are what happens to connectors without storage.
var ofReplicas = []func(*simulation){
	func(s *simulation) {
		s.note("kill -9, and a fail-over")
		s.requests = append(s.requests, s.received()...)
		s.stop(s.t)
		s.takeOver()
	},
	func(s *simulation) {
		s.note("an orderly stop, and a fail-over")
		s.heal()
		s.end()
		s.takeOver()
	},
	(*simulation).rejectSpans,
	(*simulation).takeSpansSlowly,
	(*simulation).takeSpans,
	(*simulation).repeat,
}

// kill ends the process with kill -9, and starts another one with what was saved.
func (s *simulation) kill() {
	s.requests = append(s.requests, s.received()...)
	saved := &disk{values: s.disk.content()}
	s.stop(s.t)
	down := time.Duration(s.upTo([]int{10, 20, 600}[s.upTo(3)])) * time.Second
	s.note("kill -9, and a start after %v", down)
	time.Sleep(down)
	s.disk = saved
	s.begin()
}

// takeOver starts a process that knows nothing. It gets the records after a position that is older than the
// last record.
func (s *simulation) takeOver() {
	time.Sleep(time.Duration(s.upTo(20)) * time.Second)
	repeated := s.upTo(10)
	s.note("%d records are repeated", min(s.sent, repeated))
	s.sent = max(0, s.sent-repeated)
	s.begin()
}

func (s *simulation) rejectSpans() {
	s.note("the backend rejects spans")
	s.fail(errors.New("unavailable"))
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

// version is a span in a backend, as OTLP.
type version struct {
	name, workload string
	resource, span string
}

// spans returns the last version of each span, by its ids.
func (s *simulation) spans() map[string]version {
	last := map[string]version{}
	for _, request := range s.requests {
		for _, rs := range request.ResourceSpans().All() {
			workload, _ := rs.Resource().Attributes().Get("k8s.workload.uid")
			one := ptrace.NewTraces()
			rs.Resource().CopyTo(one.ResourceSpans().AppendEmpty().Resource())
			resource := string(encode(one))
			for span := range spansOf(rs) {
				one := ptrace.NewTraces()
				span.CopyTo(one.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
				id := span.TraceID().String() + " " + span.SpanID().String()
				last[id] = version{span.Name(), workload.Str(), resource, string(encode(one))}
			}
		}
	}
	return last
}

// expected returns the spans of the model of all records.
func (s *simulation) expected() map[string]version {
	read, _ := rollout.Read(s.e.logsOf(s.e.records, s.epoch))
	m := &rollout.Model{}
	m.Join(read)
	all := &simulation{}
	for _, w := range m.Workloads {
		for name, r := range w.Revisions {
			result := w.Spans(name, rollout.Options{Idle: shortIdle, Now: s.epoch.Add(24 * time.Hour)})
			all.requests = append(all.requests, r.Write(result.Parts, "", ""))
		}
	}
	return all.spans()
}

// differencesOfReplicas compares only what does not need the memory of other replicas.
func (s *simulation) differencesOfReplicas() (all []string) {
	expected, got := s.expected(), s.spans()
	for id, v := range got {
		_, known := expected[id]
		isStop := strings.HasPrefix(v.name, "stop ")
		if !known && (isStop || s.e.again[v.workload] && !s.isWhole(v.workload)) {
			delete(got, id)
		}
	}
	for id, v := range expected {
		if _, ok := got[id]; s.isWhole(v.workload) {
			continue
		} else if ok {
			got[id] = v
		} else {
			delete(expected, id)
		}
	}
	return differences(expected, got)
}

// isWhole reports whether the last process got all records of a workload. Those before it may have ended early:
// they deliver what is open as it is.
func (s *simulation) isWhole(workload string) bool {
	for i, r := range s.e.records {
		if i < s.from && cmp.Or(r.about.workload, &r.about).uid == workload {
			return false
		}
	}
	return true
}

// differences returns what is not the same.
func differences(want, got map[string]version) (all []string) {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			all = append(all, fmt.Sprintf("span %s is\n  %s\nand not\n  %s", id, got[id], want[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			all = append(all, fmt.Sprintf("span %s is additional:\n  %s", id, got[id]))
		}
	}
	return all
}

// String returns a span for people.
func (v version) String() (text string) {
	for _, encoded := range []string{v.span, v.resource} {
		traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces([]byte(encoded))
		if encoded == "" || err != nil {
			return "missing"
		}
		shown, _ := (&ptrace.JSONMarshaler{}).MarshalTraces(traces) // It never fails for what was read.
		text += fmt.Sprintf("%.2000s\n  ", shown)
	}
	return strings.TrimSpace(text)
}

func (s *simulation) note(format string, of ...any) {
	s.happened = append(s.happened, fmt.Sprintf("%v ! "+format, append([]any{time.Since(s.epoch)}, of...)...))
}

// require fails with the story of the environment if spans differ.
func (s *simulation) require(t *testing.T, differences []string) {
	t.Helper()
	if len(differences) == 0 {
		return
	}
	story := slices.Clone(s.happened)
	for _, r := range s.e.records {
		story = append(story, fmt.Sprintf("%v %s/%s %s x%d %s %s", r.at, r.about.kind, r.about.name, r.reason, r.count, r.container, r.message))
	}
	slices.SortStableFunc(story, func(a, b string) int { return cmp.Compare(atOf(a), atOf(b)) })
	t.Fatalf("%s\n%s", strings.Join(differences, "\n"), strings.Join(story, "\n"))
}

// atOf returns the time with which a line of a story begins.
func atOf(line string) time.Duration {
	at, _, _ := strings.Cut(line, " ")
	d, _ := time.ParseDuration(at) // All lines begin with one.
	return d
}
