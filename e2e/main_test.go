// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the receiver against a real Kubernetes control plane: etcd, kube-apiserver, controllers, scheduler and
// kwok nodes, all on the loopback interface.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
)

// kube is the control plane that tests share, each in namespaces of its own. A test that breaks it starts its own.
var kube *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	kube, err = controlplane.Start(context.Background(), controlplane.Options{
		Binaries: binaries(), ControllerManager: true, Scheduler: true, Nodes: 2,
	})
	if errors.Is(err, controlplane.ErrBinariesMissing) && os.Getenv("CI") == "" {
		fmt.Println("skipped:", err)
		return 0
	}
	if err != nil {
		fmt.Println("the control plane did not start:", err)
		return 1
	}
	code := m.Run()
	if err := kube.Stop(); err != nil {
		fmt.Println("the control plane did not stop:", err)
		return 1
	}
	return code
}

// binaries are those that make built, unless KUBEBUILDER_ASSETS names others.
func binaries() string {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return ""
	}
	return filepath.Join("..", "build", "controlplane")
}

// ownControlPlane starts a control plane for one test.
func ownControlPlane(t *testing.T, options controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	options.Binaries = binaries()
	cp, err := controlplane.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cp.Stop()) })
	return cp
}

func clientOf(t *testing.T, cp *controlplane.ControlPlane) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	require.NoError(t, err)
	return client
}

func dynamicClientOf(t *testing.T, cp *controlplane.ControlPlane) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(cp.RESTConfig())
	require.NoError(t, err)
	return client
}
