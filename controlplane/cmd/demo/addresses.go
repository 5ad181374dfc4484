// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// pageVariable is the environment variable of the page's address.
const pageVariable = "PAGE_ENDPOINT"

// address is where the Collector will listen. Its value is that of an environment variable.
type address struct {
	variable string
	host     string // the host, if the value is only a port
	other    string // a value that is not the default of another address
	value    string
}

// addressesOf returns the addresses that distribution/config.yaml takes from the environment, and
// that are set. make run sets them.
func addressesOf(getenv func(string) string) (found []address) {
	for _, a := range []address{
		{variable: pageVariable, other: "127.0.0.1:8091"}, {variable: "PROMETHEUS_ENDPOINT", other: "127.0.0.1:9465"},
		{variable: "OTELCOL_METRICS_PORT", host: "127.0.0.1:", other: "8889"},
	} {
		if a.value = getenv(a.variable); a.value != "" {
			found = append(found, a)
		}
	}
	return found
}

func (a address) String() string { return a.host + a.value }

// another is what the variable may be instead.
func (a address) another() string {
	if a.host == "" {
		return "another address of this machine, such as make run " + a.variable + "=" + a.other
	}
	return "another port, such as make run " + a.variable + "=" + a.other
}

// checkAddresses returns one error that names all addresses that the Collector cannot listen on.
func (s show) checkAddresses() error {
	var errs []error
	for _, a := range s.addresses {
		l, err := net.Listen("tcp", a.String())
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w; set %s", a.variable, a.value, err, a.another()))
			continue
		}
		defer l.Close() // at the end: two addresses may be equal
	}
	return errors.Join(errs...)
}

// pageTimeout bounds the wait for the page, because the Collector's configuration may have no page.
const pageTimeout = 30 * time.Second

// awaitPage reports whether the page answers before the Collector or ctx ends.
func awaitPage(ctx context.Context, url string, ended <-chan struct{}) bool {
	// The transport uses no proxy.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	timeout := time.After(pageTimeout)
	for {
		if response, err := client.Get(url); err == nil { // any response means that it has started
			_ = response.Body.Close()
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ended:
			return false
		case <-timeout:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}
