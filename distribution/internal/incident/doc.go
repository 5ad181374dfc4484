// SPDX-License-Identifier: Apache-2.0

// Package incident finds what is wrong in a cluster, and what changed before it began: records of
// Kubernetes Events in, problems with causes out.
//
// A Model keeps one Fact for each Event of the last hour, and the rollouts of package rollout. Everything
// else is computed when somebody asks: problems from warnings and restarts, changes from rollouts and the
// table of causes. So an answer is always about the time, namespace or reason that was chosen.
//
// The package has no clock, no network and no storage. A Model must not be used concurrently.
package incident
