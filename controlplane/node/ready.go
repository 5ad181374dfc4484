// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// awaitReady waits until the node accepts pods. After an error, the node has ended.
func (n *Node) awaitReady(ctx context.Context, cp *controlplane.ControlPlane) error {
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		return errors.Join(err, n.Stop())
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := n.ready(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-n.supervisor.Done():
			return n.supervisor.Ended()
		case <-ctx.Done():
			log := filepath.Join(n.dir, realnode.Log("kubelet"))
			err = fmt.Errorf("%w; last seen: %w; the end of %s:\n%s", context.Cause(ctx), err, log, process.Tail(log))
			return errors.Join(err, n.Stop())
		case <-ticker.C:
		}
	}
}

// ready returns an error that describes why the node does not accept pods.
func (n *Node) ready(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node %s is tainted: %s", n.name, node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %s is not ready", n.name)
}
