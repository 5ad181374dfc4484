// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNotPossible is returned for a step that cannot happen in a state.
var ErrNotPossible = errors.New("not possible")

// Kind is what a step does.
type Kind string

// The steps. Those of a replica have its number, from 0.
const (
	Write   Kind = "an event is written"
	Restore Kind = "etcd is restored" // to Version, at which Position was stored

	Start   Kind = "starts" // continues from the stored position, or else from now on
	Crash   Kind = "crashes"
	Observe Kind = "sees the next event"
	Notice  Kind = "notices the restore, and lists"

	Elect   Kind = "takes the lease"
	Expire  Kind = "loses the lease"
	Begin   Kind = "begins its term" // Fails: it cannot read the position
	End     Kind = "ends its term"
	Deliver Kind = "delivers what waits" // Fails: accepted, but the answer was lost
	First   Kind = "delivers the first"  // The term ends before the next request.
	Publish Kind = "publishes its position"
	Read    Kind = "reads the position"
)

// Step is one step. Its zero fields mean nothing.
type Step struct {
	Kind              Kind
	Replica           int
	Version, Position int64
	History           int // of Position, in a trace
	Fails             bool
	// Events are the indexes of what a record reports: of Deliver in a trace.
	Events []int
}

func (s Step) String() string {
	text := fmt.Sprintf("%d %s", s.Replica, s.Kind)
	switch s.Kind {
	case Write:
		text = string(s.Kind)
	case Restore:
		text = fmt.Sprintf("%s to version %d and position %d", s.Kind, s.Version, s.Position)
	}
	if s.Events != nil {
		text += fmt.Sprint(", which is events ", s.Events)
	}
	if s.Fails {
		text += ", which fails"
	}
	return text
}

// isFault reports whether something must not work for the step to happen.
func (s *State) isFault(step Step) bool {
	switch step.Kind {
	case Expire, First:
		return true
	case End: // It is orderly only if its position is published before.
		return s.Replicas[step.Replica].Owes
	}
	return step.Fails
}

// Apply changes the state as the step does. The error is ErrNotPossible, or a broken promise.
func (s *State) Apply(step Step) error {
	err := s.apply(step)
	for i := range s.Replicas { // What no step reads any more does not tell states apart.
		if r := &s.Replicas[i]; !r.Leads || r.Seen >= r.From {
			r.From = 0
		}
	}
	return err
}

func (s *State) apply(step Step) error {
	switch step.Kind {
	case Write:
		return s.write(step.Version)
	case Restore:
		return s.restore(step)
	case Start:
		return s.start(step.Replica)
	}
	r := &s.Replicas[step.Replica]
	if !r.Up {
		return ErrNotPossible
	}
	switch step.Kind {
	case Crash:
		s.release(step.Replica)
		*r, s.Disturbed = Replica{}, true
		return nil
	case Observe:
		return s.observe(r, step.Version)
	case Notice:
		return s.notice(r)
	case Elect:
		return s.elect(step.Replica)
	case Expire:
		return s.expire(step.Replica)
	case Begin:
		return s.begin(step)
	case End:
		return s.end(step.Replica)
	case Deliver, First:
		return s.deliver(step)
	case Publish:
		return s.publish(r)
	case Read:
		return s.read(r)
	}
	return ErrNotPossible
}

// write writes an event at the version; 0: the next one.
func (s *State) write(version int64) error {
	for i := range s.Replicas {
		// "If the cluster has passed the remembered version before the receiver asks, the receiver
		// cannot notice the restore." (docs/reliability.md)
		if r := &s.Replicas[i]; r.Up && r.Restores < s.Restores && s.Newest+1 >= r.Known && !s.isNoticed() {
			return ErrNotPossible
		}
	}
	s.Newest = max(s.Newest+1, version)
	s.Events = append(s.Events, Event{
		Version: s.Newest, Exists: true, Published: s.Position, Required: s.Position > 0,
	})
	return nil
}

// isNoticed reports whether a process has noticed the last restore, or has published it.
func (s *State) isNoticed() bool {
	return s.History > 0 && !s.OfLost || slices.ContainsFunc(s.Replicas, func(r Replica) bool {
		return r.Up && r.Restores == s.Restores && r.History > s.History
	})
}

// restore also restores the ConfigMap with the position, which was stored between the writes of the
// last event that is kept and of the first that is lost. Its history is that of before all restores.
func (s *State) restore(step Step) error {
	if step.Version >= s.Newest {
		return ErrNotPossible
	}
	for _, e := range s.Events {
		if e.Exists && (e.Version == step.Version && step.Position < e.Published || e.Version == step.Version+1 && step.Position > e.Published) {
			return ErrNotPossible
		}
	}
	s.Newest, s.Position, s.History, s.OfLost, s.Disturbed = step.Version, step.Position, 0, false, true
	s.Restores++
	for i := range s.Events {
		s.Events[i].Exists = s.Events[i].Exists && s.Events[i].Version <= step.Version
	}
	for i := range s.Replicas {
		r := &s.Replicas[i]
		if known := max(r.Read, r.From); known > step.Version {
			r.Lost = known
		}
		if r.Up && r.Known <= step.Version { // It has seen nothing of what is lost: there is nothing to notice.
			r.Restores = s.Restores
		}
	}
	return nil
}

func (s *State) start(number int) error {
	r := &s.Replicas[number]
	if r.Up {
		return ErrNotPossible
	}
	*r = Replica{
		Up: true, Restores: s.Restores, Seen: s.Position, Read: s.Position, Of: s.History, Latest: s.History, History: s.History,
	}
	if s.OfLost {
		r.Lost = s.Position
	}
	if r.Seen == 0 { // Nobody has led: what exists is past.
		r.Seen = s.Newest
	}
	isFirst := r.Seen > s.Newest // The position is of a lost history: this is a first start.
	r.Seen = min(r.Seen, s.Newest)
	r.Known = r.Seen
	for i, e := range s.Events {
		if e.Exists && e.Version <= r.Seen {
			s.skip(r, i)
		}
	}
	if isFirst {
		r.endHistory()
	}
	return nil
}

// skip takes an event for delivered. "A receiver that starts after the restore, before any replica has
// published that it noticed it, may read a position of the lost history. It then takes what happened up
// to this position for delivered. The same applies to a replica that cannot notice the restore (…)."
// (docs/reliability.md)
func (s *State) skip(r *Replica, i int) {
	r.set(i, Settled)
	if e := &s.Events[i]; e.Version <= r.Lost {
		e.Required = false
	}
}

// observe lets a process see what was written up to the version; 0: the next one.
func (s *State) observe(r *Replica, version int64) error {
	isToNotice := r.Restores < s.Restores && s.Newest < r.Known // It asks before it connects again.
	if isToNotice || max(r.Seen+1, version) > s.Newest {
		return ErrNotPossible
	}
	before := r.Seen
	r.Seen = max(r.Seen+1, version)
	r.Known = max(r.Known, r.Seen)
	for i, e := range slices.Backward(s.Events) {
		if e.Exists && e.Version <= before {
			break // Of what exists, a later event has a higher version.
		}
		if e.Exists && e.Version <= r.Seen && r.hold(i) == Unseen {
			r.set(i, Waiting)
		}
	}
	if !r.Leads {
		return s.drop(r, r.latest())
	} else if before < r.From {
		return s.drop(r, r.From)
	}
	return nil
}

func (s *State) notice(r *Replica) error {
	if r.Restores == s.Restores || s.Newest >= r.Known {
		return ErrNotPossible
	}
	s.goBack(r)
	return nil
}

// goBack forgets all versions, and lists. What waits is forgotten, too, unless the list has it.
func (s *State) goBack(r *Replica) {
	r.Restores = s.Restores
	r.endHistory()
	for i, e := range s.Events {
		switch h := r.hold(i); {
		case h == Waiting && !e.Exists:
			r.set(i, Settled)
		case h == Unseen && e.Exists:
			r.set(i, Waiting)
		}
	}
	r.Seen, r.Known = s.Newest, s.Newest
}

// endHistory makes what was delivered before mean nothing: see position.Positions.EndHistory.
func (r *Replica) endHistory() {
	r.Reached, r.Owes, r.From, r.Lost = 0, false, 0, 0
	if r.Latest > r.History {
		r.History = r.Latest
	} else if r.Latest == r.History {
		r.History++
	}
}

func (s *State) elect(number int) error {
	if s.Lease != 0 || s.Replicas[number].Leads {
		return ErrNotPossible
	}
	s.Lease = number + 1
	return nil
}

func (s *State) release(number int) {
	if s.Lease == number+1 {
		s.Lease = 0
	}
}

// expire takes the lease from a leader that could not renew it. It delivers nothing more, and ends
// its term later.
func (s *State) expire(number int) error {
	if s.Lease != number+1 {
		return ErrNotPossible
	}
	s.release(number)
	s.Disturbed = true
	return nil
}

func (s *State) begin(step Step) error {
	r := &s.Replicas[step.Replica]
	if s.Lease != step.Replica+1 || r.Leads {
		return ErrNotPossible
	}
	if r.Leads = true; step.Fails {
		s.Disturbed = true
	} else {
		s.take(r)
	}
	if r.latest() > s.Newest { // The gate asks the cluster for its version.
		s.goBack(r)
	}
	r.From = r.latest()
	r.Known = max(r.Known, r.From)
	return s.drop(r, r.From)
}

// take notes what is stored. If it is of a later history, the process lists.
func (s *State) take(r *Replica) {
	r.Read, r.Of = s.Position, s.History
	if r.Latest = max(r.Latest, s.History); r.Latest > r.History {
		s.goBack(r)
	}
	if s.OfLost && r.Of == r.History {
		r.Lost = max(r.Lost, r.Read)
	}
}

// latest is what is known to be delivered.
func (r *Replica) latest() int64 {
	if r.Of != r.History {
		return r.Reached
	}
	return max(r.Reached, r.Read)
}

// drop takes out of what waits what a position reaches. This must be delivered.
func (s *State) drop(r *Replica, position int64) error {
	for i, e := range s.Events {
		if r.hold(i) != Waiting || e.Version > position {
			continue
		}
		// After a restore, a leader that has not noticed it yet may have published the position. It lists,
		// and delivers the event.
		if e.Required && e.Delivered == 0 && s.Restores == 0 {
			return lost(e, "a position reaches it, and nobody has delivered it")
		}
		s.skip(r, i)
	}
	return nil
}

// end ends a term. What it owes, it publishes before, or as a standby.
func (s *State) end(number int) error {
	r := &s.Replicas[number]
	if !r.Leads {
		return ErrNotPossible
	}
	s.Disturbed = s.Disturbed || r.Owes
	r.Leads = false
	s.release(number)
	return s.drop(r, r.latest())
}

func (s *State) deliver(step Step) error {
	r := &s.Replicas[step.Replica]
	isFull := step.Kind == Deliver && !step.Fails && step.Events == nil
	due := r.due(step)
	if !r.Leads || s.Lease != step.Replica+1 || len(due) == 0 && (!isFull || r.Reached >= r.Seen) {
		return ErrNotPossible
	}
	if step.Fails {
		for _, i := range due {
			s.Events[i].Delivered++
		}
	} else {
		s.settle(r, step)
	}
	if isFull {
		r.advance(r.Seen)
	}
	s.Disturbed = s.Disturbed || !isFull
	return nil
}

// settle delivers what a step delivers of what waits.
func (s *State) settle(r *Replica, step Step) {
	for _, i := range r.due(step) {
		s.Events[i].Delivered++
		r.set(i, Settled)
	}
}

// due returns what a step delivers of what waits.
func (r *Replica) due(step Step) (due []int) {
	waits := func(i int) bool { return r.hold(i) == Waiting }
	for _, i := range step.Events {
		if waits(i) {
			due = append(due, i)
		}
	}
	for i := 0; step.Events == nil && i < len(r.Holds); i++ {
		if waits(i) {
			due = append(due, i)
		}
	}
	if step.Kind == First {
		due = due[:min(1, len(due))]
	}
	return due
}

// advance notes that all is delivered up to the version.
func (r *Replica) advance(to int64) {
	if to > r.Reached {
		r.Reached = to
		r.Owes = r.Owes || r.Of != r.History || r.Reached > r.Read
	}
}

// publish also publishes what may be published already: a leader does so every 30 s, because a restore
// may have taken it back. A standby publishes that it has noticed a restore.
func (s *State) publish(r *Replica) error {
	isAhead := !r.Leads && r.Read > 0 && r.Of < r.History
	if !r.Owes && !isAhead && (!r.Leads || r.Reached == 0) {
		return ErrNotPossible
	}
	hasNoticed := r.Restores == s.Restores
	switch {
	case r.History > s.History: // A version of an earlier history means the beginning of this one.
		s.Position, s.History, s.OfLost = max(r.Reached, min(s.Position, 1)), r.History, !hasNoticed
	case r.History == s.History && r.Reached >= s.Position:
		s.OfLost = !hasNoticed && (s.OfLost || r.Reached > s.Position)
		s.Position = r.Reached
	}
	r.Owes = false
	s.take(r)
	return nil
}

func (s *State) read(r *Replica) error {
	if r.Leads || r.Owes || r.Read == s.Position && r.Of == s.History {
		return ErrNotPossible
	}
	s.take(r)
	return s.drop(r, r.latest())
}
