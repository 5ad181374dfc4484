// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// finishFor is how long a write before a wait may take. Storage that hangs must not stop the loop.
const finishFor = 3 * time.Second

// newHistory begins a history: no step of the loop has versions of two of them.
func (s *session) newHistory(stop context.Context) *watch.History {
	h := watch.NewHistory(stop, s.process.Client, s.process.Streams, s.process.Health.WentBack)
	for _, version := range s.memory.DeliveredUpTo() {
		h.Observe(version)
	}
	h.Observe(s.start.Highest())
	return h
}

// runHistory runs the streams and the loop for one history. It reports whether another one of the
// same cluster follows: etcd was restored from a backup.
func (s *session) runHistory(stop, drain context.Context) (isRestored bool) {
	s.history = s.newHistory(stop)
	var streams sync.WaitGroup
	for _, namespace := range s.process.Streams {
		stream := s.newStream(namespace)
		streams.Go(func() { stream.Run(s.history.Context()) })
	}
	last := s.loop(stop, drain)
	s.history.End()
	streams.Wait()
	if stop.Err() == nil {
		kubeclient.Reconnect(s.process.Client) // All requests go to the cluster that answers now.
	}
	defer s.intake.discard()
	if isRestored = stop.Err() == nil && !s.isReplaced() && s.isSameCluster(stop, drain); isRestored {
		s.endLostWindows(last)
		s.memory.ForgetVersions()
		s.memory.TakeBack(s.gate.EndHistory())
	} else if last.passed {
		s.finish(drain, last)
	}
	return isRestored
}

// endLostWindows delivers what the windows of a leader without storage hold when etcd was restored. If
// the restored cluster does not have it, no other process can deliver it later. What the term does not
// deliver before it ends waits at the gate: it is new again if the next list has it.
func (s *session) endLostWindows(last *batch) {
	if s.process.Positions == nil || !last.passed {
		return
	}
	s.endWindows(last)
	s.endTermIfOver()
}

func (s *session) newStream(namespace string) *watch.Stream {
	p := s.process
	config := watch.Config{
		Client:          p.Client,
		Namespace:       namespace,
		FieldSelector:   p.Filter.FieldSelector(),
		ResourceVersion: s.memory.Resume(namespace),
		History:         s.history,
		Taker:           s.intake.queue,
		Observer:        p.Health,
		Keep:            p.Owners.Keep,
	}
	if version, ok := s.start.Of(namespace); ok {
		config.ExactAt = strconv.FormatUint(version, 10)
	}
	return watch.New(config)
}

// isSameCluster reports whether the cluster whose resource versions have gone back is still the same
// one: etcd was restored, or another cluster answers at the address. It waits for an answer, because
// the records of another cluster would name this one, and come again with the right name. It also
// reports false if stop ended before.
func (s *session) isSameCluster(stop, drain context.Context) bool {
	if s.memory.Cluster() == "" {
		reached.State("a restore of a cluster that never said which one it is")
		return true // No record names a cluster.
	}
	// A process that ends before the cluster answers must repeat nothing.
	ctx, cancel := context.WithTimeout(drain, finishFor)
	defer cancel()
	s.persist.finish(ctx)
	// The end of a term does not wait for the answer: the elector waits for it.
	if !s.process.askCluster(stop, s.endTermIfOver) {
		reached.State("a session ends before the cluster says which one it is after a restore")
		return false
	}
	if s.isReplaced() {
		reached.State("another cluster at the address within a batch")
		return false
	}
	return true
}
