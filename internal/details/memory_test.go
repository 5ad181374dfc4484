// SPDX-License-Identifier: Apache-2.0

package details

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// largePod returns a pod as an application has it: each container has 60 variables, and each variable a manager.
func largePod(containers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-7d9f-abcde", UID: "1", ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{` + strings.Repeat(`"k:{\"name\":\"APP_SETTING\"}":{".":{},"f:name":{},"f:value":{}},`, 60*len(containers)) + `"f:x":{}}}`),
	}}}}
	for _, name := range containers {
		c := corev1.Container{Name: name, Image: "registry.example.com/team/" + name + ":1.42.0"}
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
		for i := range 60 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("APP_SETTING_%d", i), Value: strings.Repeat("v", 100)})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, RestartCount: 3,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, StartedAt: at(0), FinishedAt: at(2)}},
		})
	}
	return p
}

type answering []byte

func (body answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

func (answering) CloseIdleConnections() {}

// readerOf returns a reader that gets a pod as the answer to each request.
func readerOf(t testing.TB, answer *corev1.Pod) *reader {
	body, err := json.Marshal(answer)
	require.NoError(t, err)
	r, err := newReader(&rest.Config{Host: "http://api", Transport: answering(body)}, &server{}, time.Second)
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}

var pathOfPod = path{version: "v1", resource: "pods", namespace: "shop", name: "web"}

// TestMemoryOfAPod limits what is remembered of a pod: of thousands, if so many crash.
func TestMemoryOfAPod(t *testing.T) {
	r := readerOf(t, largePod("main", "proxy"))
	pods := make([]*pod, 2000)
	before := heap()
	for i := range pods {
		pods[i] = &pod{}
		require.Empty(t, r.send(t.Context(), pathOfPod, pods[i]))
		pods[i].forgetEnvironment()
	}
	kept := (heap() - before) / int64(len(pods))
	assert.Equal(t, int32(3), pods[0].container("main").RestartCount)
	assert.Less(t, kept, int64(4<<10), "bytes")
}

// heap returns the bytes that are in use.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // The first one leaves what pools keep.
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func BenchmarkReadPod(b *testing.B) {
	for _, containers := range [][]string{{"main"}, {"main", "proxy"}} {
		b.Run(fmt.Sprint("containers=", len(containers)), func(b *testing.B) {
			r := readerOf(b, largePod(containers...))
			b.ReportAllocs()
			for b.Loop() {
				if failure := r.send(b.Context(), pathOfPod, &pod{}); failure != "" {
					b.Fatal(failure)
				}
			}
		})
	}
}
