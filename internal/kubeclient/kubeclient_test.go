// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://there"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`

func TestTheEnvironmentNamesTheKubeconfig(t *testing.T) {
	directory := t.TempDir()
	good, empty, broken := filepath.Join(directory, "good"), filepath.Join(directory, "empty"), filepath.Join(directory, "broken")
	for path, content := range map[string]string{good: kubeconfig, empty: "", broken: "clusters: [{"} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	home := clientcmd.RecommendedHomeFile
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	clientcmd.RecommendedHomeFile = filepath.Join(directory, "home")
	t.Setenv("HOME", directory) // where older versions kept it
	list := func(paths ...string) string { return strings.Join(paths, string(os.PathListSeparator)) }
	missing, another := filepath.Join(directory, "missing"), filepath.Join(directory, "another")
	noFile := []string{"kubeconfig: the environment variable KUBECONFIG names", "there is no such file; set kubeconfig or KUBECONFIG to one that exists", "auth_type: serviceAccount in a pod"}

	tests := map[string]struct {
		environment, context string
		want                 []string // nothing: it works
	}{
		"a file":                        {good, "", nil},
		"a missing file":                {missing, "", append(noFile, `"`+missing+`"`)},
		"a missing file, and a context": {missing, "blue", append(noFile, `"`+missing+`"`)},
		"a path for shells":             {"~/.kube/none", "", append(noFile, "; ~ is not expanded: write the whole path")},
		"only missing files":            {list(missing, another), "", append(noFile, missing, another)},
		"nothing named, nothing there": {
			"", "", []string{"kubeconfig: neither it nor the environment variable KUBECONFIG is set, and the default is", clientcmd.RecommendedHomeFile, "there is no such file; set kubeconfig or KUBECONFIG"},
		},
		"one of several is missing":       {list(missing, good), "", nil},
		"an empty entry in the list":      {list("", good), "", nil},
		"an empty file":                   {empty, "", []string{"kubeconfig: nothing is configured in", empty}},
		"an empty file and a missing one": {list(empty, missing), "", []string{"kubeconfig: nothing is configured in", empty, missing}},
		"a broken file and a missing one": {list(broken, missing), "", []string{"could not be read", broken}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.environment)
			config, err := RESTConfig(Auth{Type: AuthKubeConfig, Context: tt.context}, "test")
			if tt.want == nil {
				require.NoError(t, err)
				assert.Equal(t, "https://there", config.Host)
				return
			}
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

func TestTheKubeconfigGoesBeforeTheEnvironment(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	config, err := RESTConfig(Auth{Type: AuthKubeConfig, Kubeconfig: path}, "test")
	require.NoError(t, err)
	assert.Equal(t, "https://there", config.Host)
}

func TestAKubeconfigForShells(t *testing.T) {
	_, err := RESTConfig(Auth{Type: AuthKubeConfig, Kubeconfig: "~/.kube/config"}, "test")
	require.ErrorContains(t, err, "~ is not expanded: write the whole path")
}

// The proxy of the environment is the way to the backend. Go reads it once in a process, so the test
// looks at what the configuration itself says.
func TestTheProxyOfTheEnvironmentIsNotForTheAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(kubeconfig, "server:", `proxy-url: "http://proxy.example.com:3128", server:`, 1)), 0o600))
	for name, test := range map[string]struct {
		auth Auth
		want string // empty: none
	}{
		"a pod":                             {Auth{Type: AuthNone}, ""},
		"a kubeconfig that names its proxy": {Auth{Type: AuthKubeConfig, Kubeconfig: path}, "http://proxy.example.com:3128"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := RESTConfig(test.auth, "test")
			require.NoError(t, err)
			require.NotNil(t, config.Proxy, "else client-go uses that of the environment")
			request, err := http.NewRequest(http.MethodGet, config.Host, nil)
			require.NoError(t, err)
			proxy, err := config.Proxy(request)
			require.NoError(t, err)
			got := ""
			if proxy != nil {
				got = proxy.String()
			}
			assert.Equal(t, test.want, got)
		})
	}
}
