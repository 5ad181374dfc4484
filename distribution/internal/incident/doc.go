// SPDX-License-Identifier: Apache-2.0

// Package incident finds what is wrong in a cluster, and what changed before it began: records of
// Kubernetes Events in, problems with causes out.
//
// A Model keeps one Fact for each Event of the last hour. Everything else is computed when somebody
// asks: rollouts by package rollout, problems from warnings and restarts, changes from rollouts and
// the tables of symptoms and links. So an answer is always about the time, namespace or reason that
// was chosen.
//
// What is a problem is in symptoms.go, what is a change in changeevents.go, and what causes what in
// links.go. docs/problems.md has these tables.
//
// The package has no clock, no network and no storage. A Model must not be used concurrently.
package incident

//go:generate go test -vet=off -run TestTheTablesAreDocumented . -args -update
