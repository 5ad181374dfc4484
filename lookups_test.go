// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// putChain puts a Deployment with a ReplicaSet and its pod.
func putChain(api *apitest.Server) {
	deployment := apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "fe", UID: "fe-uid"}
	set := apitest.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "ns", Name: "fe-1", UID: "set-uid"}
	set.Owners = append(set.Owners, apitest.OwnedBy(deployment, true))
	pod := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "pod-uid"}
	pod.Owners = append(pod.Owners, apitest.OwnedBy(set, true))
	api.Objects.Put(deployment, set, pod)
}

func TestAChainEndsAtItsMaximumDepth(t *testing.T) {
	for config, want := range map[string][]any{
		"{max_depth: 1}":                {"replicaset.apps/fe-1"},
		"{max_depth: 2, cache_size: 1}": {"replicaset.apps/fe-1", "deployment.apps/fe"},
	} {
		harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
			putChain(api)
			p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning\nowners: " + config})
			api.Put(harness.Event("a", 1))
			p.AwaitRecords(t, "a+1")
			p.Logs.EachRecord(func(resource map[string]any, _ plog.LogRecord) {
				assert.Equal(t, want, resource["k8s.owner.chain"], config)
			})
		})
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	for config, want := range map[string]int64{"{cache_size: 100}": 3, "{cache_size: 1, max_depth: 10}": 1} {
		harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
			putChain(api)
			p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning\nowners: " + config})
			api.Put(harness.Event("a", 1))
			p.AwaitRecords(t, "a+1")
			size, err := p.Telemetry.GetMetric("otelcol_kube_events_owner_cache_size")
			require.NoError(t, err)
			assert.Equal(t, want, size.Data.(metricdata.Gauge[int64]).DataPoints[0].Value, config)
		})
	}
}

func TestAnEventWaitsForItsOwnersUntilTheTimeout(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		putChain(api)
		for _, path := range []string{"/api/v1/pods?list", "/api/v1/namespaces/ns/pods?list", "/api/v1/namespaces/ns/pods/pod"} {
			defer api.Objects.Hang(t, path)()
		}
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning\nowners: {lookup_timeout: 5s, cache_ttl: 1h}"})
		api.Put(harness.Event("a", 1))
		time.Sleep(4 * time.Second)
		assert.Empty(t, p.Logs.Names())
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"a+1"}, p.Logs.Names())
	})
}

func TestAChainIsReadAgainAfterItsTTL(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		putChain(api)
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning\nowners: {lookup_timeout: 2s, cache_ttl: 1h}"})
		api.Put(harness.Event("a", 1))
		p.AwaitRecords(t, "a+1")
		assert.NotEmpty(t, api.Objects.SeenObjects())
		time.Sleep(time.Minute)
		api.Put(harness.Event("b", 1))
		p.AwaitRecords(t, "a+1", "b+1")
		assert.Empty(t, api.Objects.SeenObjects())
		time.Sleep(time.Hour)
		api.Put(harness.Event("c", 1))
		p.AwaitRecords(t, "a+1", "b+1", "c+1")
		harness.Settle()
		assert.NotEmpty(t, api.Objects.SeenObjects())
	})
}
