// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// settleFor is how long a write before a wait may take. Storage that hangs must not stop the loop.
const settleFor = 3 * time.Second

// identify leaves out what another cluster has sent, and ends the session then: the next one lists
// what that cluster has.
func (s *session) identify(stop, drain context.Context, b *batch) {
	restored := b.restored()
	if restored >= 0 {
		// A process that ends before the cluster answers must repeat nothing.
		s.settle(drain)
	}
	s.learnCluster()
	switch {
	case s.isReplaced():
		reached.State("another cluster at the address answers late")
		s.leaveOut(b, 0)
	case restored >= 0 && !s.isSameCluster(stop):
		s.leaveOut(b, restored+1) // The memory has to forget the versions all the same.
	}
}

// isSameCluster reports whether the cluster whose resource versions have gone back is still the same
// one: etcd was restored, or another cluster answers at the address. It waits for an answer, because
// the records of another cluster would name this one, and come again with the right name. It also
// reports false if stop ended before.
func (s *session) isSameCluster(stop context.Context) bool {
	s.gate.WentBack()
	if s.memory.Cluster() == "" {
		reached.State("a restore of a cluster that never said which one it is")
		return true // No record names a cluster.
	}
	// All streams notice it at about the same time: one answer serves those of a second.
	if time.Since(s.process.restoredAnswer) < retryCluster {
		reached.State("several streams notice a restore together")
		return true
	}
	// The end of a term does not wait for the answer: the elector waits for it.
	if !s.process.askCluster(stop, s.endTermIfOver) {
		reached.State("a session ends before the cluster says which one it is after a restore")
		return false
	}
	s.process.restoredAnswer = time.Now()
	if s.isReplaced() {
		reached.State("another cluster at the address within a batch")
		return false
	}
	return true
}

// settle removes from the outbox what is delivered.
func (s *session) settle(drain context.Context) {
	ctx, cancel := context.WithTimeout(drain, settleFor)
	defer cancel()
	s.persist.finish(ctx)
}

// leaveOut leaves out the changes from i on: they are of another cluster, or it is not known of which
// one.
func (s *session) leaveOut(b *batch, i int) {
	s.process.Health.DealtWith(b.changes[i:])
	b.changes, b.last = b.changes[:i], true
}

// forgetVersions forgets the resource versions of a stream, since the cluster's have gone back, also
// where the stream resumes after changes of before.
func (s *session) forgetVersions(before []watch.Change, stream string) {
	for i := range before {
		if before[i].Namespace == stream {
			before[i].ResourceVersion = ""
		}
	}
	s.memory.ForgetVersions(stream)
}

// learnCluster notes which cluster answers if none is remembered.
func (s *session) learnCluster() {
	if uid := s.process.Cluster.UID(); s.memory.Cluster() == "" && uid != "" {
		s.setCluster(uid)
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
