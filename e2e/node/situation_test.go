// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// situation causes events.
type situation struct {
	name  string // also of its namespace, of its manifest in testdata, and of its recording
	about string // the first line of its recording
	// cause does what the manifest cannot. It may be nil.
	cause func(t *testing.T, s *running)
	wants []want
	// always means that the situation also runs without -record.
	always bool
}

// want is an event that a situation causes.
type want struct {
	kind, reason string
	text         string // part of what describe returns
	times        int    // occurrences; 0 means 1
}

// matches reports whether an event is the wanted one. Events of nodes are in another namespace.
func (w want) matches(event *corev1.Event, namespace string) bool {
	object := event.InvolvedObject
	return object.Kind == w.kind && event.Reason == w.reason && (event.Namespace == namespace || w.kind == "Node") &&
		strings.Contains(describe(event), w.text)
}

// describe returns the parts of an event that distinguish it from others: the name of its object,
// the message, the field path and the producer.
func describe(event *corev1.Event) string {
	return fmt.Sprintf("%s %s %s: %s (%s, %s, %d)", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason,
		event.Message, event.InvolvedObject.FieldPath, event.Source.Component+event.ReportingController, account.Occurrences(event))
}

// running is a situation in a cluster.
type running struct {
	*producers
	situation
	since int // the number of states before it
}

func (s situation) run(t *testing.T, p *producers) {
	r := &running{producers: p, situation: s}
	if !s.atStart() {
		r.since = p.recorder.now()
		p.newNamespace(t, s.name)
		p.applyManifest(t, s.name)
	}
	if s.cause != nil {
		s.cause(t, r)
	}
	var states []corev1.Event
	for _, w := range s.wants {
		states = append(states, r.await(t, w)...)
	}
	for i := range states {
		r.assertEmitted(t, &states[i])
	}
	if *record {
		r.write(t, states)
	}
}

// atStart reports whether the start of the cluster causes the events.
func (s situation) atStart() bool { return s.name == nodeStart }

// await waits for a wanted event and returns its states.
func (r *running) await(t *testing.T, w want) (states []corev1.Event) {
	t.Helper()
	if !harness.Poll(waitTimeout, func() bool {
		states = r.recorder.find(w, r.name, r.since)
		return len(states) > 0
	}) {
		require.Fail(t, "no such event", "%+v in:\n%s", w, strings.Join(r.recorder.reasons(r.name, r.since), "\n"))
	}
	return states
}

// assertEmitted checks that the Collector has emitted an event, with its owners. A kubelet reports
// its start before its Node exists, so these events may have none.
func (r *running) assertEmitted(t *testing.T, event *corev1.Event) {
	t.Helper()
	chain := r.recorder.chainOf(event)
	require.NotEmpty(t, chain, "the object of %s", describe(event))
	end := chain[len(chain)-1]
	got := r.emitted.Await(t, "log.record.uid", fmt.Sprintf("%s-%d", event.UID, account.Occurrences(event)))
	if r.atStart() && got.Get("k8s.owner.resolution") == "not_found" {
		assert.Equal(t, r.node.Name(), got.Get("k8s.node.name"))
		return
	}
	for attribute, value := range map[string]any{
		"k8s.event.reason":     event.Reason,
		"k8s.owner.resolution": "complete",
		"k8s.workload.kind":    end.Kind,
		"k8s.workload.name":    end.Name,
		"k8s.workload.uid":     string(end.UID),
		"k8s.container.name":   containerOf(event.InvolvedObject.FieldPath),
	} {
		assert.Equal(t, value, got.Get(attribute), "%s of %s", attribute, describe(event))
	}
}

// containerOf returns the name in a path such as spec.containers{NAME}, or nil.
func containerOf(path string) any {
	_, name, found := strings.Cut(strings.TrimSuffix(path, "}"), "{")
	if !found {
		return nil
	}
	return name
}
