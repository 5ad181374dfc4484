// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// clients are the clients of the API server. They share connections.
type clients struct {
	http     *http.Client
	metadata metadata.Interface
	// url returns the address of a path.
	url func(path string) string
}

// newClients returns clients without a rate limit: the limiter has it. It drops the API server's
// warnings unless the caller handles them: a deprecated kind would cause one per request.
func newClients(restConfig *rest.Config) (*clients, error) {
	config := metadata.ConfigFor(restConfig)
	config.QPS, config.RateLimiter = -1, nil
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{}
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client := *httpClient
	client.Transport = &transport{next: httpClient.Transport}
	metadataClient, err := metadata.NewForConfigAndClient(config, &client)
	if err != nil {
		return nil, err
	}
	base, err := rest.UnversionedRESTClientForConfigAndClient(config, &client)
	if err != nil {
		return nil, err
	}
	url := func(path string) string { return base.Get().AbsPath(path).URL().String() }
	return &clients{http: &client, metadata: metadataClient, url: url}, nil
}

// resource returns the client for objects of the kind in the collection.
func (c *clients) resource(k *kinds.Kind, in collection) metadata.ResourceInterface {
	client := c.metadata.Resource(k.Resource)
	if k.Namespaced {
		return client.Namespace(in.namespace.Value())
	}
	return client
}

// catalogue returns a catalogue that reads the API server's discovery documents.
func (c *clients) catalogue(settings kinds.Settings) *kinds.Catalogue {
	settings.Client, settings.URL = c.http, c.url
	return kinds.New(settings)
}

// close closes the idle connections.
func (c *clients) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// maxAnswer bounds the bytes of an answer: a server or a proxy may ignore the limit of a page. The
// first page of the largest objects, with 256 KiB of annotations each, has less.
const maxAnswer = 32 << 20

// transport bounds answers.
type transport struct{ next http.RoundTripper }

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// WrappedRoundTripper lets idle connections be closed.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// ResolutionOf returns what the error of a request means for the requested object; empty for no error. It is
// one of ResolutionNotFound, ResolutionForbidden, ResolutionTimeout and ResolutionUnavailable.
func ResolutionOf(err error) Resolution {
	switch {
	case err == nil:
		return ""
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsGone(err):
		return ResolutionNotFound
	case apierrors.IsForbidden(err):
		return ResolutionForbidden
	case isTimeout(err):
		return ResolutionTimeout
	default:
		// This includes a wrong or expired token (401): no permission is missing, and the failure
		// usually ends when the token is renewed.
		return ResolutionUnavailable
	}
}

// IsAnswer reports whether the error of a request is a final answer: a permission is missing, there is no such
// object, or the API server or a proxy rejects the request. Any other error may be over soon, also that of
// credentials, without which nothing works.
func IsAnswer(err error) bool {
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return false
	}
	status := int(response.Status().Code)
	passing := []int{http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError && !slices.Contains(passing, status)
}

// isTimeout reports whether no answer came in time: from the API server, or from a server behind it
// (504).
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) ||
		(errors.As(err, &timeout) && timeout.Timeout()) ||
		apierrors.IsTimeout(err)
}

// isAboutPath reports whether a 404 means that the API server does not serve the path, rather than
// that the object does not exist. The former is plain text, which client-go converts to a status.
func isAboutPath(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusNotFound {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
