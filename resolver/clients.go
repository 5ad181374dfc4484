// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// clients are the clients of the API server. They share connections.
type clients struct {
	http      *http.Client
	metadata  metadata.Interface
	discovery rest.Interface
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

// jsonConfig returns the config for documents in JSON.
func jsonConfig(config *rest.Config) *rest.Config {
	plain := rest.CopyConfig(config)
	plain.AcceptContentTypes, plain.ContentType = "application/json", "application/json"
	return plain
}

// close closes the idle connections.
func (c *clients) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }
