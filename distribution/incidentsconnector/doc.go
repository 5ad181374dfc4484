// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package incidentsconnector is the Collector connector `kube_incidents`. It turns the records of the
// kube_events receiver into traces: one for each rollout of a workload, with spans for its pods and
// for what they waited for.
//
// A record is read into a small model (internal/rollout). One loop saves it, if there is storage (internal/journal). Another one
// delivers each part of a trace once, when it is final. No record waits for either.
package incidentsconnector
