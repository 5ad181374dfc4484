// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/internal/userconfig"
)

// defaultEndpoint is reachable from the same machine only: everybody who sees the page sees the
// cluster's events.
const defaultEndpoint = "127.0.0.1:8090"

// Config is the configuration of the exporter: where the page is served, and to whom.
type Config struct {
	// Server is not embedded: its Unmarshal would be that of the whole configuration, and ignore the others.
	Server confighttp.ServerConfig `mapstructure:",squash"`

	// AllowedHosts are the names under which browsers and programs reach the page, in addition to
	// localhost and IP addresses: that of an Ingress, for example.
	AllowedHosts []string `mapstructure:"allowed_hosts"`

	// HarmlessReasons are those of warnings that are no problem, in addition to the known ones.
	HarmlessReasons []string `mapstructure:"harmless_reasons"`

	// MCP also serves the tools for agents, at /mcp.
	MCP bool `mapstructure:"mcp"`
}

// hints has fixes for keys of other servers, and for maps that are written as a single value.
var hints = map[string]string{ //nolint:gosec // Nothing in it is a password.
	"auth":               "write {authenticator: basicauth}, with the name of an extension",
	"cors":               "write {allowed_origins: [https://events.example.com]}",
	"host":               "write endpoint, with the host and the port, such as 0.0.0.0:8090",
	"listen":             "write endpoint, with the host and the port, such as 0.0.0.0:8090",
	"port":               "write endpoint, with the host and the port, such as 0.0.0.0:8090",
	"hosts":              "write allowed_hosts",
	"k8s_leader_elector": "remove it; the extension kube_events_status tells the page whether it is a standby",
	"password":           "write auth: {authenticator: basicauth}, and configure this extension",
	"tls":                "write {cert_file: /etc/otelcol/tls.crt, key_file: /etc/otelcol/tls.key}",
}

// Unmarshal reads the configuration. Each error has the key, the value and the fix. ServerConfig, which has most of the keys,
// ignores those that it does not know.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	type server confighttp.ServerConfig // without the method that ignores keys
	type keys struct {
		Server server `mapstructure:",squash"`

		AllowedHosts    []string `mapstructure:"allowed_hosts"`
		HarmlessReasons []string `mapstructure:"harmless_reasons"`
		MCP             bool     `mapstructure:"mcp"`
	}
	if err := userconfig.Unmarshal(conf, &keys{Server: server(c.Server)}, hints); err != nil {
		return err
	}
	return conf.Unmarshal(c)
}

// Validate reports an address that cannot be served, and names that are none.
func (c *Config) Validate() error {
	if c.Server.NetAddr.Endpoint == "" {
		return errors.New("endpoint: it is empty: set the address of the page, such as " + defaultEndpoint)
	}
	if err := c.checkPort(); err != nil {
		return fmt.Errorf("endpoint: %q: %w: write a host and a port, such as %s", c.Server.NetAddr.Endpoint, err, defaultEndpoint)
	}
	for i, host := range c.AllowedHosts {
		if host == "" || strings.ContainsAny(host, ":/*") {
			return fmt.Errorf("allowed_hosts[%d]: %q is not a host name: write it without a scheme, a port and wildcards, such as events.example.com", i, host)
		}
	}
	return record.CheckHarmless(c.HarmlessReasons)
}

// checkPort reports an endpoint without a port. The path of a Unix socket has none.
func (c *Config) checkPort() error {
	network := string(c.Server.NetAddr.Transport)
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	_, port, err := net.SplitHostPort(c.Server.NetAddr.Endpoint)
	if err == nil {
		_, err = net.LookupPort(network, port)
	}
	return err
}

func createDefaultConfig() component.Config {
	config := confighttp.NewDefaultServerConfig()
	config.NetAddr.Endpoint = defaultEndpoint
	return &Config{Server: config}
}
