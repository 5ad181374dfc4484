// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The states of a change.
const (
	Happened = "happened" // or began, if it has an end
	Over     = "over"     // the state of a node, or a rollout, with its outcome
)

const (
	// maxChanges bounds the changes of a namespace within an hour: anybody may write any number of
	// Events there.
	maxChanges = 300
)

// Told is a change of which there was a record.
type Told struct {
	Key  incident.Key `json:"workload"`
	At   time.Time    `json:"time"`
	Over bool         `json:"over,omitempty"` // its end was told, too
}

// Changes remember which changes were told. The zero value remembers none.
type Changes struct {
	Told map[string]Told `json:"told,omitempty"` // by incident.Change.ID
}

// News is something that happened, or is over, and was not told.
type News struct {
	ID, State string
	incident.Change
}

// Look returns what was not told, the oldest first. It waits a moment for what else the records say about
// a change.
func (c *Changes) Look(now time.Time, shown []incident.Change) (news []News) {
	counts := map[space]int{}
	for id, t := range c.Told {
		if now.Sub(t.At) > 2*incident.Horizon {
			delete(c.Told, id)
		} else if now.Sub(t.At) <= incident.Horizon {
			counts[spaceOf(t.Key)]++
		}
	}
	for i := range shown {
		change := &shown[i]
		id, in := change.ID(), spaceOf(change.Key)
		told, isKnown := c.Told[id]
		if now.Sub(change.At) < settle || !isKnown && counts[in] >= maxChanges {
			continue
		}
		if !isKnown {
			counts[in]++
			told = Told{Key: change.Key, At: change.At}
			news = append(news, News{id, Happened, *change})
		}
		if isOver(change) && !told.Over {
			told.Over = true
			news = append(news, News{id, Over, *change})
		}
		c.Tell(id, told)
	}
	slices.SortStableFunc(news, func(a, b News) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return news
}

// Tell notes that a change was told.
func (c *Changes) Tell(id string, told Told) {
	if c.Told == nil {
		c.Told = map[string]Told{}
	}
	c.Told[id] = told
}

// isOver reports whether a state has ended, or the outcome of a rollout is known.
func isOver(c *incident.Change) bool {
	return !c.Until.IsZero() || c.Outcome == rollout.Complete || c.Outcome == rollout.Failed || c.Outcome == rollout.Superseded
}
