// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

var update = flag.Bool("update", false, "write the golden files again")

// recording is one file of testdata/producers: the states of an event as the API server handed them
// over, and the owner chain of its involved object as the resolver finds it.
type recording struct {
	Chain      []resolver.Object   `json:"chain"`
	Resolution resolver.Resolution `json:"resolution"`
	States     []corev1.Event      `json:"states"`
}

var seenAt = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// convert takes a recording the way of the loop: account, resolve, convert, tally.
func (r recording) convert(t *testing.T) (plog.Logs, pmetric.Metrics) {
	extractor, err := createDefaultConfig().(*Config).extractor()
	require.NoError(t, err)
	chain := resolver.Chain{Resolution: r.Resolution}
	for i := range r.Chain {
		chain.Objects = append(chain.Objects, &r.Chain[i])
	}
	var observations []observation.Observation
	remembered := ledger.New()
	for i := range r.States {
		if n := remembered.Observe("", &r.States[i]); n > 0 {
			observations = append(observations, observation.Observation{
				Event: &r.States[i], Occurrences: n, SeenAt: seenAt, Chain: chain, Tags: extractor.Tags(chain.Objects),
			})
		}
	}
	converter := logrecord.Converter{ScopeName: metadata.ScopeName, ScopeVersion: "v0.0.0"}
	sums := tally.New(tally.Config{MaxSeries: 10, SeriesTTL: time.Hour}, seenAt)
	sums.Add(observations, seenAt)
	return converter.Convert("cluster-uid", observations),
		sums.Metrics(tally.Scope{Name: metadata.ScopeName, Version: "v0.0.0"}, "cluster-uid", seenAt.Add(time.Minute))
}

func recordings(t *testing.T) map[string]recording {
	files, err := filepath.Glob("testdata/producers/*.yaml")
	require.NoError(t, err)
	found := map[string]recording{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if strings.Contains(name, ".") {
			continue // A golden output.
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var r recording
		require.NoError(t, sigsyaml.UnmarshalStrict(content, &r), file)
		found[name] = r
	}
	require.NotEmpty(t, found)
	return found
}

func TestEveryProducersEvents(t *testing.T) {
	for name, r := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			logs, metrics := r.convert(t)
			logsFile := filepath.Join("testdata", "producers", name+".logs.yaml")
			metricsFile := filepath.Join("testdata", "producers", name+".metrics.yaml")
			if *update {
				require.NoError(t, golden.WriteLogsToFile(logsFile, logs))
				require.NoError(t, golden.WriteMetricsToFile(metricsFile, metrics, golden.SkipMetricTimestampNormalization()))
			}
			wantLogs, err := golden.ReadLogs(logsFile)
			require.NoError(t, err)
			require.NoError(t, plogtest.CompareLogs(wantLogs, logs))
			wantMetrics, err := golden.ReadMetrics(metricsFile)
			require.NoError(t, err)
			require.NoError(t, pmetrictest.CompareMetrics(wantMetrics, metrics))
		})
	}
}

// described are the attributes that metadata.yaml, and with it the documentation, names.
func described(t *testing.T) (resource, record, point []string) {
	content, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var described struct {
		ResourceAttributes map[string]any                           `yaml:"resource_attributes"`
		Events             map[string]struct{ Attributes []string } `yaml:"events"`
		Metrics            map[string]struct{ Attributes []string } `yaml:"metrics"`
	}
	require.NoError(t, yaml.Unmarshal(content, &described))
	for name := range described.ResourceAttributes {
		resource = append(resource, name)
	}
	return resource, described.Events[logrecord.EventName].Attributes, described.Metrics[tally.MetricName].Attributes
}

func TestEverythingEmittedIsDescribed(t *testing.T) {
	resource, record, point := described(t)
	emitted := map[string]bool{}
	for name, r := range recordings(t) {
		logs, metrics := r.convert(t)
		assertDescribed := func(attributes pcommon.Map, allowed []string) {
			for key, value := range attributes.All() {
				emitted[key] = true
				assert.Contains(t, allowed, key, name)
				assert.NotEmpty(t, value.AsString(), "%s: an absent value is left out", name)
			}
		}
		for _, rl := range logs.ResourceLogs().All() {
			assertDescribed(rl.Resource().Attributes(), resource)
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				assertDescribed(lr.Attributes(), record)
			}
		}
		for _, rm := range metrics.ResourceMetrics().All() {
			assertDescribed(rm.Resource().Attributes(), resource)
			for _, dp := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
				assertDescribed(dp.Attributes(), point)
			}
		}
	}
	for _, name := range slices.Concat(record, []string{"k8s.cluster.uid", "k8s.owner.chain", "k8s.workload.uid", "tilt.manifest"}) {
		assert.True(t, emitted[name], "no recording has %s", name)
	}
}
