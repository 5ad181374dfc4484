// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// with sets the addresses of the show, as the environment does.
func (s *show) with(env map[string]string) {
	s.page, s.addresses = env[pageVariable], addressesOf(func(variable string) string { return env[variable] })
}

// TestAddressesAreTaken checks that one error names all addresses that the Collector cannot listen on, and
// that nothing is started.
func TestAddressesAreTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	taken := listener.Addr().String()
	s, seen := newShow(t, "exit 3")
	s.binaries = "/missing"
	s.with(map[string]string{"PAGE_ENDPOINT": taken, "PROMETHEUS_ENDPOINT": "127.0.0.1:0", "OTELCOL_METRICS_PORT": "port"})
	code, err := s.run(t.Context())
	assert.Equal(t, 1, code)
	require.ErrorContains(t, err, "PAGE_ENDPOINT="+taken+": listen tcp "+taken+": bind: address already in use; "+
		"set another address of this machine, such as make run PAGE_ENDPOINT=127.0.0.1:8091\nOTELCOL_METRICS_PORT=port: ")
	assert.NotContains(t, err.Error(), "PROMETHEUS_ENDPOINT")
	assert.NoFileExists(t, seen, "the Collector was not started")
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
