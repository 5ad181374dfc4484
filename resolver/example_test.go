// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// answers is a very small API server: a pod that a ReplicaSet owns.
var answers = map[string]string{
	"/api": `{"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [
		{"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced", "verbs": ["get", "list"]}]}]}]}`,
	"/apis": `{"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [
		{"resource": "replicasets", "responseKind": {"kind": "ReplicaSet"}, "scope": "Namespaced", "verbs": ["get", "list"]}]}]}]}`,

	"/api/v1/namespaces/shop/pods/fe-1-a": `{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
		"metadata": {"namespace": "shop", "name": "fe-1-a", "uid": "p1", "ownerReferences": [
			{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "fe-1", "uid": "r1", "controller": true}]}}`,
	"/apis/apps/v1/namespaces/shop/replicasets/fe-1": `{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
		"metadata": {"namespace": "shop", "name": "fe-1", "uid": "r1", "labels": {"team": "red", "other": "1"}}}`,
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, answers[r.URL.Path])
	}))
	defer server.Close()

	owners, err := resolver.New(&rest.Config{Host: server.URL, UserAgent: "example"}, resolver.Settings{
		Trim: func(meta *metav1.PartialObjectMetadata) { delete(meta.Labels, "other") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer owners.Close()

	chains := owners.Resolve(context.Background(), []resolver.Reference{
		{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "fe-1-a"},
	})
	for _, object := range chains[0].Objects {
		fmt.Println(object.GroupKind(), object.Name, object.UID, object.Labels)
	}
	fmt.Println(chains[0].Resolution, "at", chains[0].End().Name)
	// Output:
	// Pod fe-1-a p1 map[]
	// ReplicaSet.apps fe-1 r1 map[team:red]
	// complete at fe-1
}
