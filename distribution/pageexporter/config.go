// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
)

// defaultEndpoint is reachable from the same machine only: everybody who sees the page sees the
// cluster's events.
const defaultEndpoint = "127.0.0.1:8090"

// Config is the configuration of the exporter: where the page is served, and how.
type Config struct {
	confighttp.ServerConfig `mapstructure:",squash"`
}

// Validate reports an address that cannot be served.
func (c *Config) Validate() error {
	if c.NetAddr.Endpoint == "" {
		return errors.New("endpoint: it is empty: set the address of the page, such as " + defaultEndpoint)
	}
	return nil
}

func createDefaultConfig() component.Config {
	config := confighttp.NewDefaultServerConfig()
	config.NetAddr.Endpoint = defaultEndpoint
	return &Config{config}
}
