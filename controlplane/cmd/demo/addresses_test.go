// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func take(t *testing.T) (address, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	_, port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return listener.Addr().String(), port
}

// with sets the addresses of the show, as the environment does.
func (s *show) with(env map[string]string) {
	s.page, s.addresses = env[pageVariable], addressesOf(func(variable string) string { return env[variable] })
}

// TestAddressesAreTaken checks that the error names all addresses in use before anything starts,
// and that its command has free ones.
func TestAddressesAreTaken(t *testing.T) {
	page, _ := take(t)
	metric, _ := take(t)
	own, port := take(t)
	s, seen := newShow(t, "exit 3")
	s.binaries = "/missing"
	s.with(map[string]string{"PAGE_ENDPOINT": page, "PROMETHEUS_ENDPOINT": metric, "OTELCOL_METRICS_PORT": port})
	code, err := s.run(t.Context())
	assert.Equal(t, 1, code)
	require.ErrorContains(t, err, page+" (PAGE_ENDPOINT), "+metric+" (PROMETHEUS_ENDPOINT), "+own+" (OTELCOL_METRICS_PORT) are in use: set others, such as make run ")
	assert.NoFileExists(t, seen, "the Collector was not started")

	reported := regexp.MustCompile(`make run PAGE_ENDPOINT=(127\.0\.0\.1:\d+) PROMETHEUS_ENDPOINT=(127\.0\.0\.1:\d+) OTELCOL_METRICS_PORT=(\d+)$`).
		FindStringSubmatch(err.Error())
	require.NotNil(t, reported, err.Error())
	s.with(map[string]string{"PAGE_ENDPOINT": reported[1], "PROMETHEUS_ENDPOINT": reported[2], "OTELCOL_METRICS_PORT": reported[3]})
	assert.NoError(t, s.checkAddresses())
}

func TestOneAddressIsTaken(t *testing.T) {
	page, _ := take(t)
	s, _ := newShow(t, "")
	s.kubeconfig = "/missing"
	s.with(map[string]string{"PAGE_ENDPOINT": page, "PROMETHEUS_ENDPOINT": "127.0.0.1:0"})
	_, err := s.run(t.Context())
	assert.ErrorContains(t, err, page+" (PAGE_ENDPOINT) is in use: set another, such as make run KUBECONFIG=/missing PAGE_ENDPOINT=127.0.0.1:")
	assert.NotContains(t, err.Error(), "PROMETHEUS_ENDPOINT")
}

func TestAddressesAreTheSame(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	both := listener.Addr().String()
	var s show
	s.with(map[string]string{"PAGE_ENDPOINT": both, "PROMETHEUS_ENDPOINT": both})
	err = s.checkAddresses()
	assert.ErrorContains(t, err, both+" (PROMETHEUS_ENDPOINT) is in use")
	assert.ErrorContains(t, err, "PROMETHEUS_ENDPOINT=")
}

func TestAddressIsNone(t *testing.T) {
	var s show
	s.with(map[string]string{"OTELCOL_METRICS_PORT": "port"})
	assert.ErrorContains(t, s.checkAddresses(), "OTELCOL_METRICS_PORT=port: ")
}

// TestPageAnswers checks that the demo prints the address of the page only when the page answers.
func TestPageAnswers(t *testing.T) {
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	assert.True(t, awaitPage(t.Context(), page.URL, nil))

	page.Close()
	ended := make(chan struct{})
	close(ended)
	assert.False(t, awaitPage(t.Context(), page.URL, ended), "the Collector has ended")
}

// TestDefaultsAreThoseOfTheConfiguration checks that make run sets the defaults of the
// configuration.
func TestDefaultsAreThoseOfTheConfiguration(t *testing.T) {
	makefile, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	config, err := os.ReadFile("../../../distribution/config.yaml")
	require.NoError(t, err)
	defaults := regexp.MustCompile(`\$\{env:(\w+):-(.+)\}`).FindAllStringSubmatch(string(config), -1)
	env := map[string]string{}
	for _, d := range defaults {
		assert.Contains(t, string(makefile), "run: export "+d[1]+" ?= "+d[2]+"\n")
		env[d[1]] = d[2]
	}
	assert.Len(t, addressesOf(func(variable string) string { return env[variable] }), len(defaults), "the demo checks all")
	assert.Equal(t, len(defaults), strings.Count(string(makefile), "_ENDPOINT ?= ")+strings.Count(string(makefile), "_PORT ?= "))
}
