// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// The chain of the tests of restarts.
var (
	storedDeployment = apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "fe", UID: "d1", Labels: map[string]string{"tilt-manifest": "shop", "team": "a"}}
	storedReplicaSet = apitest.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "ns", Name: "fe-1", UID: "r1", Owners: []metav1.OwnerReference{apitest.OwnedBy(storedDeployment, true)}}
	storedPod        = apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "fe-1-a", UID: "p1", Owners: []metav1.OwnerReference{apitest.OwnedBy(storedReplicaSet, true)}}
)

// eventAbout is an event about an object; an empty UID is left out of the event, too.
func eventAbout(name string, o apitest.Object, uid string) *corev1.Event {
	ev := harness.Event(name, 1)
	ev.InvolvedObject = corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(uid)}
	return ev
}

// ownersOf describes the owners of the event's only record.
func ownersOf(t *testing.T, p *harness.Process, event string) string {
	t.Helper()
	var found []string
	for _, logs := range p.Logs.AllLogs() {
		for _, rl := range logs.ResourceLogs().All() {
			for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
				if name, _ := record.Attributes().Get("k8s.event.name"); name.Str() != event {
					continue
				}
				parts := []string{}
				for _, key := range []string{"k8s.owner.chain", "k8s.workload.name", "tilt.manifest", "team"} {
					if value, ok := rl.Resource().Attributes().Get(key); ok {
						parts = append(parts, value.AsString())
					}
				}
				resolution, _ := record.Attributes().Get("k8s.owner.resolution")
				found = append(found, strings.Join(append(parts, resolution.Str()), " "))
			}
		}
	}
	require.Len(t, found, 1, "records of %s", event)
	return found[0]
}

// afterAKill resolves the chain of the tests, kills the receiver, and starts another one after what
// happened meanwhile.
func afterAKill(t *testing.T, api *apitest.Server, config string, meanwhile func(*apitest.Objects)) *harness.Process {
	t.Helper()
	api.Objects.Put(storedPod, storedReplicaSet, storedDeployment)
	on := harness.NewDisk()
	first := harness.Launch(t, api, harness.Options{Disk: on})
	harness.Settle()
	api.Put(eventAbout("before", storedPod, storedPod.UID))
	first.AwaitRecords(t, "before+1")
	require.Equal(t, wholeChain, ownersOf(t, first, "before"))
	left := on.Copied()
	first.Stop()
	meanwhile(api.Objects)
	second := harness.Launch(t, api, harness.Options{Config: config, Disk: left})
	harness.Settle()
	return second
}

const (
	chainAndWorkload = `["replicaset.apps/fe-1","deployment.apps/fe"] fe`
	wholeChain       = chainAndWorkload + " shop complete"
)

func removeAll(objects *apitest.Objects) {
	objects.Remove(storedPod, storedReplicaSet, storedDeployment)
}

func TestAfterACrashTheOwnersOfDeletedObjectsAreKnown(t *testing.T) {
	renewed := storedPod
	renewed.UID, renewed.Owners = "p2", nil
	moved := storedPod
	moved.Owners = []metav1.OwnerReference{apitest.OwnedBy(storedDeployment, true)}
	relabelled := storedDeployment
	relabelled.Labels = map[string]string{"tilt-manifest": "new"}
	extracting := "extract: {labels: [{tag_name: tilt.manifest, key: tilt-manifest}, {tag_name: team, key: team}]}"
	for name, test := range map[string]struct {
		config    string
		meanwhile func(*apitest.Objects)
		uid       string
		want      string
	}{
		"the whole chain is deleted":                         {"", removeAll, "p1", wholeChain},
		"it is deleted, and the event has no UID":            {"", removeAll, "", wholeChain},
		"nothing is deleted":                                 {"", func(*apitest.Objects) {}, "p1", wholeChain},
		"it is deleted, and another label is wanted":         {extracting, removeAll, "p1", chainAndWorkload + " shop complete"},
		"nothing is deleted, and another label is wanted":    {extracting, func(*apitest.Objects) {}, "p1", chainAndWorkload + " shop a complete"},
		"owners are not looked up any more":                  {"owners: {enabled: false}", removeAll, "p1", ""},
		"the pod has another owner":                          {"", func(o *apitest.Objects) { o.Put(moved) }, "p1", `["deployment.apps/fe"] fe shop complete`},
		"a label has changed":                                {"", func(o *apitest.Objects) { o.Put(relabelled) }, "p1", chainAndWorkload + " new complete"},
		"the name is used again":                             {"", func(o *apitest.Objects) { o.Put(renewed) }, "p2", "fe-1-a complete"},
		"the name is used again, and the event has no UID":   {"", func(o *apitest.Objects) { o.Put(renewed) }, "", "fe-1-a complete"},
		"the name was used again by a pod that is gone":      {"", removeAll, "p2", "not_found"},
		"the name is used again, the event is about the old": {"", func(o *apitest.Objects) { o.Put(renewed) }, "p1", wholeChain},
		"the API server refuses everything": {"", func(o *apitest.Objects) {
			for _, object := range []apitest.Object{storedPod, storedReplicaSet, storedDeployment} {
				o.Fail(o.Path(object), apitest.Fault{Status: http.StatusForbidden})
			}
		}, "p1", wholeChain},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				p := afterAKill(t, api, test.config, test.meanwhile)
				api.Put(eventAbout("after", storedPod, test.uid))
				harness.Settle()
				assert.Equal(t, test.want, ownersOf(t, p, "after"))
			})
		})
	}
}

func TestStoredObjectsOutliveSeveralRestartsInWhichNothingUsesThem(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := afterAKill(t, api, "", removeAll)
		on := p.Host.Extensions[component.MustNewID("disk")].(*harness.Disk)
		for range 3 {
			p.Stop()
			p = harness.Launch(t, api, harness.Options{Disk: on})
			harness.Settle()
		}
		api.Put(eventAbout("after", storedPod, storedPod.UID))
		harness.Settle()
		assert.Equal(t, wholeChain, ownersOf(t, p, "after"))
	})
}

func TestTheObjectsOfAnotherClustersCheckpointAreNotUsed(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := afterAKill(t, api, "", func(objects *apitest.Objects) {
			removeAll(objects)
			api.SetCluster("another-cluster")
		})
		api.Put(eventAbout("after", storedPod, storedPod.UID))
		harness.Settle()
		assert.Equal(t, "not_found", ownersOf(t, p, "after"))
	})
}

// podMetrics is an object that an aggregated API server computes: it has no UID.
var podMetrics = apitest.Object{
	APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics", Namespace: "shop", Name: "fe-1-a",
	Labels: map[string]string{"tilt-manifest": "shop"},
}

func TestAnObjectWithoutAUIDCostsTheCheckpointNothing(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.Objects.Serve(podMetrics.APIVersion, podMetrics.Kind, "pods", true)
		api.Objects.Put(podMetrics)
		on := harness.NewDisk()
		first := harness.Launch(t, api, harness.Options{Disk: on})
		harness.Settle()
		api.Put(harness.Event("a", 3))
		api.Put(eventAbout("before", podMetrics, ""))
		first.AwaitRecords(t, "a+3", "before+1")
		first.Stop()
		api.Objects.Remove(podMetrics)
		api.Put(harness.Event("a", 5))
		api.Put(eventAbout("after", podMetrics, ""))
		second := harness.Launch(t, api, harness.Options{Disk: on})
		second.AwaitRecords(t, "a+2", "after+1")
		second.AwaitSum(t, 7)
		assert.Equal(t, ownersOf(t, first, "before"), ownersOf(t, second, "after"), "the object is still known")
		assert.Contains(t, ownersOf(t, second, "after"), "shop complete")
		assert.Empty(t, second.Logged("set_aside"))
		assert.Empty(t, second.Logged("entries"))
	})
}

// One object that cannot be read, for example because its conversion fails, costs no other object
// of its kind its owners.
func TestAnObjectThatCannotBeReadCostsNoOtherItsOwners(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{
		"it fails": {Status: http.StatusInternalServerError}, "it hangs": {Hang: make(chan struct{})},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				unreadable := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "unreadable", UID: "unreadable"}
				api.Objects.Put(unreadable)
				for i := range 10 {
					pod := fmt.Sprint("pod-", i)
					api.Objects.Put(apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "other", Name: pod, UID: pod})
				}
				if fault.Hang != nil {
					fault.Hang = make(chan struct{})
					defer close(fault.Hang)
				}
				api.Objects.Fail(api.Objects.Path(unreadable), fault)
				p := harness.Launch(t, api, harness.Options{})
				harness.Settle()
				about := func(namespace, pod string) {
					ev := harness.Event(fmt.Sprint("about-", pod, time.Now().Unix()), 1)
					ev.Namespace, ev.InvolvedObject.Namespace = namespace, namespace
					ev.InvolvedObject.Name, ev.InvolvedObject.UID = pod, types.UID(pod)
					api.Put(ev)
					time.Sleep(10 * time.Second)
				}
				about("other", "pod-0")
				for range 3 {
					about("ns", "unreadable")
				}
				for i := range 10 {
					about("other", fmt.Sprint("pod-", i))
				}
				harness.Settle()
				withOwners := 0
				p.Logs.EachRecord(func(resource map[string]any, _ plog.LogRecord) {
					if resource["k8s.namespace.name"] == "other" && resource["k8s.workload.kind"] != nil {
						withOwners++
					}
				})
				assert.Equal(t, 11, withOwners)
			})
		})
	}
}

// The annotation that names the static pod of a mirror pod is any user's to write. A pod with the
// UID of another namespace's pod does not take its place.
func TestAPodThatClaimsToBeAMirrorDoesNotTakeThePlaceOfAnother(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		deployment := apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "other", Name: "fe", UID: "fe-uid"}
		victim := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "other", Name: "victim", UID: "victim-uid"}
		victim.Owners = append(victim.Owners, apitest.OwnedBy(deployment, true))
		impostor := apitest.Object{
			APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "impostor", UID: "impostor-uid",
			Annotations: map[string]string{"kubernetes.io/config.mirror": victim.UID},
		}
		api.Objects.Put(deployment, victim, impostor)
		p := harness.Launch(t, api, harness.Options{})
		harness.Settle()
		about := func(event string, pod apitest.Object) {
			ev := harness.Event(event, 1)
			ev.Namespace, ev.InvolvedObject.Namespace = pod.Namespace, pod.Namespace
			ev.InvolvedObject.Name, ev.InvolvedObject.UID = pod.Name, types.UID(pod.UID)
			api.Put(ev)
			harness.Settle()
		}
		about("before", victim)
		about("attack", impostor)
		api.Objects.Remove(victim) // Only the cache knows it now.
		about("after", victim)
		workloads := map[string]any{}
		p.Logs.EachRecord(func(resource map[string]any, record plog.LogRecord) {
			name, _ := record.Attributes().Get("k8s.event.name")
			workloads[name.Str()] = resource["k8s.workload.name"]
		})
		assert.Equal(t, map[string]any{"before": "fe", "attack": "impostor", "after": "fe"}, workloads)
	})
}
