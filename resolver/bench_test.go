// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// rollout puts 2,000 pods of 200 Deployments into 10 namespaces.
func rollout(api *apitest.Objects) []resolver.Reference {
	var pods []resolver.Reference
	for i := range 10 {
		pods = append(pods, crowd(api, fmt.Sprint("namespace-", i), 200)...)
	}
	return pods
}

// BenchmarkWarm resolves chains of three objects that are all known.
func BenchmarkWarm(b *testing.B) {
	api := apitest.NewObjects(b)
	pods := rollout(api)
	r := newResolver(b, api, resolver.Config{})
	requireComplete(b, r.Resolve(b.Context(), pods))
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				from := i * batch % len(pods)
				r.Resolve(b.Context(), pods[from:from+batch])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/chain")
		})
	}
}

// BenchmarkCold resolves a rollout over HTTP with an empty cache.
func BenchmarkCold(b *testing.B) {
	api := apitest.NewObjects(b)
	pods := rollout(api)
	for _, batch := range []int{len(pods), 200} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			b.ReportAllocs()
			requests := 0
			for b.Loop() {
				r := newResolver(b, api, resolver.Config{})
				for from := 0; from < len(pods); from += batch {
					requireComplete(b, r.Resolve(b.Context(), pods[from:from+batch]))
				}
				r.Close()
				requests = len(api.Seen())
			}
			require.LessOrEqual(b, requests, 60)
			b.ReportMetric(float64(requests), "requests/op")
		})
	}
}

// One slice for each chain, and two for the batch: its chains, and the climb from object to object.
func TestAllocationsOfAWarmChain(t *testing.T) {
	api := apitest.NewObjects(t)
	pods := crowd(api, "ns", 100)
	r := newResolver(t, api, resolver.Config{})
	requireComplete(t, r.Resolve(t.Context(), pods))
	const chains, ofBatch = 100, 4
	memorytest.Allocations(t, chains+ofBatch, func() { r.Resolve(t.Context(), pods) })
}
