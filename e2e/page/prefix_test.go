// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
)

// testPrefixes is about proxies that serve the page under a path.
func testPrefixes(t *testing.T, b *browser, address string) {
	t.Run("an Ingress that removes the prefix", func(t *testing.T) {
		testUnderPrefix(t, b, proxyServer(t, "/events", http.StripPrefix("/events", proxyTo(t, "http://"+address, nil)))+"/events/")
	})
	t.Run("an Ingress that keeps the prefix", func(t *testing.T) {
		testUnderPrefix(t, b, proxyServer(t, "/tools/events", proxyTo(t, "http://"+address, nil))+"/tools/events/")
	})
	t.Run("an Ingress that keeps the prefix, without the last slash", func(t *testing.T) {
		testUnderPrefix(t, b, proxyServer(t, "/tools/events", proxyTo(t, "http://"+address, nil))+"/tools/events")
	})
	t.Run("kubectl proxy", func(t *testing.T) {
		testUnderPrefix(t, b, kubectlProxy(t)+servicePath(t, addressInCluster(t)))
	})
}

// testUnderPrefix checks that the page has its style, follows along, and keeps the prefix.
func testUnderPrefix(t *testing.T, b *browser, url string) {
	b.open(t, url)
	directory := strings.TrimSuffix(value[string](t, b, `location.origin + location.pathname`), "/")
	assert.Equal(t, strings.TrimSuffix(url, "/"), directory)
	assert.NotEqual(t, "disc", value[string](t, b, `getComputedStyle(document.querySelector(".tree")).listStyleType`), "the page has its style")
	typeName("stuck")(t, b)
	b.awaitSelection(t, "?name=stuck")
	follow("stuck")(t, b)
	b.await(t, `location.search.includes("workload=") && !document.querySelector("[aria-busy]")`)
	assert.Equal(t, []string{"deployment stuck"}, b.texts(t, "h3"))
	assert.Equal(t, directory+"/", value[string](t, b, `location.origin + location.pathname`))
	follow("Kubernetes events")(t, b)
	b.awaitSelection(t, "")
	assert.Contains(t, b.texts(t, "h3"), "deployment shop")
	assert.Equal(t, directory+"/", value[string](t, b, `location.origin + location.pathname`))
}

// proxyServer serves only what is under a prefix.
func proxyServer(t *testing.T, prefix string, handler http.Handler) (origin string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", handler)
	mux.Handle(prefix, handler)
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections() // those that updates use
		server.Close()
	})
	return server.URL
}

func proxyTo(t *testing.T, origin string, transport http.RoundTripper) http.Handler {
	t.Helper()
	to, err := url.Parse(origin)
	require.NoError(t, err)
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}

// kubectlProxy passes requests to the API server with the credentials of an administrator, as
// kubectl proxy does.
func kubectlProxy(t *testing.T) (origin string) {
	t.Helper()
	transport, err := rest.TransportFor(kube.RESTConfig())
	require.NoError(t, err)
	return proxyServer(t, "", proxyTo(t, kube.RESTConfig().Host, transport))
}

// addressInCluster serves the page at an address that a Service can have: not one of the loopback
// interface.
func addressInCluster(t *testing.T) netip.AddrPort {
	t.Helper()
	free, err := proc.FreeAddresses(1)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free[0])
	require.NoError(t, err)
	interfaces, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, each := range interfaces {
		prefix, err := netip.ParsePrefix(each.String())
		if err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast() {
			address := netip.MustParseAddrPort(net.JoinHostPort(prefix.Addr().String(), port))
			serve(t, address.String())
			return address
		}
	}
	t.Skip("the machine has only a loopback interface")
	return netip.AddrPort{}
}

// servicePath makes a Service for the page, and returns its path at the API server.
func servicePath(t *testing.T, page netip.AddrPort) string {
	t.Helper()
	const name, port = "events", "page"
	number := int32(page.Port())
	_, err := kube.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: port, Port: number}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = kube.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{page.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(port), Port: &number}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	path := fmt.Sprintf("/api/v1/namespaces/default/services/%s:%s/proxy/", name, port)
	harness.Eventually(t, func() bool {
		result := kube.CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context())
		var status int
		return result.StatusCode(&status).Error() == nil && status == http.StatusOK
	}, "the Service at port %s", strconv.Itoa(int(number)))
	return path
}
