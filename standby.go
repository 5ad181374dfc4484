// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// mostHeld bounds what a standby holds, to within a batch. It is more than a lease's worth of a storm; only a first
// listing is longer.
const mostHeld = 50_000

// standby holds the records that a dead leader may not have emitted: those of the last while. Whoever takes over emits
// them; of those that the leader did emit, log.record.uid is the same. The zero value holds nothing.
type standby struct {
	horizon time.Duration
	held    []observation.Observation // by SeenAt
}

// hold keeps the records, and lets go of those that a leader that lives has emitted by now.
func (s *standby) hold(records []observation.Observation, now time.Time) {
	s.held = append(s.held, records...)
	s.trim(now)
}

func (s *standby) trim(now time.Time) {
	oldest := now.Add(-s.horizon)
	old := 0
	for old < len(s.held) && s.held[old].SeenAt.Before(oldest) {
		old++
	}
	clear(s.held[:old])
	s.held = s.held[old:]
}

// full says whether there is no room until time passes.
func (s *standby) full(now time.Time) bool {
	s.trim(now)
	return len(s.held) >= mostHeld
}

// release returns what is held and holds nothing any more.
func (s *standby) release(now time.Time) []observation.Observation {
	s.trim(now)
	held := s.held
	s.held = nil
	return held
}
