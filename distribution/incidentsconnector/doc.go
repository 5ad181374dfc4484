// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package incidentsconnector is the Collector connector `kube_incidents`. It turns the records of the
// kube_events receiver into records of problems and changes, into a metric of open problems, and into traces:
// one for each rollout of a workload, with spans for its pods and for what they waited for.
//
// A tracker reads the records of rollouts into a small model (internal/rollout). One loop saves it, if there is storage
// (internal/journal). Another one delivers each part of a trace once, when it is final. A watch keeps what the page keeps
// (internal/incident), looks at it every ten seconds, and delivers what has opened, changed or ended since
// (internal/problem). No record waits for any of them.
package incidentsconnector
