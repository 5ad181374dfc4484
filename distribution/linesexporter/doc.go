// SPDX-License-Identifier: Apache-2.0

// Package linesexporter is the Collector exporter `event_lines`. It writes the log records of the
// kube_events receiver to standard output, one line for each record, for people who watch a cluster
// in a terminal:
//
//	07:31:02 Warning FailedScheduling     demo pod/stuck-5d9f-abc ← replicaset.apps/stuck-5d9f ← deployment.apps/stuck [stuck] ×3  0/3 nodes are available
//
// A line has the time of the newest occurrence, the event's type and reason, the namespace, the
// involved object, its owners, the Tilt manifest, the number of occurrences so far, and the
// message.
//
// The lines are for people. Programs should read the records themselves, from the otlp or the file
// exporter.
package linesexporter
