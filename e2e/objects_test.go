// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var made atomic.Int64

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("t%d-%s", made.Add(1), strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())))
	if len(name) > 50 {
		name = name[:50]
	}
	name = strings.TrimRight(name, "-")
	_, err := clientOf(t, kube).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return name
}

// eventOf is a hand-made event about a pod of the given name that need not exist.
func eventOf(reason, pod string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		Reason: reason, Message: "message of " + reason, Type: corev1.EventTypeNormal, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source:         corev1.EventSource{Component: "e2e"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod},
	}
}

// makeEvent creates the event, named by its reason and a number unless it has a name.
func makeEvent(t *testing.T, namespace string, ev *corev1.Event) *corev1.Event {
	t.Helper()
	if ev.Name == "" {
		ev.Name = fmt.Sprintf("%s.%d", strings.ToLower(ev.Reason), made.Add(1))
	}
	ev.Namespace = namespace
	if ev.InvolvedObject.Namespace == "" && namespace != "default" {
		ev.InvolvedObject.Namespace = namespace
	}
	created, err := clientOf(t, kube).CoreV1().Events(namespace).Create(t.Context(), ev, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

// updateEvent stores a new state of the event, whatever its resource version.
func updateEvent(t *testing.T, ev *corev1.Event) *corev1.Event {
	t.Helper()
	ev.ResourceVersion = ""
	updated, err := clientOf(t, kube).CoreV1().Events(ev.Namespace).Update(t.Context(), ev, metav1.UpdateOptions{})
	require.NoError(t, err)
	return updated
}

func deleteEvent(t *testing.T, ev *corev1.Event) {
	t.Helper()
	require.NoError(t, clientOf(t, kube).CoreV1().Events(ev.Namespace).Delete(t.Context(), ev.Name, metav1.DeleteOptions{}))
}

// deployment has its labels on itself alone, not on its pods.
func deployment(name string, labels map[string]string, nodeSelector map[string]string) *appsv1.Deployment {
	replicas := int32(1)
	pods := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: pods},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pods},
				Spec:       corev1.PodSpec{NodeSelector: nodeSelector, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
			},
		},
	}
}

// awaitPod waits for a pod of the application and returns it.
func awaitPod(t *testing.T, namespace, app string) corev1.Pod {
	t.Helper()
	var pods *corev1.PodList
	require.Eventually(t, func() bool {
		var err error
		pods, err = clientOf(t, kube).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		return err == nil && len(pods.Items) > 0
	}, patience, tick)
	return pods.Items[0]
}

// deletePod removes the pod and waits until it is gone.
func deletePod(t *testing.T, pod corev1.Pod) {
	t.Helper()
	pods := clientOf(t, kube).CoreV1().Pods(pod.Namespace)
	now := int64(0)
	require.NoError(t, pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	require.Eventually(t, func() bool {
		_, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, 100*time.Millisecond)
}
