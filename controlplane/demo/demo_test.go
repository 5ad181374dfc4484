// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
)

func TestRun(t *testing.T) {
	cp := controlplanetest.Start(t, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1})
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- demo.Run(ctx, cp.RESTConfig()) }()

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		events, err := client.CoreV1().Events("demo").List(ctx, metav1.ListOptions{})
		require.NoError(c, err)
		var reasons []string
		for _, event := range events.Items {
			reasons = append(reasons, event.Reason)
		}
		assert.Subset(c, reasons, []string{"ScalingReplicaSet", "FailedScheduling", "Started", "BackOff"})

		shop, err := client.AppsV1().Deployments("demo").Get(ctx, "shop", metav1.GetOptions{})
		require.NoError(c, err)
		assert.EqualValues(c, 3, *shop.Spec.Replicas, "scaled up")
	}, 2*time.Minute, 500*time.Millisecond)
	checkOwnerOfTheCustomResource(ctx, t, cp)

	cancel()
	assert.NoError(t, <-ended, "the end of the context is not an error")
}

func TestRunWithContainers(t *testing.T) {
	cp, n := controlplanetest.StartNode(t, controlplane.Options{}, node.Options{})
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- demo.RunWithContainers(ctx, cp, n) }()

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		seen, killed := map[string]bool{}, false
		events, err := client.CoreV1().Events("demo").List(ctx, metav1.ListOptions{})
		require.NoError(c, err)
		for _, event := range events.Items {
			seen[workloadOf(event.InvolvedObject.Name)+" "+event.Reason] = true
		}
		for _, want := range []string{
			"shop Started", "stuck FailedScheduling", "crashing BackOff", "corner Started", "stocktaking Completed",
			"sick Unhealthy", "sick Killing", "unpublished Failed", "unpublished BackOff", "greedy BackOff", "lamp Started",
		} {
			assert.True(c, seen[want], want)
		}

		pods, err := client.CoreV1().Pods("demo").List(ctx, metav1.ListOptions{LabelSelector: "app=greedy"})
		require.NoError(c, err)
		for _, pod := range pods.Items {
			for _, status := range pod.Status.ContainerStatuses {
				last := status.LastTerminationState.Terminated
				killed = killed || last != nil && last.Reason == "OOMKilled"
			}
		}
		assert.True(c, killed, "greedy was killed")
	}, 3*time.Minute, 500*time.Millisecond)

	cancel()
	assert.NoError(t, <-ended, "the end of the context is not an error")
}

// workloadOf returns the first part of an object's name.
func workloadOf(name string) string {
	workload, _, _ := strings.Cut(name, "-")
	return workload
}

func checkOwnerOfTheCustomResource(ctx context.Context, t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	client, err := dynamic.NewForConfig(cp.RESTConfig())
	require.NoError(t, err)
	bakeries := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "bakeries"}
	bakery, err := client.Resource(bakeries).Namespace("demo").Get(ctx, "corner", metav1.GetOptions{})
	require.NoError(t, err)
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	oven, err := client.Resource(deployments).Namespace("demo").Get(ctx, "corner-oven", metav1.GetOptions{})
	require.NoError(t, err)

	require.Len(t, oven.GetOwnerReferences(), 1)
	owner := oven.GetOwnerReferences()[0]
	assert.Equal(t, bakery.GetUID(), owner.UID)
	assert.True(t, *owner.Controller)
}
