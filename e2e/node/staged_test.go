// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// staged is a stage in a cluster.
type staged struct {
	*cluster
	stage
	all context.Context //nolint:containedctx // of the test of all stages
}

// create creates what the stage begins with.
func (s *staged) create(t *testing.T) {
	t.Helper()
	s.newNamespace(t, s.name)
	objects := harness.Objects(t, harness.Read(t, "e2e", "node", "testdata", "changes", "workload.yaml"))
	for _, object := range objects[1:] {
		object.SetNamespace(s.name)
		s.ApplyObject(t, object)
	}
	for i := range max(1, s.copies) {
		web := &appsv1.Deployment{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, web))
		if i > 0 {
			web.Name = fmt.Sprint("web-", i)
			web.Spec.Selector.MatchLabels["app"], web.Spec.Template.Labels["app"] = web.Name, web.Name
		}
		s.complete(web)
		_, err := s.AppsV1().Deployments(s.name).Create(t.Context(), web, metav1.CreateOptions{FieldManager: s.manager})
		require.NoError(t, err)
	}
}

// complete adds what differs between stages.
func (s *staged) complete(web *appsv1.Deployment) {
	web.Labels, web.Annotations = s.labels, s.annotations
	if web.Name == "web-1" && s.annotations[argoTracked] != "" {
		web.Annotations = map[string]string{argoTracked: "stock:apps/Deployment:" + s.name + "/web-1"}
	}
	app := &web.Spec.Template.Spec.Containers[0]
	with, do := corev1.EnvVar{Name: "WITH", Value: s.with}, s.do
	if do.Name = "DO"; do.ValueFrom != nil && *do.ValueFrom == (corev1.EnvVarSource{}) {
		app.Env = append(app.Env, with)
		app.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "options-6f4b1"}}}}
		return
	}
	app.Env = append(app.Env, with, do)
}

// awaitAvailable waits until all workloads of the stage run.
func (s *staged) awaitAvailable(t *testing.T) {
	t.Helper()
	require.True(t, harness.Poll(waitTimeout, func() bool {
		time.Sleep(500 * time.Millisecond) // Others wait, too.
		list, err := s.AppsV1().Deployments(s.name).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return !slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return !isRolledOut(&d) })
	}), "the first rollout of %s", s.name)
}

func (s *staged) patch(t *testing.T, workload, manager, patch string) {
	t.Helper()
	_, err := s.AppsV1().Deployments(s.name).Patch(t.Context(), workload, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	require.NoError(t, err)
}

func (s *staged) patchConfigMap(t *testing.T, name, manager, patch string) {
	t.Helper()
	_, err := s.CoreV1().ConfigMaps(s.name).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	require.NoError(t, err)
	s.remount(t)
}

// patchSecret changes what the receiver never reads: what happens then has no known cause.
func (s *staged) patchSecret(t *testing.T) {
	t.Helper()
	_, err := s.CoreV1().Secrets(s.name).Patch(t.Context(), "keys", types.MergePatchType, []byte(`{"stringData":{"do":"crash"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.remount(t)
}

// remount makes the kubelet update the files of volumes, which it otherwise does once a minute.
func (s *staged) remount(t *testing.T) {
	t.Helper()
	for _, p := range s.runningPods(t) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/changed":%q}}}`, time.Now())
		_, err := s.CoreV1().Pods(s.name).Patch(t.Context(), p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
}

func (s *staged) runningPods(t *testing.T) (running []corev1.Pod) {
	t.Helper()
	list, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running"})
	require.NoError(t, err)
	return list.Items
}

// awaitQuiet waits until the first rollout is no cause any more.
func (s *staged) awaitQuiet(t *testing.T) {
	t.Helper()
	harness.Eventually(t, func() bool {
		for _, p := range s.runningPods(t) {
			if started := p.Status.ContainerStatuses[0].State.Running; started == nil || time.Since(started.StartedAt.Time) < 35*time.Second {
				return false
			}
		}
		return true
	}, "35 s after the first rollout of %s", s.name)
}

// beat changes a ConfigMap of the pods again and again, until the test of all stages ends.
func (s *staged) beat(t *testing.T) {
	t.Helper()
	go func() {
		for n := 0; ; n++ {
			patch := fmt.Appendf(nil, `{"data":{"beat":"%d"}}`, n)
			if _, err := s.CoreV1().ConfigMaps(s.name).Patch(s.all, "settings", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "heartbeat"}); err != nil {
				return // The test ends.
			}
			time.Sleep(5 * time.Second)
		}
	}()
}

// report writes an Event as a tool that deploys does.
func (s *staged) report(t *testing.T, about corev1.ObjectReference, component, reason, message string) {
	t.Helper()
	now := metav1.Now()
	_, err := s.CoreV1().Events(about.Namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano())},
		InvolvedObject: about, Reason: reason, Message: message, Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: component}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
