// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package rolloutsconnector is the Collector connector `kube_rollouts`. It turns the records of the
// kube_events receiver into traces: one for each rollout of a workload, with spans for its pods and
// for what they waited for.
//
// A record is read into a small model (internal/rollout), the model is saved if there is storage
// (internal/journal), and then the record is acknowledged. A loop delivers the spans of a revision
// when they are complete, or when there was no news for idle_timeout.
package rolloutsconnector
