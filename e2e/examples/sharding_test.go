// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"fmt"
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
// event comes from one Collector, whether it was there before, was made or was counted up while
// they ran; and their metrics add up to what happened.
func TestShardsAreDisjointAndComplete(t *testing.T) {
	t.Parallel()
	shards := readShards(t)
	namespaces := append(listedBy(shards), "sharding-new", "sharding-old", metav1.NamespaceDefault)
	for _, namespace := range namespaces {
		makeNamespace(t, namespace)
	}
	made := &madeEvents{counts: map[types.UID]int64{}}
	made.round(t, "before", namespaces)

	all := harness.NewBackend(t)
	startShards(t, shards, all)
	harness.Eventually(t, func() bool { return occurrencesOf(all.Records("k8s.event.reason", spread)) >= made.total() }, "what was there before")
	made.countUp(t)
	made.round(t, "while", namespaces)
	before := eventsOf(t)
	harness.Eventually(t, func() bool { return occurrencesOf(all.Records("k8s.event.reason", spread)) >= made.total() }, "everything that was made")
	harness.Eventually(t, func() bool { return len(missing(all, before)) == 0 }, "every event of the cluster")
	for _, s := range shards {
		s.collector.Stop(t)
	}

	assertUnion(t, all, made)
	assertNoneTwice(t, shards)
	assertTotals(t, shards, all, made)
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

// madeEvents are the events that the test made, and how often each has occurred.
type madeEvents struct {
	old    []*corev1.Event
	counts map[types.UID]int64
}

// round makes events about pods in the namespaces and about nodes, which are in none.
func (m *madeEvents) round(t *testing.T, round string, namespaces []string) {
	t.Helper()
	for _, namespace := range namespaces {
		for count := range int32(3) {
			m.make(t, namespace, corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: fmt.Sprint(round, "-", count)}, count+1)
		}
	}
	for count := range int32(2) {
		node := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: fmt.Sprint("node-", count), UID: types.UID(round)}
		m.make(t, metav1.NamespaceDefault, node, count+4)
		m.makeNew(t, metav1.NamespaceDefault, node)
		m.makeNew(t, metav1.NamespaceSystem, node)
	}
}

func (m *madeEvents) make(t *testing.T, namespace string, about corev1.ObjectReference, count int32) {
	t.Helper()
	now := metav1.Now()
	event, err := kube.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "sharding-"}, InvolvedObject: about, Reason: spread, Type: corev1.EventTypeNormal,
		Count: count, FirstTimestamp: now, LastTimestamp: now, Source: corev1.EventSource{Component: "sharding-test"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	m.old = append(m.old, event)
	m.counts[event.UID] = int64(count)
}

// makeNew makes an event as recorders of events.k8s.io do, some of which keep those about objects
// in no namespace in kube-system.
func (m *madeEvents) makeNew(t *testing.T, namespace string, about corev1.ObjectReference) {
	t.Helper()
	event, err := kube.EventsV1().Events(namespace).Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "sharding-"}, Regarding: about, Reason: spread, Type: corev1.EventTypeNormal,
		EventTime: metav1.NowMicro(), Action: "Testing", ReportingController: "example.com/sharding-test", ReportingInstance: "sharding-test-0",
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	m.counts[event.UID] = 1
}

// countUp makes the events of the old style occur again, as their recorders do: by a patch of the
// count.
func (m *madeEvents) countUp(t *testing.T) {
	t.Helper()
	for _, event := range m.old {
		m.counts[event.UID] += 3
		patch := fmt.Appendf(nil, `{"count": %d}`, m.counts[event.UID])
		_, err := kube.CoreV1().Events(event.Namespace).Patch(t.Context(), event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
}

func (m *madeEvents) total() (total int64) {
	for _, count := range m.counts {
		total += count
	}
	return total
}

// eventsOf are the UIDs of all events in the cluster.
func eventsOf(t *testing.T) (uids []string) {
	t.Helper()
	list, err := kube.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		uids = append(uids, string(list.Items[i].UID))
	}
	return uids
}

func missing(backend *harness.Backend, uids []string) (missing []string) {
	seen := map[any]bool{}
	for _, record := range backend.Records() {
		seen[record.Get("k8s.event.uid")] = true
	}
	return slices.DeleteFunc(slices.Clone(uids), func(uid string) bool { return seen[uid] })
}

// assertUnion: together the Collectors report each event as often as it occurred.
func assertUnion(t *testing.T, all *harness.Backend, made *madeEvents) {
	t.Helper()
	counts := map[types.UID]int64{}
	for _, record := range all.Records("k8s.event.reason", spread) {
		counts[types.UID(record.Get("k8s.event.uid").(string))] += record.Get("k8s.event.occurrences").(int64)
	}
	assert.Equal(t, made.counts, counts)
}

// assertNoneTwice: no event of the cluster comes from two Collectors, nor comes one record twice;
// and each of them emits records.
func assertNoneTwice(t *testing.T, shards []*shard) {
	t.Helper()
	from, records := map[any]string{}, map[any]bool{}
	for _, s := range shards {
		assert.NotEmpty(t, s.backend.Records("k8s.event.reason", spread), s.config)
		for _, record := range s.backend.Records() {
			uid, id := record.Get("k8s.event.uid"), record.Get("log.record.uid")
			if other, ok := from[uid]; ok {
				assert.Equal(t, other, s.config, "both report %v", id)
			}
			assert.False(t, records[id], "%v comes twice", id)
			from[uid], records[id] = s.config, true
		}
	}
}

// assertTotals: the Collectors' sums add up to what happened, also where all of them are kept
// together: no two Collectors have a series in common, of which a backend would keep one value.
func assertTotals(t *testing.T, shards []*shard, all *harness.Backend, made *madeEvents) {
	t.Helper()
	var total int64
	for _, s := range shards {
		occurrences := s.backend.Occurrences("k8s.event.reason", spread)
		assert.Equal(t, occurrencesOf(s.backend.Records("k8s.event.reason", spread)), occurrences, s.config)
		total += occurrences
	}
	assert.Equal(t, made.total(), total)
	assert.Equal(t, made.total(), all.Occurrences("k8s.event.reason", spread))
}
