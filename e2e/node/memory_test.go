// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaking is a Collector without memory_limiter, in which a component of another pipeline keeps
// everything: in a storm, it reaches its memory limit.
func leaking(c *cluster, t *testing.T, name string) values {
	t.Helper()
	v := withVolume(c, t, name)
	v["resources"] = values{"requests": values{"memory": "64Mi"}, "limits": values{"memory": "96Mi"}}
	v["config"] = values{
		"receivers":  values{"kube_events": values{"collection_interval": "2s"}},
		"processors": values{"batch": values{"send_batch_size": 1_000_000, "timeout": "1h"}},
		"exporters":  values{"nop": values{}},
		"service": values{"pipelines": values{
			"logs":         values{"processors": []string{}},
			"metrics":      values{"processors": []string{}},
			"logs/leaking": values{"receivers": []string{"kube_events"}, "processors": []string{"batch"}, "exporters": []string{"nop"}},
		}},
	}
	return v
}

// behind is how many large events the Collector may be behind: the test must not wait long until it
// has caught up.
const behind = 100

// outOfMemory storms until the kernel kills the Collector at its memory limit.
func (c *cluster) outOfMemory(t *testing.T) {
	r := c.newRelease(t, "leaking", leaking)
	f := c.newTraffic(t, r)
	f.elsewhere, f.more = c.newNamespace(t, storms), map[string]int64{}
	r.values["namespaces"] = []string{f.namespace, f.elsewhere}
	r.install(t)
	f.begin(t)
	f.passes(t)
	f.storm(t, func() bool { return r.killedByKernel(t) })
	t.Logf("killed after %d large events", len(f.more))
	r.awaitRollout(t, r.name)
	f.passes(t)
	f.conclude(t, "storm until the Collector is OOM-killed at its memory limit")
}

// storm writes large events until a condition holds.
func (f *traffic) storm(t *testing.T, ended func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	message := strings.Repeat("storm ", 17_000)
	var mu sync.Mutex // guards f.more
	var done sync.WaitGroup
	const writers = 2
	for writer := range writers {
		done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				poll(time.Second, func() bool { return i%10 > 0 || i*writers < f.releases[0].delivered(f.elsewhere)+behind })
				event := &corev1.Event{
					ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("storm-%d-%d", writer, i), Namespace: f.elsewhere},
					InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: f.elsewhere, Name: fmt.Sprint("pod-", writer)},
					Reason:         "Storm", Type: corev1.EventTypeWarning, Message: message, Source: corev1.EventSource{Component: "storm"},
					Count: 1, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
				}
				// A write that has begun ends, so that the truth is known.
				_, err := f.CoreV1().Events(f.elsewhere).Create(t.Context(), event, metav1.CreateOptions{})
				assert.NoError(t, err)
				mu.Lock()
				f.more[event.Name] = 1
				mu.Unlock()
			}
		})
	}
	found := poll(waitTimeout, ended)
	stop()
	done.Wait()
	require.True(t, found, "the end of the storm of %d events: %s", len(f.more), f.describe(t, f.releases[0].name))
}

// killedByKernel reports whether the release's only container was OOM-killed.
func (r *release) killedByKernel(t *testing.T) bool {
	t.Helper()
	for _, pod := range r.pods(t, r.name) {
		for _, status := range pod.Status.ContainerStatuses {
			for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
				if state.Terminated != nil && state.Terminated.Reason == "OOMKilled" {
					return true
				}
			}
		}
	}
	return false
}
