// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// The states of a change.
const (
	Happened = "happened" // or began, if it has an end
	Over     = "over"     // the state of a node, or a rollout, with its outcome
)

// maxChanges bounds the changes of a namespace within an hour: anybody may write any number of Events there.
const maxChanges = 300

// Change is what is kept of a change that was reported.
type Change struct {
	ID      string       `json:"id"`
	Key     incident.Key `json:"workload"`
	Kind    string       `json:"kind"`
	Text    string       `json:"text"`
	Object  string       `json:"object"`
	At      time.Time    `json:"time"`
	Until   time.Time    `json:"until,omitzero"` // zero: it goes on, or it is no state
	Outcome string       `json:"outcome,omitempty"`
	IsOver  bool         `json:"over,omitempty"` // its end was reported, too
}

// size is about how many bytes the change takes.
func (c *Change) size() int {
	return 400 + len(c.Text) + len(c.Object) + len(c.Key.Namespace) + len(c.Key.Top.Name)
}

// Changes follow changes, and keep them for 30 days. The zero value knows none. They must not be used concurrently.
type Changes struct {
	all   map[string]Change // by incident.Change.ID
	bytes int
}

// News is something that happened, or is over, and was not reported.
type News struct {
	ID, State string
	incident.Change
}

// Look returns what was not reported, the oldest first. It waits a moment for what else the records say about
// a change. If it is blind, events may be missing, so nothing is over.
func (c *Changes) Look(now time.Time, shown []incident.Change, isBlind bool) (news []News) {
	counts := map[Space]int{}
	for _, known := range c.all {
		switch age := now.Sub(known.At); {
		case age > KeptFor:
			c.drop(known)
		case age <= incident.Horizon:
			counts[SpaceOf(known.Key)]++
		}
	}
	c.bound()
	for i := range shown {
		change := &shown[i]
		id, in := change.ID(), SpaceOf(change.Key)
		known, isKnown := c.all[id]
		if now.Sub(change.At) < settle || !isKnown && counts[in] >= maxChanges {
			continue
		}
		if !isKnown {
			counts[in]++
			news = append(news, News{id, Happened, *change})
		}
		isOver := !isBlind && change.IsOver(now)
		endsNow := isOver && !known.IsOver
		if endsNow {
			news = append(news, News{id, Over, *change})
		}
		if endsNow || !isKnown {
			c.Keep(Change{id, change.Key, change.Kind, change.Text, change.Object, change.At, change.Until, change.Outcome, isOver})
		}
	}
	slices.SortStableFunc(news, byTime)
	return news
}

// LookBack returns the states that are over, and began before what a model knows: a cordon can last for a day.
func (c *Changes) LookBack(now time.Time, endOf func(k incident.Key, text string, since time.Time) time.Time) (news []News) {
	for _, known := range c.all {
		if known.IsOver || known.Outcome != "" || now.Sub(known.At) < incident.Horizon {
			continue
		}
		if known.Until = endOf(known.Key, known.Text, known.At); !known.Until.IsZero() {
			known.IsOver = true
			c.Keep(known)
			change := incident.Change{Kind: known.Kind, Text: known.Text, At: known.At, Until: known.Until, Key: known.Key, Object: known.Object}
			news = append(news, News{known.ID, Over, change})
		}
	}
	slices.SortFunc(news, byTime)
	return news
}

// byTime compares the times of changes, and the ids of those at the same time.
func byTime(a, b News) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) }

// Keep keeps a change that was reported, in place of what is known of it.
func (c *Changes) Keep(change Change) {
	if c.all == nil {
		c.all = map[string]Change{}
	}
	if known, ok := c.all[change.ID]; ok {
		c.bytes -= known.size()
	}
	c.all[change.ID] = change
	c.bytes += change.size()
}

// Get returns the change with an id; the zero value if it is not known.
func (c *Changes) Get(id string) Change { return c.all[id] }

// All yields all changes, in any order.
func (c *Changes) All(yield func(Change) bool) {
	for _, change := range c.all {
		if !yield(change) {
			return
		}
	}
}

// Since returns the changes at a time or later, the newest first.
func (c *Changes) Since(at time.Time) (all []Change) {
	for _, change := range c.all {
		if !change.At.Before(at) {
			all = append(all, change)
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) })
	return all
}

func (c *Changes) drop(change Change) {
	c.bytes -= change.size()
	delete(c.all, change.ID)
}

// bound drops the oldest of the namespace that takes most, if there is not room for all.
func (c *Changes) bound() {
	if c.bytes <= maxChangesBytes {
		return
	}
	sizes := make([]kept, 0, len(c.all))
	for _, change := range slices.SortedFunc(maps.Values(c.all), func(a, b Change) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) }) {
		sizes = append(sizes, kept{change.ID, SpaceOf(change.Key), change.size()})
	}
	for id := range beyond(sizes, maxChangesBytes) {
		c.drop(c.all[id])
	}
}
