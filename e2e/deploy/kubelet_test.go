// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// makeImage makes a root with the Collector, at the path of the image's entrypoint, and nothing else.
// The other files of the image are tested where it is made, in tools/image.
func makeImage() (string, error) {
	program, err := os.ReadFile(harness.OtelcolPath())
	if err != nil {
		return "", err
	}
	directory, err := os.MkdirTemp("", "image-")
	if err != nil {
		return "", err
	}
	return directory, os.WriteFile(filepath.Join(directory, entrypoint), program, 0o755)
}

// pod is one that a kubelet runs.
type pod struct {
	*corev1.Pod
	address string // replaces the Pod's IP
	*process
}

// kubelet does what the kubelet of a node does, for Pods that the control plane made and whose
// containers the node only only simulates.
type kubelet struct {
	*cluster
	claims string // the directory of the volumes that outlive a Pod
}

// run runs a Pod's only container.
func (k kubelet) run(t *testing.T, spec *corev1.Pod) *pod {
	t.Helper()
	require.Len(t, spec.Spec.Containers, 1)
	c, p := spec.Spec.Containers[0], &pod{Pod: spec, address: newAddress(t)}
	p.process = start(t, container{
		Root: image, ReadOnlyRoot: *c.SecurityContext.ReadOnlyRootFilesystem, User: user(spec),
		Mounts: k.mounts(t, p, c), Argv: command(c), Env: k.environment(t, p, c),
	})
	return p
}

// assignedUser is one that a platform assigns, such as OpenShift, if the Pod names none.
const assignedUser = 1000650000

func user(spec *corev1.Pod) int {
	if id := spec.Spec.SecurityContext.RunAsUser; id != nil {
		return int(*id)
	}
	return assignedUser
}

// command is what the container runs: that of the Pod, or else that of the image.
func command(c corev1.Container) []string {
	if len(c.Command) > 0 {
		return append(slices.Clone(c.Command), c.Args...)
	}
	return append([]string{"/" + entrypoint}, c.Args...)
}

// newAddress is one on the loopback interface that no other Pod has, so that Pods may listen on the
// same ports.
func newAddress(t *testing.T) string {
	t.Helper()
	for i := range 1000 {
		number := os.Getpid() + i
		address := fmt.Sprintf("127.%d.%d.%d", 1+number>>16&63, number>>8&255, number&255)
		// No container listens on this port. The test that does has the address.
		if listener, err := net.Listen("tcp", address+":40004"); err == nil {
			t.Cleanup(func() { _ = listener.Close() })
			return address
		}
	}
	require.FailNow(t, "every address is taken")
	return ""
}

// environment is that of the container, in which a variable may name those before it.
func (k kubelet) environment(t *testing.T, p *pod, c corev1.Container) []string {
	t.Helper()
	server, err := url.Parse(k.RESTConfig().Host)
	require.NoError(t, err)
	environment := []string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}
	var known []string
	for _, variable := range c.Env {
		value := strings.NewReplacer(known...).Replace(variable.Value)
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
			value = string(k.secret(t, p.Namespace, from.SecretKeyRef.Name)[from.SecretKeyRef.Key])
		} else if from != nil {
			value = p.field(t, from.FieldRef.FieldPath)
		}
		known = append(known, "$("+variable.Name+")", value)
		environment = append(environment, variable.Name+"="+value)
	}
	return environment
}

func (k kubelet) secret(t *testing.T, namespace, name string) map[string][]byte {
	t.Helper()
	secret, err := k.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return secret.Data
}

// field is what the downward API has of a Pod.
func (p *pod) field(t *testing.T, path string) string {
	t.Helper()
	switch path {
	case "metadata.namespace":
		return p.Namespace
	case "metadata.name":
		return p.Name
	case "spec.nodeName":
		return p.Spec.NodeName
	case "status.podIP":
		return p.address
	case "status.hostIP":
		return "127.0.0.1"
	}
	require.FailNow(t, "no such field: "+path)
	return ""
}

func (k kubelet) mounts(t *testing.T, p *pod, c corev1.Container) (mounts []mount) {
	t.Helper()
	directories := map[string]string{}
	for _, volume := range p.Spec.Volumes {
		directories[volume.Name] = k.volume(t, p, volume)
	}
	for _, m := range c.VolumeMounts {
		require.Empty(t, m.SubPath)
		mounts = append(mounts, mount{Source: directories[m.Name], Path: m.MountPath, ReadOnly: m.ReadOnly})
	}
	return mounts
}

// volume is a directory with the content that a volume has according to the API.
func (k kubelet) volume(t *testing.T, p *pod, volume corev1.Volume) string {
	t.Helper()
	directory := t.TempDir()
	switch {
	case volume.ConfigMap != nil:
		k.putConfigMap(t, p, directory, volume.ConfigMap.Name, volume.ConfigMap.Items)
	case volume.Secret != nil:
		data := k.secret(t, p.Namespace, volume.Secret.SecretName)
		for _, item := range volume.Secret.Items {
			put(t, directory, item.Path, string(data[item.Key]))
		}
		for key, value := range data {
			if len(volume.Secret.Items) == 0 {
				put(t, directory, key, string(value))
			}
		}
	case volume.PersistentVolumeClaim != nil:
		directory = filepath.Join(k.claims, p.Namespace, volume.PersistentVolumeClaim.ClaimName)
		require.NoError(t, os.MkdirAll(directory, 0o700))
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			k.project(t, p, directory, source)
		}
	default:
		require.FailNow(t, "unknown kind of volume: "+volume.Name)
	}
	return directory
}

// project puts a part of a projected volume, which is how a Pod gets its service account's token.
func (k kubelet) project(t *testing.T, p *pod, directory string, source corev1.VolumeProjection) {
	t.Helper()
	switch {
	case source.ServiceAccountToken != nil:
		put(t, directory, source.ServiceAccountToken.Path, k.token(t, p.Pod, source.ServiceAccountToken.ExpirationSeconds))
	case source.ConfigMap != nil:
		k.putConfigMap(t, p, directory, source.ConfigMap.Name, source.ConfigMap.Items)
	case source.DownwardAPI != nil:
		for _, item := range source.DownwardAPI.Items {
			put(t, directory, item.Path, p.field(t, item.FieldRef.FieldPath))
		}
	}
}

// token is one of the Pod's service account, and valid only as long as the Pod exists.
func (k kubelet) token(t *testing.T, spec *corev1.Pod, seconds *int64) string {
	t.Helper()
	token, err := k.CoreV1().ServiceAccounts(spec.Namespace).CreateToken(t.Context(), spec.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: spec.Name, UID: spec.UID},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return token.Status.Token
}

// putConfigMap puts all entries of a ConfigMap, or those that items name, where items say.
func (k kubelet) putConfigMap(t *testing.T, p *pod, directory, name string, items []corev1.KeyToPath) {
	t.Helper()
	configMap, err := k.CoreV1().ConfigMaps(p.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	for _, item := range items {
		put(t, directory, item.Path, configMap.Data[item.Key])
	}
	for key, value := range configMap.Data {
		if len(items) == 0 {
			put(t, directory, key, p.listeningHere(value))
		}
	}
}

// In a Collector's configuration: an address of all interfaces or of the loopback interface, and a
// host that is empty.
var (
	ownAddress = regexp.MustCompile(`(?m)^( *endpoint: )["']?(?:127\.0\.0\.1)?:(\d+)["']?$`)
	ownHost    = regexp.MustCompile(`(?m)^( *host: )""$`)
)

// listeningHere makes a Collector listen on the Pod's address alone. A real Pod has a network of its
// own; these share that of the machine, with the same ports.
func (p *pod) listeningHere(config string) string {
	config = ownAddress.ReplaceAllString(config, `${1}"`+p.address+`:$2"`)
	return ownHost.ReplaceAllString(config, "${1}"+p.address)
}

func put(t *testing.T, directory, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600))
}

// probe asks as the kubelet would.
func (p *pod) probe(t *testing.T, probe *corev1.Probe) (code int, page string) {
	t.Helper()
	return p.get(t, p.port(t, probe.HTTPGet.Port), probe.HTTPGet.Path)
}

// get asks a server in the Pod.
func (p *pod) get(t *testing.T, port, path string) (code int, page string) {
	t.Helper()
	response, err := http.Get("http://" + net.JoinHostPort(p.address, port) + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// port is a container's port, by its name or number.
func (p *pod) port(t *testing.T, port intstr.IntOrString) string {
	t.Helper()
	for _, known := range p.Spec.Containers[0].Ports {
		if known.Name == port.StrVal {
			return fmt.Sprint(known.ContainerPort)
		}
	}
	assert.Positive(t, port.IntVal, "no port is called %q", port.StrVal)
	return port.String()
}

func (p *pod) lives(t *testing.T) (int, string) {
	t.Helper()
	return p.probe(t, p.Spec.Containers[0].LivenessProbe)
}

// ready is the answer that decides whether the Pod becomes ready: that of the startup probe, if there is one.
func (p *pod) ready(t *testing.T) (int, string) {
	t.Helper()
	if startup := p.Spec.Containers[0].StartupProbe; startup != nil {
		return p.probe(t, startup)
	}
	return p.probe(t, p.Spec.Containers[0].ReadinessProbe)
}

// hasNoPrivileges asks the kernel whether the container is as the manifests say: no capabilities,
// no way to any, and nothing to write to but its volumes.
func (p *pod) hasNoPrivileges(t *testing.T) {
	t.Helper()
	process, err := procfs.NewProc(p.PID())
	require.NoError(t, err)
	status, err := process.NewStatus()
	require.NoError(t, err)
	assert.Zero(t, status.CapEff)
	assert.Zero(t, status.CapPrm)
	assert.Zero(t, status.CapAmb)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	require.NoError(t, err)
	assert.Contains(t, string(text), "NoNewPrivs:\t1\n", "which procfs does not read")
	mounts, err := process.MountInfo()
	require.NoError(t, err)
	require.NotEmpty(t, mounts)
	for _, m := range mounts {
		if !strings.HasPrefix(m.MountPoint, "/proc") && m.MountPoint != "/var/lib/otelcol" {
			_, readOnly := m.Options["ro"]
			_, superReadOnly := m.SuperOptions["ro"]
			assert.True(t, readOnly || superReadOnly, m.MountPoint)
		}
	}
}
