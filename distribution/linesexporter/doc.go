// SPDX-License-Identifier: Apache-2.0

// Package linesexporter is the Collector exporter `event_lines`: it writes the
// log records of the kube_events receiver to standard output, one readable line
// a record, for a person who watches a cluster in a terminal:
//
//	07:31:02 Warning FailedScheduling     demo pod/stuck-5d9f-abc ← replicaset.apps/stuck-5d9f ← deployment.apps/stuck [stuck] ×3  0/3 nodes are available
//
// A line holds the time of the newest occurrence, the event's type and reason,
// the involved object with its namespace before and its owners behind it, the
// Tilt manifest, the number of occurrences so far, and the message.
//
// The lines are for eyes. Programs should read the records themselves, from the
// otlp or the file exporter.
package linesexporter
