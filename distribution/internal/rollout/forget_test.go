// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// TestForgottenRevision: the pods of another revision can have the same names, and still need the times at
// which they were created.
func TestForgottenRevision(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"hash-1", "hash-2"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			m := modelOf(statefulRollout())
			for key, w := range m.Workloads {
				before := w.Spans("hash-2", late)
				m.Forget(rollout.Key{Workload: key, Revision: of})
				if of == "hash-1" {
					assert.Equal(t, before[1:], w.Spans("hash-2", late)[1:], "the pod and its phases")
				} else {
					assert.NotEmpty(t, w.Names.Created, "those of the other revision")
					m.Forget(rollout.Key{Workload: key, Revision: "hash-1"})
					assert.Empty(t, m.Workloads)
				}
			}
		})
	}
}

// TestForgottenNames: names that no other revision uses are forgotten, too.
func TestForgottenNames(t *testing.T) {
	t.Parallel()
	set := statefulSet("db")
	s := statefulRollout()
	s.add(occurrence{at: "20m0s", about: set, reason: "SuccessfulCreate", message: "create Pod db-1 in StatefulSet db successful"})
	s.add(startOf("20m0s", member("db-1", "uid-3", "hash-3"))...)
	m := modelOf(s)
	for key, w := range m.Workloads {
		m.Forget(rollout.Key{Workload: key, Revision: "hash-3"})
		assert.Contains(t, w.Names.Created, "db-0")
		assert.NotContains(t, w.Names.Created, "db-1")
	}
}

// TestRollbackIsNews: the first record of a rollback can be an Event that is known, and that occurs again.
func TestRollbackIsNews(t *testing.T) {
	t.Parallel()
	const first = "replicaset.apps/shop-aaa"
	m := modelOf(join(firstRollout("0s"), secondRollout()))
	for _, w := range m.Workloads {
		w.Revisions[first].Closed = true
	}
	again, _ := rollout.Read(rollback()[0])
	for _, key := range m.Join(again) {
		assert.Equal(t, first, key.Revision)
	}
	for _, w := range m.Workloads {
		assert.False(t, w.Revisions[first].Closed)
	}
}
