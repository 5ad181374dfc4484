// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// stages is the configuration of kwok: how nodes and pods change.
//
//go:embed stages.yaml
var stages []byte

// startNodes starts kwok, creates the nodes, and waits until all of them accept pods.
func (cp *ControlPlane) startNodes(ctx context.Context) error {
	if err := os.WriteFile(cp.layout.path("stages.yaml"), stages, 0o600); err != nil {
		return err
	}
	// Without KWOK_WORKDIR, kwok writes files to the home directory.
	if err := cp.start("kwok", cp.kwokArgs(), "KWOK_WORKDIR="+cp.layout.path("kwok")); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cp.config)
	if err != nil {
		return err
	}
	for i := range cp.options.Nodes {
		_, err := client.CoreV1().Nodes().Create(ctx, newNode(i), metav1.CreateOptions{})
		if ignoreExists(err) != nil {
			return fmt.Errorf("create a node: %w", err)
		}
	}
	return cp.waitUntil(ctx, "the nodes to be ready", func(ctx context.Context) error {
		return nodesReady(ctx, client)
	})
}

func (cp *ControlPlane) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + cp.Kubeconfig(),
		"--config=" + cp.layout.path("stages.yaml"),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
		"--node-ip=" + loopback,
		// Do not serve logs and exec: the pods have no containers.
		"--node-port=0",
	}
}

func newNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("10000"),
	}
	return &corev1.Node{
		// Kubelets set these labels, and pods select nodes with them.
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}},
		Status:     corev1.NodeStatus{Allocatable: capacity, Capacity: capacity},
	}
}

// nodesReady returns an error that names a node that accepts no pods.
func nodesReady(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %s is tainted: %s", node.Name, node.Spec.Taints[0].Key)
		}
	}
	return nil
}
