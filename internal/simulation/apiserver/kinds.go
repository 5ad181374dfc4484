// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Kind is a kind of objects that the server serves.
type Kind struct {
	Group          string
	Versions       []string // the preferred one first
	Kind, Resource string
	Namespaced     bool
}

func (k Kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// builtIn are the kinds of a new server.
var builtIn = []Kind{
	{"", []string{"v1"}, "ConfigMap", "configmaps", true},
	{"", []string{"v1"}, "Event", "events", true},
	{"", []string{"v1"}, "Namespace", "namespaces", false},
	{"", []string{"v1"}, "Node", "nodes", false},
	{"", []string{"v1"}, "Pod", "pods", true},
	{"", []string{"v1"}, "Service", "services", true},
	{"apps", []string{"v1"}, "DaemonSet", "daemonsets", true},
	{"apps", []string{"v1"}, "Deployment", "deployments", true},
	{"apps", []string{"v1"}, "ReplicaSet", "replicasets", true},
	{"apps", []string{"v1"}, "StatefulSet", "statefulsets", true},
	{"batch", []string{"v1"}, "CronJob", "cronjobs", true},
	{"batch", []string{"v1"}, "Job", "jobs", true},
	{"coordination.k8s.io", []string{"v1"}, "Lease", "leases", true},
}

// isBuiltIn reports whether a path is one of a group that a new server has.
func isBuiltIn(path []string) bool {
	inGroup := func(kind Kind) bool { return len(path) > 1 && path[0] == "apis" && kind.Group == path[1] }
	return path[0] == "api" || slices.ContainsFunc(builtIn, inGroup)
}

var (
	eventsResource     = schema.GroupResource{Resource: "events"}
	namespacesResource = schema.GroupResource{Resource: "namespaces"}
	leasesResource     = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

var (
	statusKind      = schema.GroupVersionKind{Version: "v1", Kind: "Status"}
	partialKind     = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	partialListKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
)

var scheme = func() *runtime.Scheme {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(known); err != nil {
			panic(err) // It registers types that are known when this is compiled.
		}
	}
	return known
}()

var codecs = serializer.NewCodecFactory(scheme)

// empty returns an object of a kind, or its metadata alone if it is not one of Kubernetes' own.
func empty(gvk schema.GroupVersionKind) Object {
	if object, err := scheme.New(gvk); err == nil {
		if typed, ok := object.(Object); ok {
			return typed
		}
	}
	return &metav1.PartialObjectMetadata{}
}
