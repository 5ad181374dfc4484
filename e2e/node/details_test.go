// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// details is what Events do not say: why containers ended, and what revisions changed.
func (p *producers) details(t *testing.T) {
	t.Cleanup(func() { // Its containers end again and again.
		require.NoError(t, p.CoreV1().Namespaces().Delete(context.Background(), "ends", metav1.DeleteOptions{}))
	})
	t.Run("why a container ended", func(t *testing.T) { t.Parallel(); p.ends(t) })
	t.Run("what a revision changed", func(t *testing.T) { t.Parallel(); p.changes(t) })
}

// end is how the containers of a pod end.
type end struct {
	pod, container string
	reason         string
	code           int64
}

var ends = []end{
	{"out-of-memory", "app", "OOMKilled", 137},
	{"crash", "app", "Error", 1},
	{"completed", "app", "Completed", 0},
	{"killed", "app", "Error", 137},
	{"terminated", "app", "Error", 143},
	{"unhealthy", "app", "Completed", 0},
	{"init", "setup", "Error", 1},
	{"sidecar", "proxy", "Error", 1},
	{"no-command", "app", "StartError", 128},
}

const (
	lastReason = "k8s.container.status.last_terminated_reason"
	finishedAt = "k8s.container.last_terminated.finished_at"
)

// ends lets containers end, and checks each record that says why.
func (p *producers) ends(t *testing.T) {
	const namespace = "ends"
	p.newNamespace(t, namespace)
	p.Apply(t, filepath.Join("e2e", "node", "testdata", "details", "ends.yaml"))
	var early atomic.Int64 // first records that come before a back-off: under load, the status may be too new or too old for one
	t.Cleanup(func() { assert.Positive(t, early.Load(), "the first restart has no back-off") })
	for _, e := range ends {
		t.Run(e.pod, func(t *testing.T) {
			t.Parallel()
			of := []any{"k8s.namespace.name", namespace, "k8s.pod.name", e.pod, "k8s.container.name", e.container}
			require.True(t, harness.Poll(waitTimeout, func() bool {
				return len(p.saying(of)) >= 2
			}), "two records of %s that say why it ended, of:\n%s", e.pod, p.said(of))
			all := p.saying(of)
			for _, r := range all {
				assert.Equal(t, e.reason, r.Get(lastReason), "%s at %s", r.Get("k8s.event.reason"), r.Get(finishedAt))
				assert.Equal(t, e.code, r.Get("process.exit.code"))
			}
			if e.pod == "out-of-memory" {
				assert.Equal(t, int64(64<<20), all[0].Get("k8s.container.memory.limit"))
			}
			if all[0].Get("k8s.event.reason") != "BackOff" {
				early.Add(1)
			}
			assertOfTheRunBefore(t, all)
			t.Logf("%s: %d of %d records of restarts say why", e.pod, len(all), len(p.emitted.Records(of...)))
		})
	}
	for job, end := range map[string]struct {
		reason      string
		ended, code any
	}{
		"failed":      {"BackoffLimitExceeded", "Error", int64(1)},
		"late":        {"DeadlineExceeded", nil, nil}, // The controller deletes the pod, which still runs.
		"late-failed": {"DeadlineExceeded", "Error", int64(1)},
	} {
		t.Run("job "+job, func(t *testing.T) {
			t.Parallel()
			r := p.emitted.Await(t, "k8s.namespace.name", namespace, "k8s.job.name", job, "k8s.event.reason", end.reason)
			assert.Equal(t, end.ended, r.Get(lastReason))
			assert.Equal(t, end.code, r.Get("process.exit.code"))
		})
	}
	t.Run("evicted", func(t *testing.T) { t.Parallel(); p.evictRunning(t, namespace) })
}

// evictRunning evicts a pod, as a drain does, whose container has not ended before. This node's kubelet evicts
// nothing: its disk is that of the machine.
func (p *producers) evictRunning(t *testing.T, namespace string) {
	of := []any{"k8s.namespace.name", namespace, "k8s.pod.name", "evicted"}
	p.emitted.Await(t, append(of, "k8s.event.reason", "Started")...)
	pod, err := p.CoreV1().Pods(namespace).Get(t.Context(), "evicted", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, p.evict(t, pod))
	p.emitted.Await(t, append(of, "k8s.event.reason", "Killing")...)
	assert.Empty(t, p.saying(of))
}

// saying returns the records that say why a container ended.
func (p *producers) saying(of []any, and ...any) []harness.Record {
	return slices.DeleteFunc(p.emitted.Records(slices.Concat(of, and)...), func(r harness.Record) bool { return r.Get(lastReason) == nil })
}

func (p *producers) said(of []any) string {
	var lines []string
	for _, r := range p.emitted.Records(of...) {
		lines = append(lines, fmt.Sprint(r.Log.Timestamp().AsTime(), " ", r.Get("k8s.event.reason"), " ", r.Get("k8s.event.count"), " ", r.Get(lastReason), " ", r.Get(finishedAt), " ", r.Get("k8s.details.resolution")))
	}
	return strings.Join(lines, "\n")
}

// assertOfTheRunBefore checks that no record names an end after its event. Between the end and a back-off there
// is no other one. Each end is that before one start: the run that a start begins may end before its event.
func assertOfTheRunBefore(t *testing.T, all []harness.Record) {
	t.Helper()
	starts := map[time.Time]any{} // counts of the event Started, by the end that its record names
	for _, r := range all {
		at, finished := r.Log.Timestamp().AsTime().Truncate(time.Second), finishedOf(t, r)
		assert.False(t, finished.After(at), "an end at %s is after the event at %s", finished, at)
		switch r.Get("k8s.event.reason") {
		case "BackOff":
			for _, other := range all {
				end := finishedOf(t, other)
				assert.False(t, end.After(finished) && end.Before(at), "the back-off at %s names %s, and the container ended again at %s", at, finished, end)
			}
		case "Started":
			assert.Nil(t, starts[finished], "two starts name the end at %s", finished)
			starts[finished] = r.Get("k8s.event.count")
		}
	}
}

func finishedOf(t *testing.T, r harness.Record) time.Time {
	t.Helper()
	finished, err := time.Parse(time.RFC3339Nano, r.Get(finishedAt).(string))
	require.NoError(t, err)
	return finished
}

// changes rolls out new revisions, and checks what their first records say.
func (p *producers) changes(t *testing.T) {
	const namespace = "changes"
	p.newNamespace(t, namespace)
	p.Apply(t, filepath.Join("e2e", "node", "testdata", "details", "changes.yaml"))
	(&running{producers: p, situation: situation{name: namespace}}).awaitPods(t, 3)
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"checksum/config":"b"}},"spec":{"containers":[` +
		`{"name":"app","env":[{"name":"TOKEN","value":"s3cret-after"}],"resources":{"limits":{"memory":"32Mi"}}}]}}}}`)
	options := metav1.PatchOptions{FieldManager: "kubectl-edit"}
	workloads := p.AppsV1()
	_, err := workloads.Deployments(namespace).Patch(t.Context(), "basket", types.StrategicMergePatchType, patch, options)
	require.NoError(t, err)
	_, err = workloads.StatefulSets(namespace).Patch(t.Context(), "basket", types.StrategicMergePatchType, patch, options)
	require.NoError(t, err)
	_, err = workloads.DaemonSets(namespace).Patch(t.Context(), "basket", types.StrategicMergePatchType, patch, options)
	require.NoError(t, err)
	for kind, limit := range map[string]string{"Deployment": "memory limit app: 64Mi → 32Mi", "StatefulSet": "memory limit app: 32Mi added", "DaemonSet": "memory limit app: 32Mi added"} {
		want := []any{"annotation checksum/config added", "env app TOKEN changed", limit}
		var found []harness.Record
		require.True(t, harness.Poll(waitTimeout, func() bool {
			// The first record of a revision has it: of the Deployment, or of its ReplicaSet.
			found = slices.DeleteFunc(p.emitted.Records("k8s.namespace.name", namespace, "k8s.workload.kind", kind), func(r harness.Record) bool {
				return r.Get("k8s.rollout.changes") == nil
			})
			return len(found) > 0
		}), "what the %s changed, in:\n%s", kind, p.said([]any{"k8s.namespace.name", namespace, "k8s.workload.kind", kind}))
		assert.Len(t, found, 1, kind)
		assert.Equal(t, want, found[0].Get("k8s.rollout.changes"), kind)
		assert.Equal(t, "kubectl-edit", found[0].Get("k8s.workload.changed_by"), kind)
	}
	for _, r := range p.emitted.Records() {
		assert.NotContains(t, fmt.Sprint(r.Attributes), "s3cret")
	}
}
