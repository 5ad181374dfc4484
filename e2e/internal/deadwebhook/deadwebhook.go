// SPDX-License-Identifier: Apache-2.0

// Package deadwebhook makes kinds of custom resources that an API server cannot convert: their
// conversion webhook is dead. Such objects can be created and read in the version in which they are
// stored, and in no other.
package deadwebhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// Silent is a webhook that accepts connections and never answers.
type Silent struct {
	URL string

	listener net.Listener
	accepted sync.WaitGroup
}

// StartSilent begins to accept connections.
func StartSilent() (*Silent, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Silent{URL: "https://" + listener.Addr().String() + "/convert", listener: listener}
	s.accepted.Go(s.accept)
	return s, nil
}

// accept keeps the connections until the end, so that clients wait until then.
func (s *Silent) accept() {
	var connections []net.Conn
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			break
		}
		connections = append(connections, connection)
	}
	for _, connection := range connections {
		_ = connection.Close()
	}
}

// Close breaks all connections.
func (s *Silent) Close() error {
	err := s.listener.Close()
	s.accepted.Wait()
	return err
}

// Kind is a kind of custom resources with two versions: v2, in which objects are stored, and v1.
type Kind struct {
	Group string

	client dynamic.Interface
}

// Name is the name of every such kind; they differ in their groups.
const Name = "Release"

const plural = "releases"

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Define makes a kind whose objects a webhook at the URL converts, and waits until the API server
// serves it.
func Define(ctx context.Context, client dynamic.Interface, group, url string) (*Kind, error) {
	k := &Kind{Group: group, client: client}
	if _, err := client.Resource(definitions).Create(ctx, definition(group, url), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("define the kind %s in %s: %w", Name, group, err)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = k.stored("default").List(ctx, metav1.ListOptions{})
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the kind %s in %s is not served: %w", Name, group, errors.Join(err, last))
	}
	return k, nil
}

func definition(group, url string) *unstructured.Unstructured {
	version := func(name string, storage bool) any {
		return map[string]any{
			"name": name, "served": true, "storage": storage,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"kind": Name, "plural": plural},
			"versions": []any{version("v1", false), version("v2", true)},
			"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig": map[string]any{"url": url}, "conversionReviewVersions": []any{"v1"},
			}},
		},
	}}
}

// Create makes an object. It returns the object as an owner reference to the version v1 describes
// it, which cannot be read.
func (k *Kind) Create(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.Group + "/v2", "kind": Name}}
	object.SetName(name)
	created, err := k.stored(namespace).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	created.SetAPIVersion(k.Group + "/v1")
	return created, nil
}

// stored reads and writes the version that needs no conversion.
func (k *Kind) stored(namespace string) dynamic.ResourceInterface {
	return k.client.Resource(schema.GroupVersionResource{Group: k.Group, Version: "v2", Resource: plural}).Namespace(namespace)
}
