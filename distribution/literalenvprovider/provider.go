// SPDX-License-Identifier: Apache-2.0

// Package literalenvprovider reads environment variables as they are: ${literalenv:NAME}.
//
// The Collector expands what ${env:NAME} returns: $$ becomes $, ${…} is looked up, and 0123 is a number. A password may
// contain all of these.
package literalenvprovider

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

const scheme = "literalenv"

type provider struct{}

// NewFactory returns the factory of the provider, which ocb puts into the Collector.
func NewFactory() confmap.ProviderFactory {
	return confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider { return provider{} })
}

// Retrieve returns the value of an environment variable, as a string. The error does not contain the value.
func (provider) Retrieve(_ context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	name, found := strings.CutPrefix(uri, scheme+":")
	if !found {
		return nil, fmt.Errorf("%q does not begin with %q", uri, scheme+":")
	}
	value, set := os.LookupEnv(name)
	if !set {
		return nil, fmt.Errorf("environment variable %q is not set", name)
	}
	// The Collector makes $ of each $$ when it has expanded everything.
	return confmap.NewRetrieved(strings.ReplaceAll(value, "$", "$$"))
}

func (provider) Scheme() string { return scheme }

func (provider) Shutdown(context.Context) error { return nil }
