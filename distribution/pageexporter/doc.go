// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package pageexporter is the Collector exporter `event_page`. It answers what is wrong in a cluster, and
// what changed before it began, from the events of the kube_events receiver: as a web page, as JSON,
// and as tools for agents (MCP). docs/page.md describes all three.
//
// Package incident has the model and decides everything. This package keeps the model behind a lock, and
// shows its answers. It keeps the last hour in memory, within the bounds of the model, and nothing on
// disk.
//
// The exporter is a member of the logs pipeline. It never returns an error, and it never waits for
// viewers: records that come while an answer is computed are kept aside, within a bound. What exceeds the
// bound is dropped, counted, and named on the page.
package pageexporter
