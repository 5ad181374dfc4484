// SPDX-License-Identifier: Apache-2.0

// Package kubeclient creates the client configuration and the client for events from a user's
// settings.
package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/userconfig"
)

// The ways to find the API server and to authenticate to it.
const (
	AuthServiceAccount = "serviceAccount"
	AuthKubeConfig     = "kubeConfig"
	AuthNone           = "none"
)

const (
	json     = "application/json"
	protobuf = "application/vnd.kubernetes.protobuf"
)

// Auth has the settings of the connection to the API server.
type Auth struct {
	// Type is one of the Auth constants.
	Type string `mapstructure:"auth_type"`
	// Kubeconfig is a path, with AuthKubeConfig; empty means the usual loading rules.
	Kubeconfig string `mapstructure:"kubeconfig"`
	// Context is one of the kubeconfig; empty means the current context.
	Context string `mapstructure:"context"`
	// QPS limits the lookups per second; -1: the API server limits them. Burst may exceed it at once.
	QPS   float32 `mapstructure:"kube_api_qps"`
	Burst int     `mapstructure:"kube_api_burst"`
	// Dial opens the connections. Nil means with client-go's default timeouts.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `mapstructure:"-"`
}

// Check returns what is wrong with each option, and the fix.
func (a Auth) Check() error {
	errs := userconfig.OneOf("auth_type", a.Type, AuthServiceAccount, AuthKubeConfig, AuthNone)
	if a.Type != AuthKubeConfig {
		for _, setting := range []struct{ key, value string }{{"kubeconfig", a.Kubeconfig}, {"context", a.Context}} {
			if setting.value != "" {
				errs = errors.Join(errs, fmt.Errorf("%s: %q has no effect with auth_type: %s; set auth_type: %s, or remove it",
					setting.key, setting.value, a.Type, AuthKubeConfig))
			}
		}
	}
	if a.QPS != -1 && !(a.QPS > 0) {
		errs = errors.Join(errs, fmt.Errorf("kube_api_qps: %v is not a valid rate; set a number above 0, or -1 for no client-side limit", a.QPS))
	}
	return errors.Join(errs, userconfig.Within("kube_api_burst", a.Burst, 1_000_000))
}

// RESTConfig returns the configuration for the settings. The error names what could not be read and
// how to fix it. RESTConfig does not contact the API server.
func RESTConfig(auth Auth, version string) (*rest.Config, error) {
	config, err := load(auth)
	if err != nil {
		return nil, err
	}
	config.UserAgent = fmt.Sprintf("kube-events-receiver/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
	if config.Dial = auth.Dial; config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	config.QPS, config.Burst = auth.QPS, auth.Burst
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf + "," + json
	return config, nil
}

func load(auth Auth) (*rest.Config, error) {
	switch auth.Type {
	case AuthServiceAccount:
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("auth_type: %s works only in a pod with a mounted token (%w); outside a cluster set auth_type: %s",
				AuthServiceAccount, err, AuthKubeConfig)
		}
		return direct(config), nil
	case AuthKubeConfig:
		return fromKubeconfig(auth)
	case AuthNone:
		return unauthenticated()
	default:
		return nil, fmt.Errorf("auth_type: %q is not known; use %s, %s or %s", auth.Type, AuthServiceAccount, AuthKubeConfig, AuthNone)
	}
}

// direct makes a configuration ignore the proxy of the environment: in a pod, this is the way to the
// backend, and often does not reach the API server.
func direct(config *rest.Config) *rest.Config {
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return config
}

func fromKubeconfig(auth Auth) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = auth.Kubeconfig
	path := kubeconfigPath(auth, rules)
	// If several files are named, some may be missing, but not all.
	allMissing := false
	rules.WarnIfAllMissing, rules.Warner = true, func(error) { allMissing = true }
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: auth.Context})

	// Without a file, the deferred loader would fall back to the pod's service account, which the
	// user did not choose.
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %q could not be read as a kubeconfig: %w; set kubeconfig to a file that the Collector may read, with what kubectl config view --raw prints%s", path, err, homeHint(path))
	}
	if allMissing {
		return nil, fmt.Errorf("kubeconfig: %s %q, but there is no such file; set kubeconfig or KUBECONFIG to one that exists, or auth_type: %s in a pod%s",
			pathSource(), path, AuthServiceAccount, homeHint(path))
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(raw, auth.Context, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return nil, fmt.Errorf("kubeconfig: nothing is configured in %q; set kubeconfig to a file, or auth_type: %s in a pod",
				path, AuthServiceAccount)
		}
		return nil, fmt.Errorf("kubeconfig: %q with context %q cannot be used: %w; set kubeconfig and context to an existing file and a context in it",
			path, auth.Context, err)
	}
	return config, nil
}

// pathSource returns where the path comes from if the setting kubeconfig is empty.
func pathSource() string {
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return "the environment variable KUBECONFIG names"
	}
	return "neither it nor the environment variable KUBECONFIG is set, and the default is"
}

func kubeconfigPath(auth Auth, rules *clientcmd.ClientConfigLoadingRules) string {
	if auth.Kubeconfig != "" {
		return auth.Kubeconfig
	}
	return strings.Join(rules.Precedence, string(os.PathListSeparator))
}

// homeHint returns the fix for a path that only a shell expands.
func homeHint(path string) string {
	if strings.HasPrefix(path, "~") {
		return "; ~ is not expanded: write the whole path"
	}
	return ""
}

const (
	serviceAccountCA        = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
	serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Namespace returns the namespace of the pod in which this process runs; outside a pod, default.
func Namespace() string {
	content, err := os.ReadFile(serviceAccountNamespace)
	if err != nil {
		return metav1.NamespaceDefault
	}
	return strings.TrimSpace(string(content))
}

// unauthenticated returns a configuration without credentials for the API server in the pod's
// environment. It uses a host with a scheme as it is, such as kubectl proxy's http://127.0.0.1.
func unauthenticated() (*rest.Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("auth_type: none needs KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in the environment; outside a cluster set auth_type: " + AuthKubeConfig)
	}
	if scheme, name, found := strings.Cut(host, "://"); found {
		return direct(&rest.Config{Host: scheme + "://" + net.JoinHostPort(name, port)}), nil
	}
	config := direct(&rest.Config{Host: "https://" + net.JoinHostPort(host, port)})
	if _, err := os.Stat(serviceAccountCA); err == nil {
		config.CAFile = serviceAccountCA
	}
	return config, nil
}

// Events returns a client for the core API group that knows no other types, in protobuf. It has no
// client-side rate limit: a stream sends few requests, and none of them may wait behind lookups.
func Events(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.AcceptContentTypes = protobuf + "," + json
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = event.Codecs.WithoutConversion()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return answers{next} })
	return rest.RESTClientFor(config)
}

// Close closes the connections of a client that has no requests any more. Otherwise each stays for
// another 90 seconds.
func Close(client *rest.RESTClient) { utilnet.CloseIdleConnectionsFor(client.Client.Transport) }

// answers passes on only what the Kubernetes API may have answered. A page of HTML with status 200
// comes from a proxy before it, and must not count as an answer. A port with TLS answers a request
// without TLS with status 400, and client-go would report only an unknown reason.
type answers struct{ http.RoundTripper }

func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	contentType := response.Header.Get("Content-Type")
	mediaType, _, _ := mime.ParseMediaType(contentType)
	switch isOfAPI := mediaType == protobuf || mediaType == json; {
	case !isOfAPI && response.StatusCode == http.StatusOK:
		err = fmt.Errorf("the answer has the content type %q, so it is not from a Kubernetes API server: check the address, and proxies before it", contentType)
	case !isOfAPI && response.StatusCode == http.StatusBadRequest && request.URL.Scheme == "http":
		err = errors.New("the address begins with http://; use https:// for a port with TLS")
	default:
		return response, nil
	}
	_ = response.Body.Close()
	return nil, err
}

// WrappedRoundTripper lets utilnet find the connections.
func (a answers) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }
