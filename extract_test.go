// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// extractsAll has a rule for each origin, without a tag name or with a regular expression, too.
const extractsAll = `
start_at: beginning
extract:
  labels:
    - {key: team, from: namespace}
    - {tag_name: zone, key: topology.kubernetes.io/zone, from: node}
    - {key: pipeline, from: event}
    - {tag_name: app, key: app}
  annotations:
    - {tag_name: "run.$1", key_regex: "ci/(.*)", from: event}
`

// putTaggedObjects puts a Deployment with a pod, the Namespace, and two Nodes.
func putTaggedObjects(api *apitest.Objects) {
	deployment := apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "fe", UID: "fe-uid"}
	pod := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "pod-uid", Labels: map[string]string{"app": "fe"}}
	pod.Owners = append(pod.Owners, apitest.OwnedBy(deployment, true))
	api.Put(deployment, pod,
		apitest.Object{APIVersion: "v1", Kind: "Namespace", Name: "ns", UID: "ns-uid", Labels: map[string]string{"team": "web"}},
		apitest.Object{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "n1", Labels: map[string]string{"topology.kubernetes.io/zone": "z1"}},
		apitest.Object{APIVersion: "v1", Kind: "Node", Name: "node-2", UID: "n2", Labels: map[string]string{"topology.kubernetes.io/zone": "z2"}},
	)
}

// taggedEvent is a pod's event of a node's kubelet.
func taggedEvent(name string, count int32, node string) *corev1.Event {
	ev := harness.Event(name, count)
	ev.Labels, ev.Annotations = map[string]string{"pipeline": "p-" + name}, map[string]string{"ci/id": "42", "other": "x"}
	ev.Source = corev1.EventSource{Component: "kubelet", Host: node}
	return ev
}

// tagsOf are the attributes of a resource or a record that are extracted.
func tagsOf(attributes map[string]any) map[string]any {
	found := map[string]any{}
	for key, value := range attributes {
		own := strings.HasPrefix(key, "k8s.") && !strings.Contains(key, ".label.")
		if !own && key != "log.record.uid" {
			found[key] = value
		}
	}
	return found
}

func TestTagsOfTheNamespaceTheNodeAndTheEvent(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		putTaggedObjects(api.Objects)
		api.Put(taggedEvent("a", 1, "node-1"))
		api.Put(taggedEvent("b", 2, "node-2"))
		p := harness.Launch(t, api, harness.Options{Config: extractsAll})
		p.AwaitRecords(t, "a+1", "b+2")
		zones := map[string]string{"node-1": "z1", "node-2": "z2"}
		p.Logs.EachRecord(func(resource map[string]any, record plog.LogRecord) {
			node, _ := resource["k8s.node.name"].(string)
			assert.Equal(t, map[string]any{"k8s.namespace.label.team": "web", "zone": zones[node], "app": "fe", "service.name": "fe", "service.namespace": "ns"}, tagsOf(resource))
			name, _ := record.Attributes().Get("k8s.event.name")
			assert.Equal(t, map[string]any{"k8s.event.label.pipeline": "p-" + name.Str(), "run.id": "42"}, tagsOf(record.Attributes().AsRaw()))
		})
		p.AwaitSum(t, 3)
		all := p.Metrics.AllMetrics()
		require.Equal(t, 1, all[len(all)-1].DataPointCount(), "neither the Node nor the Event splits a series")
		harness.EachPoint(all[len(all)-1], func(dp pmetric.NumberDataPoint) {
			assert.Equal(t, map[string]any{"k8s.namespace.label.team": "web", "app": "fe"}, tagsOf(dp.Attributes().AsRaw()))
		})
	})
}

// TestTheServiceOfAPodAndItsContainers: the checkpoint has the labels and annotations that name it, and the
// trace context.
func TestTheServiceOfAPodAndItsContainers(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		pod := apitest.Object{
			APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "pod-uid",
			Labels: map[string]string{"app.kubernetes.io/version": "1.2"},
			Annotations: map[string]string{
				"resource.opentelemetry.io/service.name": "cart",
				"tracing.k8s.io/traceparent":             "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			},
		}
		api.Objects.Put(pod)
		config := "start_at: beginning\nextract: {metadata: [service.name, service.namespace, service.version, service.instance.id]}"
		emits := func(p *harness.Process, labels ...string) {
			p.AwaitRecords(t, labels...)
			p.Logs.EachRecord(func(resource map[string]any, record plog.LogRecord) {
				assert.Equal(t, map[string]any{
					"service.name": "cart", "service.namespace": "ns", "service.version": "1.2", "service.instance.id": "ns.pod." + resource["k8s.container.name"].(string),
				}, tagsOf(resource))
				assert.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", record.TraceID().String())
			})
		}
		api.Put(ofContainer("a", "app"))
		api.Put(ofContainer("b", "proxy"))
		emits(harness.Launch(t, api, harness.Options{Config: config}), "a+1", "b+1")
	})
}

// ofContainer is an event about a container.
func ofContainer(name, container string) *corev1.Event {
	ev := harness.Event(name, 1)
	ev.InvolvedObject.FieldPath = "spec.containers{" + container + "}"
	return ev
}

func TestWithoutOwnersOnlyTheEventHasTags(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		putTaggedObjects(api.Objects)
		api.Put(taggedEvent("a", 1, "node-1"))
		p := harness.Launch(t, api, harness.Options{Config: extractsAll + "\nowners: {enabled: false}"})
		p.AwaitRecords(t, "a+1")
		p.Logs.EachRecord(func(resource map[string]any, record plog.LogRecord) {
			assert.Empty(t, tagsOf(resource))
			assert.Equal(t, map[string]any{"k8s.event.label.pipeline": "p-a", "run.id": "42"}, tagsOf(record.Attributes().AsRaw()))
		})
		assert.Empty(t, api.Objects.Seen(), "no lookups")
	})
}

// After a kill, what an open window held is counted again, with the labels and annotations of its objects.
func TestTagsOfAWindowAfterAKill(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		putTaggedObjects(api.Objects)
		on, config := harness.NewDisk(), extractsAll+"\ndedup_interval: 5m"
		api.Put(taggedEvent("a", 1, "node-1"))
		first := harness.Launch(t, api, harness.Options{Config: config, Disk: on})
		first.AwaitRecords(t, "a+1")
		api.Put(taggedEvent("a", 4, "node-1"))
		time.Sleep(time.Minute) // The window holds it, so the checkpoint has the count before it.
		killed := on.Copied()
		first.Logs.Reject(assert.AnError)
		first.Stop()

		second := harness.Launch(t, api, harness.Options{Config: config, Disk: killed})
		second.AwaitRecords(t, "a+3")
		second.Logs.EachRecord(func(resource map[string]any, record plog.LogRecord) {
			assert.Equal(t, map[string]any{"k8s.namespace.label.team": "web", "zone": "z1", "app": "fe", "service.name": "fe", "service.namespace": "ns"}, tagsOf(resource))
			assert.Equal(t, map[string]any{"k8s.event.label.pipeline": "p-a", "run.id": "42"}, tagsOf(record.Attributes().AsRaw()))
		})
	})
}

func TestMissingPermissionsForTagsAreNamedOnce(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		putTaggedObjects(api.Objects)
		forbidden := apitest.Fault{Status: http.StatusForbidden}
		for _, path := range []string{"/api/v1/namespaces", "/api/v1/nodes"} {
			api.Objects.Fail(path+"?list", forbidden)
		}
		p := harness.Launch(t, api, harness.Options{Config: extractsAll})
		for i, name := range []string{"ns", "other", "third"} {
			api.Objects.Fail("/api/v1/namespaces/"+name, forbidden)
			node := []string{"node-1", "node-2", "node-3"}[i]
			api.Objects.Fail("/api/v1/nodes/"+node, forbidden)
			ev := taggedEvent("a", 1, node)
			ev.Namespace, ev.InvolvedObject.Namespace = name, name
			api.Put(ev)
			harness.Settle()
		}
		assert.Len(t, p.Logs.Names(), 3)
		var rules []string
		for _, entry := range p.Logged("rule_to_add") {
			assert.Equal(t, zap.WarnLevel, entry.Level)
			fields := entry.ContextMap()
			if fields["verb"] == "get" {
				rules = append(rules, fields["rule_to_add"].(string))
			}
		}
		slices.Sort(rules)
		assert.Equal(t, []string{
			`{apiGroups: [''], resources: [namespaces], verbs: [get, list]}`,
			`{apiGroups: [''], resources: [nodes], verbs: [get, list]}`,
		}, rules)
		p.Logs.EachRecord(func(resource map[string]any, record plog.LogRecord) {
			assert.NotContains(t, resource, "zone")
			assert.NotContains(t, resource, "k8s.namespace.label.team")
			resolution, _ := record.Attributes().Get("k8s.owner.resolution")
			assert.NotEqual(t, "forbidden", resolution.Str(), "the chain is as it is")
		})
		assert.False(t, p.Host.Fails())
	})
}

func TestTheNameOfTheClusterIsOnRecordsAndPoints(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, cluster_name: east}"})
		api.Put(harness.Event("a", 1))
		p.AwaitRecords(t, "a+1")
		p.AwaitSum(t, 1)
		of := p.Logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().AsRaw()
		assert.Equal(t, "east", of["k8s.cluster.name"])
		points := p.Metrics.AllMetrics()
		of = points[len(points)-1].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
		assert.Equal(t, "east", of["k8s.cluster.name"])
	})
}

func TestAttributesAreSwitchedOnAndOff(t *testing.T) {
	const config = `
start_at: beginning
resource_attributes:
  k8s.workload.name: {enabled: false}
  k8s.workload.uid: {enabled: false}
  k8s.deployment.name: {enabled: false}
  k8s.deployment.uid: {enabled: true}
  k8s.pod.uid: {enabled: false}
  tilt.manifest: {enabled: false}
metrics:
  k8s.event.occurrences: {attributes: [k8s.namespace.name, k8s.event.type]}
`
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		for _, name := range []string{"a", "b"} {
			deployment := apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: name, UID: name, Labels: map[string]string{"tilt-manifest": "app"}}
			pod := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: name, UID: "pod-" + name}
			pod.Owners = append(pod.Owners, apitest.OwnedBy(deployment, true))
			api.Objects.Put(deployment, pod)
			ev := harness.Event(name, 2)
			ev.Reason = "Reason" + name
			ev.InvolvedObject.Name, ev.InvolvedObject.UID = name, types.UID(pod.UID)
			api.Put(ev)
		}
		p := harness.Launch(t, api, harness.Options{Config: config})
		p.AwaitRecords(t, "a+2", "b+2")
		p.AwaitSum(t, 4)
		p.Logs.EachRecord(func(resource map[string]any, _ plog.LogRecord) {
			assert.Equal(t, "Deployment", resource["k8s.workload.kind"])
			assert.Contains(t, resource, "k8s.pod.name")
			assert.Contains(t, resource, "k8s.deployment.uid", "which is off by default")
			for _, disabled := range []string{"k8s.workload.name", "k8s.workload.uid", "k8s.deployment.name", "k8s.owner.uid", "k8s.pod.uid", "tilt.manifest"} {
				assert.NotContains(t, resource, disabled)
			}
		})
		all := p.Metrics.AllMetrics()
		last := all[len(all)-1]
		require.Equal(t, 1, last.DataPointCount(), "the workloads and the reasons are one series")
		rm := last.ResourceMetrics().At(0)
		assert.Equal(t, map[string]any{"k8s.cluster.uid": "cluster-uid"}, rm.Resource().Attributes().AsRaw())
		assert.Equal(t, map[string]any{"k8s.namespace.name": "ns", "k8s.event.type": "Normal", "tilt.manifest": "app"},
			rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Attributes().AsRaw(), "a tag is always one of the points")
	})
}

func TestAMetricThatIsSwitchedOffIsNotEmitted(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, metrics: {k8s.event.occurrences: {enabled: false}}}"})
		api.Put(harness.Event("a", 1))
		p.AwaitRecords(t, "a+1")
		time.Sleep(time.Minute)
		p.Stop()
		assert.Empty(t, p.Metrics.AllMetrics())
	})
}

func TestRecordsThatAreSwitchedOffAreNotEmitted(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{Config: "{start_at: beginning, events: {k8s.event: {enabled: false}}}"})
		api.Put(harness.Event("a", 1))
		time.Sleep(2 * time.Minute)
		p.Stop()
		assert.NotEmpty(t, p.Metrics.AllMetrics(), "the metric counts what is not emitted as a record")
		assert.Empty(t, p.Logs.AllLogs())
	})
}

// The label team is the pod's or the Deployment's: key_regex finds it first or last.
func TestTagsInAnotherOrderAreTheSameSeries(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		d := apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "fe", UID: "fe-uid", Labels: map[string]string{"app": "x", "team": "y"}}
		a := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "a", UID: "a-uid", Labels: map[string]string{"team": "y"}}
		b := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "b", UID: "b-uid"}
		a.Owners, b.Owners = append(a.Owners, apitest.OwnedBy(d, true)), append(b.Owners, apitest.OwnedBy(d, true))
		api.Objects.Put(d, a, b)
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning\nextract: {labels: [{tag_name: $1, key_regex: (app|team)}]}"})
		for _, pod := range []string{"a", "b"} {
			ev := harness.Event("e-"+pod, 1)
			ev.InvolvedObject.Name = pod
			api.Put(ev)
		}
		p.AwaitSum(t, 2)
		harness.Settle()
		for _, metrics := range p.Metrics.AllMetrics() {
			seen := map[string]int{}
			harness.EachPoint(metrics, func(dp pmetric.NumberDataPoint) { seen[fmt.Sprint(dp.Attributes().AsRaw())]++ })
			for attributes, n := range seen {
				if !assert.Equal(t, 1, n, attributes) {
					return
				}
			}
		}
	})
}

func TestKubeAPIQPSLimitsLookups(t *testing.T) {
	for config, want := range map[string]string{"kube_api_qps: -1": "complete", "{kube_api_qps: 0.001, kube_api_burst: 1}": "timeout"} {
		harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
			p := harness.Launch(t, api, harness.Options{Config: config})
			harness.Settle()
			for _, name := range []string{"first", "second"} {
				api.Objects.Put(apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: name, UID: name})
				ev := harness.Event(name, 1)
				ev.InvolvedObject.Name, ev.InvolvedObject.UID = name, types.UID(name)
				api.Put(ev)
				harness.Settle()
			}
			p.AwaitRecords(t, "first+1", "second+1")
			resolutions := []string{}
			p.Logs.EachRecord(func(_ map[string]any, record plog.LogRecord) {
				resolution, _ := record.Attributes().Get("k8s.owner.resolution")
				resolutions = append(resolutions, resolution.Str())
			})
			assert.Equal(t, []string{"complete", want}, resolutions, config)
		})
	}
}

// A Role for a namespace permits no list of the whole cluster.
func TestOwnersAreListedInTheNamespacesThatAreWatched(t *testing.T) {
	for config, want := range map[string]string{"": "/api/v1/pods?list", ", namespaces: [ns]": "/api/v1/namespaces/ns/pods?list"} {
		harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
			for i := range 100 {
				name := fmt.Sprint("pod", i)
				api.Objects.Put(apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: name, UID: name})
				ev := harness.Event(name, 1)
				ev.InvolvedObject.Name, ev.InvolvedObject.UID = name, types.UID(name)
				api.Put(ev)
			}
			harness.Launch(t, api, harness.Options{Config: "{start_at: beginning" + config + "}"})
			harness.Settle()
			assert.Contains(t, api.Objects.SeenObjects(), want, config)
		})
	}
}
