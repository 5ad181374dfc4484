// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver/discovery"
)

// Kind is a kind of objects that the server serves.
type Kind struct {
	Group          string
	Versions       []string // the preferred one first
	Kind, Resource string
	Namespaced     bool
	NoUIDs         bool     // its objects have none, as those of many aggregated API servers
	Verbs          []string // nil: those of Kubernetes' own kinds
}

func (k Kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// builtIn are the kinds of a new server.
var builtIn = []Kind{
	{"", []string{"v1"}, "ConfigMap", "configmaps", true, false, nil},
	{"", []string{"v1"}, "Event", "events", true, false, nil},
	{"", []string{"v1"}, "Namespace", "namespaces", false, false, nil},
	{"", []string{"v1"}, "Node", "nodes", false, false, nil},
	{"", []string{"v1"}, "Pod", "pods", true, false, nil},
	{"", []string{"v1"}, "Service", "services", true, false, nil},
	{"apps", []string{"v1"}, "DaemonSet", "daemonsets", true, false, nil},
	{"apps", []string{"v1"}, "Deployment", "deployments", true, false, nil},
	{"apps", []string{"v1"}, "ReplicaSet", "replicasets", true, false, nil},
	{"apps", []string{"v1"}, "StatefulSet", "statefulsets", true, false, nil},
	{"batch", []string{"v1"}, "CronJob", "cronjobs", true, false, nil},
	{"batch", []string{"v1"}, "Job", "jobs", true, false, nil},
	{"coordination.k8s.io", []string{"v1"}, "Lease", "leases", true, false, nil},
}

func isBuiltIn(group string) bool {
	return slices.ContainsFunc(builtIn, func(kind Kind) bool { return kind.Group == group })
}

var (
	eventsResource     = schema.GroupResource{Resource: "events"}
	namespacesResource = schema.GroupResource{Resource: "namespaces"}
	leasesResource     = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

// discover answers with a document about what is served.
func (s *Server) discover(c *call) error {
	s.mu.Lock()
	documents := catalogue(s.kinds())
	for i := range documents {
		documents[i].Stale = s.stale[documents[i].Group]
	}
	s.mu.Unlock()
	form := discovery.V2
	if s.options.OldDiscovery {
		form = discovery.V2Beta1
	}
	switch documents.Serve(c.w, c.http, form) {
	case discovery.NotFound:
		return errNoSuchPath
	case discovery.NotAcceptable:
		return errNotAcceptable
	case discovery.Unavailable:
		return errStale
	}
	return nil
}

// catalogue returns the versions of the kinds, in the order of the kinds.
func catalogue(kinds []Kind) (all discovery.Catalogue) {
	for _, k := range kinds {
		for _, version := range k.Versions {
			gv := schema.GroupVersion{Group: k.Group, Version: version}
			isIt := func(known discovery.Version) bool { return known.GroupVersion == gv }
			if !slices.ContainsFunc(all, isIt) {
				all = append(all, discovery.Version{GroupVersion: gv, Resources: resources(kinds, gv)})
			}
		}
	}
	return all
}

// resources returns the resources of a version with their subresources.
func resources(kinds []Kind, gv schema.GroupVersion) (all []metav1.APIResource) {
	for _, k := range kinds {
		if k.Group != gv.Group || !slices.Contains(k.Versions, gv.Version) {
			continue
		}
		resource := metav1.APIResource{Name: k.Resource, SingularName: strings.ToLower(k.Kind),
			Namespaced: k.Namespaced, Kind: k.Kind}
		resource.Verbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
		if k.Verbs != nil {
			resource.Verbs = k.Verbs
		}
		all = append(all, resource)
		if !slices.Contains([]string{"configmaps", "events", "leases"}, k.Resource) {
			resource.Name, resource.SingularName = k.Resource+"/status", ""
			resource.Verbs = []string{"get", "patch", "update"}
			all = append(all, resource)
		}
	}
	return all
}
