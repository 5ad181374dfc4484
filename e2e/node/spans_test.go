// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

// trace is a rollout with what belongs to it.
type trace struct {
	root  ptrace.Span
	spans []ptrace.Span
}

// traces has each span that the Collector delivered. What it acknowledges
// survives the Collector, as with a real backend.
type traces struct {
	url string

	mu    sync.Mutex // guards the following
	spans map[pcommon.SpanID]ptrace.Span
}

func startTraces(t *testing.T) *traces {
	t.Helper()
	b := &traces{spans: map[pcommon.SpanID]ptrace.Span{}}
	sink, err := otlpsink.Start(otlpsink.Callbacks{Traces: b.add})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sink.Stop()) })
	b.url = sink.URL
	return b
}

func (b *traces) add(_ context.Context, traces ptrace.Traces) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rs := range traces.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				kept := ptrace.NewSpan() // The receiver may use the memory of the request again.
				span.CopyTo(kept)
				b.spans[span.SpanID()] = kept
			}
		}
	}
	return nil
}

// all returns the spans by their ids.
func (b *traces) all() map[pcommon.SpanID]ptrace.Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.spans)
}

// tracesOf returns the traces of a workload, such as deployment/shop, the first one first.
func (c *rollouts) tracesOf(workload string) (found []trace) {
	spans := c.traces.all()
	for _, root := range spans {
		if root.Name() != "rollout "+workload {
			continue
		}
		one := trace{root: root}
		for _, span := range spans {
			if span.TraceID() == root.TraceID() {
				one.spans = append(one.spans, span)
			}
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b trace) int { return int(a.root.StartTimestamp()) - int(b.root.StartTimestamp()) })
	return found
}

// await waits until the newest trace of a workload has an outcome, a number of pods, and spans with these
// names.
func (c *rollouts) await(t *testing.T, workload string, traces int, outcome string, pods int, with ...string) trace {
	t.Helper()
	var all []trace
	ok := harness.Poll(waitTimeout, func() bool {
		all = c.tracesOf(workload)
		if len(all) != traces {
			return false
		}
		last := all[len(all)-1]
		hasAll := !slices.ContainsFunc(with, func(name string) bool { return len(last.named(name)) == 0 })
		// The spans of a trace come in several requests.
		hasStarts := outcome != "complete" || len(last.named("start ")) >= pods
		return text(last.root, "k8s.rollout.outcome") == outcome && len(last.named("pod ")) == pods && hasAll && hasStarts
	})
	for _, one := range all {
		t.Log(one)
	}
	require.True(t, ok, "%d traces of %s, the last one %s with %d pods and %v", traces, workload, outcome, pods, with)
	return all[len(all)-1]
}

// String shows the trace.
func (tr trace) String() string {
	if tr.spans == nil {
		return "none"
	}
	var lines []string
	for _, s := range tr.spans {
		lines = append(lines, s.StartTimestamp().AsTime().Format("15:04:05.000 ")+s.EndTimestamp().AsTime().Format("15:04:05.000 ")+s.Name()+" "+s.Status().Message())
	}
	slices.Sort(lines)
	return tr.root.TraceID().String() + " " + text(tr.root, "k8s.rollout.revision") + " " + text(tr.root, "k8s.rollout.outcome") + "\n" + strings.Join(lines, "\n")
}

// named returns the spans whose names begin with a text.
func (tr trace) named(beginning string) (found []ptrace.Span) {
	for _, s := range tr.spans {
		if strings.HasPrefix(s.Name(), beginning) {
			found = append(found, s)
		}
	}
	return found
}

// of returns the span of a pod with this name; fails if there is not exactly one.
func (tr trace) of(t *testing.T, pod corev1.Pod, name string) ptrace.Span {
	t.Helper()
	var found []ptrace.Span
	for _, s := range tr.named(name) {
		if text(s, "k8s.pod.uid") == string(pod.UID) {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "%s of %s", name, pod.Name)
	return found[0]
}

func text(s ptrace.Span, key string) string {
	value, ok := s.Attributes().Get(key)
	if !ok {
		return ""
	}
	return value.AsString()
}

// requireTimes compares the spans of a pod with its status, within the second that events and status
// both round to.
func (tr trace) requireTimes(t *testing.T, pod corev1.Pod) {
	t.Helper()
	span := tr.of(t, pod, "pod ")
	near(t, pod.CreationTimestamp.Time, span.StartTimestamp(), "the creation of %s", pod.Name)
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			near(t, condition.LastTransitionTime.Time, tr.of(t, pod, "schedule").EndTimestamp(), "the node of %s", pod.Name)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		running := status.State.Running
		require.NotNil(t, running, pod.Name)
		last := span
		if status.RestartCount > 0 { // The pod's span ends with the first start.
			last = tr.of(t, pod, "restart ")
		}
		near(t, running.StartedAt.Time, last.EndTimestamp(), "the start of %s", pod.Name)
	}
}

// near allows for two times that were both rounded down to seconds.
func near(t *testing.T, expected time.Time, actual pcommon.Timestamp, what string, args ...any) {
	t.Helper()
	assert.WithinDuration(t, expected, actual.AsTime().Truncate(time.Second), time.Second, append([]any{what}, args...)...)
}
