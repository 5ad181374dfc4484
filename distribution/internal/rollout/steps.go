// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// Step is a scaling of a revision, at a time in nanoseconds since 1970.
type Step struct {
	At       int64
	Up       bool
	From, To int // replicas; From is -1 if the message of a scale-down does not have it
}

// MarshalText makes it possible that a step is a key in JSON.
func (s Step) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d %t %d %d", s.At, s.Up, s.From, s.To), nil
}

// UnmarshalText reads what MarshalText wrote.
func (s *Step) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%d %t %d %d", &s.At, &s.Up, &s.From, &s.To)
	return err
}

// compareSteps orders by time. Within a second, scale-downs come first, from the highest To to the
// lowest; then scale-ups, from the lowest To to the highest.
func compareSteps(a, b Step) int {
	towards := func(s Step) int {
		if s.Up {
			return s.To
		}
		return -s.To
	}
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(towards(a), towards(b)), cmp.Compare(a.From, b.From))
}

// stepsOf returns the steps that an Event shows: at its last time, and at its first time if it has
// occurred before. Those between are not known.
func stepsOf(e Event, s record.Scaling) map[Step]bool {
	return map[Step]bool{
		{e.First, s.Up, s.From, s.To}: true,
		{e.Last, s.Up, s.From, s.To}:  true,
	}
}

// joinSteps reports whether a step is new, and was kept. If there are too many, it drops those in
// the middle: the first ones tell how a rollout began, and the last ones how many pods there are.
func (r *Revision) joinSteps(in map[Step]bool) bool {
	var added []Step
	for s := range in {
		if r.Steps[s] {
			continue
		}
		put(&r.Steps, s, true)
		added = append(added, s)
	}
	if len(r.Steps) > maxSteps {
		all := r.steps()
		for _, s := range all[maxSteps/2 : len(all)-maxSteps/2] {
			delete(r.Steps, s)
		}
	}
	return slices.ContainsFunc(added, func(s Step) bool { return r.Steps[s] })
}

// steps are scalings of a revision, in the order of time.
type steps []Step

func (r *Revision) steps() steps { return slices.SortedFunc(maps.Keys(r.Steps), compareSteps) }

// always is a time after all others.
const always = int64(math.MaxInt64)

// since returns the steps from a time on, and the newest one before them. ok is false if no record
// shows one.
func (all steps) since(at int64) (later steps, before Step, ok bool) {
	i, _ := slices.BinarySearchFunc(all, at, func(s Step, at int64) int { return cmp.Compare(s.At, at) })
	if i == 0 {
		return all, before, false
	}
	return all[i:], all[i-1], true
}

// toZero returns when the revision was first scaled to zero after a time; 0: no record shows it.
func (all steps) toZero(after int64) int64 {
	later, _, _ := all.since(after + 1)
	for _, s := range later {
		if s.To == 0 {
			return s.At
		}
	}
	return 0
}

// down returns when the revision was last scaled down between two times; 0: no record shows it.
func (all steps) down(from, until int64) (last int64) {
	later, _, _ := all.since(from)
	for _, s := range later {
		if !s.Up && s.At < until {
			last = s.At
		}
	}
	return last
}

// replicas returns how many pods the revision had at a time.
func (all steps) replicas(at int64) int {
	later, before, _ := all.since(at)
	for _, s := range later {
		if s.From >= 0 {
			return s.From
		}
	}
	return before.To
}
