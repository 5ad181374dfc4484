// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func aPod(namespace, name string) Object {
	return Object{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: namespace + name}
}

func TestListsOfTheWholeClusterHavePages(t *testing.T) {
	api := NewObjects(t)
	api.Put(aPod("b", "1"), aPod("a", "2"), aPod("c", "3"), aPod("a", "1"), aPod("b", "0"))
	api.Put(Object{APIVersion: "v1", Kind: "Service", Namespace: "a", Name: "0", UID: "s"})
	pods := metadata.NewForConfigOrDie(api.RESTConfig()).Resource(podResource)
	list := func(options metav1.ListOptions) (names []string, left string, next string) {
		page, err := pods.List(t.Context(), options)
		require.NoError(t, err)
		for _, item := range page.Items {
			names = append(names, item.Namespace+"/"+item.Name)
		}
		if page.RemainingItemCount != nil {
			left = fmt.Sprint(*page.RemainingItemCount)
		}
		return names, left, page.Continue
	}
	names, left, next := list(metav1.ListOptions{Limit: 2})
	assert.Equal(t, []string{"a/1", "a/2"}, names)
	assert.Equal(t, "3", left)

	api.Put(aPod("a", "0"))
	api.Remove(aPod("a", "2")) // The token names a place, and still fits.
	names, left, next = list(metav1.ListOptions{Limit: 2, Continue: next})
	assert.Equal(t, []string{"b/0", "b/1"}, names)
	assert.Equal(t, "1", left)
	names, left, next = list(metav1.ListOptions{Limit: 2, Continue: next})
	assert.Equal(t, []string{"c/3"}, names)
	assert.Empty(t, left+next)

	names, left, next = list(metav1.ListOptions{Limit: 2, ResourceVersion: "0"})
	assert.Equal(t, []string{"a/0", "a/1", "b/0", "b/1", "c/3"}, names, "the watch cache has no pages")
	assert.Empty(t, left+next)
}

func TestAnObjectOfANamespaceIsNotReadWithoutIt(t *testing.T) {
	api := NewObjects(t)
	api.Put(aPod("a", "1"))
	for path, want := range map[string]int{
		"/api/v1/pods/1":              http.StatusNotFound,
		"/api/v1/namespaces/a/pods/1": http.StatusOK,
		"/api/v1/namespaces/a":        http.StatusNotFound,
	} {
		recorder := httptest.NewRecorder()
		api.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, want, recorder.Code, path)
	}
}
