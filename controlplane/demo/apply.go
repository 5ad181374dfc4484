// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldManager is the field manager of the demo's fields.
const fieldManager = "kube-events-demo"

// applier applies manifests by server-side apply.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	return &applier{client: client, mapper: mapper}, nil
}

// applyManifest applies the objects of a YAML file in their order.
func (a *applier) applyManifest(ctx context.Context, manifest []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := a.applyObject(ctx, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// applyObject applies one object, and retries while the API server does not serve its kind yet: a
// custom resource is applied right after its definition.
func (a *applier) applyObject(ctx context.Context, object *unstructured.Unstructured) error {
	if err := a.identifyOwners(ctx, object); err != nil {
		return err
	}
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var resource dynamic.ResourceInterface
		if resource, lastErr = a.resource(object.GroupVersionKind(), object.GetNamespace()); lastErr == nil {
			_, lastErr = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		}
		if meta.IsNoMatchError(lastErr) || apierrors.IsNotFound(lastErr) {
			a.mapper.Reset()
			return false, nil
		}
		return true, lastErr
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return lastErr
	}
	return err
}

// identifyOwners sets the uid of owners, because the manifest only has their names.
func (a *applier) identifyOwners(ctx context.Context, object *unstructured.Unstructured) error {
	owners := object.GetOwnerReferences()
	for i, owner := range owners {
		resource, err := a.resource(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), object.GetNamespace())
		if err != nil {
			return err
		}
		found, err := resource.Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		owners[i].UID = found.GetUID()
	}
	if len(owners) > 0 {
		object.SetOwnerReferences(owners)
	}
	return nil
}

func (a *applier) resource(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return a.client.Resource(mapping.Resource), nil
	}
	return a.client.Resource(mapping.Resource).Namespace(namespace), nil
}
