// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

var podKind = &kinds.Kind{Name: unique.Make(schema.GroupKind{Kind: "Pod"}), APIVersion: "v1", Namespaced: true}

// TestCacheHoldsTogether changes the cache at random and checks that its views (by name, by UID) hold
// the same entries.
func TestCacheHoldsTogether(t *testing.T) {
	const size, names, uids = 20, 10, 5
	random := rand.New(rand.NewPCG(1, 2))
	var now time.Duration
	c := newCache(size, time.Minute, func() time.Duration { return now })
	in := collectionOf(podKind, "shop")
	for range 5_000 {
		now += time.Duration(random.IntN(int(time.Second)))
		key := objectKey{collection: in, name: fmt.Sprint("pod-", random.IntN(names))}
		uid := types.UID(fmt.Sprint(key.name, "-", random.IntN(uids)))
		if random.IntN(10) == 0 {
			uid = ""
		}
		switch random.IntN(3) {
		case 0:
			c.find(key, uid)
		case 1:
			c.fail(key, uid, []Resolution{ResolutionNotFound, ResolutionForbidden, ResolutionTimeout}[random.IntN(3)], random.IntN(2) == 0)
		case 2:
			if uid == "" {
				continue // Every existing object has a UID.
			}
			stored := c.store(key, Object{Kind: "Pod", Name: key.name, UID: uid}, now-time.Duration(random.IntN(int(3*time.Second))))
			found, known := c.find(key, uid)
			require.True(t, known)
			require.Same(t, stored, found.object)
		}
		requireTogether(t, c, size)
	}
}

func requireTogether(t *testing.T, c *cache, size int) {
	for _, key := range c.objects.Keys() {
		e, _ := c.objects.Peek(key)
		require.Equal(t, lookupKey{e.key, e.UID}, key)
		newest := c.newest[e.key]
		require.True(t, newest == nil || newest.readAt >= e.readAt, "the newest is the one read last")
	}
	for key, e := range c.newest {
		held, isHeld := c.objects.Peek(lookupKey{key, e.UID})
		require.True(t, isHeld)
		require.Same(t, e, held)
	}
	require.LessOrEqual(t, c.failures.Len(), size)
}

// Anybody who may write Events may name any number of objects that do not exist, in long texts.
func TestFailedLookupsTakeLittleMemory(t *testing.T) {
	in, long := collectionOf(podKind, "shop"), strings.Repeat("x", 247)
	before := heap()
	c := newCache(100_000, time.Hour, func() time.Duration { return 0 })
	for i := range 100_000 {
		id := fmt.Sprintf("%06d%s", i, long)
		c.fail(objectKey{in, id}, types.UID(id), ResolutionNotFound, true)
	}
	require.Less(t, heap()-before, int64(16<<20))
	runtime.KeepAlive(c)
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// BenchmarkMemory reports how many bytes the cache takes per object: pods as in a cluster, ten per
// ReplicaSet, with one label kept.
func BenchmarkMemory(b *testing.B) {
	for _, objects := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				c := filledCache(objects)
				b.ReportMetric(float64(heap()-before)/float64(objects), "B/object")
				runtime.KeepAlive(c)
			}
		})
	}
}

func filledCache(objects int) *cache {
	c := newCache(objects, time.Hour, func() time.Duration { return 0 })
	trim := func(meta *metav1.PartialObjectMetadata) {
		maps.DeleteFunc(meta.Labels, func(key, _ string) bool { return key != "tilt-manifest" })
	}
	f := &fetcher{cache: c, trimmer: &trimmer{trim: trim, sets: newStringSets()}}
	for i := range objects {
		meta := podMetadata(i)
		f.store(podKind, collectionOf(podKind, meta.Namespace), meta, 0)
	}
	return c
}

func podMetadata(i int) *metav1.PartialObjectMetadata {
	controller := true
	workload := fmt.Sprintf("workload-%04d", i/50)
	replicaSet := fmt.Sprintf("%s-%010x", workload, i/10)
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprintf("namespace-%02d", i/5000),
		Name:      fmt.Sprintf("%s-%05x", replicaSet, i),
		UID:       types.UID(fmt.Sprintf("0d3c5a3e-9f0e-4f5a-8a3b-%012d", i)),
		Labels:    map[string]string{"tilt-manifest": workload, "pod-template-hash": "649447bf8", "app": workload},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet, Controller: &controller,
			UID: types.UID(fmt.Sprintf("5b1f6f0e-9f0e-4f5a-8a3b-%012d", i/10)),
		}},
	}}
}
