// SPDX-License-Identifier: Apache-2.0

// Package discovery answers requests for discovery documents as kube-apiserver does: in JSON, each
// document by itself or all of them aggregated, with an ETag. The simulated API servers of the
// tests share it.
package discovery

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

// Version is a version of a group. Its resources include subresources, such as pods/status.
type Version struct {
	schema.GroupVersion
	Resources []metav1.APIResource
	// Stale: the aggregated API server behind it does not answer.
	Stale bool
}

// Catalogue has the versions that a server serves. In each group, the preferred one is the first.
type Catalogue []Version

// Aggregated is the form of aggregated discovery that a server has.
type Aggregated string

// Kubernetes serves version v2 since 1.30. Servers from 1.30 to 1.32 also serve v2beta1, to clients
// that do not accept v2.
const (
	V2      Aggregated = "v2"
	V2Beta1 Aggregated = "v2beta1" // the only one of 1.27 to 1.29
	None    Aggregated = ""        // of 1.26 and older, which the receiver does not support
)

// The status of an answer that has no document.
const (
	NotFound      = http.StatusNotFound
	NotAcceptable = http.StatusNotAcceptable
	Unavailable   = http.StatusServiceUnavailable // of a stale version
)

const (
	group         = "apidiscovery.k8s.io"
	aggregateKind = "APIGroupDiscoveryList"
)

// Serve answers a request with a document. If there is none, it writes nothing and returns the
// status of the answer, which differs in form from server to server.
func (c Catalogue) Serve(w http.ResponseWriter, r *http.Request, form Aggregated) (status int) {
	path := strings.Trim(r.URL.Path, "/")
	isRoot := path == "api" || path == "apis"
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		mediaType, parameters, _ := mime.ParseMediaType(accepted)
		isJSON := mediaType == "application/json" || mediaType == "*/*" || mediaType == ""
		wants := Aggregated(parameters["v"])
		switch {
		case !isJSON:
		case parameters["as"] == "":
			return c.servePlain(w, path)
		case isRoot && parameters["as"] == aggregateKind && parameters["g"] == group &&
			form != None && wants == form:
			c.serveAggregated(w, r, path, form)
			return 0
		}
	}
	return NotAcceptable
}

func (c Catalogue) servePlain(w http.ResponseWriter, path string) (status int) {
	document, status := c.plain(path)
	if document != nil {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	}
	return status
}

// serveAggregated answers with a whole document, or that it is the one that the client has.
func (c Catalogue) serveAggregated(w http.ResponseWriter, r *http.Request, root string, form Aggregated) {
	list := apidiscoveryv2.APIGroupDiscoveryList{Items: c.aggregated(root == "api")}
	content, _ := json.Marshal(list) // It has only plain values.
	etag := strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(content)))
	header := w.Header()
	header.Set("ETag", etag)
	header.Set("Vary", "Accept")
	header.Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	// Both versions have the same fields.
	list.Kind, list.APIVersion = aggregateKind, group+"/"+string(form)
	header.Set("Content-Type", fmt.Sprintf("application/json;g=%s;v=%s;as=%s", group, form, aggregateKind))
	_ = json.NewEncoder(w).Encode(list)
}

// plain returns the document at a path. The core group's documents have no API version.
func (c Catalogue) plain(path string) (document any, status int) {
	switch path {
	case "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, 0
	case "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, name := range c.groups() {
			if name != "" {
				list.Groups = append(list.Groups, c.group(name))
			}
		}
		return list, 0
	}
	root, name, _ := strings.Cut(path, "/")
	if root == "apis" && name != "" && slices.Contains(c.groups(), name) {
		document := c.group(name)
		document.Kind, document.APIVersion = "APIGroup", "v1"
		return document, 0
	}
	for _, v := range c {
		isCore := v.Group == ""
		switch {
		case v.String() != name || isCore != (root == "api"):
		case v.Stale:
			return nil, Unavailable
		default:
			list := metav1.APIResourceList{GroupVersion: name, APIResources: v.Resources}
			list.Kind = "APIResourceList"
			if !isCore {
				list.APIVersion = "v1"
			}
			return list, 0
		}
	}
	return nil, NotFound
}

// groups returns the names of the groups, in the order of their first versions.
func (c Catalogue) groups() (names []string) {
	for _, v := range c {
		if !slices.Contains(names, v.Group) {
			names = append(names, v.Group)
		}
	}
	return names
}

// group returns the versions of a group, without the type of the document.
func (c Catalogue) group(name string) (group metav1.APIGroup) {
	group.Name = name
	for _, v := range c {
		if v.Group == name {
			group.Versions = append(group.Versions,
				metav1.GroupVersionForDiscovery{GroupVersion: v.String(), Version: v.Version})
		}
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

// aggregated returns the core group, or all others.
func (c Catalogue) aggregated(core bool) (items []apidiscoveryv2.APIGroupDiscovery) {
	for _, name := range c.groups() {
		if core != (name == "") {
			continue
		}
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, v := range c {
			if v.Group == name {
				item.Versions = append(item.Versions, v.aggregated())
			}
		}
		items = append(items, item)
	}
	return items
}

// aggregated returns the version with its resources. Of a stale one, they are not known.
func (v Version) aggregated() apidiscoveryv2.APIVersionDiscovery {
	is := apidiscoveryv2.APIVersionDiscovery{
		Version: v.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	if v.Stale {
		is.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
		return is
	}
	for _, r := range v.Resources {
		name, subresource, isSubresource := strings.Cut(r.Name, "/")
		if !isSubresource {
			is.Resources = append(is.Resources, v.resource(r))
			continue
		}
		at := slices.IndexFunc(is.Resources, func(parent apidiscoveryv2.APIResourceDiscovery) bool {
			return parent.Resource == name
		})
		if at >= 0 {
			is.Resources[at].Subresources = append(is.Resources[at].Subresources,
				apidiscoveryv2.APISubresourceDiscovery{
					Subresource: subresource, Verbs: r.Verbs, ResponseKind: v.kind(r.Kind)})
		}
	}
	return is
}

func (v Version) resource(r metav1.APIResource) apidiscoveryv2.APIResourceDiscovery {
	is := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Name, SingularResource: r.SingularName, Scope: apidiscoveryv2.ScopeCluster,
		Verbs: r.Verbs, ResponseKind: v.kind(r.Kind),
	}
	if r.Namespaced {
		is.Scope = apidiscoveryv2.ScopeNamespace
	}
	return is
}

// kind returns a resource's kind. kube-apiserver names its group and version only for custom
// resources: elsewhere, both are those of the document around it.
func (v Version) kind(name string) *metav1.GroupVersionKind {
	if !strings.Contains(v.Group, ".") || strings.HasSuffix(v.Group, ".k8s.io") {
		return &metav1.GroupVersionKind{Kind: name}
	}
	return &metav1.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: name}
}
