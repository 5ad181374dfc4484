// SPDX-License-Identifier: Apache-2.0

// Package rollout computes rollouts from records of Kubernetes Events: records in, spans out.
//
// A Model holds what is known of the rollouts of all workloads. What Read takes from a batch of
// records, what is saved, and the memory of the connector and of the page of events are all Models.
// Join adds one Model to another. It keeps the earliest and the latest time of each Event, so that
// the result depends neither on the order of the records nor on repeats. Evict bounds a Model in
// bytes.
//
// The history of a workload is its episodes: a revision begins, or is scaled up from zero again. A
// run is an episode with its pods: their phases, what failed, what former revisions have left. A
// scale-down of a former revision proves that new pods are available. Spans and States are
// functions of a Model: the same records give the same spans with the same ids, in every process.
//
// The package has no clock, no network and no storage.
package rollout
