// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/series"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

var update = flag.Bool("update", false, "write the golden files again")

// recording is one file of testdata/producers: the states of events as the API server returned
// them, and the objects that the API server has. A recording that a person wrote has the chain of
// one object instead, and what a lookup of the end of that chain gives.
type recording struct {
	Objects    []metav1.PartialObjectMetadata `json:"objects"`
	Chain      []resolver.Object              `json:"chain"`
	Resolution resolver.Resolution            `json:"resolution"`
	// Config has options in addition to the defaults. Pods and ReplicaSets have all their fields, for details.
	Config      string              `json:"config"`
	Pods        []corev1.Pod        `json:"pods"`
	ReplicaSets []appsv1.ReplicaSet `json:"replicaSets"`
	States      []corev1.Event      `json:"states"`
}

// startedAt is when the receiver starts. It sees the events a second later.
var startedAt = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// emit runs the receiver in front of an API server that has the recording, and returns what it
// emits.
func (r recording) emit(t *testing.T) (logs plog.Logs, metrics pmetric.Metrics) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		time.Sleep(time.Until(startedAt))
		r.put(api.Objects)
		p := harness.Launch(t, api, harness.Options{Disk: harness.NewDisk(), Interval: time.Minute, Config: r.Config})
		time.Sleep(time.Second) // The first list is complete.
		for i := range r.States {
			api.Put(&r.States[i])
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, p.Metrics.AllMetrics(), 2, "0, and the value")
		logs, metrics = joined(p.Logs.AllLogs()), p.Metrics.AllMetrics()[1]
	})
	truncateStarts(metrics)
	return logs, metrics
}

// truncateStarts truncates start times to seconds. States of an event that arrive together can be in
// one batch or in two, and a series can start a millisecond later because of that.
func truncateStarts(metrics pmetric.Metrics) {
	harness.EachPoint(metrics, func(p pmetric.NumberDataPoint) {
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(p.StartTimestamp().AsTime().Truncate(time.Second)))
	})
}

// joined returns the records of several batches as one batch would have them: together if their
// resource is the same.
func joined(batches []plog.Logs) plog.Logs {
	all := plog.NewLogs()
	for _, batch := range batches {
		for _, rl := range batch.ResourceLogs().All() {
			var same plog.ResourceLogs
			for _, of := range all.ResourceLogs().All() {
				if of.Resource().Attributes().Equal(rl.Resource().Attributes()) {
					same = of
				}
			}
			if same == (plog.ResourceLogs{}) {
				rl.CopyTo(all.ResourceLogs().AppendEmpty())
				continue
			}
			rl.ScopeLogs().At(0).LogRecords().MoveAndAppendTo(same.ScopeLogs().At(0).LogRecords())
		}
	}
	return all
}

// put puts the objects, or the chain.
func (r recording) put(api *apitest.Objects) {
	for i := range r.Pods {
		api.PutWhole(schema.GroupResource{Resource: "pods"}, &r.Pods[i])
	}
	for i := range r.ReplicaSets {
		api.PutWhole(schema.GroupResource{Group: "apps", Resource: "replicasets"}, &r.ReplicaSets[i])
	}
	if len(r.Chain) > 0 {
		r.putChain(api)
		return
	}
	for _, o := range r.Objects {
		api.Serve(o.APIVersion, o.Kind, strings.ToLower(o.Kind)+"s", o.Namespace != "")
		gv, _ := schema.ParseGroupVersion(o.APIVersion)
		api.PutWhole(schema.GroupResource{Group: gv.Group, Resource: strings.ToLower(o.Kind) + "s"}, &o)
	}
}

// putChain puts the chain. The resolution decides what the API server answers about the end of the
// chain.
func (r recording) putChain(api *apitest.Objects) {
	chain := make([]apitest.Object, len(r.Chain))
	for i, o := range slices.Backward(r.Chain) {
		chain[i] = apitest.Object{
			APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: string(o.UID),
			Labels: o.Labels, Annotations: o.Annotations,
		}
		if isLast := i == len(r.Chain)-1; !isLast {
			owner := chain[i+1]
			chain[i].Owners = []metav1.OwnerReference{apitest.OwnedBy(owner)}
			if r.Resolution == resolver.ResolutionAmbiguous && i == len(r.Chain)-2 {
				owner.Name += "-2"
				owner.UID += "-2"
				chain[i].Owners = append(chain[i].Owners, apitest.OwnedBy(owner))
			}
		}
		api.Serve(o.APIVersion, o.Kind, strings.ToLower(o.Kind)+"s", o.Namespace != "")
		api.Put(chain[i])
	}
	if r.Resolution == resolver.ResolutionForbidden {
		api.Fail(api.Path(chain[len(chain)-1]), apitest.Fault{Status: http.StatusForbidden})
	}
}

func recordings(t *testing.T) map[string]recording {
	files, err := filepath.Glob("testdata/producers/*.yaml")
	require.NoError(t, err)
	recorded, err := filepath.Glob("testdata/producers/kubernetes/*.yaml")
	require.NoError(t, err)
	found := map[string]recording{}
	for _, file := range append(files, recorded...) {
		name, err := filepath.Rel("testdata/producers", file)
		require.NoError(t, err)
		name = strings.TrimSuffix(name, ".yaml")
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
			logs, metrics := r.emit(t)
			logsFile := filepath.Join("testdata", "producers", name+".logs.yaml")
			metricsFile := filepath.Join("testdata", "producers", name+".metrics.yaml")
			if *update {
				require.NoError(t, golden.WriteLogsToFile(logsFile, logs))
				require.NoError(t, golden.WriteMetricsToFile(metricsFile, metrics, golden.SkipMetricTimestampNormalization()))
			}
			for _, rl := range logs.ResourceLogs().All() {
				for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
					assert.WithinDuration(t, startedAt, record.ObservedTimestamp().AsTime(), 2*time.Second)
				}
			}
			wantLogs, err := golden.ReadLogs(logsFile)
			require.NoError(t, err)
			require.NoError(t, plogtest.CompareLogs(wantLogs, logs, plogtest.IgnoreObservedTimestamp()))
			wantMetrics, err := golden.ReadMetrics(metricsFile)
			require.NoError(t, err)
			require.NoError(t, pmetrictest.CompareMetrics(wantMetrics, metrics, pmetrictest.IgnoreTimestamp(),
				pmetrictest.IgnoreResourceMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
		})
	}
}

// described are the attributes that metadata.yaml, and with it the documentation, names. A tag is
// there an attribute of the resource; it is one of points, too.
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
	return resource, described.Events[logrecord.EventName].Attributes, append(described.Metrics[series.MetricName].Attributes, "tilt.manifest")
}

func TestEverythingEmittedIsDescribed(t *testing.T) {
	resource, record, point := described(t)
	emitted := map[string]bool{}
	for name, r := range recordings(t) {
		logs, metrics := r.emit(t)
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
