// SPDX-License-Identifier: Apache-2.0

// Package docs checks what the pages and recipes say: their configurations are valid, their commands
// run, their names are those of the receiver, and what the page on migration promises of contrib's
// k8s_events holds for the same events. It runs every recipe of examples/, with exactly its files,
// against a real control plane. Where a recipe is about controllers that are not here, the test
// applies what they would make, and records the events that they would.
package docs

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// kube is the cluster that all tests share, each in a namespace of its own.
var kube *harness.Cluster

func TestMain(m *testing.M) {
	os.Exit(harness.RunAll(m, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2}, &kube))
}

// reader has the permissions of the Collector wherever it is deployed.
const reader = "deploy/manifests/default.yaml"

// integrations has its permissions for other projects.
const integrations = "deploy/manifests/integrations.yaml"

// run runs the recipe's Collector with the permissions that the README lists.
func run(t *testing.T, recipe string, env ...string) *harness.Collector {
	t.Helper()
	return harness.Run(t, harness.Otelcol(t), harness.InRepository(file(recipe, "collector.yaml")), append(env, "KUBECONFIG="+kubeconfigFor(t, recipe))...)
}

// kubeconfigs are those of the recipes, by name.
var kubeconfigs = struct {
	sync.Mutex
	paths map[string]string
}{paths: map[string]string{}}

// kubeconfigFor has the permissions that the recipe's README lists.
func kubeconfigFor(t *testing.T, recipe string) string {
	t.Helper()
	kubeconfigs.Lock()
	defer kubeconfigs.Unlock()
	if path, ok := kubeconfigs.paths[recipe]; ok {
		return path
	}
	roles := []string{reader, integrations}
	if own := file(recipe, "clusterrole.yaml"); exists(own) {
		roles = append(roles, own)
	}
	kubeconfigs.paths[recipe] = kube.KubeconfigFor(t, recipe, roles...)
	return kubeconfigs.paths[recipe]
}

func file(recipe, name string) string { return filepath.Join("examples", recipe, name) }

func exists(path string) bool {
	_, err := os.Stat(harness.InRepository(path))
	return err == nil
}
