// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

const (
	discoveryGroup = "apidiscovery.k8s.io"
	discoveryKind  = "APIGroupDiscoveryList"
)

// discover answers with an aggregated document, and with an ETag. No client here asks for the documents
// of single groups and versions.
func (s *Server) discover(c *call) error {
	// Kubernetes 1.27 to 1.29 serve only v2beta1. The fields are the same.
	version := "v2"
	if s.options.OldDiscovery {
		version = "v2beta1"
	}
	switch {
	case c.path != "api" && c.path != "apis":
		return errNoSuchPath
	case !acceptsDiscovery(c.http, version):
		return errNotAcceptable
	}
	s.mu.Lock()
	list := apidiscoveryv2.APIGroupDiscoveryList{Items: s.discovered(c.path == "api")}
	s.mu.Unlock()
	content := must(json.Marshal(list))
	etag := strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(content)))
	header := c.w.Header()
	header.Set("ETag", etag)
	header.Set("Vary", "Accept")
	header.Set("Cache-Control", "public")
	if c.http.Header.Get("If-None-Match") == etag {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	list.Kind, list.APIVersion = discoveryKind, discoveryGroup+"/"+version
	contentType := fmt.Sprintf("application/json;g=%s;v=%s;as=%s", discoveryGroup, version, discoveryKind)
	c.sendJSON(http.StatusOK, contentType, list)
	return nil
}

func acceptsDiscovery(r *http.Request, version string) bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		_, parameters, _ := mime.ParseMediaType(accepted)
		if parameters["as"] == discoveryKind && parameters["g"] == discoveryGroup && parameters["v"] == version {
			return true
		}
	}
	return false
}

// discovered returns the core group, or all others, with what they serve. Of a stale group, the
// resources are not known. Callers must hold the lock.
func (s *Server) discovered(core bool) (groups []apidiscoveryv2.APIGroupDiscovery) {
	for _, k := range s.kinds() {
		if core != (k.Group == "") {
			continue
		}
		i := slices.IndexFunc(groups, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == k.Group })
		if i < 0 {
			i = len(groups)
			groups = append(groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: k.Group}})
		}
		for _, version := range k.Versions {
			served := versionOf(&groups[i], version)
			if s.stale[k.Group] {
				served.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			} else {
				served.Resources = append(served.Resources, k.discovered(version))
			}
		}
	}
	return groups
}

// versionOf returns a version of the group, which may be a new one.
func versionOf(group *apidiscoveryv2.APIGroupDiscovery, version string) *apidiscoveryv2.APIVersionDiscovery {
	isIt := func(known apidiscoveryv2.APIVersionDiscovery) bool { return known.Version == version }
	i := slices.IndexFunc(group.Versions, isIt)
	if i < 0 {
		i = len(group.Versions)
		group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{
			Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
		})
	}
	return &group.Versions[i]
}

// discovered returns what discovery reports about the kind. kube-apiserver names the group and the
// version of a kind only for custom resources: elsewhere, both are those of the document around it.
func (k Kind) discovered(version string) apidiscoveryv2.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Kind: k.Kind}
	if strings.Contains(k.Group, ".") && !strings.HasSuffix(k.Group, ".k8s.io") {
		kind.Group, kind.Version = k.Group, version
	}
	resource := apidiscoveryv2.APIResourceDiscovery{
		Resource: k.Resource, SingularResource: strings.ToLower(k.Kind), Scope: apidiscoveryv2.ScopeCluster,
		Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}, ResponseKind: kind,
	}
	if k.Namespaced {
		resource.Scope = apidiscoveryv2.ScopeNamespace
	}
	if k.Verbs != nil {
		resource.Verbs = k.Verbs
	}
	if !slices.Contains([]string{"configmaps", "events", "leases"}, k.Resource) {
		resource.Subresources = []apidiscoveryv2.APISubresourceDiscovery{
			{Subresource: "status", Verbs: []string{"get", "patch", "update"}, ResponseKind: kind},
		}
	}
	return resource
}
