// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
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
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				api.Objects.Put(pod)
				var want []string
				on := harness.NewDisk()
				p := harness.Launch(t, api, harness.Options{Config: "extract: {annotations: [{tag_name: note, key: note}]}", Disk: on})
				harness.Settle()
				idle := liveHeap()
				size, most, largest := 0, uint64(0), 0
				p.Logs.OnAttempt(func() {
					most, largest = max(most, liveHeap()), max(largest, on.Size())
				})
				for size < 121<<10 {
					ev := harness.Event(fmt.Sprintf("e%04d", len(want)), 1)
					size += ev.Size()
					api.Put(ev)
					want = append(want, ev.Name+"+1")
				}
				p.AwaitRecords(t, want...)
				assert.Less(t, int64(most)-int64(idle), int64(64<<20), "bytes of live heap above idle")
				assert.Less(t, largest, 16<<20, "bytes of storage")
			})
		})
	}
}

// Any user may write tens of KiB of annotations to each of many objects. The receiver keeps what
// fits a bound in bytes.
func TestManyObjectsWithLargeAnnotationsTakeLittleMemory(t *testing.T) {
	for name, char := range map[string]string{"plain": "v", "quoted with more": "\x01"} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				const objects = 2000
				on := harness.NewDisk()
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
				p := harness.Launch(t, api, harness.Options{NoLogs: true, Disk: on})
				harness.Settle()
				idle := liveHeap()
				for i := range objects {
					ev := harness.Event(fmt.Sprintf("e%04d", i), 1)
					ev.InvolvedObject.Kind, ev.InvolvedObject.Name = "Service", fmt.Sprintf("svc-%04d", i)
					api.Put(ev)
				}
				harness.Settle()
				p.AwaitSum(t, objects)
				p.Metrics.Reset()
				assert.Less(t, int64(liveHeap())-int64(idle)-int64(on.Size()), int64(80<<20), "bytes above idle")
				// Snapshot, journal, the next snapshot and what is still to be deleted: 24 MiB of objects each.
				assert.Less(t, on.Size(), 100<<20, "bytes of storage")
			})
		})
	}
}
