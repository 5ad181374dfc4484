// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
)

// defaultEndpoint is reached from the same machine only: who sees the page sees the cluster's events.
const defaultEndpoint = "127.0.0.1:8090"

// Config is the configuration of the exporter: where the page is served, and how.
type Config struct {
	confighttp.ServerConfig `mapstructure:",squash"`
}

// Validate reports what cannot be served.
func (c *Config) Validate() error {
	if c.NetAddr.Endpoint == "" {
		return errors.New("endpoint: it is empty: give an address to serve the page at, such as " + defaultEndpoint)
	}
	return nil
}

func createDefaultConfig() component.Config {
	config := confighttp.NewDefaultServerConfig()
	config.NetAddr.Endpoint = defaultEndpoint
	return &Config{config}
}
