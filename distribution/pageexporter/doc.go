// SPDX-License-Identifier: Apache-2.0

// Package pageexporter is the Collector exporter `event_page`: it serves what the kube_events receiver emits as a web page
// that follows along: events grouped by the workload that they belong to, the chain of owners, and occurrences over time.
//
// It is for a look at a cluster without any backend. It keeps the last hour in memory, within fixed bounds, and nothing of
// it on disk: a Collector that starts again starts with an empty page.
package pageexporter
