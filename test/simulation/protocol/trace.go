// SPDX-License-Identifier: Apache-2.0

package protocol

import "fmt"

// Trace has the steps of a run that can be seen from outside of the processes:
//
//	Write    is a write of an event.
//	Start    is the first answer with the Position. With Fails, the process lists without one.
//	Elect    is a write of the Lease by a new holder. With Fails, it may not get the Position in time, or not
//	         learn the newest version.
//	Read     is an answer with the Position. With Fails, it may be lost on its way.
//	Deliver  is one accepted record. Events are what it reports, the last one at the end. With Fails, the
//	         process lost the lease after it had begun to deliver it.
//	Publish  is a write of the Position.
//
// Version is the newest one of the cluster at each step: other objects are written, too. The model's
// other steps are added where one of these needs them.
type Trace []Step

// Follow lets the model take the steps of a trace. The error names the first one that it cannot take.
func Follow(replicas int, trace Trace) error {
	s := New(replicas)
	for i, step := range trace {
		if err := s.follow(step); err != nil {
			return fmt.Errorf("step %d of the trace, %q: %w", i, step, err)
		}
	}
	return nil
}

// follow takes the steps that must have come before, and then the step.
func (s *State) follow(step Step) error {
	r := &s.Replicas[step.Replica]
	var err error
	if step.Kind != Write {
		s.Newest = max(s.Newest, step.Version)
	}
	switch step.Kind {
	case Start:
		err = s.followStart(step)
	case Elect:
		err = s.followElect(step)
	case Read:
		err = s.followRead(step)
	case Deliver:
		last := step.Events[len(step.Events)-1]
		if last >= len(s.Events) {
			return ErrNotPossible
		}
		if err = s.see(r, s.Events[last].Version); err == nil && step.Fails {
			s.settle(r, step)
		} else if err == nil {
			err = s.Apply(step)
		}
	case Publish:
		if step.History > r.History {
			r.endHistory()
		}
		if err = s.deliverUpTo(r, step.Position); err == nil {
			err = s.Apply(step)
		}
	default:
		err = s.Apply(step)
	}
	isOfPosition := step.Kind == Start && !step.Fails || step.Kind == Read || step.Kind == Publish
	if err == nil && isOfPosition && (step.Position != s.Position || step.History != s.History) {
		err = fmt.Errorf("the position is %d of history %d, and not %d of %d", s.Position, s.History, step.Position, step.History)
	}
	return err
}

// followStart ends the process before: its end is not in the trace, because requests that it made
// before may be answered later.
func (s *State) followStart(step Step) error {
	r := &s.Replicas[step.Replica]
	if r.Up {
		if err := s.Apply(Step{Kind: Crash, Replica: step.Replica}); err != nil {
			return err
		}
	}
	if step.Fails { // start_at decides about what exists.
		*r = Replica{Up: true, Perhaps: s.Newest}
		return nil
	}
	return s.Apply(step)
}

// followElect ends the terms before: the end of a term cannot be seen.
func (s *State) followElect(step Step) error {
	if s.Lease != 0 {
		if err := s.Apply(Step{Kind: Expire, Replica: s.Lease - 1}); err != nil {
			return err
		}
	}
	if s.Replicas[step.Replica].Leads {
		if err := s.Apply(Step{Kind: End, Replica: step.Replica}); err != nil {
			return err
		}
	}
	if err := s.Apply(step); err != nil || !step.Fails {
		return err
	}
	err := s.Apply(Step{Kind: Begin, Replica: step.Replica, Fails: true})
	if r := &s.Replicas[step.Replica]; err == nil && r.From > r.Seen {
		// Whether it takes the position for void cannot be seen before it publishes its own.
		r.Perhaps, r.From = max(r.Perhaps, r.From), 0
	}
	return err
}

// followRead begins the term with the first answer after the election. A leader reads the position
// before it publishes. This is a part of Publish in the model, as is what a standby drops.
func (s *State) followRead(step Step) error {
	r := &s.Replicas[step.Replica]
	switch {
	case !r.Up:
		return ErrNotPossible
	case step.Fails:
		r.Perhaps = max(r.Perhaps, s.Position)
	case !r.Leads && s.Lease == step.Replica+1:
		return s.Apply(Step{Kind: Begin, Replica: step.Replica})
	case r.Leads:
		s.take(r)
	case r.Read != s.Position || r.Of != s.History:
		return s.Apply(step)
	}
	return nil
}

// see lets a process see the events up to the version.
func (s *State) see(r *Replica, version int64) error {
	if r.Seen >= version {
		return nil
	}
	return s.observe(r, version)
}

// deliverUpTo notes that nothing waits that a position reaches which a leader publishes. The end of
// its term cannot be seen: it may publish late.
func (s *State) deliverUpTo(r *Replica, position int64) error {
	if !r.Leads {
		return ErrNotPossible
	}
	if err := s.see(r, position); err != nil {
		return err
	}
	if err := s.drop(r, min(position, r.latest())); err != nil {
		return err
	}
	for i, e := range s.Events {
		if r.hold(i) == Waiting && e.Version <= position && e.Version > r.Perhaps {
			return fmt.Errorf("the position reaches event %d, which waits", i)
		}
	}
	r.advance(position)
	return nil
}
