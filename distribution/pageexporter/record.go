// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"slices"
	"time"
)

// maxEvidence is the number of bytes of a message that is kept with a statement.
const maxEvidence = 256

// record is a record of an event that a statement of the page rests on.
type record struct {
	UID       string    `json:"uid"` // log.record.uid
	Time      time.Time `json:"time"`
	FirstTime time.Time `json:"first_time"` // the first occurrence of the event
	Type      string    `json:"type"`
	Reason    string    `json:"reason"`
	Namespace string    `json:"namespace,omitempty"`
	Object    string    `json:"object"`
	Message   string    `json:"message"`

	event   string    // the event's UID
	written time.Time // Time, as the producer wrote it
	pod     string    // the UID of the pod that it is about
	node    string    // of this pod; empty: the record does not name it
	created time.Time // when this pod was created or scheduled; zero: not known
	since   time.Time // of a warning: its first occurrence, or the first one after a pause; else Time
	last    time.Time // when the event was last seen
	began   string    // the revision whose rollout the record began; empty: none is known
	// replaced is the revision of the pod that was in the place of the new one; see rollout.Introduction.
	replaced string
}

func recordOf(e *entry) record {
	r := record{
		UID: e.id, Time: e.at, FirstTime: e.at, Type: e.of[traitType], Reason: e.of[traitReason], Namespace: e.of[traitNamespace],
		Object: e.chain[len(e.chain)-1].String(), Message: cut(e.message, maxEvidence), event: e.event, written: e.written, pod: e.pod, node: e.node, since: e.at, last: e.at,
	}
	if !e.since.IsZero() && e.since.Before(e.at) {
		r.FirstTime = e.since
	}
	if r.Namespace == clusterScoped {
		r.Namespace = ""
	}
	return r
}

// warnedAt returns when a warning began. It cannot be before its pod: then the clock of the pod's node is behind.
func (r *record) warnedAt() time.Time { return later(r.since, r.created) }

// resolution is how much earlier than its cause the record of an event can be although the clocks agree: most
// times are whole seconds, and a scheduler writes its record after the kubelet has got the pod.
const resolution = 2 * time.Second

// isBehind reports whether the clock that the record has its time from is behind.
func (r *record) isBehind() bool { return r.created.Sub(r.since) > resolution }

// inSeconds compares times in whole seconds: most events have no more.
func inSeconds(a, b time.Time) int { return cmp.Compare(a.Unix(), b.Unix()) }

// insert puts a value behind those of the same time.
func insert[T any](all []T, value T, at func(T) time.Time) []T {
	place, _ := slices.BinarySearchFunc(all, value, func(other, value T) int { return cmp.Or(at(other).Compare(at(value)), -1) })
	return slices.Insert(all, place, value)
}
