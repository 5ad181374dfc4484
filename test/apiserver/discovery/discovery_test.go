// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

var verbs = metav1.Verbs{"get", "list"}

func served() Catalogue {
	return Catalogue{
		{GroupVersion: schema.GroupVersion{Version: "v1"}, Resources: []metav1.APIResource{
			{Name: "nodes", Kind: "Node", Verbs: verbs},
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: verbs},
			{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: verbs},
		}},
		{GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"},
			Resources: []metav1.APIResource{{Name: "things", Kind: "Thing", Verbs: verbs}}},
		{GroupVersion: schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}, Stale: true},
	}
}

// ask requests a path. The form is that of the server.
func ask(path, accept, etag string, form Aggregated) (int, *httptest.ResponseRecorder) {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept", accept)
	request.Header.Set("If-None-Match", etag)
	recorder := httptest.NewRecorder()
	return served().Serve(recorder, request, form), recorder
}

const all = discovery.AcceptV2 + "," + discovery.AcceptV2Beta1 + "," + discovery.AcceptV1

func TestTheFormThatClientAndServerHave(t *testing.T) {
	const ofJSON = "application/json"
	for name, test := range map[string]struct {
		path, accept string
		form         Aggregated
		want         string
	}{
		"v2":                                {"/apis", all, V2, discovery.AcceptV2},
		"v2, of core":                       {"/api", all, V2, discovery.AcceptV2},
		"v2beta1":                           {"/apis", all, V2Beta1, discovery.AcceptV2Beta1},
		"v2beta1, for a client of 1.29":     {"/api", discovery.AcceptV2Beta1, V2Beta1, discovery.AcceptV2Beta1},
		"none":                              {"/apis", all, None, ofJSON},
		"a client that does not ask for it": {"/apis", ofJSON, V2, ofJSON},
		"a part is not aggregated":          {"/apis/example.com", all, V2, ofJSON},
	} {
		t.Run(name, func(t *testing.T) {
			status, recorder := ask(test.path, test.accept, "", test.form)
			assert.Zero(t, status)
			assert.Equal(t, test.want, recorder.Header().Get("Content-Type"))
			var document metav1.TypeMeta
			require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &document))
			assert.Equal(t, test.want != ofJSON, document.Kind == "APIGroupDiscoveryList")
			if test.want != ofJSON {
				assert.Equal(t, "apidiscovery.k8s.io/"+string(test.form), document.APIVersion)
			}
		})
	}
}

func TestAClientThatHasTheDocumentGetsNone(t *testing.T) {
	for _, path := range []string{"/api", "/apis"} {
		_, first := ask(path, all, "", V2)
		etag := first.Header().Get("ETag")
		assert.Regexp(t, `^"[0-9A-F]{128}"$`, etag)
		_, again := ask(path, all, etag, V2)
		assert.Equal(t, http.StatusNotModified, again.Code)
		assert.Empty(t, again.Body.String())
		assert.Equal(t, etag, again.Header().Get("ETag"))
		_, other := ask(path, all, `"other"`, V2)
		assert.Equal(t, http.StatusOK, other.Code)
		_, plain := ask(path, "application/json", "", V2)
		assert.Empty(t, plain.Header().Get("ETag"), "only aggregated documents have one")
	}
}

func TestAggregatedResources(t *testing.T) {
	read := func(path string) (list apidiscoveryv2.APIGroupDiscoveryList) {
		_, recorder := ask(path, all, "", V2)
		require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &list))
		return list
	}
	core := read("/api").Items
	require.Len(t, core, 1)
	pods := core[0].Versions[0].Resources[1]
	assert.Equal(t, apidiscoveryv2.ScopeNamespace, pods.Scope)
	assert.Equal(t, &metav1.GroupVersionKind{Kind: "Pod"}, pods.ResponseKind)
	require.Len(t, pods.Subresources, 1)
	assert.Equal(t, "status", pods.Subresources[0].Subresource)

	others := read("/apis").Items
	require.Len(t, others, 2)
	assert.Equal(t, &metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
		others[0].Versions[0].Resources[0].ResponseKind)
	assert.Equal(t, apidiscoveryv2.DiscoveryFreshnessCurrent, others[0].Versions[0].Freshness)
	assert.Equal(t, apidiscoveryv2.DiscoveryFreshnessStale, others[1].Versions[0].Freshness)
	assert.Empty(t, others[1].Versions[0].Resources)
}

func TestWhatIsNotServed(t *testing.T) {
	for _, test := range []struct {
		path, accept string
		want         int
	}{
		{"/apis/nosuch.example.com", "application/json", NotFound},
		{"/apis/example.com/v2", "application/json", NotFound},
		{"/api/v2", "application/json", NotFound},
		{"/api/example.com/v1", "application/json", NotFound},
		{"/apis/metrics.k8s.io/v1beta1", "application/json", Unavailable},
		{"/apis", "application/vnd.kubernetes.protobuf", NotAcceptable},
		{"/apis", "application/json;g=apidiscovery.k8s.io;v=v1;as=APIGroupDiscoveryList", NotAcceptable},
	} {
		status, recorder := ask(test.path, test.accept, "", V2)
		assert.Equal(t, test.want, status, test.path)
		assert.Empty(t, recorder.Body.String())
	}
}

// client-go's own client reads all forms.
func TestClientGoReadsTheDocuments(t *testing.T) {
	for _, form := range []Aggregated{V2, V2Beta1, None} {
		t.Run("form "+string(form), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if status := served().Serve(w, r, form); status != 0 {
					w.WriteHeader(status)
				}
			}))
			defer server.Close()
			client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1})
			groups, resources, err := client.ServerGroupsAndResources()
			assert.True(t, discovery.IsGroupDiscoveryFailedError(err), "metrics.k8s.io is stale: %v", err)
			assert.Len(t, groups, 3)
			names := map[string]string{}
			for _, list := range resources {
				for _, r := range list.APIResources {
					names[list.GroupVersion+"/"+r.Name] = r.Kind
				}
			}
			assert.Equal(t, map[string]string{"v1/nodes": "Node", "v1/pods": "Pod", "v1/pods/status": "Pod",
				"example.com/v1/things": "Thing"}, names)
		})
	}
}
