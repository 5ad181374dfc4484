// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// answer says what changed before the first warning of a workload. If another warning is older than
// the newest change, then First is the first one after this change.
type answer struct {
	First   record    `json:"first_warning"`
	Older   *record   `json:"older_warning,omitempty"` // the oldest that is known
	Changes []change  `json:"changes"`                 // the newest first
	Nothing string    `json:"nothing_known,omitempty"` // why there are no changes
	Behind  bool      `json:"clock_behind,omitempty"`  // that of the node of the first warning
	Since   time.Time `json:"records_since"`
}

// change is something that happened before the warning. Its text is what its records say.
type change struct {
	Kind    string    `json:"kind"`
	Text    string    `json:"text"`
	Time    time.Time `json:"time"`
	Seconds int64     `json:"seconds_before"` // the first warning
	Object  string    `json:"object"`         // the revision, node, autoscaler or pod
	From    *int      `json:"from,omitempty"` // replicas
	To      *int      `json:"to,omitempty"`
	Records []record  `json:"records"`

	until  time.Time     // the end of a state; zero: it has not ended
	late   time.Duration // how long before its record the change can have occurred
	left   time.Time     // when a pod left the node because of the change; zero: none did
	behind bool          // the clock of the warning is behind, so that Seconds is the least
}

// The kinds of changes.
const (
	kindRollout    = "rollout"
	kindScaling    = "scaling"
	kindAutoscaler = "autoscaler"
	kindNode       = "node"
	kindPreemption = "preemption"
	kindEviction   = "eviction"
	kindPod        = "pod" // was created; see explain
)

// maxChanges bounds the changes of an answer. An outage of many nodes must not displace the others.
const (
	maxChanges     = 5
	maxNodeChanges = 2
)

// rolloutPause is the time after which a new pod, or another scaling, is probably not an effect of a change.
const rolloutPause = 10 * time.Minute

// afterEffect is how long after its end a state of a node counts as a change.
const afterEffect = time.Minute

// explain returns what changed before the first warning; nil: there is no warning. Both lists are in
// the order of time. since is the time of the page's oldest record. The creation of a pod is an effect of most
// changes, so that it counts only without them, or long after them.
func explain(warnings []record, changes []change, since time.Time) *answer {
	if len(warnings) == 0 {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return c.Kind == kindPod })
	a := explainBy(warnings, others)
	if len(a.Changes) == 0 {
		a = explainBy(warnings, changes)
	} else {
		a.addOwnPod(changes)
	}
	a.Since = since
	switch {
	case len(a.Changes) > 0:
	case a.First.warnedAt().Before(since):
		a.Nothing = "Nothing is known: the first warning is older than the page’s first record."
	default:
		a.Nothing = "Nothing is known: the page has no record of a change before the first warning."
	}
	return a
}

// explainBy starts with the newest change that a warning followed.
func explainBy(warnings []record, changes []change) *answer {
	a := &answer{First: warnings[0], Changes: []change{}}
	for _, c := range slices.Backward(changes) {
		if i := slices.IndexFunc(warnings, c.precedes); i >= 0 {
			a.First = warnings[i]
			if i > 0 {
				a.Older = &warnings[0]
			}
			break
		}
	}
	a.Behind = a.First.isBehind()
	known, nodes := map[string]bool{}, 0
	for _, c := range slices.Backward(changes) {
		key := c.key()
		if !c.precedes(a.First) || known[key] || len(a.Changes) == maxChanges || c.Kind == kindNode && nodes == maxNodeChanges {
			continue
		}
		known[key] = true
		if c.Kind == kindNode {
			nodes++
		}
		a.Changes = append(a.Changes, a.follow(c))
	}
	return a
}

// follow returns the change with the time from it to the warning.
func (a *answer) follow(c change) change {
	c.Seconds, c.behind = a.First.warnedAt().Unix()-c.Time.Unix(), a.Behind
	return c
}

// addOwnPod adds the creation of the pod that the warning is about, if it is much newer than all other changes:
// then these did not make the pod.
func (a *answer) addOwnPod(changes []change) {
	for _, c := range slices.Backward(changes) {
		if c.Kind != kindPod || c.Object != a.First.Object || !c.precedes(a.First) {
			continue
		}
		if c.Time.Sub(a.Changes[0].Time) > rolloutPause {
			a.Changes = slices.Insert(a.Changes, 0, a.follow(c))
			a.Changes = a.Changes[:min(len(a.Changes), maxChanges)]
		}
		return
	}
}

// precedes reports whether the change can be before the warning, or in the same second. The record of a node's
// reboot is a warning, too, which does not explain itself.
func (c change) precedes(warning record) bool {
	if c.Records[0].UID == warning.UID || !c.concerns(&warning) {
		return false
	}
	at := warning.warnedAt()
	return inSeconds(c.Time.Add(-c.late), at) <= 0 && (c.until.IsZero() || !at.After(c.until.Add(afterEffect)))
}

// concerns reports whether the change can matter to the object of the warning. The Jobs of a CronJob can
// overlap. A pod's creation matters to other pods only if it began a rollout.
func (c change) concerns(warning *record) bool {
	kind, name, _ := strings.Cut(warning.Object, "/")
	job, isJob := strings.CutPrefix(c.Object, "job.batch/")
	switch {
	case isJob && (kind == "pod" || kind == "job.batch"):
		return name == job || strings.HasPrefix(name, job+"-")
	case c.Kind == kindPod && kind == "pod":
		return c.Object == warning.Object
	case c.Kind == kindNode && warning.node != "" && c.Object != "node/"+warning.node:
		return c.madeRoomFor(warning)
	}
	return true
}

// madeRoomFor reports whether the pod of the warning was created right after another one had left the node of the
// change.
func (c change) madeRoomFor(warning *record) bool {
	pause := warning.created.Sub(c.left)
	return !c.left.IsZero() && pause > -time.Second && pause < rolloutPause
}

// key is the same for changes of which an answer has only the newest.
func (c change) key() string {
	switch c.Kind {
	case kindNode:
		return c.Object + c.Records[0].Reason
	case kindRollout, kindScaling:
		return c.Kind + c.Records[len(c.Records)-1].Object // A custom resource can own several Deployments.
	}
	return c.Kind
}

// Before returns how long before the warning the change was.
func (c change) Before() string {
	switch {
	case c.Seconds < 0:
		return fmt.Sprintf("as reported %d s after", -c.Seconds)
	case c.behind:
		return "before"
	case c.Seconds == 0:
		return "in the same second as"
	case c.Seconds < 120:
		return fmt.Sprintf("%d s before", c.Seconds)
	default:
		return fmt.Sprintf("%d min before", c.Seconds/60)
	}
}

// records returns the records of the answer, the oldest first.
func (a *answer) records() (all []record) {
	if a == nil {
		return nil
	}
	all = append(all, a.First)
	if a.Older != nil {
		all = append(all, *a.Older)
	}
	for _, c := range a.Changes {
		all = append(all, c.Records...)
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.UID, b.UID)) })
	return slices.CompactFunc(all, func(a, b record) bool { return a.UID == b.UID })
}

// evidence is a link to a record on the page of its workload.
type evidence struct {
	Address, Reason, Object string
	At                      time.Time
}

// Link returns the link to a record of the answer. It names the object of a warning: a card is about many.
func (c *card) Link(r record) evidence {
	e := evidence{Address: c.Address + "#record-" + url.PathEscape(r.UID), Reason: r.Reason, At: r.since}
	if r.Type != "Normal" {
		e.Object = r.Object
	}
	return e
}
