// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://there"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`

func TestTheEnvironmentNamesTheKubeconfig(t *testing.T) {
	directory := t.TempDir()
	good, empty, broken, text := filepath.Join(directory, "good"), filepath.Join(directory, "empty"), filepath.Join(directory, "broken"), filepath.Join(directory, "text")
	for path, content := range map[string]string{good: kubeconfig, empty: "", broken: "clusters: [{", text: "Not found"} {
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
		"a file with something else":      {text, "", []string{`"` + text + `" could not be read as a kubeconfig: `, "kubectl config view --raw"}},
		"a folder":                        {directory, "", []string{`"` + directory + `" could not be read as a kubeconfig: `, "set kubeconfig to a file that the Collector may read"}},
		"a broken file and a missing one": {list(broken, missing), "", []string{"could not be read as a kubeconfig: ", broken}},
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

func TestOptionsThatCannotBeMeant(t *testing.T) {
	for name, tt := range map[string]struct {
		auth Auth
		want string // a part of the error; empty: there is none
	}{
		"the defaults":                        {Auth{Type: AuthServiceAccount, QPS: 50, Burst: 100}, ""},
		"no limit":                            {Auth{Type: AuthServiceAccount, QPS: -1, Burst: 1}, ""},
		"a rate of 0":                         {Auth{Type: AuthServiceAccount, Burst: 1}, "kube_api_qps: 0 is not a valid rate"},
		"a negative rate":                     {Auth{Type: AuthServiceAccount, QPS: -2, Burst: 1}, "kube_api_qps: -2 is not a valid rate"},
		"a rate that is no number":            {Auth{Type: AuthServiceAccount, QPS: float32(math.NaN()), Burst: 1}, "kube_api_qps: NaN is not a valid rate"},
		"no burst":                            {Auth{Type: AuthServiceAccount, QPS: 50}, "kube_api_burst"},
		"an unknown type":                     {Auth{Type: "token", QPS: 50, Burst: 1}, "auth_type"},
		"a kubeconfig":                        {Auth{Type: AuthKubeConfig, Kubeconfig: "/config", Context: "blue", QPS: 50, Burst: 1}, ""},
		"a kubeconfig that nobody reads":      {Auth{Type: AuthNone, Kubeconfig: "/config", QPS: 50, Burst: 1}, `kubeconfig: "/config" has no effect with auth_type: none`},
		"a context of a kubeconfig of nobody": {Auth{Type: AuthServiceAccount, Context: "blue", QPS: 50, Burst: 1}, `context: "blue" has no effect with auth_type: serviceAccount`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.auth.Check(); tt.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tt.want)
			}
		})
	}
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

func TestEachAuthTypeHasItsAPIServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	for name, test := range map[string]struct {
		auth       Auth
		host, port string // of the environment
		want       string // the address, or a part of the error
	}{
		"none":                             {Auth{Type: AuthNone}, "192.0.2.1", "443", "https://192.0.2.1:443"},
		"none, IPv6":                       {Auth{Type: AuthNone}, "2001:db8::1", "443", "https://[2001:db8::1]:443"},
		"none, kubectl proxy":              {Auth{Type: AuthNone}, "http://127.0.0.1", "8001", "http://127.0.0.1:8001"},
		"none, without a host":             {Auth{Type: AuthNone}, "", "443", "outside a cluster set auth_type: kubeConfig"},
		"none, without a port":             {Auth{Type: AuthNone}, "192.0.2.1", "", "outside a cluster set auth_type: kubeConfig"},
		"a kubeconfig":                     {Auth{Type: AuthKubeConfig, Kubeconfig: path}, "192.0.2.1", "443", "https://there"},
		"a kubeconfig without the context": {Auth{Type: AuthKubeConfig, Kubeconfig: path, Context: "blue"}, "", "", `context "blue"`},
		"no pod":                           {Auth{Type: AuthServiceAccount}, "", "", "auth_type: serviceAccount works only in a pod"},
		"an unknown one":                   {Auth{Type: "token", Kubeconfig: path}, "192.0.2.1", "443", `auth_type: "token" is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", test.host)
			t.Setenv("KUBERNETES_SERVICE_PORT", test.port)
			config, err := RESTConfig(test.auth, "1.2.3")
			if err != nil {
				require.ErrorContains(t, err, test.want)
				return
			}
			assert.Equal(t, test.want, config.Host)
			assert.Contains(t, config.UserAgent, "kube-events-receiver/1.2.3 ")
			assert.Equal(t, protobuf, config.ContentType)
			assert.Equal(t, protobuf+","+json, config.AcceptContentTypes)
			assert.NotNil(t, config.Dial)
			_, err = Events(config)
			assert.NoError(t, err, "it needs no file that only a pod has")
		})
	}
	_, err := RESTConfig(Auth{Type: AuthKubeConfig, Kubeconfig: filepath.Join(t.TempDir(), "missing")}, "")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "~", "its fix is for another path")
}

// answer is an API server, or something before it, that always gives this answer.
type answer struct {
	status      int
	contentType string
	body        string
}

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {a.contentType}},
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func TestAnAnswerThatIsNotOfAnAPIServer(t *testing.T) {
	const (
		namespace = `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "uid"}}`
		another   = "not from a Kubernetes API server"
	)
	for name, test := range map[string]struct {
		host     string
		answer   answer
		uid, err string
	}{
		"JSON":                      {"https://there", answer{http.StatusOK, "application/json; charset=utf-8", namespace}, "uid", ""},
		"a page":                    {"https://there", answer{http.StatusOK, "text/html", namespace}, "", another},
		"no content type":           {"https://there", answer{http.StatusOK, "", namespace}, "", another},
		"a page that is an error":   {"https://there", answer{http.StatusBadGateway, "text/html", "<html>"}, "", "an error on the server"},
		"http:// for a port of TLS": {"http://there", answer{http.StatusBadRequest, "", "no TLS"}, "", "the address begins with http://; use https:// for a port with TLS"},
		"a bad request over http":   {"http://there", answer{http.StatusBadRequest, "application/json", "{}"}, "", ""},
		"a bad request over https":  {"https://there", answer{http.StatusBadRequest, "", ""}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := &rest.Config{Host: test.host, Transport: test.answer}
			client, err := Events(config)
			require.NoError(t, err)
			assert.Nil(t, config.GroupVersion, "others use the configuration, too")
			uid, err := ClusterUID(t.Context(), client, zap.NewNop())
			assert.Equal(t, test.uid, uid)
			if test.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.err)
			}
		})
	}
}

// unreachable is an API server to which no connection can be opened.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

func TestAnAPIServerThatCannotBeReached(t *testing.T) {
	client, err := Events(&rest.Config{Host: "https://there", Transport: unreachable{}})
	require.NoError(t, err)
	_, err = ClusterUID(t.Context(), client, zap.NewNop())
	assert.ErrorContains(t, err, "connection refused")
}

func TestAClusterWithoutItsUIDIsLoggedUnlessItIsForbidden(t *testing.T) {
	for status, want := range map[int]int{http.StatusForbidden: 0, http.StatusNotFound: 1, http.StatusBadRequest: 1} {
		core, logs := observer.New(zap.WarnLevel)
		client, err := Events(&rest.Config{Host: "https://there", Transport: answer{status: status, contentType: json, body: "{}"}})
		require.NoError(t, err)
		assert.Nil(t, client.GetRateLimiter(), "a stream does not wait for lookups")
		uid, err := ClusterUID(t.Context(), client, zap.New(core))
		require.NoError(t, err)
		assert.Empty(t, uid)
		assert.Equal(t, want, logs.Len(), status)
	}
}
