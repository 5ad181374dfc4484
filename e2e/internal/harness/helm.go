// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"os/exec"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HelmPath is where helm is that make built.
func HelmPath() string { return InRepository("build", "tools", "helm") }

// Chart renders what `helm install` applies, as a release in a namespace. The other arguments
// are helm's, such as --set and --values.
func Chart(t testing.TB, release, namespace string, arguments ...string) []*unstructured.Unstructured {
	t.Helper()
	manifest, stderr, err := HelmTemplate(t, release, namespace, append([]string{"--skip-tests"}, arguments...)...)
	if err != nil {
		t.Fatalf("helm template: %v: %s", err, stderr)
	}
	return Objects(t, manifest)
}

// HelmTemplate runs `helm template` for the chart. If helm rejects the values, stderr says why.
func HelmTemplate(t testing.TB, release, namespace string, arguments ...string) (manifest, stderr string, err error) {
	t.Helper()
	return runHelm(t, "", append([]string{"template", release, InRepository("deploy", "chart"), "--namespace", namespace}, arguments...)...)
}

// Helm runs helm as an administrator of the cluster, and returns what it prints.
func (c *Cluster) Helm(t testing.TB, arguments ...string) string {
	t.Helper()
	stdout, stderr, err := runHelm(t, c.Kubeconfig(), arguments...)
	if err != nil {
		t.Fatalf("helm %v: %v: %s", arguments, err, stderr)
	}
	return stdout
}

func runHelm(t testing.TB, kubeconfig string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	command := exec.Command(program(t, HelmPath(), "make manifests"), arguments...)
	// Nothing of a helm that the user has: no plugins, no settings.
	home := t.TempDir()
	command.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=" + kubeconfig}
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	err = command.Run()
	return output.String(), problems.String(), err
}
