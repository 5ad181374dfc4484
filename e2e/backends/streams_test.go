// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	proc "github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

// TestLokiHasAStreamForEachWorkload: 2,000 pods of 200 Deployments, and pods that do not exist, in a
// simulated cluster; in Loki, as docs/queries.md configures it and the Collector.
func TestLokiHasAStreamForEachWorkload(t *testing.T) {
	t.Parallel()
	fleet := &replay.Fleet{Namespaces: 20, Deployments: 200, Pods: 2000}
	server, err := replay.Start(replay.Options{Fleet: fleet, Plain: true})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	frames := traffic(fleet)
	server.Release(frames...)
	loki := startLokiOfTest(t)
	watchFleet(t, server, loki)

	const ofFleet = `{k8s_cluster_name="fleet"}`
	eventually(t, func() error {
		counted, err := loki.series("sum(count_over_time(" + ofFleet + "[1h]))")
		if expected := fmt.Sprint(len(frames)); err == nil && (len(counted) != 1 || counted[0].Value[1] != expected) {
			err = fmt.Errorf("Loki has %v instead of %s messages", counted, expected)
		}
		return err
	})
	streams, err := loki.streams(ofFleet)
	require.NoError(t, err)
	require.Equal(t, fleet.Deployments+fleet.Namespaces, len(streams)) //nolint:testifylint // Len prints all streams
	for _, labels := range streams {
		assert.Len(t, labels, 4)
		assert.Equal(t, "kube_events", labels["log_source"])
		assert.Regexp(t, "^(app-.*|kube-events)$", labels["service_name"])
		assert.Regexp(t, "^team-.*$", labels["k8s_namespace_name"])
	}
	// The rest is structured metadata.
	const pod = `sum by (k8s_pod_name) (count_over_time({k8s_cluster_name="fleet", service_name="app-0007"}[1h]))`
	pods, err := loki.series(pod)
	require.NoError(t, err)
	assert.Len(t, pods, fleet.Pods/fleet.Deployments)
	const ownerless = `sum by (k8s_pod_name, k8s_owner_resolution) (count_over_time({k8s_cluster_name="fleet", service_name="kube-events"}[1h]))`
	pods, err = loki.series(ownerless)
	require.NoError(t, err)
	assert.Len(t, pods, 100, "those that do not exist")
}

// traffic are two events of each pod, and one of each of 100 pods that do not exist.
func traffic(fleet *replay.Fleet) (frames []replay.Frame) {
	recorder, at := replay.NewRecorder(), time.Now()
	record := func(ev *corev1.Event) { frames = append(frames, recorder.Frame(watch.Added, ev)) }
	next := func() time.Time { at = at.Add(time.Microsecond); return at }
	for pod := range fleet.Pods {
		record(fleet.Scheduled(pod, next()))
		record(fleet.BackOff(pod, next()))
	}
	for i := range 100 {
		ev := fleet.Started(i, next())
		ev.InvolvedObject.Name, ev.InvolvedObject.UID = fmt.Sprint("gone-", i), ""
		record(ev)
	}
	return frames
}

// startLokiOfTest starts one that has no logs of other tests.
func startLokiOfTest(t *testing.T) *loki {
	t.Helper()
	l, err := startLoki(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(l.stop)
	require.NoError(t, l.await(l.ready))
	return l
}

// watchFleet starts a Collector that sends the logs of a simulated cluster to Loki.
func watchFleet(t *testing.T, server *replay.Server, to *loki) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, server.WriteKubeconfig(kubeconfig))
	own, err := proc.FreeAddresses(1)
	require.NoError(t, err)
	config := strings.Replace(all.collectorConfig("127.0.0.1:0"), all.loki.url, to.url, 1)
	p, err := all.startOtelcol(own[0], config,
		"yaml:receivers::kube_events::kubeconfig: "+kubeconfig, "yaml:receivers::kube_events::cluster_name: fleet",
		"yaml:receivers::kube_events::owners::lookup_timeout: 1m", // On a busy machine, too, pods have their owners.
		"yaml:exporters::nop:", "yaml:service::pipelines::metrics::exporters: [nop]")
	if p != nil {
		t.Cleanup(p.stop)
	}
	require.NoError(t, err)
}

// TestTheRecipeHasTheStreamsOfThePage: examples/backends configures the streams as docs/queries.md.
func TestTheRecipeHasTheStreamsOfThePage(t *testing.T) {
	t.Parallel()
	type config struct {
		Ingester struct {
			MaxChunkAge string `json:"max_chunk_age"`
		}
		Querier map[string]any
		Limits  struct {
			OTLP map[string]any `json:"otlp_config"`
		} `json:"limits_config"`
		Processors map[string]any
	}
	parse := func(text string) (c config) {
		require.NoError(t, yaml.Unmarshal([]byte(text), &c))
		return c
	}
	page, recipe := parse(all.page.loki), parse(harness.Read(t, "examples", "backends", "loki.yaml"))
	require.NotEmpty(t, page.Limits.OTLP)
	assert.Equal(t, page.Limits.OTLP, recipe.Limits.OTLP)
	require.NotEmpty(t, page.Ingester.MaxChunkAge)
	assert.Equal(t, page.Ingester, recipe.Ingester)
	assert.Equal(t, page.Querier, recipe.Querier)
	page, recipe = parse(all.page.collector), parse(harness.Read(t, "examples", "backends", "collector.yaml"))
	require.NotEmpty(t, page.Processors)
	assert.Equal(t, page.Processors, recipe.Processors)
}
