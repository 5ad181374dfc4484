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
	key   string
	state *State // nil: what follows is among the nodes
	left  Bounds // what may still happen
	from  int    // the node before; -1: none
	step  *Step
}

// Explore visits every state within the bounds, the nearest first, from one in which two replicas
// run and the first has led. It returns how many there are, and the shortest way to a broken promise;
// nil: none is broken.
func Explore(b Bounds) (states int, broken *BrokenError) { return explore(b, func(*State) {}) }

// explore calls change with each state that a step leads to.
func explore(b Bounds, change func(*State)) (states int, broken *BrokenError) {
	nodes, visited := []node{{state: started(), left: b, from: -1}}, map[string]bool{}
	for at := 0; at < len(nodes); at++ {
		broken := nodes[at].follow(change, func(key []byte, s *State, left Bounds, step *Step) {
			if !visited[string(key)] {
				nodes = append(nodes, node{string(key), s.Clone(), left, at, step})
				visited[nodes[len(nodes)-1].key] = true
			}
		})
		if broken != nil {
			broken.Steps = append(way(nodes, at), broken.Steps...)
			return at, broken
		}
		nodes[at].state = nil
	}
	return len(nodes), nil
}

// follow calls found with each state that follows. When all works again, every event is delivered: the
// steps that must happen then follow every state, and no bound counts them. So it is enough to look at
// the states in which none of them changes anything. They always end there: a process starts, notices
// a restore and takes the lease a limited number of times, and lists once after each of these; between
// two lists, versions and positions only grow, and an event is delivered once.
func (n node) follow(change func(*State), found func(key []byte, s *State, left Bounds, step *Step)) *BrokenError {
	next, key, isCalm := n.state.Clone(), make([]byte, 0, 128), true
	for i := range stepsAt[n.state.Newest] {
		step := &stepsAt[n.state.Newest][i]
		left, ok := n.left.after(*step, n.state.isFault(*step))
		if !ok {
			continue
		}
		if err := next.Apply(*step); errors.Is(err, ErrNotPossible) {
			continue
		} else if err != nil {
			return &BrokenError{[]Step{*step}, err}
		}
		change(next)
		key = next.appendFuture(key[:0], left)
		isCalm = isCalm && (string(key) == n.key || !n.state.settles(*step))
		found(key, next, left, step)
		next.become(n.state)
	}
	if err := n.state.check(isCalm); err != nil {
		return &BrokenError{Err: err}
	}
	return nil
}

// appendFuture appends the same key for states with the same future only. The state forgets what has
// none.
func (s *State) appendFuture(key []byte, left Bounds) []byte {
	for i := range slices.Backward(s.Events) {
		s.forget(i, left)
	}
	return append(s.appendKey(key), byte(left.Events), byte(left.Crashes), byte(left.Restores), byte(left.Faults))
}

// forget takes out an event that may be repeated, and need not be delivered: whether it waits only
// decides whether a delivery is possible that changes nothing else.
func (s *State) forget(i int, left Bounds) {
	e := &s.Events[i]
	e.Required = e.Required && e.Exists && e.Delivered == 0
	if left.Restores == 0 { // Only restore compares it.
		e.Published = 0
	}
	if s.Disturbed { // It may be repeated.
		e.Delivered = 0
	}
	if !s.Disturbed || e.Required || left.Faults > 0 || e.Exists && left.Restores > 0 {
		return // A fault may deliver a part of what waits, and restore compares versions.
	}
	s.Events = slices.Delete(s.Events, i, i+1)
	for j := range s.Replicas {
		if r := &s.Replicas[j]; i < len(r.Holds) {
			r.Holds = slices.Delete(r.Holds, i, i+1)
		}
	}
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

// way returns the steps to a node.
func way(nodes []node, at int) (steps []Step) {
	for ; nodes[at].from >= 0; at = nodes[at].from {
		steps = append(steps, *nodes[at].step)
	}
	slices.Reverse(steps)
	return steps
}

// stepsAt are those that may be possible, by the newest version.
var stepsAt [8][]Step

func init() {
	for newest := range stepsAt {
		stepsAt[newest] = stepsOf(int64(newest))
	}
}

func stepsOf(newest int64) []Step {
	steps := []Step{{Kind: Write}}
	for version := int64(1); version < newest; version++ { // Before the first event, there was no receiver.
		for position := range version + 1 {
			steps = append(steps, Step{Kind: Restore, Version: version, Position: position})
		}
	}
	for r := range 2 {
		for _, kind := range []Kind{Start, Crash, Observe, Notice, Elect, Expire, Begin, End, Deliver, First, Publish, Read} {
			steps = append(steps, Step{Kind: kind, Replica: r})
		}
		steps = append(steps, Step{Kind: Begin, Replica: r, Fails: true}, Step{Kind: Deliver, Replica: r, Fails: true})
	}
	return steps
}

// settles reports whether a step must happen sooner or later.
func (s *State) settles(step Step) bool {
	switch step.Kind {
	case Start, Notice, Observe, Publish, Read, Elect, Begin, Deliver:
		return !step.Fails
	case End:
		return s.Replicas[step.Replica].Leads && s.Lease != step.Replica+1
	}
	return false
}

// check checks the promises. The state is calm if nothing has to happen.
func (s *State) check(isCalm bool) error {
	for _, e := range s.Events {
		if e.Delivered > 1 && !s.Disturbed {
			return fmt.Errorf("the event of version %d is repeated, though every term ended in an orderly way", e.Version)
		}
		if isCalm && e.Required && e.Exists && e.Delivered == 0 {
			return lost(e, "nobody delivers it, when all works again")
		}
	}
	return nil
}
