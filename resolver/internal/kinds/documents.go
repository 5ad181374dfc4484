// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The media types of discovery documents are those of client-go's package discovery. That package
// imports the types of all API groups and of OpenAPI, which take 10 MiB of the program.
const (
	plain   = "application/json"
	v2      = plain + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	v2beta1 = plain + ";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
	// accepted asks for an aggregated document. A server without one answers with its versions or
	// groups instead.
	accepted = v2 + "," + v2beta1 + "," + plain
)

// documents reads what the API server serves. Its methods must not be called concurrently.
type documents struct {
	client *http.Client
	url    func(path string) string
	send   func(request func(context.Context) error) error

	etags map[string]string // by path, of what was read last
}

// document is an aggregated document, as far as it is used. Groups is set instead of Items by a
// server that does not aggregate.
type document struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []groupVersion `json:"versions"`
	} `json:"items"`
	Groups []metav1.APIGroup `json:"groups"`
}

// groupVersion is one version of a group; see apidiscovery/v2.APIVersionDiscovery.
type groupVersion struct {
	Version   string                            `json:"version"`
	Freshness apidiscoveryv2.DiscoveryFreshness `json:"freshness"`
	Resources []struct {
		Resource     string                       `json:"resource"`
		ResponseKind struct{ Kind string }        `json:"responseKind"`
		Scope        apidiscoveryv2.ResourceScope `json:"scope"`
		Verbs        []string                     `json:"verbs"`
	} `json:"resources"`
}

// read returns what the API server serves. It returns nil if this has not changed since the last
// read, unless all is set.
func (d *documents) read(all bool) (*snapshot, error) {
	if all {
		d.etags = nil
	}
	var core, groups document
	coreChanged, err := d.get("/api", &core)
	if err != nil {
		return nil, err
	}
	groupsChanged, err := d.get("/apis", &groups)
	if err != nil || !coreChanged && !groupsChanged {
		return nil, err
	}
	if !coreChanged || !groupsChanged {
		return d.read(true)
	}
	s := newSnapshot()
	d.addTo(s, &core)
	if len(core.Items) == 0 {
		d.addPlain(s, []schema.GroupVersion{{Version: coreVersion}})
	}
	d.addTo(s, &groups)
	d.addPlain(s, versionsOf(groups.Groups))
	s.index()
	return s, nil
}

func (d *documents) addTo(s *snapshot, from *document) {
	for _, group := range from.Items {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Metadata.Name, Version: version.Version}
			s.add(gv, version.resources())
			if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				s.incomplete[gv.Group] = true
			}
		}
	}
}

// resources returns the resources in the form of the plain documents.
func (v *groupVersion) resources() []metav1.APIResource {
	resources := make([]metav1.APIResource, len(v.Resources))
	for i, r := range v.Resources {
		resources[i] = metav1.APIResource{
			Name: r.Resource, Kind: r.ResponseKind.Kind, Verbs: r.Verbs,
			Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
		}
	}
	return resources
}

// addPlain adds versions whose resources are each in a document of their own. A group that fails
// must not hide the others.
func (d *documents) addPlain(s *snapshot, versions []schema.GroupVersion) {
	lists, errs := make([]metav1.APIResourceList, len(versions)), make([]error, len(versions))
	var reads sync.WaitGroup
	for i, gv := range versions {
		reads.Go(func() { _, errs[i] = d.getInto(pathOf(gv), plain, &lists[i]) })
	}
	reads.Wait()
	for i, gv := range versions {
		s.add(gv, lists[i].APIResources)
		if errs[i] != nil {
			s.incomplete[gv.Group] = true
		}
	}
}

// versionsOf returns the versions of the groups, the preferred one of each group first.
func versionsOf(groups []metav1.APIGroup) (versions []schema.GroupVersion) {
	for _, group := range groups {
		preferred := group.PreferredVersion.Version
		if preferred != "" {
			versions = append(versions, schema.GroupVersion{Group: group.Name, Version: preferred})
		}
		for _, v := range group.Versions {
			if v.Version != preferred {
				versions = append(versions, schema.GroupVersion{Group: group.Name, Version: v.Version})
			}
		}
	}
	return versions
}

// get reads an aggregated document. It returns false if the document has not changed.
func (d *documents) get(path string, into *document) (changed bool, err error) {
	etag, err := d.getInto(path, accepted, into)
	if err != nil {
		return false, err
	}
	changed = etag == "" || etag != d.etags[path]
	if d.etags == nil {
		d.etags = make(map[string]string)
	}
	d.etags[path] = etag
	return changed, nil
}

// getInto reads a document in JSON, unless it still has the ETag of the last read, and returns its
// ETag. client-go's own clients do not return the headers of an answer.
func (d *documents) getInto(path, accept string, into any) (etag string, err error) {
	err = d.send(func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url(path), nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", accept)
		if last := d.etags[path]; last != "" {
			request.Header.Set("If-None-Match", last)
		}
		response, err := d.client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		switch response.StatusCode {
		case http.StatusOK:
			etag = response.Header.Get("ETag")
			return json.NewDecoder(response.Body).Decode(into)
		case http.StatusNotModified:
			etag = d.etags[path]
			return nil
		default:
			message := path + ": " + response.Status
			return apierrors.NewGenericServerResponse(response.StatusCode, http.MethodGet, schema.GroupResource{}, "", message, 0, true)
		}
	})
	return etag, err
}

func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}
