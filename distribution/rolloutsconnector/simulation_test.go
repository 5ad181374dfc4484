// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	seeds   = flag.Uint64("seeds", 1000, "how many random environments to simulate")
	atMost  = flag.Int("failures", 5, "after how many failures to end")
	oneSeed = flag.Uint64("seed", 0, "simulate only this environment")
)

// TestSimulatedEnvironments: whatever restarts and repeats happen, a backend has the same spans in the end.
func TestSimulatedEnvironments(t *testing.T) {
	first, last := uint64(1), *seeds
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	failed := 0
	for seed := first; seed <= last && failed < *atMost; seed++ {
		e := newEnvironment(seed)
		records := e.records()
		undisturbed := simulate(t, &simulation{e: e, records: records})
		disturbed := simulate(t, &simulation{e: e, records: records, random: rand.New(rand.NewPCG(seed, 2))})
		if difference := differences(undisturbed.spans(), disturbed.spans()); difference != "" {
			failed++
			t.Errorf("seed %d: %s\n%s", seed, difference, disturbed.story())
		}
	}
}

// simulation sends the records of an environment to a connector, in simulated time.
type simulation struct {
	e       *environment
	records []record
	random  *rand.Rand // nil: no faults

	t     *testing.T
	epoch time.Time
	disk  *disk
	*process
	sent     int // how many records are acknowledged
	requests []ptrace.Traces
	happened []string // for the story of a seed that failed
}

// shortIdle is longer than a rollout waits for what ended the pods of the old one.
const shortIdle = 70 * time.Second

func shortTimes(c *Config) { c.IdleTimeout, c.SettleTime = shortIdle, 5*time.Second }

func simulate(t *testing.T, s *simulation) *simulation {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.t, s.epoch, s.disk = t, time.Now(), &disk{values: map[string][]byte{}}
		s.process = start(t, s.disk, shortTimes)
		for s.sent < len(s.records) {
			s.sendNext()
		}
		s.disk.fail(nil)
		s.fail(nil)
		time.Sleep(10 * shortIdle)
		s.stop(t)
		s.requests = append(s.requests, s.received()...)
	})
	return s
}

// sendNext sends the next batch when its records come.
func (s *simulation) sendNext() {
	batch := s.records[s.sent : s.sent+1]
	for len(batch) < 1+s.upTo(10) && s.sent+len(batch) < len(s.records) && s.records[s.sent+len(batch)].at <= batch[0].at+2*time.Second {
		batch = s.records[s.sent : s.sent+len(batch)+1]
	}
	time.Sleep(time.Until(s.epoch.Add(batch[len(batch)-1].at)))
	if s.random != nil && s.upTo(4) == 0 {
		s.disturb(batch)
	}
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

// disturb causes a fault.
func (s *simulation) disturb(next []record) {
	switch s.random.IntN(8) {
	case 0, 1:
		s.kill()
	case 2:
		s.note("the next batch has no answer")
		_ = s.send(next)
		s.kill()
	case 3:
		s.note("nothing can be saved from the next request to the backend on")
		d := s.disk
		s.next(func() { d.fail(errKilled) })
	case 4:
		s.note("the disk is full")
		s.disk.failAfter(s.random.IntN(3), errors.New("no space left on device"))
	case 5:
		s.note("the backend rejects spans")
		s.fail(errors.New("unavailable"))
	case 6:
		s.note("the backend takes spans")
		s.fail(nil)
	case 7:
		repeated := s.records[max(0, s.sent-s.random.IntN(30)):s.sent]
		s.note("%d records are repeated", len(repeated))
		_ = s.send(repeated)
	}
}

var errKilled = errors.New("the process is killed")

// kill ends the process with kill -9, and starts another one with what was saved.
func (s *simulation) kill() {
	s.requests = append(s.requests, s.received()...)
	saved := &disk{values: s.disk.content()}
	s.stop(s.t)
	down := time.Duration(s.random.IntN(20)) * time.Second
	s.note("kill -9, and a start after %v", down)
	time.Sleep(down)
	s.disk, s.process = saved, start(s.t, saved, shortTimes)
}

// spans returns the last version of each span, by its ids.
func (s *simulation) spans() map[string]string {
	last := map[string]string{}
	for _, request := range s.requests {
		for _, rs := range request.ResourceSpans().All() {
			for span := range spansOf(rs) {
				one := ptrace.NewTraces()
				to := one.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(to.Resource())
				span.CopyTo(to.ScopeSpans().AppendEmpty().Spans().AppendEmpty())
				last[span.TraceID().String()+" "+span.SpanID().String()] = string(encode(one))
			}
		}
	}
	return last
}

// differences returns what is not the same.
func differences(want, got map[string]string) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			all = append(all, fmt.Sprintf("%s is\n    %s\n  and not\n    %s", id, shown(got[id]), shown(want[id])))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			all = append(all, fmt.Sprintf("%s is additional:\n    %s", id, shown(got[id])))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d spans differ; span %s", len(all), len(want), strings.Join(all, "\nspan "))
}

// shown returns a span for people.
func shown(encoded string) string {
	if encoded == "" {
		return "missing"
	}
	traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces([]byte(encoded))
	if err != nil {
		return err.Error()
	}
	text, _ := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	return string(text)
}

func (s *simulation) note(format string, of ...any) {
	s.happened = append(s.happened, fmt.Sprintf("%v ! "+format, append([]any{time.Since(s.epoch)}, of...)...))
}

func (s *simulation) story() string {
	all := slices.Clone(s.happened)
	for _, r := range s.records {
		all = append(all, fmt.Sprintf("%v %s/%s %s x%d %s %s", r.at, r.about.kind, r.about.name, r.reason, r.count, r.container, r.message))
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(atOf(a), atOf(b)) })
	return strings.Join(all, "\n")
}

func atOf(line string) time.Duration {
	at, _, _ := strings.Cut(line, " ")
	d, _ := time.ParseDuration(at)
	return d
}
