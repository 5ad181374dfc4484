// SPDX-License-Identifier: Apache-2.0

// Package pageexporter is the Collector exporter `event_page`. It serves the events of the
// kube_events receiver as a web page that updates itself. The page has a card for each workload
// with its events and its chain of owners, and charts of occurrences over time.
//
// Use it to look at a cluster without a backend. It keeps the last hour in memory, within fixed
// bounds, and nothing on disk. After a restart of the Collector, the page is empty.
package pageexporter
