// SPDX-License-Identifier: Apache-2.0

// Package prometheusreceiver is empty. In the distribution, it is in the place of contrib's receiver, which
// only tests of the exporter prometheus import: `go mod tidy` would look for all packages of Prometheus.
package prometheusreceiver
