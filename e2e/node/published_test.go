// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestPublished is a user without a checkout: helm installs the chart from a registry, and the node
// pulls the image from there, with the credentials of a Secret. PUBLISHED_IMAGE is the image with its
// digest, and DOCKER_CONFIG the directory with the credentials.
func TestPublished(t *testing.T) {
	image := os.Getenv("PUBLISHED_IMAGE")
	if image == "" {
		t.Skip("it needs a registry with a release: make rehearse-release runs it")
	}
	repository, digest, _ := strings.Cut(image, "@")
	registry, _, _ := strings.Cut(repository, "/")
	_, portText, err := net.SplitHostPort(registry)
	require.NoError(t, err)
	port, err := strconv.Atoi(portText)
	require.NoError(t, err)

	c := start(t, controlplane.Options{}, port)
	const name = "published" // of the namespace and the Deployment
	c.newNamespace(t, name, "pod-security.kubernetes.io/enforce", "restricted")
	login := filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json")
	c.newPullSecret(t, name, login)
	c.Helm(t, "install", name, "oci://"+registry+"/charts/kube-events", "--version", strings.TrimSpace(harness.Read(t, "VERSION")),
		"--plain-http", "--registry-config", login, "--namespace", name, "--set", strings.Join([]string{
			"fullnameOverride=" + name, "clusterName=" + name, "otlp.endpoint=" + c.endpoint,
			"image.repository=" + repository, "image.pullSecrets={login}",
		}, ","))
	c.awaitRollout(t, name)
	status := c.pods(t, name)[0].Status.ContainerStatuses[0]
	assert.Equal(t, repository+"@"+digest, status.ImageID)
	c.newNamespace(t, "visited")
	c.createWorkloads(t, "visited")
	harness.Eventually(t, func() bool {
		return len(c.backend.Records("k8s.cluster.name", name, "k8s.namespace.name", "visited", "k8s.event.reason", "Started")) > 0
	}, "a record")
	t.Log(c.Helm(t, "test", name, "--namespace", name, "--logs"))

	c.followQuickStart(t, registry, repository, login)
}

// followQuickStart installs the trial with the command of README.md, and opens its page. Only the
// addresses differ, and the registry needs a login.
func (c *cluster) followQuickStart(t *testing.T, registry, repository, login string) {
	t.Helper()
	const name = "kube-events" // of the namespace and the Deployment
	command := regexp.MustCompile(`(?m)^helm (install .* --set page\.enabled=true.*)$`).FindStringSubmatch(harness.Read(t, "README.md"))
	require.NotNil(t, command)
	c.newNamespace(t, name)
	c.newPullSecret(t, name, login)
	arguments := strings.Fields(strings.Replace(command[1], "oci://ghcr.io/kubeevents/charts/", "oci://"+registry+"/charts/", 1))
	c.Helm(t, append(arguments, "--plain-http", "--registry-config", login, "--set", "image.repository="+repository+",image.pullSecrets={login}")...)
	c.awaitRollout(t, name)
	c.awaitPage(t, &c.pods(t, name)[0], 8090, "/", http.StatusOK, "crashing", "BackOff")
}

// newPullSecret makes a Secret of the credentials that docker login wrote.
func (c *cluster) newPullSecret(t *testing.T, namespace, file string) {
	t.Helper()
	credentials, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = c.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "login"},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: credentials},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
