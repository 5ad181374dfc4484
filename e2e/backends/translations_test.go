// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/DataDog/datadog-agent/pkg/opentelemetry-mapping-go/otlp/attributes"
	datadog "github.com/DataDog/datadog-agent/pkg/opentelemetry-mapping-go/otlp/metrics"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	proc "github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

// reasonOfTwo is the reason of the events of two workloads.
const reasonOfTwo = "HappenedToTwo"

// occurrencesOfTwo are the workloads, and how often the event occurred to each.
var occurrencesOfTwo = map[string]string{"three": "3", "forty": "40"}

// TestTwoWorkloadsWithOneReasonAreTwoSeries: in each way by which the metric reaches a backend.
// Nothing is promoted: many backends drop the attributes of a resource.
func TestTwoWorkloadsWithOneReasonAreTwoSeries(t *testing.T) {
	t.Parallel()
	written := startRemoteWritten(t)
	tags := &taggedCounts{counts: map[string]float64{}}
	startTranslated(t, remoteWrite(t, written.url), datadogTranslation(t, tags))
	createTwoWorkloads(t)
	for name, server := range map[string]*prometheus{"OTLP": all.pushed, "scrape": all.scraped, "remote write": written} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Without a name: the Collector of the dashboards' test also sees the events.
			query := fmt.Sprintf("k8s_event_occurrences_total{k8s_event_reason=%q, k8s_cluster_name=\"\"}", reasonOfTwo)
			eventually(t, func() error { return server.hasTwo(query) })
		})
	}
	t.Run("Datadog", func(t *testing.T) {
		t.Parallel()
		eventually(t, func() error { return sameCounts(tags.get()) })
	})
}

func createTwoWorkloads(t *testing.T) {
	t.Helper()
	const namespace = "two-workloads"
	_, err := all.cluster.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for name, count := range occurrencesOfTwo {
		occurrences, err := strconv.ParseInt(count, 10, 32)
		require.NoError(t, err)
		reportOften(t, int32(occurrences), makeReplicaSet(t, namespace, name), "Warning", reasonOfTwo, "to two workloads")
	}
}

// hasTwo returns an error unless a query gives exactly the two workloads and their occurrences.
func (p *prometheus) hasTwo(query string) error {
	found, err := p.series(query)
	if err != nil {
		return err
	}
	counts := map[string]string{}
	for _, s := range found {
		counts[s.Metric["k8s_workload_name"]] = fmt.Sprint(s.Value[1])
	}
	if len(found) != len(occurrencesOfTwo) {
		return fmt.Errorf("%d series: %v", len(found), found)
	}
	return sameCounts(counts)
}

func sameCounts(counts map[string]string) error {
	if !assert.ObjectsAreEqual(occurrencesOfTwo, counts) {
		return fmt.Errorf("the counts are %v", counts)
	}
	return nil
}

// translation passes metrics on as an exporter does.
type translation func(context.Context, pmetric.Metrics) error

// startTranslated starts a Collector whose metrics go to translations of exporters that the
// distribution does not have.
func startTranslated(t *testing.T, translations ...translation) {
	t.Helper()
	var one sync.Mutex
	sink, err := otlpsink.Start(otlpsink.Callbacks{Metrics: func(ctx context.Context, metrics pmetric.Metrics) error {
		one.Lock()
		defer one.Unlock()
		for _, translate := range translations {
			copied := pmetric.NewMetrics()
			metrics.CopyTo(copied)
			if err := translate(ctx, copied); err != nil {
				return err
			}
		}
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sink.Stop()) })
	own, err := proc.FreeAddresses(1)
	require.NoError(t, err)
	p, err := all.startOtelcol(own[0], fmt.Sprintf(`
receivers: {kube_events: {start_at: beginning, collection_interval: 1s}}
exporters: {nop: , otlp_http: {endpoint: %q, sending_queue: {enabled: false}}}
service: {pipelines: {logs: {exporters: [nop]}, metrics: {exporters: [otlp_http]}}}
`, sink.URL))
	if p != nil {
		t.Cleanup(p.stop)
	}
	require.NoError(t, err)
}

// startRemoteWritten starts a Prometheus that takes remote writes.
func startRemoteWritten(t *testing.T) *prometheus {
	t.Helper()
	p, err := startPrometheus(t.TempDir(), "", "--web.enable-remote-write-receiver")
	require.NoError(t, err)
	t.Cleanup(p.stop)
	require.NoError(t, p.await(p.ready))
	return p
}

// remoteWrite is contrib's exporter, with its defaults.
func remoteWrite(t *testing.T, url string) translation {
	t.Helper()
	factory := prometheusremotewriteexporter.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": url + "/api/v1/write"}).Unmarshal(config))
	e, err := factory.CreateMetrics(t.Context(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, e.Shutdown(context.Background())) })
	return e.ConsumeMetrics
}

// datadogTranslation is that of contrib's exporter for Datadog, with its defaults.
func datadogTranslation(t *testing.T, to datadog.Consumer) translation {
	t.Helper()
	telemetry := componenttest.NewNopTelemetrySettings()
	names, err := attributes.NewTranslator(telemetry)
	require.NoError(t, err)
	translator, err := datadog.NewDefaultTranslator(telemetry, names)
	require.NoError(t, err)
	return func(ctx context.Context, metrics pmetric.Metrics) error {
		_, err := translator.MapMetrics(ctx, metrics, to, nil)
		return err
	}
}

// taggedCounts adds up the occurrences of the two workloads, as Datadog does: a series is what has
// the same tags.
type taggedCounts struct {
	datadog.Consumer // There is no metric of another type.
	mu               sync.Mutex
	counts           map[string]float64 // by tags
}

// ConsumeTimeSeries implements datadog.TimeSeriesConsumer.
func (c *taggedCounts) ConsumeTimeSeries(_ context.Context, of *datadog.Dimensions, _ datadog.DataType, _ uint64, _ int64, value float64) {
	if !slices.Contains(of.Tags(), "k8s.event.reason:"+reasonOfTwo) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[strings.Join(slices.Sorted(slices.Values(of.Tags())), ",")] += value
}

// get returns the counts by the tag of the workload. Series that differ in other tags are apart.
func (c *taggedCounts) get() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]string{}
	for tags, count := range c.counts {
		name := tags
		for tag := range strings.SplitSeq(tags, ",") {
			if workload, ok := strings.CutPrefix(tag, "k8s.workload.name:"); ok {
				name = workload
			}
		}
		if _, again := counts[name]; again {
			name = tags
		}
		counts[name] = strconv.FormatFloat(count, 'f', -1, 64)
	}
	return counts
}
