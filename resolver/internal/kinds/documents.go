// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// accepted has the media types of aggregated discovery; v2beta1 is the only one of Kubernetes 1.27 to
// 1.29. They are those of client-go's package discovery, which imports the types of all API groups and
// of OpenAPI: 10 MiB of the program.
const accepted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// documentKind is the kind of an aggregated document.
const documentKind = "APIGroupDiscoveryList"

// documents reads what the API server serves. Its methods must not be called concurrently.
type documents struct {
	client *http.Client
	url    func(path string) string
	send   func(request func(context.Context) error) error

	etags map[string]string // by path, of what was read last; nil: nothing
}

// document is an aggregated document, as far as it is used; see apidiscovery/v2.
type document struct {
	etag  string // of the answer
	Kind  string `json:"kind"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []groupVersion `json:"versions"`
	} `json:"items"`
}

// groupVersion is one version of a group.
type groupVersion struct {
	Version   string                            `json:"version"`
	Freshness apidiscoveryv2.DiscoveryFreshness `json:"freshness"`
	Resources []resource                        `json:"resources"`
}

type resource struct {
	Resource     string                       `json:"resource"`
	ResponseKind struct{ Kind string }        `json:"responseKind"`
	Scope        apidiscoveryv2.ResourceScope `json:"scope"`
	Verbs        []string                     `json:"verbs"`
}

// read returns what the API server serves. It returns nil if this has not changed since the last
// read, unless all is set for this read, or for one before it that failed. It notes the ETags of both
// documents together: a document whose ETag is noted is not read again.
func (d *documents) read(all bool) (*snapshot, error) {
	if all {
		d.etags = nil
	}
	core, err := d.get("/api")
	if err != nil {
		return nil, err
	}
	groups, err := d.get("/apis")
	switch {
	case err != nil || core == nil && groups == nil:
		return nil, err
	case core == nil || groups == nil:
		return d.read(true)
	}
	d.etags = map[string]string{"/api": core.etag, "/apis": groups.etag}
	s := newSnapshot()
	s.addDocument(core)
	s.addDocument(groups)
	s.index()
	return s, nil
}

// get reads a document in JSON. It returns nil if the document still has the ETag of the last read.
// client-go's own clients do not return the headers of an answer.
func (d *documents) get(path string) (changed *document, err error) {
	err = d.send(func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url(path), nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", accepted)
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
			changed, err = decode(path, response)
			return err
		case http.StatusNotModified:
			return nil
		default:
			message := path + ": " + response.Status
			return apierrors.NewGenericServerResponse(response.StatusCode, http.MethodGet, schema.GroupResource{}, "", message, 0, true)
		}
	})
	return changed, err
}

// decode takes for a document only what is one: a proxy may answer with a page, and a server older
// than Kubernetes 1.27 with a list of versions.
func decode(path string, response *http.Response) (*document, error) {
	read := document{etag: response.Header.Get("ETag")}
	if err := json.NewDecoder(response.Body).Decode(&read); err != nil {
		return nil, fmt.Errorf("%s: the answer is no discovery document, but %s: %w", path, response.Header.Get("Content-Type"), err)
	}
	if read.Kind != documentKind {
		return nil, fmt.Errorf("%s: the answer is no aggregated discovery document (Kubernetes 1.27 and newer have it), but %q", path, read.Kind)
	}
	return &read, nil
}
