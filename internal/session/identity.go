// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// identify leaves out what another cluster has sent, and ends the session then: the next one lists
// what that cluster has.
func (s *session) identify(b *batch) {
	if uid := s.process.Cluster.UID(); s.memory.Cluster() == "" && uid != "" {
		s.setCluster(uid)
	}
	if s.isReplaced() {
		reached.State("another cluster at the address answers late")
		s.process.Health.DealtWith(b.changes)
		b.changes, b.last = b.changes[:0], true
	}
}

// isReplaced reports whether another cluster answers than the one that is remembered.
func (s *session) isReplaced() bool {
	known := s.memory.Cluster()
	return known != "" && known != cmp.Or(s.process.Cluster.UID(), known)
}

// setCluster sets the UID that records and points name.
func (s *session) setCluster(uid string) {
	s.memory.SetCluster(uid)
	s.sums.setCluster(uid)
}
