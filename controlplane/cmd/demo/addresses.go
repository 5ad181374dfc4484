// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pageVariable is the environment variable of the page's address.
const pageVariable = "PAGE_ENDPOINT"

// address is where the Collector will listen. Its value is that of an environment variable.
type address struct {
	variable string
	host     string // the host, if the value is only a port
	value    string
}

// addressesOf returns the addresses that distribution/config.yaml takes from the environment, and
// that are set. make run sets them.
func addressesOf(getenv func(string) string) (found []address) {
	for _, a := range []address{{variable: pageVariable}, {variable: "PROMETHEUS_ENDPOINT"}, {variable: "OTELCOL_METRICS_PORT", host: "127.0.0.1:"}} {
		if a.value = getenv(a.variable); a.value != "" {
			found = append(found, a)
		}
	}
	return found
}

// shape is what the variable must look like.
func (a address) shape() string {
	if a.host == "" {
		return "an address of this machine and a port, such as 127.0.0.1:8091"
	}
	return "a port, such as 8889"
}

func (a address) String() string { return a.host + a.value }

// checkAddresses returns one error that names all addresses that the Collector cannot listen on,
// and the fix for those that are in use.
func (s show) checkAddresses() error {
	var listeners []net.Listener // keep them until the end: two addresses may be equal
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	listen := func(a address) error {
		l, err := net.Listen("tcp", a.String())
		if err == nil {
			listeners = append(listeners, l)
		}
		return err
	}

	var errs []error
	var taken []address
	for _, a := range s.addresses {
		switch err := listen(a); {
		case errors.Is(err, syscall.EADDRINUSE):
			taken = append(taken, a)
		case err != nil:
			errs = append(errs, fmt.Errorf("%s=%s: %w; set it to %s", a.variable, a.value, err, a.shape()))
		}
	}
	if len(taken) > 0 {
		errs = append(errs, s.takenError(taken, func(a address) bool { return listen(a) == nil }))
	}
	return errors.Join(errs...)
}

// takenError names addresses that are in use, with a command that has free ones instead.
func (s show) takenError(taken []address, free func(address) bool) error {
	command := []string{"make run"}
	if s.kubeconfig != "" {
		command = append(command, "KUBECONFIG="+s.kubeconfig)
	}
	var names []string
	for _, a := range taken {
		names = append(names, a.String()+" ("+a.variable+")")
		for a = a.next(); !free(a); {
			a = a.next()
		}
		command = append(command, a.variable+"="+a.value)
	}
	are, another := "is", "another"
	if len(names) > 1 {
		are, another = "are", "others"
	}
	return fmt.Errorf("%s %s in use: set %s, such as %s", strings.Join(names, ", "), are, another, strings.Join(command, " "))
}

// next returns the address with the next port. After the last port, it returns port 0, which is
// always free.
func (a address) next() address {
	host, port, _ := net.SplitHostPort(a.String()) // net.Listen has parsed it
	number, _ := strconv.ParseUint(port, 10, 16)
	a.value = strconv.Itoa(int(uint16(number + 1)))
	if a.host == "" {
		a.value = net.JoinHostPort(host, a.value)
	}
	return a
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
