// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
)

// onPort returns a probe of the container's HTTP server.
func onPort(port int) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(int32(port))}},
		PeriodSeconds: 1,
	}
}

func TestNodeIsReady(t *testing.T) {
	c, _ := shared(t)
	found, err := c.CoreV1().Nodes().Get(t.Context(), c.node.Name(), metav1.GetOptions{})
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+\.\d+$`, found.Status.NodeInfo.KubeletVersion)
	assert.Contains(t, found.Status.NodeInfo.ContainerRuntimeVersion, "containerd://2.")
	assert.Contains(t, found.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: node.Address})
}

// TestKubeletIsKilled is not parallel: other tests would miss the events that kubelet has not sent.
func TestKubeletIsKilled(t *testing.T) {
	c, namespace := shared(t)
	c.create(t, namespace, pod("before"))
	c.awaitEvent(t, namespace, "Started", "")
	killed, err := c.node.KubeletPID()
	require.NoError(t, err)

	require.NoError(t, c.node.KillKubelet())
	eventually(t, func(ct *assert.CollectT) {
		pid, err := c.node.KubeletPID()
		require.NoError(ct, err)
		assert.NotEqual(ct, killed, pid)
	})
	c.output(t, namespace, "succeed") // the new kubelet runs pods
	before, err := c.CoreV1().Pods(namespace).Get(t.Context(), "before", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Zero(t, before.Status.ContainerStatuses[0].RestartCount, "containers do not end with kubelet")
}

// TestAPIServerRestarts is not parallel, because it interrupts everything.
func TestAPIServerRestarts(t *testing.T) {
	c, namespace := shared(t)
	require.NoError(t, c.cp.KillAPIServer())
	require.NoError(t, c.cp.StartAPIServer(t.Context()))
	assert.Equal(t, "system:serviceaccount:"+namespace+":default", c.output(t, namespace, "whoami"))
}

func TestDeploymentRuns(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	template := pod("web", "serve")
	template.Spec.Containers[0].ReadinessProbe = onPort(8080)
	replicas := int32(2)
	_, err := c.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: template.ObjectMeta,
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: template.Spec},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	service, err := c.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: template.Labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	eventually(t, func(ct *assert.CollectT) {
		found, err := c.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(ct, err)
		assert.Equal(ct, replicas, found.Status.ReadyReplicas)
	})
	started := c.awaitEvent(t, namespace, "Started", "")
	assert.Equal(t, "spec.containers{app}", started.InvolvedObject.FieldPath)
	assert.Equal(t, c.node.Name(), started.Source.Host)

	assert.Equal(t, "OK", c.output(t, namespace, "get", "http://"+service.Spec.ClusterIP), "a pod reaches the Service")
	answer, err := c.CoreV1().Services(namespace).ProxyGet("http", "web", "80", "/", nil).DoRaw(t.Context())
	require.NoError(t, err, "the API server reaches the Service")
	assert.Equal(t, "OK\n", string(answer))
	log, err := c.CoreV1().Pods(namespace).GetLogs(started.InvolvedObject.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	require.NoError(t, err, "the API server reaches kubelet")
	assert.Contains(t, string(log), "listening on port 8080")
}

func TestPodReachesTheAPIServer(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	assert.Equal(t, "system:serviceaccount:"+namespace+":default", c.output(t, namespace, "whoami"))
}

func TestPodReachesThisMachine(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	assert.Equal(t, hostAnswer, c.output(t, namespace, "get", fmt.Sprintf("http://%s:%d", node.Address, c.hostPort)))
}

func TestImageCannotBePulled(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	p := pod("missing")
	p.Spec.Containers[0].Image = "registry.example.com/missing:1"
	c.create(t, namespace, p)
	c.awaitEvent(t, namespace, "Pulling", "registry.example.com/missing:1")
	c.awaitEvent(t, namespace, "Failed", "Error: ErrImagePull")
	c.awaitEvent(t, namespace, "BackOff", "Back-off pulling image")
	c.awaitEvent(t, namespace, "Failed", "Error: ImagePullBackOff")
}

func TestContainerCrashes(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	c.create(t, namespace, pod("crashing", "crash"))
	event := c.awaitEvent(t, namespace, "BackOff", "Back-off restarting failed container")
	assert.Equal(t, corev1.EventTypeWarning, event.Type)
}

func TestProbeFails(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	p := pod("sick", "unhealthy")
	p.Spec.Containers[0].LivenessProbe = onPort(8080)
	c.create(t, namespace, p)
	c.awaitEvent(t, namespace, "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500")
	c.awaitEvent(t, namespace, "Killing", "failed liveness probe, will be restarted")
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	p := pod("greedy", "memory")
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	c.create(t, namespace, p)
	eventually(t, func(ct *assert.CollectT) {
		found, err := c.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		require.NoError(ct, err)
		require.Len(ct, found.Status.ContainerStatuses, 1)
		ended := found.Status.ContainerStatuses[0].State.Terminated
		require.NotNil(ct, ended)
		assert.Equal(ct, "OOMKilled", ended.Reason)
	})
}

func TestStaticPod(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	manifest := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: static\n  namespace: " + namespace + "\nspec:\n  containers:\n  - {name: app, image: " + workload + "}\n"
	require.NoError(t, c.node.AddStaticPod("static", []byte(manifest)))
	mirror := "static-" + c.node.Name()
	var hash string
	eventually(t, func(ct *assert.CollectT) {
		found, err := c.CoreV1().Pods(namespace).Get(t.Context(), mirror, metav1.GetOptions{})
		require.NoError(ct, err)
		assert.Equal(ct, corev1.PodRunning, found.Status.Phase)
		hash = found.Annotations[corev1.MirrorPodAnnotationKey]
	})
	event := c.awaitEvent(t, namespace, "Started", "")
	assert.Equal(t, hash, string(event.InvolvedObject.UID), "the event names the manifest, not the mirror pod")

	require.NoError(t, c.node.RemoveStaticPod("static"))
	eventually(t, func(ct *assert.CollectT) {
		_, err := c.CoreV1().Pods(namespace).Get(t.Context(), mirror, metav1.GetOptions{})
		assert.True(ct, apierrors.IsNotFound(err), "%v", err)
	})
}

func TestPodMountsADirectory(t *testing.T) {
	t.Parallel()
	c, namespace := shared(t)
	path, err := c.node.MakeDirectory("mounted")
	require.NoError(t, err)
	directory := corev1.HostPathDirectory // It must exist.
	for name, path := range map[string]string{"there": path, "missing": path + "/missing"} {
		p := pod(name, "succeed")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.Volumes = []corev1.Volume{{Name: "directory", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &directory}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "directory", MountPath: "/mounted"}}
		c.create(t, namespace, p)
	}
	eventually(t, func(ct *assert.CollectT) {
		found, err := c.CoreV1().Pods(namespace).Get(t.Context(), "there", metav1.GetOptions{})
		require.NoError(ct, err)
		assert.Equal(ct, corev1.PodSucceeded, found.Status.Phase)
	})
	c.awaitEvent(t, namespace, "FailedMount", path+"/missing is not a directory")
}

func TestImportOfNoImage(t *testing.T) {
	t.Parallel()
	c, _ := shared(t)
	assert.ErrorContains(t, c.node.ImportImage(t.Context(), "/no/such/archive"), "no such file")
}
