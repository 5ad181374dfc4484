// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"

	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// account sets the records of the batch: of windows that have ended, and what is new in its changes,
// passes the filters, and is not kept by a window. Before, the ledger forgets what it has remembered
// for long enough: there may have been no batch for a day.
func (s *session) account(b *batch) {
	now := time.Now()
	b.forgetsMore = s.ledger.Forget(now)
	b.records = s.ledger.Due(now, batchChanges)
	var received, filtered int64
	for i := range b.changes {
		c := &b.changes[i]
		if c.Event == nil {
			s.accountForStream(b, c)
			continue
		}
		received++
		wanted := s.Filter.Wants(c.Event)
		if !wanted {
			filtered++
		}
		s.accountForEvent(b, c, wanted, now)
	}
	b.sortListed()
	s.Health.Accounted(received, filtered)
	s.reportWatching()
}

// accountForStream accounts for a change that is not about one event.
func (s *session) accountForStream(b *batch, c *watch.Change) {
	switch c.Kind {
	case watch.KindListBegan: // It may list an event again that the last list had.
		b.sortListed()
		s.ledger.BeginList(c.Namespace)
	case watch.KindListEnded:
		s.ledger.EndList(c.Namespace, c.SeenAt)
		b.forgetsMore = true // Many may have been deleted.
	case watch.KindWentBack:
		b.records = append(b.records, s.ledger.WentBack(c.Namespace)...)
	}
}

// accountForEvent accounts for the state of an event. The ledger has all events, so that a filter that
// is widened later counts nothing of the past.
func (s *session) accountForEvent(b *batch, c *watch.Change, wanted bool, now time.Time) {
	seen := ledger.Seen{Stream: c.Namespace, Event: c.Event, At: c.SeenAt, IsListed: c.Kind == watch.KindListed}
	switch {
	case c.Kind == watch.KindDeleted:
		s.ledger.Delete(c.Namespace, c.Event, c.SeenAt)
	case c.Kind == watch.KindExisting:
		s.ledger.Remember(c.Namespace, c.Event)
	case !wanted:
		s.ledger.Observe(seen)
	default:
		if record, isNew := s.ledger.Admit(seen, now); isNew {
			b.add(record, seen.IsListed)
		}
	}
}

// reportWatching logs once in a session that all streams work, so that the log of a quiet cluster
// shows that the receiver is on.
func (s *session) reportWatching() {
	if s.isReported || s.ledger.Listed() < len(s.Streams) || !s.Health.AllWork(health.Streams(s.Streams)...) {
		return
	}
	s.isReported = true
	s.Logger.Info("The watch works", zap.Int("streams", len(s.Streams)), zap.Int("live_events", s.ledger.Live()))
}
