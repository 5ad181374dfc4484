// SPDX-License-Identifier: Apache-2.0

// Package healthprovider asks a Collector for its health: --config=health:HOST:PORT is the health check
// extension at this address, with the path /status.
//
// It adds nothing to the configuration. If the Collector there is not healthy, the configuration cannot
// be read, and the error has the response. So `validate` is also a client for health checks, in an
// image without a shell.
package healthprovider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

const scheme = "health"

// maxResponse bounds what an error has of a response.
const maxResponse = 8 << 10

// provider asks until the Collector is healthy, for at most timeout.
type provider struct {
	timeout, pause time.Duration
	client         *http.Client
}

// NewFactory returns the factory of the provider, which ocb puts into the Collector.
func NewFactory() confmap.ProviderFactory {
	return confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider {
		return newProvider(30*time.Second, time.Second)
	})
}

// newProvider returns a provider that uses no proxy: the address is in the cluster. Each request has a
// connection of its own, so that a Service can choose another pod.
func newProvider(timeout, pause time.Duration) *provider {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	return &provider{timeout: timeout, pause: pause, client: client}
}

// Retrieve returns an empty configuration if the Collector is healthy. A Service that was just made
// may need some seconds until it has pods.
func (p *provider) Retrieve(ctx context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	address, err := addressIn(uri)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	for {
		problem := p.ask(ctx, address)
		if problem == nil {
			return confmap.NewRetrieved(map[string]any{})
		}
		if !errors.Is(problem, context.DeadlineExceeded) || err == nil {
			err = problem // The end of the time is not the reason.
		}
		select {
		case <-time.After(p.pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("the Collector at %s is not healthy: %w", address, err)
		}
	}
}

// addressIn returns HOST:PORT of a URI. An IPv6 address may have no brackets.
func addressIn(uri string) (string, error) {
	address, found := strings.CutPrefix(uri, scheme+":")
	last := strings.LastIndexByte(address, ':')
	if !found || last <= 0 || last == len(address)-1 {
		return "", fmt.Errorf("%q is not %s:HOST:PORT", uri, scheme)
	}
	return net.JoinHostPort(strings.Trim(address[:last], "[]"), address[last+1:]), nil
}

// ask returns the response as an error unless it is 200 OK.
func (p *provider) ask(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/status?verbose", http.NoBody)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %s", response.Status, body)
}

func (*provider) Scheme() string { return scheme }

func (p *provider) Shutdown(context.Context) error {
	p.client.CloseIdleConnections()
	return nil
}
