// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/receiver/receivertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/series"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// The benchmarks' cluster: 2,000 pods of 200 Deployments in 10 namespaces, with ten events each, in
// batches of 100.
const (
	benchPods  = 2000
	benchBatch = 100
	benchEach  = 10
)

func podName(pod int) string { return fmt.Sprintf("app-%03d-6f5c9d7b4-%05d", pod/10, pod) }

func podNamespace(pod int) string { return fmt.Sprintf("team-%d", pod/10%10) }

// benchEvents are events as a kubelet writes them.
func benchEvents() (all []*corev1.Event) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for i := range benchPods * benchEach {
		pod := i % benchPods
		all = append(all, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: podNamespace(pod), Name: fmt.Sprintf("%s.%016x", podName(pod), i), CreationTimestamp: now,
				UID: types.UID(fmt.Sprintf("5b0e0c5a-0d5e-4a3c-9f00-%012d", i)), ResourceVersion: fmt.Sprint(1000 + i),
				ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(`{"f:count":{},"f:firstTimestamp":{},"f:involvedObject":{},"f:lastTimestamp":{},"f:message":{},"f:reason":{},"f:source":{"f:component":{},"f:host":{}},"f:type":{}}`),
				}},
			},
			InvolvedObject: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Pod", Namespace: podNamespace(pod), Name: podName(pod),
				UID: types.UID(fmt.Sprintf("pod-%d", pod)), FieldPath: "spec.containers{app}", ResourceVersion: "4711",
			},
			Reason: "Unhealthy", Message: "Readiness probe failed: HTTP probe failed with statuscode: 503", Type: "Warning", Count: 1,
			Source:         corev1.EventSource{Component: "kubelet", Host: fmt.Sprintf("node-%03d", pod%300)},
			FirstTimestamp: now, LastTimestamp: now, ReportingController: "kubelet", ReportingInstance: fmt.Sprintf("node-%03d", pod%300),
		})
	}
	return all
}

// benchBatches are batches of changes as the streams make them.
func benchBatches(events []*corev1.Event) (batches [][]watch.Change) {
	for events := range slices.Chunk(events, benchBatch) {
		var changes []watch.Change
		for _, ev := range events {
			changes = append(changes, watch.Change{Kind: watch.Changed, Event: ev, SeenAt: time.Now(), ResourceVersion: ev.ResourceVersion})
		}
		batches = append(batches, changes)
	}
	return batches
}

// putOwners puts the pods, their ReplicaSets and their Deployments.
func putOwners(api *apitest.Objects) {
	for pod := range benchPods {
		name, namespace := fmt.Sprintf("app-%03d", pod/10), podNamespace(pod)
		deployment := apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name, UID: "uid-" + name}
		replicaSet := apitest.Object{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: namespace, Name: name + "-6f5c9d7b4", UID: "uid-rs-" + name,
			Owners: []metav1.OwnerReference{apitest.OwnedBy(deployment, true)},
		}
		api.Put(deployment, replicaSet, apitest.Object{
			APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: podName(pod), UID: fmt.Sprintf("pod-%d", pod),
			Owners: []metav1.OwnerReference{apitest.OwnedBy(replicaSet, true)},
		})
	}
}

// benchProcess is a process of which nothing runs, with warm owners, into a pipeline that marshals
// what it gets.
func benchProcess(b *testing.B) *Loop {
	api := apitest.NewObjects(b)
	putOwners(api)
	extractor, err := extract.New(extract.Config{
		Labels:  []extract.Rule{{TagName: "tilt.manifest", Key: "tilt-manifest"}},
		Service: extract.Service{Metadata: []string{extract.ServiceName, extract.ServiceNamespace}, OTelAnnotations: true},
	})
	require.NoError(b, err)
	restConfig := api.RESTConfig()
	resolves, err := resolver.New(restConfig, resolver.Config{
		MaxDepth: 10, LookupTimeout: 2 * time.Second, CacheSize: 100_000, CacheTTL: 10 * time.Minute,
		KeepLabel: extractor.KeepLabel, KeepAnnotation: extractor.KeepAnnotation,
	})
	require.NoError(b, err)
	b.Cleanup(resolves.Close)
	settings := receivertest.NewNopSettings(metadata.Type)
	observer, err := health.New(settings)
	require.NoError(b, err)
	client, err := kubeclient.Events(restConfig)
	require.NoError(b, err)
	logs, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		_, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
		return err
	})
	require.NoError(b, err)
	p := New(Settings{
		Config: Config{
			Streams: []string{""}, CollectionInterval: 30 * time.Second,
			Series: series.Config{Max: 10_000, TTL: time.Hour}, Retry: configretry.NewDefaultBackOffConfig(),
		},
		Logger: settings.Logger, Logs: logs, Metrics: &consumertest.MetricsSink{},
		Health: observer, Owners: owners.New(resolves, extractor),
		Converter: logrecord.Converter{ScopeName: metadata.ScopeName},
		Client:    client, Leadership: election.AlwaysLeads(),
	})
	return p
}

// BenchmarkStages measures what is done with a batch of 100 events, stage by stage, and the whole
// loop: from the changes to the bytes of OTLP, with owners that are known. ns/event and
// B/event are comparable between the stages.
func BenchmarkStages(b *testing.B) {
	p := benchProcess(b)
	s := p.openToTest()
	pipeline := s.pipeline
	batches := benchBatches(benchEvents())
	account := func(changes []watch.Change) []observation.Observation {
		batch := &batch{changes: changes}
		s.account(batch)
		return batch.records
	}
	var resolved [][]observation.Observation
	for _, changes := range batches {
		observations := account(changes)
		s.resolve(b.Context(), &batch{records: observations})
		resolved = append(resolved, observations)
	}
	for _, o := range resolved[0] {
		require.Equal(b, resolver.Complete, o.Chain.Resolution)
	}
	logs := pipeline.convert(resolved[0])[0].logs()

	stage := func(name string, do func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%len(batches) == 0 {
					s = p.openToTest() // Seen a second time, nothing would be new.
				}
				do(n % len(batches))
				n++
			}
			perEvent := float64(b.Elapsed().Nanoseconds()) / float64(n*benchBatch)
			b.ReportMetric(perEvent, "ns/event")
			b.ReportMetric(1e9/perEvent, "events/s")
		})
	}
	stage("account", func(i int) { account(batches[i]) })
	stage("resolve", func(i int) { s.resolve(b.Context(), &batch{records: resolved[i]}) })
	stage("convert", func(i int) { pipeline.convert(resolved[i]) })
	stage("marshal", func(int) { _, _ = plogotlp.NewExportRequestFromLogs(logs).MarshalProto() })
	stage("count", func(i int) { s.sums.count(resolved[i]) })
	stage("loop", func(i int) {
		batch := &batch{changes: batches[i]}
		s.account(batch)
		s.emit(b.Context(), b.Context(), batch)
	})
}
