// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
)

// TestStartRefusesWhatTheUserMustFix: the message names the key, the value and the fix.
func TestStartRefusesWhatTheUserMustFix(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	broken := filepath.Join(t.TempDir(), "broken.kubeconfig")
	require.NoError(t, os.WriteFile(broken, []byte("clusters: [{"), 0o600))
	empty := filepath.Join(t.TempDir(), "empty.kubeconfig")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))

	for name, test := range map[string]struct {
		config string
		parts  []string
	}{
		"a kubeconfig that is not there":   {"kubeconfig: /no/such/file", []string{"kubeconfig", `"/no/such/file"`, "set kubeconfig"}},
		"a kubeconfig that is none":        {"kubeconfig: " + broken, []string{"kubeconfig", broken, "set kubeconfig"}},
		"a kubeconfig that is empty":       {"kubeconfig: " + empty, []string{"kubeconfig", empty, "set kubeconfig"}},
		"no kubeconfig in any usual place": {`kubeconfig: ""`, []string{"kubeconfig", "set kubeconfig"}},
		"a context that is not there":      {"context: elsewhere", []string{"context", `"elsewhere"`, "set kubeconfig and context"}},
		"a service account outside a pod":  {"{auth_type: serviceAccount, kubeconfig: ''}", []string{"auth_type", "serviceAccount", "kubeConfig"}},
		"no credentials and no API server": {"{auth_type: none, kubeconfig: ''}", []string{"auth_type", "none", "KUBERNETES_SERVICE_HOST"}},
	} {
		t.Run(name, func(t *testing.T) {
			settings := receivertest.NewNopSettings(kubeevents.NewFactory().Type())
			instances := instantiate(t, settings, kube.parse(t, test.config), consumertest.NewNop(), consumertest.NewNop())
			for _, instance := range instances {
				err := instance.Start(t.Context(), &statusHost{})
				require.Error(t, err)
				for _, part := range test.parts {
					assert.ErrorContains(t, err, part)
				}
			}
			for _, instance := range instances {
				assert.NoError(t, instance.Shutdown(context.Background()))
			}
		})
	}
}

// TestTheUsualLoadingRules: KUBECONFIG where no path is given, and a context other than the current
// one.
func TestTheUsualLoadingRules(t *testing.T) {
	config, err := clientcmd.LoadFromFile(kube.Kubeconfig())
	require.NoError(t, err)
	config.Contexts["right"] = config.Contexts[config.CurrentContext]
	config.Clusters["nowhere"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["wrong"] = &clientcmdapi.Context{Cluster: "nowhere"}
	config.CurrentContext = "wrong"
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, clientcmd.WriteToFile(*config, path))

	t.Setenv("KUBECONFIG", path)
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns), `kubeconfig: ""`, "context: right")
	r.fence(t, ns)
}

// TestWithoutCredentials: as through kubectl proxy, which has them.
func TestWithoutCredentials(t *testing.T) {
	config, err := clientcmd.LoadFromFile(kube.Kubeconfig())
	require.NoError(t, err)
	target := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	forward, token := forwardTo(t, target), kube.RESTConfig().BearerToken
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"))
		r.Header.Set("Authorization", "Bearer "+token)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	address, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", "http://"+address.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", address.Port())

	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns), "auth_type: none", `kubeconfig: ""`)
	r.fence(t, ns)
}
