// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// account adds to the batch what is new in its changes and passes the filters, and whether there may
// be more to forget. The memory has all observations, so that a filter that is widened later counts
// nothing of the past. Before, the memory forgets what it has remembered for long enough: there may
// have been no batch for a day.
func (s *session) account(b *batch) {
	b.forgetsMore = s.memory.Forget(time.Now())
	b.observations = make([]observation.Observation, 0, len(b.changes))
	var received, filtered int64
	var listed []int
	for i := range b.changes {
		c := &b.changes[i]
		switch c.Kind {
		case watch.ListBegan: // It may list an event again that the last list had.
			sortListed(b.observations, listed)
			listed = listed[:0]
		case watch.ListEnded:
			b.forgetsMore = true // Many may have been deleted.
		}
		occurrences := s.occurrences(c)
		if c.Event == nil {
			continue
		}
		received++
		if !s.process.Filter.Wants(c.Event) {
			filtered++
		} else if occurrences > 0 {
			if c.Kind == watch.Listed {
				listed = append(listed, len(b.observations))
			}
			b.observations = append(b.observations, s.observation(c, occurrences))
		}
	}
	sortListed(b.observations, listed)
	s.process.Health.Accounted(received, filtered)
}

func (s *session) observation(c *watch.Change, occurrences int64) observation.Observation {
	o := observation.Observation{Event: c.Event, Occurrences: occurrences, SeenAt: c.SeenAt}
	if c.Kind == watch.Listed {
		o.LowestVersion = s.memory.Reached(c.Namespace) + 1
	}
	return o
}

// occurrences returns the number of new occurrences in one change.
func (s *session) occurrences(c *watch.Change) int64 {
	switch c.Kind {
	case watch.ListBegan:
		s.memory.BeginList(c.Namespace)
	case watch.ListEnded:
		s.memory.EndList(c.Namespace, c.SeenAt)
	case watch.Deleted:
		s.memory.Delete(c.Namespace, c.Event, c.SeenAt)
	case watch.Existing:
		s.memory.Existing(c.Namespace, c.Event)
	case watch.Listed:
		return s.memory.List(c.Namespace, c.Event)
	case watch.Changed:
		return s.memory.Change(c.Namespace, c.Event)
	}
	return 0
}

// advance notes where the streams resume, once the batch is dealt with or saved.
func advance(m *memory.Memory, b *batch) {
	for i := range b.changes {
		if c := &b.changes[i]; c.ResourceVersion != "" {
			m.Advance(c.Namespace, c.ResourceVersion)
		}
	}
}
