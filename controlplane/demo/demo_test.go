// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
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

	cancel()
	assert.NoError(t, <-ended, "the end of the context is not an error")
}
