// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// clients are the ways to talk to the API server, over the same connections.
type clients struct {
	http      *http.Client
	metadata  metadata.Interface
	discovery rest.Interface
}

// newClients makes clients without a rate limit: the gate has it. Unless the
// caller wants them, warnings of the API server are dropped: of a deprecated kind
// there would be one for each request.
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
	metadataClient, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := rest.UnversionedRESTClientForConfigAndClient(jsonConfig(config), httpClient)
	if err != nil {
		return nil, err
	}
	return &clients{http: httpClient, metadata: metadataClient, discovery: discoveryClient}, nil
}

// jsonConfig returns the config for documents that are read as JSON.
func jsonConfig(config *rest.Config) *rest.Config {
	plain := rest.CopyConfig(config)
	plain.AcceptContentTypes, plain.ContentType = "application/json", "application/json"
	return plain
}

// close drops the connections that nobody uses.
func (c *clients) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }
