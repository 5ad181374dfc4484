// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	apiwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

// observation is what one log record is about: an event that has reached a count. Both receivers
// emit both.
type observation struct {
	event string
	count int64
}

// arrival is when an observation's first record arrived, and whether it has owners.
type arrival struct {
	at     time.Time
	owners bool   // the record names the owners of the object
	uid    string // log.record.uid, by which a backend can drop a repeated record
}

// sink is the backend. The load notes in it what was sent when, and it remembers when that
// arrived.
type sink struct {
	server *otlpsink.Sink
	// owners reports whether a record has the whole owner chain; it is isOwned, unless a scenario has
	// its own.
	owners func(resource, log pcommon.Map) bool

	mu      sync.Mutex
	sent    map[observation]time.Time
	arrived map[observation]arrival
	records int // with repeated ones
	bytes   int // of the requests, as they were sent
	raw     int // of the requests, without compression
	// recognizable is how many records have the log.record.uid of an earlier one.
	recognizable int
	spans        int // with repeated ones
	first        time.Time
	last         time.Time
}

func newSink() (*sink, error) {
	s := &sink{owners: isOwned, sent: map[observation]time.Time{}, arrived: map[observation]arrival{}}
	var err error
	s.server, err = otlpsink.Start(otlpsink.Callbacks{
		Logs: func(ctx context.Context, logs plog.Logs) error {
			length, err := strconv.Atoi(otlpsink.Header(ctx, "Content-Length"))
			s.take(logs, length, time.Now())
			return err
		},
		Traces: func(_ context.Context, traces ptrace.Traces) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.spans += traces.SpanCount()
			return nil
		},
	})
	return s, err
}

func (s *sink) url() string { return s.server.URL }

func (s *sink) close() error { return s.server.Stop() }

// note remembers when an observation is sent.
func (s *sink) note(event string, count int64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[observation{event, count}] = at
}

// reset forgets everything so far.
func (s *sink) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.arrived, s.records, s.bytes, s.raw = map[observation]time.Time{}, map[observation]arrival{}, 0, 0, 0
	s.recognizable, s.spans = 0, 0
	s.first, s.last = time.Time{}, time.Time{}
}

func (s *sink) take(logs plog.Logs, length int, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += length
	s.raw += (&plog.ProtoMarshaler{}).LogsSize(logs)
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, log := range scope.LogRecords().All() {
				s.takeRecord(resource.Resource().Attributes(), log, at)
			}
		}
	}
	if s.first.IsZero() {
		s.first = at
	}
	s.last = at
}

func (s *sink) takeRecord(resource pcommon.Map, log plog.LogRecord, at time.Time) {
	s.records++
	o, uid := observed(log), otlpsink.Text(log.Attributes(), "log.record.uid")
	first, known := s.arrived[o]
	switch {
	case !known:
		s.arrived[o] = arrival{at, s.owners(resource, log.Attributes()), uid}
	case uid != "" && uid == first.uid:
		s.recognizable++
	}
}

// observed returns what a record is about.
func observed(log plog.LogRecord) observation {
	return observation{otlpsink.Text(log.Attributes(), "k8s.event.name"), max(1, otlpsink.Number(log.Attributes(), "k8s.event.count"))}
}

// isOwned reports whether a record about a pod of deploy has the whole and the right chain, and the
// tag of its Deployment.
func isOwned(resource, log pcommon.Map) bool {
	deployment := deploymentOf(otlpsink.Text(resource, "k8s.object.name"))
	return hasOwners(resource, log) &&
		otlpsink.Text(resource, "k8s.workload.kind") == "Deployment" &&
		otlpsink.Text(resource, "k8s.workload.name") == deployment &&
		otlpsink.Text(resource, "tilt.manifest") == deployment
}

// hasOwners reports whether a record names all owners of the object.
func hasOwners(resource, log pcommon.Map) bool {
	_, chain := resource.Get("k8s.owner.chain")
	return chain && otlpsink.Text(resource, "k8s.workload.name") != "" && otlpsink.Text(log, "k8s.owner.resolution") == "complete"
}

// firstArrival is when the first record arrived; zero if none has.
func (s *sink) firstArrival() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// forgetFirst makes the next record the first one for firstArrival.
func (s *sink) forgetFirst() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = time.Time{}
}

// observations is how many different ones have arrived, and when the last record did.
func (s *sink) observations() (n int, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.arrived), s.last
}

// wait waits until n different observations have arrived. What has not come after the duration
// quiet without a record is lost, which the scenario reports: it is no error.
func (s *sink) wait(ctx context.Context, n int, quiet time.Duration) error {
	began, arrived := time.Now(), 0
	err := apiwait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		var last time.Time
		arrived, last = s.observations()
		if last.Before(began) {
			last = began
		}
		return arrived >= n || time.Since(last) > quiet, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %d records, of which %d have come: %w", n, arrived, context.Cause(ctx))
	}
	return nil
}

// spansReceived returns how many spans have arrived.
func (s *sink) spansReceived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spans
}

// summary is what arrived of what was sent.
type summary struct {
	sent, delivered int // different observations
	surplus         int // records beyond the first of each, and of what was not sent
	recognizable    int // records among the surplus that have the log.record.uid of an earlier one
	owned           int // delivered with owners
	bytesPerRecord  float64
	rawPerRecord    float64
	latencies       []time.Duration
	last            time.Time // when the last record arrived
}

func (s *sink) summary() summary {
	sum := s.summaryOf(func(string) bool { return true })
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.surplus, sum.recognizable = s.records-sum.delivered, s.recognizable
	sum.bytesPerRecord = float64(s.bytes) / float64(max(1, s.records))
	sum.rawPerRecord = float64(s.raw) / float64(max(1, s.records))
	return sum
}

// summaryOf is what arrived of some events, by their names. It has no surplus.
func (s *sink) summaryOf(chosen func(event string) bool) summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := summary{last: s.last}
	for o, sent := range s.sent {
		if !chosen(o.event) {
			continue
		}
		sum.sent++
		a, ok := s.arrived[o]
		if !ok {
			continue
		}
		sum.delivered++
		if a.owners {
			sum.owned++
		}
		sum.latencies = append(sum.latencies, a.at.Sub(sent))
	}
	slices.Sort(sum.latencies)
	return sum
}

// latency is the quantile of the latencies, in milliseconds; 0 if nothing arrived.
func (s summary) latency(quantile float64) float64 {
	if len(s.latencies) == 0 {
		return 0
	}
	return milliseconds(s.latencies[int(quantile*float64(len(s.latencies)-1))])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
