// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestEveryAddressIsRenderedForItsProtocol, or rejected: that of otlp, of the traces and of another backend. The
// exporter for gRPC uses TLS, whatever the scheme is, unless tls.insecure is true.
func TestEveryAddressIsRenderedForItsProtocol(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		protocol, address string
		rejected          string
		tls               any
	}{
		{"http", "http://gw", "", nil},
		{"http", "http://gw:4318", "", nil},
		{"http", "https://gw", "", nil},
		{"http", "https://gw:4318", "", nil},
		{"http", "http://gw:4317", "is for OTLP over gRPC", nil},
		{"http", "https://gw:4317", "is for OTLP over gRPC", nil},
		{"grpc", "http://gw:4317", "", map[string]any{"insecure": true}},
		{"grpc", "https://gw:4317", "", nil},
		{"grpc", "https://gw:443", "", nil},
		{"grpc", "http://gw", "write http://gw:4317", nil},
		{"grpc", "https://gw", "write https://gw:4317", nil},
		{"grpc", "http://gw:4318", "is for OTLP over HTTP", nil},
		{"grpc", "https://gw:4318", "is for OTLP over HTTP", nil},
	} {
		for path, exporter := range map[string]string{"otlp": "", "rollouts": "/rollouts", "additionalBackends.new": "/new"} {
			t.Run(strings.Join([]string{path, test.protocol, test.address}, " "), func(t *testing.T) {
				t.Parallel()
				other := map[string]string{"http": endpoint, "grpc": "otlp.endpoint=http://gw:4317"}[test.protocol]
				arguments := []string{
					"--set", "rollouts.enabled=true," + other, "--set", "otlp.protocol=" + test.protocol,
					"--set", path + ".endpoint=" + test.address,
				}
				if strings.HasPrefix(path, "additional") {
					arguments = append(arguments, "--set", path+".protocol="+test.protocol)
				}
				if test.rejected != "" {
					_, stderr, err := harness.HelmTemplate(t, "kube-events", "observability", arguments...)
					require.Error(t, err)
					assert.Contains(t, stderr, path+`.endpoint: "`+test.address+`"`)
					assert.Contains(t, stderr, test.rejected)
					return
				}
				all := render(t, arguments...)
				all.validate(t)
				exporters := all.config(t)["exporters"].(map[string]any)
				require.Contains(t, exporters, "otlp_"+test.protocol+exporter)
				assert.Equal(t, test.tls, exporters["otlp_"+test.protocol+exporter].(map[string]any)["tls"])
			})
		}
	}
}

// outside changes the configuration of the chart so that it runs outside of a cluster, next to others.
const outside = `
mode: stateless
config:
  receivers: {kube_events: {auth_type: kubeConfig, start_at: beginning}}
  extensions:
    health_check: {http: {endpoint: "127.0.0.1:0"}}
    health_check/ready: {http: {endpoint: "127.0.0.1:0"}}
  service: {telemetry: {metrics: {level: none, readers: []}}}
`

// start runs the Collector with the configuration of the chart, and with variables.
func start(t *testing.T, env []string, values ...string) *harness.Collector {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(outside), 0o600))
	arguments := []string{"--values", file}
	for _, value := range values {
		arguments = append(arguments, "--set", value)
	}
	all := render(t, arguments...)
	container := containerOf(t, all)
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			env = append(env, variable.Name+"="+variable.Value)
		}
	}
	config, err := yaml.Marshal(all.config(t))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, config, 0o600))
	for i, argument := range container.Args {
		container.Args[i] = strings.Replace(argument, configFile, path, 1)
	}
	return harness.Start(t, exec.Command(harness.Otelcol(t), container.Args...), append(env, "KUBECONFIG="+kube.Kubeconfig())...)
}

// writeEvent creates an event, and returns its UID.
func writeEvent(t *testing.T, namespace string) (uid string) {
	t.Helper()
	now := metav1.Now()
	event, err := kube.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "written-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "written"},
		Reason:         "Written", Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "chart-test"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return string(event.UID)
}

// TestARecordArrivesByEachProtocol: with and without TLS, at the backend and at another one.
func TestARecordArrivesByEachProtocol(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http", "grpc"} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(protocol+" "+scheme, func(t *testing.T) {
				t.Parallel()
				namespace := newNamespace(t, protocol+"-by-"+scheme, nil)
				var env []string
				address := func(backend *harness.Backend) string {
					url := map[string]string{"http": backend.URL, "grpc": backend.GRPC}[protocol]
					if scheme == "http" {
						return url
					}
					encrypted, authority := encrypt(t, protocol, strings.TrimPrefix(url, "http://"))
					env = append(env, "SSL_CERT_FILE="+authority)
					return encrypted
				}
				first, second := harness.NewBackend(t), harness.NewBackend(t)
				values := []string{
					"otlp.protocol=" + protocol, "otlp.endpoint=" + address(first), "namespaces={" + namespace + "}",
					"additionalBackends.second.protocol=" + protocol, "additionalBackends.second.endpoint=" + address(second),
				}
				start(t, env, values...)
				uid := writeEvent(t, namespace)
				first.Await(t, "k8s.event.uid", uid)
				second.Await(t, "k8s.event.uid", uid)
			})
		}
	}
}

// encrypt accepts TLS for a server that has none. It returns its address, and the file of its authority.
func encrypt(t *testing.T, protocol, server string) (address, authority string) {
	t.Helper()
	source := httptest.NewTLSServer(nil) // It has a certificate for the loopback interface.
	source.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: source.TLS.Certificates,
		NextProtos:   []string{map[string]string{"http": "http/1.1", "grpc": "h2"}[protocol]},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // The test ends.
			}
			go connect(client, server)
		}
	}()
	authority = filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: source.Certificate().Raw})
	require.NoError(t, os.WriteFile(authority, certificate, 0o600))
	return "https://" + listener.Addr().String(), authority
}

// connect passes the bytes of a connection to a server, and back, until one of them ends it.
func connect(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// TestTheReceiverDoesNotWaitForAnotherBackend: it is down, and its queue has room for no record. The first backend gets
// each record once.
func TestTheReceiverDoesNotWaitForAnotherBackend(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, "another-backend", nil)
	first := harness.NewBackend(t)
	collector := start(t, nil, "otlp.endpoint="+first.URL, "namespaces={"+namespace+"}",
		"additionalBackends.down.endpoint=http://127.0.0.1:1", "additionalBackends.down.signals={logs}",
		"config.exporters.otlp_http/down.sending_queue.queue_size=1")
	const events = 5
	for i := range events {
		first.Await(t, "k8s.event.uid", writeEvent(t, namespace))
		assert.Len(t, first.Records("k8s.event.reason", "Written"), i+1)
	}
	assert.NotEmpty(t, collector.Output.Lines("otlp_http/down", "Rejecting data"))
}

// TestTheLogNamesAWrongPort: with the texts that troubleshooting.md explains. The chart rejects such addresses; one in
// a Secret it cannot know.
func TestTheLogNamesAWrongPort(t *testing.T) {
	t.Parallel()
	backend := harness.NewBackend(t)
	for name, test := range map[string]struct {
		values  []string
		message string
	}{
		"HTTP to the port of gRPC":           {[]string{"config.exporters.otlp_http.endpoint=" + backend.GRPC}, "malformed HTTP response"},
		"gRPC to the port of HTTP":           {[]string{"otlp.protocol=grpc", "config.exporters.otlp_grpc.endpoint=" + backend.URL}, "looked like an HTTP/1.1 header"},
		"gRPC with TLS to a port without it": {[]string{"otlp.protocol=grpc", "config.exporters.otlp_grpc.endpoint=" + backend.GRPC, "config.exporters.otlp_grpc.tls.insecure=false"}, "first record does not look like a TLS handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t, strings.ReplaceAll(strings.ToLower(name), " ", "-"), nil)
			collector := start(t, nil, append([]string{"otlp.endpoint=http://gateway:4316", "namespaces={" + namespace + "}"}, test.values...)...)
			writeEvent(t, namespace)
			harness.Eventually(t, func() bool { return len(collector.Output.Lines(test.message)) > 0 }, "%q in the log", test.message)
			assert.Contains(t, harness.Read(t, "docs", "troubleshooting.md"), test.message)
		})
	}
}
