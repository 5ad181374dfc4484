// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/load"
)

// traffic is what goes on in a namespace: recorders write events through the API, and the kubelet
// reports workloads that are sick.
type traffic struct {
	*cluster

	namespace string
	load      *load.Load
	releases  []*release       // that deliver the events
	since     time.Time        // of the fault, or of the end of an outage
	known     map[string]int64 // how many occurrences of each event there were, even if it has expired
}

// count makes a fault happen while there is traffic, before and after it, and counts what each
// release delivers.
func (c *cluster) count(t *testing.T, fault string, cause func(*traffic), releases ...*release) {
	t.Helper()
	f := c.newTraffic(t, releases...)
	f.begin(t)
	f.passes(t)
	f.since = time.Now()
	cause(f)
	f.passes(t)
	f.conclude(t, fault)
}

// newTraffic prepares traffic in a namespace of its own.
func (c *cluster) newTraffic(t *testing.T, releases ...*release) *traffic {
	t.Helper()
	return &traffic{cluster: c, namespace: c.newNamespace(t, "watched-"), releases: releases, known: map[string]int64{}}
}

// begin starts the workloads and the recorders.
func (f *traffic) begin(t *testing.T) {
	t.Helper()
	f.since = time.Now()
	f.createWorkloads(t, f.namespace)
	f.load = load.Start(t, f, f.namespace, func(l *load.Load) { l.Pause = 200 * time.Millisecond })
}

// createWorkloads creates workloads that are sick.
func (c *cluster) createWorkloads(t *testing.T, namespace string) {
	t.Helper()
	for _, object := range harness.Objects(t, harness.Read(t, "e2e/node/testdata/sick.yaml")) {
		object.SetNamespace(namespace)
		c.ApplyObject(t, object)
	}
}

// passes waits until each release delivers what happens now.
func (f *traffic) passes(t *testing.T) {
	t.Helper()
	for _, r := range f.releases {
		goal := r.delivered(f.namespace) + 20
		if !poll(waitTimeout, func() bool { return r.delivered(f.namespace) >= goal }) {
			require.FailNow(t, "nothing is delivered", "by %s\n%s", r.name, f.describe(t, r.name))
		}
	}
}

// conclude ends the traffic, waits for what is still under way, and checks for each release that
// nothing is lost, that every repeat can be recognised, and that the metric is right.
func (f *traffic) conclude(t *testing.T, fault string) {
	t.Helper()
	var rows []row
	for _, r := range f.releases {
		rows = append(rows, row{fault: fault, release: r, pause: f.pause(r)})
	}
	f.load.End()
	assert.Empty(t, f.load.Mistakes(), "writes that the API server does not take are a mistake of the test")
	f.removeWorkloads(t)
	for _, result := range rows {
		r := result.release
		poll(90*time.Second, func() bool {
			live, records := f.observe(t), r.records(f.namespace)
			result.Outcome, result.missed = account.Judge(f.known, records), account.Judge(live, records).Lost
			result.metric, result.counted = r.metric(f.namespace), 0
			for _, record := range records {
				result.counted += record.Occurrences
			}
			return result.missed == 0 && result.Surplus == 0
		})
		result.check(t)
		f.report.add(result)
	}
	for name, made := range f.load.Truth() {
		require.Equal(t, made, f.known[name], "of the event %s, as the API server had it", name)
	}
}

// pause is the longest time without a record of a release, since the fault or the end of an outage.
func (f *traffic) pause(r *release) (longest time.Duration) {
	last := f.since
	for _, record := range f.backend.Records("k8s.cluster.name", r.name, "k8s.namespace.name", f.namespace) {
		if record.Received.After(last) {
			longest, last = max(longest, record.Received.Sub(last)), record.Received
		}
	}
	return longest
}

// poll asks less often than harness.Poll, because counting takes time.
func poll(timeout time.Duration, holds func() bool) bool {
	err := wait.PollUntilContextTimeout(context.Background(), 500*time.Millisecond, timeout, true,
		func(context.Context) (bool, error) { return holds(), nil })
	return err == nil
}

// observe notes how many occurrences there were of each event that the API server has, and returns
// them.
func (f *traffic) observe(t *testing.T) map[string]int64 {
	t.Helper()
	live := map[string]int64{}
	events, err := f.CoreV1().Events(f.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, event := range events.Items {
		live[event.Name] = account.Occurrences(&event)
	}
	maps.Copy(f.known, live)
	return live
}

// removeWorkloads ends the pods, so that the number of events no longer grows.
func (f *traffic) removeWorkloads(t *testing.T) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	require.NoError(t, f.AppsV1().Deployments(f.namespace).
		DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}))
	harness.Eventually(t, func() bool {
		pods, err := f.CoreV1().Pods(f.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	}, "the end of the pods in %s", f.namespace)
}

// explains checks that the release names the owners of what the kubelet reports.
func (f *traffic) explains(t *testing.T, r *release) {
	t.Helper()
	for deployment, reason := range map[string]string{"crashing": "BackOff", "sick": "Unhealthy", "unpublished": "Failed"} {
		record := f.awaitRecord(t, r, "k8s.deployment.name", deployment, "k8s.object.kind", "Pod", "k8s.event.reason", reason)
		assert.Equal(t, "complete", record.Get("k8s.owner.resolution"))
		assert.Equal(t, []any{"replicaset.apps/" + record.Get("k8s.replicaset.name").(string), "deployment.apps/" + deployment}, record.Get("k8s.owner.chain"))
		assert.Equal(t, deployment, record.Get("k8s.workload.name"))
		assert.Equal(t, f.node.Name(), record.Get("k8s.node.name"))
		assert.Equal(t, "app", record.Get("k8s.container.name"))
		assert.Equal(t, "kubelet", record.Get("k8s.event.reporting_controller"))
		assert.Equal(t, f.UID(t), record.Get("k8s.cluster.uid"))
	}
}

// awaitRecord waits for a record of the release with these attributes. A kubelet of a busy machine
// may need minutes to restart a container.
func (f *traffic) awaitRecord(t *testing.T, r *release, attributes ...any) harness.Record {
	t.Helper()
	all := []any{"k8s.cluster.name", r.name, "k8s.namespace.name", f.namespace}
	var found []harness.Record
	if !poll(waitTimeout, func() bool {
		found = f.backend.Records(append(all, attributes...)...)
		return len(found) > 0
	}) {
		var reasons []any
		for _, record := range f.backend.Records(append(all, "k8s.object.kind", "Pod")...) {
			reasons = append(reasons, record.Get("k8s.object.name"), record.Get("k8s.event.reason"), record.Get("k8s.owner.resolution"))
		}
		require.FailNow(t, "no such record", "with %v of %s, but of pods %v\n%s", attributes, r.name, reasons, f.describe(t, f.namespace))
	}
	return found[0]
}

// explainsStaticPod checks that the release knows that the pod of a file and its mirror in the API
// are the same.
func (f *traffic) explainsStaticPod(t *testing.T, r *release) {
	t.Helper()
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: lamp, namespace: " + f.namespace + "}\n" +
		"spec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: app, image: " + workloadImage + "}\n"
	require.NoError(t, f.node.AddStaticPod("lamp", []byte(manifest)))
	mirror := "lamp-" + f.node.Name()
	record := f.awaitRecord(t, r, "k8s.object.name", mirror, "k8s.event.reason", "Started")
	pod, err := f.CoreV1().Pods(f.namespace).Get(t.Context(), mirror, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, pod.Annotations[corev1.MirrorPodAnnotationKey], record.Get("k8s.object.uid"))
	assert.Equal(t, string(pod.UID), record.Get("k8s.pod.uid"))
	assert.Equal(t, []any{"node/" + f.node.Name()}, record.Get("k8s.owner.chain"))
	assert.Equal(t, "complete", record.Get("k8s.owner.resolution"))
	require.NoError(t, f.node.RemoveStaticPod("lamp"))
}
