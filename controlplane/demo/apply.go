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
	"k8s.io/client-go/dynamic"
)

// fieldManager is the field manager of the demo's fields.
const fieldManager = "kube-events-demo"

// applier applies manifests by server-side apply.
type applier struct{ dynamic.Interface }

// applyManifest applies the objects of a YAML file in their order.
func (a applier) applyManifest(ctx context.Context, manifest []byte) error {
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
func (a applier) applyObject(ctx context.Context, object *unstructured.Unstructured) error {
	if err := a.identifyOwners(ctx, object); err != nil {
		return err
	}
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, lastErr = a.resource(object.GroupVersionKind(), object.GetNamespace()).
			Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if apierrors.IsNotFound(lastErr) {
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
func (a applier) identifyOwners(ctx context.Context, object *unstructured.Unstructured) error {
	owners := object.GetOwnerReferences()
	for i, owner := range owners {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		found, err := a.resource(kind, object.GetNamespace()).Get(ctx, owner.Name, metav1.GetOptions{})
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

// resource returns the client of a kind in a namespace, or in none.
func (a applier) resource(kind schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(kind) // It is right for the kinds of the demo.
	return a.Resource(resource).Namespace(namespace)
}
