// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRecordsOfGeneratedNames: the name of the metric finds the records of each run, and not those of
// another workload whose name begins with it.
func TestRecordsOfGeneratedNames(t *testing.T) {
	chosen := regexp.MustCompile("^(build-shop|etl)" + generated + "$") // As Loki reads $workload.
	for _, name := range []string{"build-shop", "etl", "build-shop-x7k2p", "etl9bd4z"} {
		assert.Regexp(t, chosen, name)
	}
	for _, name := range []string{"build-shop-proxy", "build-shop-x7k2p-compile", "build", "etl-1764201600", "my-etl"} {
		assert.NotRegexp(t, chosen, name)
	}
}
