// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"slices"
)

// Bounds say how much may happen in the states that Explore visits.
type Bounds struct {
	Events   int // that are written
	Crashes  int
	Restores int
	Faults   int // others: a lease or an answer that is lost, a position that cannot be read
}

// BrokenError is a promise that a sequence of steps breaks.
type BrokenError struct {
	Steps []Step
	Err   error
}

func (b *BrokenError) Error() string {
	text := b.Err.Error() + ":"
	for _, step := range b.Steps {
		text += "\n\t" + step.String()
	}
	return text
}

// node is a state on the way from the first one.
type node struct {
	state *State
	left  Bounds // what may still happen
	from  int    // the node before; -1: none
	step  Step
}

// Explore visits every state within the bounds, the nearest first, from one in which two replicas
// run and the first has led. It returns how many there are, and the shortest way to a broken promise;
// nil: none is broken.
func Explore(b Bounds) (states int, broken *BrokenError) { return explore(b, func(*State) {}) }

// explore calls before with a copy of a state before each step.
func explore(b Bounds, before func(*State)) (states int, broken *BrokenError) {
	nodes, visited := []node{{state: started(), left: b, from: -1}}, map[string]bool{}
	for at := 0; at < len(nodes); at++ {
		n := nodes[at]
		if err := n.state.check(); err != nil {
			return at, way(nodes, at, nil, err)
		}
		for _, step := range n.state.steps() {
			left, ok := n.left.after(step, n.state.isFault(step))
			if !ok {
				continue
			}
			next := n.state.Clone()
			before(next)
			if err := next.Apply(step); errors.Is(err, ErrNotPossible) {
				continue
			} else if err != nil {
				return at, way(nodes, at, &step, err)
			}
			key := next.Key() + string([]byte{byte(left.Crashes), byte(left.Restores), byte(left.Faults)})
			if !visited[key] {
				visited[key] = true
				nodes = append(nodes, node{next, left, at, step})
			}
		}
		nodes[at].state = nil
	}
	return len(nodes), nil
}

// started returns a state in which two replicas run, and the first one has led.
func started() *State {
	s := New(2)
	for _, step := range []Step{
		{Kind: Write}, {Kind: Start}, {Kind: Start, Replica: 1}, {Kind: Elect}, {Kind: Begin}, {Kind: Deliver}, {Kind: Publish},
		{Kind: Read, Replica: 1},
	} {
		if err := s.Apply(step); err != nil {
			panic(fmt.Sprint(step, ": ", err)) // They do not depend on anything.
		}
	}
	return s
}

// after returns what may still happen after a step. ok is false if the step may not.
func (b Bounds) after(step Step, isFault bool) (left Bounds, ok bool) {
	switch {
	case step.Kind == Write:
		b.Events--
	case step.Kind == Crash:
		b.Crashes--
	case step.Kind == Restore:
		b.Restores--
	case isFault:
		b.Faults--
	}
	return b, min(b.Events, b.Crashes, b.Restores, b.Faults) >= 0
}

func way(nodes []node, at int, last *Step, err error) *BrokenError {
	var steps []Step
	if last != nil {
		steps = append(steps, *last)
	}
	for ; nodes[at].from >= 0; at = nodes[at].from {
		steps = append(steps, nodes[at].step)
	}
	slices.Reverse(steps)
	return &BrokenError{steps, err}
}

// steps are those that may be possible.
func (s *State) steps() []Step {
	steps := []Step{{Kind: Write}}
	for version := int64(1); version < s.Newest; version++ { // Before the first event, there was no receiver.
		for position := range version + 1 {
			steps = append(steps, Step{Kind: Restore, Version: version, Position: position})
		}
	}
	for r := range s.Replicas {
		for _, kind := range []Kind{Start, Crash, Observe, Notice, Elect, Expire, Begin, End, Deliver, First, Publish, Read} {
			steps = append(steps, Step{Kind: kind, Replica: r})
		}
		steps = append(steps, Step{Kind: Begin, Replica: r, Fails: true}, Step{Kind: Deliver, Replica: r, Fails: true})
	}
	return steps
}

// check checks the promises that hold in each state.
func (s *State) check() error {
	for i, e := range s.Events {
		if e.Delivered > 1 && !s.Disturbed {
			return fmt.Errorf("event %d is repeated, though every term ended in an orderly way", i)
		}
	}
	return s.Clone().calm()
}

// settling are the steps that happen if nothing else does.
var settling = []Kind{Start, Notice, Observe, Publish, Read, Elect, Begin, Deliver}

// calm lets everything happen that has to, without another fault. Then every event is delivered.
func (s *State) calm() error {
	for again := true; again; {
		again = false
		for r := range s.Replicas {
			for _, kind := range settling {
				err := s.Apply(Step{Kind: kind, Replica: r})
				if err != nil && !errors.Is(err, ErrNotPossible) {
					return err
				}
				again = again || err == nil
			}
			if s.Replicas[r].Leads && s.Lease != r+1 {
				again = s.Apply(Step{Kind: End, Replica: r}) == nil || again
			}
		}
	}
	for i, e := range s.Events {
		if e.Required && e.Exists && e.Delivered == 0 {
			return lost(i, "nobody delivers it, when all works again")
		}
	}
	return nil
}
