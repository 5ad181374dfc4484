// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// crowd puts pods of one Deployment.
func crowd(api *apitest.Objects, n int) (pods []apitest.Object) {
	for i := range n {
		pods = append(pods, object("v1", "Pod", fmt.Sprintf("fe-1-%05d", i), fmt.Sprintf("0d3c5a3e-9f0e-4f5a-8a3b-%012d", i), replicaSet))
	}
	api.Put(pods...)
	return pods
}

// metricsOf are metrics with resources as kubeletstats writes them for containers.
func metricsOf(pods []apitest.Object) pmetric.Metrics {
	data := pmetric.NewMetrics()
	for _, o := range pods {
		attributes := data.ResourceMetrics().AppendEmpty().Resource().Attributes()
		attributes.PutStr("k8s.pod.uid", o.UID)
		attributes.PutStr("k8s.pod.name", o.Name)
		attributes.PutStr("k8s.namespace.name", o.Namespace)
		attributes.PutStr("k8s.container.name", "main")
		attributes.PutStr("container.id", "3f1c2b9a8d7e")
		attributes.PutStr("k8s.node.name", "n1")
		attributes.PutStr("k8s.cluster.name", "prod")
	}
	return data
}

// warm is an enricher that knows the pods, and their resources.
func warm(t testing.TB, pods int) (*enricher, pmetric.Metrics) {
	t.Helper()
	api := newCluster()
	all := crowd(api, pods)
	e := warmFrom(t, api, all)
	return e, metricsOf(all)
}

func warmFrom(t testing.TB, api *apitest.Objects, all []apitest.Object) *enricher {
	t.Helper()
	e := newEnricher(t, api, func(c *Config) { c.Wait = c.Owners.LookupTimeout })
	for some := range slices.Chunk(all, 1000) {
		_, err := e.metrics(t.Context(), metricsOf(some))
		require.NoError(t, err)
	}
	require.Equal(t, len(all), e.table.entries.Len())
	return e
}

// BenchmarkKnown adds what is known to a resource, and, for comparison, only writes the same four attributes.
func BenchmarkKnown(b *testing.B) {
	const pods = 1000
	e, data := warm(b, pods)
	b.Run("kube_owners", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			fresh := pmetric.NewMetrics()
			data.CopyTo(fresh)
			b.StartTimer()
			if _, err := e.metrics(b.Context(), fresh); err != nil {
				b.Fatal(err)
			}
		}
		report(b, pods)
	})
	s, ok := subjectOf(data.ResourceMetrics().At(0).Resource().Attributes(), true, e.extractor.Uses())
	require.True(b, ok)
	known, _ := e.table.get(s)
	b.Run("only writing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			fresh := pmetric.NewMetrics()
			data.CopyTo(fresh)
			b.StartTimer()
			for _, r := range fresh.ResourceMetrics().All() {
				add(r.Resource().Attributes(), known)
			}
		}
		report(b, pods)
	})
}

// report reports the time for one resource, and the share of a core at 100,000 of them a minute.
func report(b *testing.B, resources int) {
	each := b.Elapsed().Seconds() / float64(b.N*resources)
	b.ReportMetric(each*1e9, "ns/resource")
	b.ReportMetric(each*100_000/60*100, "%core")
}

// TestWhatIsKnownNeedsNoMemory beyond that of the attributes that are written.
func TestWhatIsKnownNeedsNoMemory(t *testing.T) {
	const pods = 100
	e, data := warm(t, pods)
	attributes := make([]pcommon.Map, pods)
	for i := range pods {
		attributes[i] = data.ResourceMetrics().At(i).Resource().Attributes()
	}
	found := 0
	allocations := testing.AllocsPerRun(10, func() {
		for _, a := range attributes {
			s, _ := subjectOf(a, true, e.extractor.Uses())
			if known, _ := e.table.get(s); known.outcome == outcomeFound {
				found++
			}
		}
	})
	require.Zero(t, allocations)
	require.Equal(t, 11*pods, found)
}

// BenchmarkMemory reports how many bytes a pod takes, in the table and in the resolver's cache.
func BenchmarkMemory(b *testing.B) {
	const pods = 20_000
	for b.Loop() {
		api := newCluster()
		all := crowd(api, pods)
		before := heap()
		e := warmFrom(b, api, all)
		b.ReportMetric(float64(heap()-before)/pods, "B/pod")
		runtime.KeepAlive(e)
		runtime.KeepAlive(all)
	}
}

func heap() int64 {
	var stats runtime.MemStats
	for range 3 { // Interned strings go in the second collection after their last use.
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
