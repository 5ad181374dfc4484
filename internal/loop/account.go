// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"

	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// account sets the records of the batch: of windows that have ended, and what is new in its changes,
// passes the filters, and is not held by a window. The ledger has all events, so that a filter that is
// widened later counts nothing of the past. Before, the ledger forgets what it has remembered for long
// enough: there may have been no batch for a day.
func (s *session) account(b *batch) {
	now := time.Now()
	b.forgetsMore = s.ledger.Forget(now)
	b.records = s.ledger.Due(now, batchChanges)
	var received, filtered int64
	var listed []int
	for i := range b.changes {
		c := &b.changes[i]
		switch c.Kind {
		case watch.ListBegan: // It may list an event again that the last list had.
			sortListed(b.records, listed)
			listed = listed[:0]
		case watch.ListEnded:
			b.forgetsMore = true // Many may have been deleted.
		case watch.WentBack:
			b.records = append(b.records, s.ledger.WentBack(c.Namespace)...)
		}
		occurrences := s.occurrences(c)
		if c.Event == nil {
			continue
		}
		received++
		if !s.Filter.Wants(c.Event) {
			filtered++
		} else if o := s.observation(c, occurrences); occurrences > 0 && s.ledger.Admit(c.Namespace, o, now) {
			if c.Kind == watch.Listed {
				listed = append(listed, len(b.records))
			}
			b.records = append(b.records, o)
		}
	}
	sortListed(b.records, listed)
	s.Health.Accounted(received, filtered)
	s.reportWatching()
}

// reportWatching logs once in a session that all streams work, so that the log of a quiet cluster
// shows that the receiver is on.
func (s *session) reportWatching() {
	if s.isReported || s.ledger.Listed() < len(s.Streams) || !s.Health.Work(health.Streams(s.Streams)...) {
		return
	}
	s.isReported = true
	s.Logger.Info("The watch works", zap.Int("streams", len(s.Streams)), zap.Int("live_events", s.ledger.Live()))
}

func (s *session) observation(c *watch.Change, occurrences int64) observation.Observation {
	o := observation.Observation{Event: c.Event, Occurrences: occurrences, SeenAt: c.SeenAt}
	if c.Kind == watch.Listed {
		o.LowestVersion = s.ledger.Reached(c.Namespace) + 1
	}
	return o
}

// occurrences returns the number of new occurrences in one change.
func (s *session) occurrences(c *watch.Change) int64 {
	switch c.Kind {
	case watch.ListBegan:
		s.ledger.BeginList(c.Namespace)
	case watch.ListEnded:
		s.ledger.EndList(c.Namespace, c.SeenAt)
	case watch.Deleted:
		s.ledger.Delete(c.Namespace, c.Event, c.SeenAt)
	case watch.Existing:
		s.ledger.Remember(c.Namespace, c.Event)
	case watch.Listed:
		return s.ledger.List(c.Namespace, c.Event)
	case watch.Changed:
		return s.ledger.Observe(c.Namespace, c.Event)
	}
	return 0
}
