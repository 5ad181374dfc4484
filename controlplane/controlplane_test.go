// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

func clientOf(t *testing.T, cp *controlplane.ControlPlane) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	require.NoError(t, err)
	return client
}

func podTemplate(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
}

func reasons(ctx context.Context, t require.TestingT, client kubernetes.Interface) []string {
	events, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	var found []string
	for _, event := range events.Items {
		found = append(found, event.Reason)
	}
	return found
}

func TestWorkloadsRun(t *testing.T) {
	cp := controlplanetest.Start(t, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2})
	client, ctx := clientOf(t, cp), t.Context()

	version, err := client.Discovery().ServerVersion()
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+\.\d+$`, version.GitVersion, "a release, as the build stamps it")

	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	_, err = client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate(labels)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	template := podTemplate(nil)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = client.BatchV1().Jobs("default").Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec:       batchv1.JobSpec{Template: template},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		deployment, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(c, err)
		assert.Equal(c, replicas, deployment.Status.ReadyReplicas)

		job, err := client.BatchV1().Jobs("default").Get(ctx, "once", metav1.GetOptions{})
		require.NoError(c, err)
		assert.EqualValues(c, 1, job.Status.Succeeded)

		assert.Subset(c, reasons(ctx, c, client), []string{"ScalingReplicaSet", "SuccessfulCreate", "Scheduled", "Started", "Completed"})
	}, time.Minute, 200*time.Millisecond)

	require.NoError(t, client.AppsV1().Deployments("default").Delete(ctx, "web", metav1.DeleteOptions{}))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		require.NoError(c, err)
		assert.Empty(c, pods.Items)
		assert.Contains(c, reasons(ctx, c, client), "Killing")
	}, time.Minute, 200*time.Millisecond)
}

func TestStopLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cp := controlplanetest.Start(t, controlplane.Options{DataDir: dir, ControllerManager: true, Scheduler: true, Nodes: 1})
	pids := cp.PIDs()
	require.Len(t, pids, 5)

	require.NoError(t, cp.Stop())
	for _, pid := range pids {
		assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d", pid)
		assert.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH, "process group %d", pid)
	}
	assert.Empty(t, cp.PIDs())
	assert.DirExists(t, dir, "a directory that was given is kept")
	require.NoError(t, cp.Stop(), "a second time")
}

func TestAPIServerRestarts(t *testing.T) {
	cp := controlplanetest.Start(t, controlplane.Options{EventTTL: 10 * time.Minute})
	client, ctx := clientOf(t, cp), t.Context()
	_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	require.NoError(t, err)

	require.ErrorContains(t, cp.StartAPIServer(ctx), "stop it first")
	for name, end := range map[string]func() error{"stop": cp.StopAPIServer, "kill": cp.KillAPIServer} {
		require.NoError(t, end(), name)
		_, err = client.Discovery().ServerVersion()
		require.Error(t, err, name)

		require.NoError(t, cp.StartAPIServer(ctx), name)
		_, err = client.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		require.NoError(t, err, "%s: the old client reaches the old data", name)
	}
}

func TestSeveralAPIServers(t *testing.T) {
	cp := controlplanetest.Start(t, controlplane.Options{APIServers: 2})
	var clients []kubernetes.Interface
	for _, s := range cp.APIServers() {
		config := cp.RESTConfig()
		config.Host = "https://" + s.Address()
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		clients = append(clients, client)
	}
	first, second, ctx := clients[0].CoreV1().ConfigMaps("default"), clients[1].CoreV1().ConfigMaps("default"), t.Context()
	_, err := first.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}, metav1.CreateOptions{})
	require.NoError(t, err)

	require.NoError(t, cp.APIServers()[0].Kill())
	_, err = first.Get(ctx, "shared", metav1.GetOptions{})
	require.Error(t, err)
	_, err = second.Get(ctx, "shared", metav1.GetOptions{})
	require.NoError(t, err, "the other one continues, with the same data")

	require.NoError(t, cp.APIServers()[1].Stop())
	require.NoError(t, cp.APIServers()[1].Start(ctx, "--event-ttl=5m"), "the first need not run")
	_, err = second.Get(ctx, "shared", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestStoreIn(t *testing.T) {
	directory := t.TempDir()
	assert.Equal(t, controlplane.Etcd, controlplane.StoreIn(directory), "the one that the error names if it is missing")
	require.NoError(t, os.WriteFile(filepath.Join(directory, "kine"), nil, 0o700))
	assert.Equal(t, controlplane.Kine, controlplane.StoreIn(directory))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "etcd"), nil, 0o700))
	assert.Equal(t, controlplane.Etcd, controlplane.StoreIn(directory))
}

func TestEtcdIsRestored(t *testing.T) {
	cp := controlplanetest.Start(t, controlplane.Options{})
	client, ctx := clientOf(t, cp), t.Context()
	maps := client.CoreV1().ConfigMaps("default")
	create := func(name string) *corev1.ConfigMap {
		created, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		return created
	}
	before := create("before")
	backup := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, cp.BackUp(backup))
	create("after")

	require.NoError(t, cp.Restore(ctx, backup))
	found, err := maps.Get(ctx, "before", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before.ResourceVersion, found.ResourceVersion)
	_, err = maps.Get(ctx, "after", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)

	require.NoError(t, cp.Restore(ctx, ""))
	_, err = maps.Get(ctx, "before", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestRestrictedKubeconfig(t *testing.T) {
	cp := controlplanetest.Start(t, controlplane.Options{})
	path, err := cp.RestrictedKubeconfig(t.Context(), "reader", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"},
	})
	require.NoError(t, err)

	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestMissingPrograms(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: t.TempDir(), Scheduler: true})
	require.ErrorIs(t, err, controlplane.ErrBinariesMissing)
	assert.ErrorContains(t, err, "[etcd kube-apiserver kube-scheduler]")
	assert.ErrorContains(t, err, "make controlplane")
}

func TestSimulatedAndRealNodes(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: t.TempDir(), Nodes: 1, RealNode: true})
	assert.ErrorContains(t, err, "set Options.Nodes or Options.RealNode, not both")
}

func TestFailingStartQuotesTheLog(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: controlplanetest.Binaries(), APIServerArgs: []string{"--no-such-flag"}})
	if errors.Is(err, controlplane.ErrBinariesMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.ErrorContains(t, err, "kube-apiserver ended with exit code 1")
	assert.ErrorContains(t, err, "unknown flag: --no-such-flag")
}

func TestStartGivesUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	binaries := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		require.NoError(t, os.WriteFile(filepath.Join(binaries, name), []byte("#!/bin/sh\nsleep 60\n"), 0o700))
	}
	_, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "the API server's certificate")
}
