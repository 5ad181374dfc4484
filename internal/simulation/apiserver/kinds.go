// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
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

func isBuiltIn(group string) bool {
	return slices.ContainsFunc(builtIn, func(kind Kind) bool { return kind.Group == group })
}

var (
	eventsResource     = schema.GroupResource{Resource: "events"}
	namespacesResource = schema.GroupResource{Resource: "namespaces"}
	leasesResource     = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	statusKind         = schema.GroupVersionKind{Version: "v1", Kind: "Status"}
	partialKind        = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
)

// empty returns an object of a kind, or its metadata alone if it is not one of Kubernetes' own.
func empty(gvk schema.GroupVersionKind) Object {
	if object, err := scheme.Scheme.New(gvk); err == nil {
		return object.(Object)
	}
	return &metav1.PartialObjectMetadata{}
}
