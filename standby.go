// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// mostHeld bounds what a standby holds. It is far more than a lease's worth of a storm.
const mostHeld = 200_000

// standby holds the records that a dead leader may not have emitted: those of the last while. Whoever takes over emits
// them; of those that the leader did emit, log.record.uid is the same. The zero value holds nothing.
type standby struct {
	horizon time.Duration
	held    []observation.Observation // by SeenAt
}

// hold keeps the records, and lets go of those that a leader that lives has emitted by now. It returns how many it had to
// let go of before that.
func (s *standby) hold(records []observation.Observation, now time.Time) (surplus int) {
	s.held = append(s.held, records...)
	oldest := now.Add(-s.horizon)
	old := 0
	for old < len(s.held) && s.held[old].SeenAt.Before(oldest) {
		old++
	}
	surplus = max(0, len(s.held)-old-mostHeld)
	clear(s.held[:old+surplus])
	s.held = s.held[old+surplus:]
	return surplus
}

// release returns what is held and holds nothing any more.
func (s *standby) release(now time.Time) []observation.Observation {
	s.hold(nil, now)
	held := s.held
	s.held = nil
	return held
}
