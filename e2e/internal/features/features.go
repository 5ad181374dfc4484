// SPDX-License-Identifier: Apache-2.0

// Package features detects which features of Kubernetes an API server has. It asks the API server
// itself, because a feature may be on in one version and off in the next one.
package features

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Feature is something that the receiver needs, or uses if the API server has it.
type Feature struct {
	Name string
	// Without is what the receiver does without the feature. It is empty if the receiver needs the
	// feature.
	Without string

	detect func(context.Context, *api) (bool, error)
}

// ListsAtAVersion, Metadata, AggregatedDiscovery and NoManagedFields are all
// features.
var (
	ListsAtAVersion = Feature{
		Name:   "lists at an exact resource version (`resourceVersionMatch=Exact`)",
		detect: listsAtAVersion,
	}
	Metadata = Feature{
		Name:   "metadata of objects without their content, in protobuf (`PartialObjectMetadataList`)",
		detect: metadata,
	}
	AggregatedDiscovery = Feature{
		Name:    "aggregated discovery (`apidiscovery.k8s.io/v2`) with an ETag",
		Without: "uses `v2beta1`",
		detect:  aggregatedDiscovery,
	}
	NoManagedFields = Feature{
		Name:    "objects without `managedFields` (`drop=metadata.managedFields`)",
		Without: "skips the bytes of these fields",
		detect:  noManagedFields,
	}
)

// All returns all features; those that the receiver needs come first.
func All() []Feature {
	return []Feature{ListsAtAVersion, Metadata, AggregatedDiscovery, NoManagedFields}
}

// In reports whether the API server has the feature.
func (f Feature) In(ctx context.Context, config *rest.Config) (bool, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return false, err
	}
	has, err := f.detect(ctx, &api{config.Host, client})
	if err != nil {
		return false, fmt.Errorf("detect %s: %w", f.Name, err)
	}
	return has, nil
}

// api sends requests that client-go's clients do not offer.
type api struct {
	host   string
	client *http.Client
}

// get sends a request with a header: name, value, name, value. Callers must close the body of the
// response.
func (a *api) get(ctx context.Context, path string, query url.Values, header ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.host+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	for pair := range slices.Chunk(header, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	return a.client.Do(request)
}

// read sends a request that must succeed, and returns the body.
func (a *api) read(ctx context.Context, path string, query url.Values, header ...string) ([]byte, error) {
	response, err := a.get(ctx, path, query, header...)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s returns %s", path, response.Status)
	}
	return body, err
}

const (
	events   = "/api/v1/events"
	inJSON   = "application/json"
	protobuf = "application/vnd.kubernetes.protobuf"
)

func listsAtAVersion(ctx context.Context, a *api) (bool, error) {
	var now, then metav1.PartialObjectMetadataList
	first, err := a.read(ctx, events, url.Values{"limit": {"1"}}, "Accept", inJSON)
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(first, &now); err != nil {
		return false, err
	}
	exact := url.Values{"limit": {"1"}, "resourceVersion": {now.ResourceVersion}, "resourceVersionMatch": {string(metav1.ResourceVersionMatchExact)}}
	response, err := a.get(ctx, events, exact, "Accept", inJSON)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, nil
	}
	err = json.NewDecoder(response.Body).Decode(&then)
	return then.ResourceVersion == now.ResourceVersion, err
}

func metadata(ctx context.Context, a *api) (bool, error) {
	response, err := a.get(ctx, "/api/v1/namespaces", nil, "Accept", protobuf+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != protobuf {
		return false, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	const prefix = "k8s\x00" // of every object in protobuf
	var object runtime.Unknown
	err = object.Unmarshal(body[min(len(prefix), len(body)):])
	return object.Kind == "PartialObjectMetadataList", err
}

func aggregatedDiscovery(ctx context.Context, a *api) (bool, error) {
	const accepted = discovery.AcceptV2 + "," + discovery.AcceptV1
	response, err := a.get(ctx, "/apis", nil, "Accept", accepted)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	_, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || parameters["as"] != "APIGroupDiscoveryList" {
		return false, err
	}
	again, err := a.get(ctx, "/apis", nil, "Accept", accepted, "If-None-Match", response.Header.Get("ETag"))
	if err != nil {
		return false, err
	}
	defer again.Body.Close()
	return again.StatusCode == http.StatusNotModified, nil
}

func noManagedFields(ctx context.Context, a *api) (bool, error) {
	const metadataOnly = inJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	managed := func(accept string) (int, error) {
		var object metav1.PartialObjectMetadata
		// The API server creates this role itself, through its own API.
		body, err := a.read(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin", nil, "Accept", accept)
		if err == nil {
			err = json.Unmarshal(body, &object)
		}
		return len(object.ManagedFields), err
	}
	usual, err := managed(metadataOnly)
	if err != nil {
		return false, err
	}
	if usual == 0 {
		return false, errors.New("the role cluster-admin has no managedFields")
	}
	left, err := managed(metadataOnly + ";drop=metadata.managedFields," + metadataOnly)
	return left == 0, err
}
