// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// spread is the reason of the events whose number the test knows: other recipes make other events
// at the same time.
const spread = "SpreadOverShards"

// shard is one of the recipe's Collectors, with what has come of it.
type shard struct {
	config    string
	filter    shardFilter
	collector *harness.Collector
	backend   *harness.Backend
}

// shardFilter is the part of a shard's configuration that selects namespaces.
type shardFilter struct {
	Namespaces        []string `json:"namespaces"`
	ExcludeNamespaces []string `json:"exclude_namespaces"`
}

// TestShardsAreDisjointAndComplete: of each namespace, listed or not, and of objects in none, each
// event comes from one Collector, whether it was there before or was made while they ran; and their
// metrics add up to what happened, also where all of them are kept together: no two Collectors have a
// series in common, of which a backend would keep one value.
func TestShardsAreDisjointAndComplete(t *testing.T) {
	t.Parallel()
	shards := readShards(t)
	namespaces := append(listedBy(shards), "sharding-new", "sharding-old", metav1.NamespaceDefault)
	made := map[types.UID]int64{}
	for _, namespace := range namespaces {
		makeNamespace(t, namespace)
	}
	makeSpread(t, made, namespaces)

	all := harness.NewBackend(t)
	startShards(t, shards, all)
	await := func() {
		harness.Eventually(t, func() bool { return len(all.Records("k8s.event.reason", spread)) >= len(made) }, "everything that was made")
	}
	await()
	makeSpread(t, made, namespaces)
	await()
	for _, s := range shards {
		s.collector.Stop(t)
	}

	reported := map[types.UID]int64{}
	for _, record := range all.Records("k8s.event.reason", spread) {
		reported[types.UID(record.Get("k8s.event.uid").(string))] += record.Get("k8s.event.occurrences").(int64)
	}
	assert.Equal(t, made, reported)
	var total, inSum int64
	for _, count := range made {
		total += count
	}
	for _, s := range shards {
		occurrences := s.backend.Occurrences("k8s.event.reason", spread)
		assert.Positive(t, occurrences, s.config)
		inSum += occurrences
	}
	assert.Equal(t, total, inSum)
	assert.Equal(t, total, all.Occurrences("k8s.event.reason", spread))
}

// TestShardsConfigurationsAgree: what one Collector lists no other does, and the rest excludes
// exactly that, but nothing in which events of objects without a namespace are stored.
func TestShardsConfigurationsAgree(t *testing.T) {
	t.Parallel()
	var excluded []string
	for _, s := range readShards(t) {
		excluded = append(excluded, s.filter.ExcludeNamespaces...)
		assert.True(t, len(s.filter.Namespaces) == 0 || len(s.filter.ExcludeNamespaces) == 0, s.config)
	}
	listed := listedBy(readShards(t))
	assert.ElementsMatch(t, excluded, listed)
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(listed))), len(listed), "a namespace that two list: %v", listed)
	assert.NotContains(t, listed, metav1.NamespaceDefault)
	assert.NotContains(t, listed, metav1.NamespaceSystem)
}

// readShards finds the recipe's Collectors.
func readShards(t *testing.T) (shards []*shard) {
	t.Helper()
	for _, name := range []string{"collector-shop.yaml", "collector-builds.yaml", "collector-rest.yaml"} {
		config := struct {
			Receivers map[string]shardFilter `json:"receivers"`
		}{}
		require.NoError(t, yaml.Unmarshal([]byte(harness.Read(t, file("sharding", name))), &config))
		shards = append(shards, &shard{config: name, filter: config.Receivers["kube_events"]})
	}
	return shards
}

func listedBy(shards []*shard) (namespaces []string) {
	for _, s := range shards {
		namespaces = append(namespaces, s.filter.Namespaces...)
	}
	return namespaces
}

// startShards runs the Collectors with one identity and the rights of any other. What each delivers
// is kept for itself, and once more together, as the backend sees it to which all of them deliver.
func startShards(t *testing.T, shards []*shard, all *harness.Backend) {
	t.Helper()
	kubeconfig := kube.KubeconfigFor(t, "sharding", reader)
	for _, s := range shards {
		s.backend = harness.NewBackend(t, all)
		s.collector = harness.Run(t, harness.Otelcol(t), harness.InRepository(file("sharding", s.config)),
			"KUBECONFIG="+kubeconfig, "OTLP_ENDPOINT="+s.backend.URL)
	}
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// makeSpread makes events about pods in the namespaces and about nodes, which are in none. Some
// recorders of events.k8s.io keep those about objects in no namespace in kube-system.
func makeSpread(t *testing.T, made map[types.UID]int64, namespaces []string) {
	t.Helper()
	node := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-0", UID: "node-0"}
	for i, namespace := range append(namespaces, metav1.NamespaceDefault) {
		about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "spread"}
		if i == len(namespaces) {
			about = node
		}
		now := metav1.Now()
		event, err := kube.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "sharding-"}, InvolvedObject: about, Reason: spread, Type: corev1.EventTypeNormal,
			Count: int32(i + 1), FirstTimestamp: now, LastTimestamp: now, Source: corev1.EventSource{Component: "sharding-test"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		made[event.UID] = int64(event.Count)
	}
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		event, err := kube.EventsV1().Events(namespace).Create(t.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "sharding-"}, Regarding: node, Reason: spread, Type: corev1.EventTypeNormal,
			EventTime: metav1.NowMicro(), Action: "Testing", ReportingController: "example.com/sharding-test", ReportingInstance: "sharding-test-0",
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		made[event.UID] = 1
	}
}
