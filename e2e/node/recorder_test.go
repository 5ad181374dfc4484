// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// recorder keeps every state of every event in a cluster, and the objects that the events are
// about. It asks for the objects immediately: they may not exist when the situation ends.
type recorder struct {
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	objects metadata.Interface

	mu     sync.Mutex
	states []corev1.Event
	chains map[corev1.ObjectReference][]metav1.PartialObjectMetadata
}

// startRecorder starts a recorder that ends with the test.
func startRecorder(t *testing.T, c *harness.Cluster) *recorder {
	t.Helper()
	objects, err := metadata.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	r := &recorder{
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Discovery())),
		objects: objects,
		chains:  map[corev1.ObjectReference][]metav1.PartialObjectMetadata{},
	}
	existing, err := c.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, existing.ResourceVersion,
		cache.NewListWatchFromClient(c.CoreV1().RESTClient(), "events", "", fields.Everything()))
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for change := range watcher.ResultChan() {
			if event, ok := change.Object.(*corev1.Event); ok {
				r.keep(ctx, event)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *recorder) keep(ctx context.Context, event *corev1.Event) {
	chain := r.climb(ctx, event.InvolvedObject)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, *event)
	if about := identity(event.InvolvedObject); len(chain) > len(r.chains[about]) {
		r.chains[about] = chain
	}
}

// identity is what a reference says about which object it is.
func identity(ref corev1.ObjectReference) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
}

// climb returns the object and its owners, as far as they exist.
func (r *recorder) climb(ctx context.Context, ref corev1.ObjectReference) (chain []metav1.PartialObjectMetadata) {
	kind, name := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Name
	for {
		object, err := r.get(ctx, kind, ref.Namespace, name)
		if err != nil {
			return chain
		}
		chain = append(chain, trim(object))
		owner := metav1.GetControllerOf(object)
		if owner == nil {
			return chain
		}
		kind, name = schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), owner.Name
	}
}

// get returns an object with its kind in the API version that the API server prefers.
func (r *recorder) get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	mapping, err := r.mapper.RESTMapping(kind.GroupKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != "namespace" {
		namespace = ""
	}
	object, err := r.objects.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		object.SetGroupVersionKind(mapping.GroupVersionKind)
	}
	return object, err
}

// What the receiver reads of an object in addition to its owners: the label that it extracts by
// default, and the annotation that tells which static pod a pod is the mirror of.
const (
	tiltLabel        = "tilt-manifest"
	mirrorAnnotation = corev1.MirrorPodAnnotationKey
)

// trim returns what the receiver reads of an object.
func trim(o *metav1.PartialObjectMetadata) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, OwnerReferences: o.OwnerReferences,
		Labels: only(o.Labels, tiltLabel), Annotations: only(o.Annotations, mirrorAnnotation),
	}}
}

// only returns a map without any other keys.
func only(values map[string]string, key string) map[string]string {
	if value, ok := values[key]; ok {
		return map[string]string{key: value}
	}
	return nil
}

// now returns how many states there are.
func (r *recorder) now() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.states)
}

// find returns the states of one event, up to the one that is wanted. It returns none if that one
// does not exist yet.
func (r *recorder) find(w want, namespace string, since int) []corev1.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string][]corev1.Event{}
	for _, state := range r.states[since:] {
		if !w.matches(&state, namespace) {
			continue
		}
		uid := string(state.UID)
		found[uid] = append(found[uid], state)
		if account.Occurrences(&state) >= int64(cmp.Or(w.times, 1)) {
			return found[uid]
		}
	}
	return nil
}

// reasons describes the states, for a test that fails.
func (r *recorder) reasons(namespace string, since int) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, state := range r.states[since:] {
		if state.Namespace == namespace || state.InvolvedObject.Kind == "Node" {
			found = append(found, describe(&state))
		}
	}
	return slices.Compact(found)
}

// chainOf returns the object that an event is about, and its owners.
func (r *recorder) chainOf(event *corev1.Event) []metav1.PartialObjectMetadata {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.chains[identity(event.InvolvedObject)]
}
