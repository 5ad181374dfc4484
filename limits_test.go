// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // What finalizers and pools held.
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// A user who may create Events and one object cannot make the receiver hold or save much.
func TestAFewEventsAboutOneLargeObjectTakeLittleMemory(t *testing.T) {
	huge := strings.Repeat("n", 200<<10)
	large := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "pod-uid"}
	owner := large
	owner.Owners = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: huge, UID: "u"}}
	annotated := large
	annotated.Annotations = map[string]string{"note": huge}
	for name, pod := range map[string]apitest.Object{"the name of an owner": owner, "an annotation": annotated} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Objects.Put(pod)
				var want []string
				on := newDisk()
				p := launch(t, api, options{config: "extract: {annotations: [{tag_name: note, key: note}]}", disk: on})
				settle()
				idle := liveHeap()
				size, most, largest := 0, uint64(0), 0
				p.logs.onAttempt(func() {
					most, largest = max(most, liveHeap()), max(largest, on.size())
				})
				for size < 121<<10 {
					ev := eventNamed(fmt.Sprintf("e%04d", len(want)), 1)
					size += ev.Size()
					api.Put(ev)
					want = append(want, ev.Name+"+1")
				}
				p.awaitRecords(t, want...)
				assert.Less(t, int64(most)-int64(idle), int64(64<<20), "bytes of live heap above idle")
				assert.Less(t, largest, 16<<20, "bytes of storage")
			})
		})
	}
}

// together are many events about one pod whose tags make a record of each take about 30 KiB, so that
// they do not fit one batch.
func together(api *apitest.Server) (config string, want []string) {
	pod := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "pod-uid", Annotations: map[string]string{}}
	for i := range 30 {
		pod.Annotations[fmt.Sprintf("note-%02d", i)] = strings.Repeat("n", 1000)
	}
	api.Objects.Put(pod)
	for i := range 900 {
		ev := eventNamed(fmt.Sprintf("e%04d", i), 1)
		api.Put(ev)
		want = append(want, ev.Name+"+1")
	}
	return "start_at: beginning\nextract: {annotations: [{key_regex: note.*}]}", want
}

func TestWhatDoesNotFitABatchFollowsInTheNextOnes(t *testing.T) {
	for name, on := range map[string]func() *disk{"with storage": newDisk, "without": func() *disk { return nil }} {
		for _, interval := range []string{"", "\ndedup_interval: 1h"} {
			t.Run(name+interval, func(t *testing.T) {
				inBubble(t, func(t *testing.T, api *apitest.Server) {
					config, want := together(api)
					p := launch(t, api, options{config: config + interval, disk: on()})
					p.awaitRecords(t, want...)
					p.awaitSum(t, int64(len(want)))
					assert.Greater(t, len(p.logs.requests()), 3)
				})
			})
		}
	}
}

// What follows in later batches is saved with the first one, which is when it counts.
func TestWhatDoesNotFitABatchSurvivesAKill(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		config, want := together(api)
		on := newDisk()
		first := launch(t, api, options{config: config, disk: on})
		var killed *disk
		first.logs.onAttempt(func() {
			if killed == nil {
				killed = on.copied()
				first.logs.reject(assert.AnError)
			}
		})
		eventually(t, func() bool { return first.logs.attempted() > 0 })
		first.stop()

		second := launch(t, api, options{config: config, disk: killed})
		second.awaitRecords(t, want...)
		second.awaitSum(t, int64(len(want)))
		time.Sleep(time.Minute)
		assert.EqualValues(t, len(want), occurrences(second.logs.records()...))
	})
}

// One object that cannot be read, for example because its conversion fails, costs no other object
// of its kind its owners.
func TestAnObjectThatCannotBeReadCostsNoOtherItsOwners(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{
		"it fails": {Status: http.StatusInternalServerError}, "it hangs": {Hang: make(chan struct{})},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
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
				p := launch(t, api, options{})
				settle()
				about := func(namespace, pod string) {
					ev := eventNamed(fmt.Sprint("about-", pod, time.Now().Unix()), 1)
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
				settle()
				withOwners := 0
				p.logs.eachRecord(func(resource map[string]any, _ plog.LogRecord) {
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
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		deployment := apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "other", Name: "fe", UID: "fe-uid"}
		victim := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "other", Name: "victim", UID: "victim-uid"}
		victim.Owners = append(victim.Owners, apitest.OwnedBy(deployment, true))
		impostor := apitest.Object{
			APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "impostor", UID: "impostor-uid",
			Annotations: map[string]string{"kubernetes.io/config.mirror": victim.UID},
		}
		api.Objects.Put(deployment, victim, impostor)
		p := launch(t, api, options{})
		settle()
		about := func(event string, pod apitest.Object) {
			ev := eventNamed(event, 1)
			ev.Namespace, ev.InvolvedObject.Namespace = pod.Namespace, pod.Namespace
			ev.InvolvedObject.Name, ev.InvolvedObject.UID = pod.Name, types.UID(pod.UID)
			api.Put(ev)
			settle()
		}
		about("before", victim)
		about("attack", impostor)
		api.Objects.Remove(victim) // Only the cache knows it now.
		about("after", victim)
		workloads := map[string]any{}
		p.logs.eachRecord(func(resource map[string]any, record plog.LogRecord) {
			name, _ := record.Attributes().Get("k8s.event.name")
			workloads[name.Str()] = resource["k8s.workload.name"]
		})
		assert.Equal(t, map[string]any{"before": "fe", "attack": "impostor", "after": "fe"}, workloads)
	})
}

// Any user may write tens of KiB of annotations to each of many objects. The receiver keeps what
// fits a bound in bytes.
func TestManyObjectsWithLargeAnnotationsTakeLittleMemory(t *testing.T) {
	for name, char := range map[string]string{"plain": "v", "quoted with more": "\x01"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				const objects = 2000
				on := newDisk()
				for i := range objects {
					service := apitest.Object{
						APIVersion: "v1", Kind: "Service", Namespace: "ns",
						Name: fmt.Sprintf("svc-%04d", i), UID: fmt.Sprint("uid-", i), Annotations: map[string]string{},
					}
					for j := range 30 {
						key := fmt.Sprintf("resource.opentelemetry.io/n%02d", j)
						service.Annotations[key] = fmt.Sprintf("%d-%d", i, j) + strings.Repeat(char, 1000)
					}
					api.Objects.Put(service)
				}
				p := launch(t, api, options{noLogs: true, disk: on})
				settle()
				idle := liveHeap()
				for i := range objects {
					ev := eventNamed(fmt.Sprintf("e%04d", i), 1)
					ev.InvolvedObject.Kind, ev.InvolvedObject.Name = "Service", fmt.Sprintf("svc-%04d", i)
					api.Put(ev)
				}
				settle()
				p.awaitSum(t, objects)
				p.metrics.Reset()
				assert.Less(t, int64(liveHeap())-int64(idle)-int64(on.size()), int64(80<<20), "bytes above idle")
				// Snapshot, journal, the next snapshot and what is still to be deleted: 24 MiB of objects each.
				assert.Less(t, on.size(), 100<<20, "bytes of storage")
			})
		})
	}
}
