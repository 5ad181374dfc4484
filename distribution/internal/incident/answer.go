// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"encoding/json"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// Query chooses what an answer is about. An empty text admits everything; zero times are the whole
// hour.
type Query struct {
	From, Until time.Time
	Namespace   string // Cluster for objects without a namespace
	Workload    string // the ID of its Key
	Reason      string
	Type        string
	Manifest    string // tilt.manifest
}

// ClusterScoped is in the place of the namespace for objects without one. No namespace has such a
// name.
const ClusterScoped = "(cluster-scoped)"

// Problem is a problem of a workload: warnings, or restarts, of one class and container.
type Problem struct {
	ID        string    `json:"id"`     // the same in every process that has the same records
	Series    string    `json:"series"` // the same each time that the workload has the problem
	Key       Key       `json:"workload"`
	Class     string    `json:"class"`  // image, start, mount, schedule, create, crash, probe, eviction, job, node, other
	Reason    string    `json:"reason"` // of the Event that says most
	Container string    `json:"container,omitempty"`
	Onset     time.Time `json:"since"`
	Last      time.Time `json:"last"`
	Over      time.Time `json:"over,omitzero"`     // zero: it goes on
	Because   string    `json:"because,omitempty"` // why it is over: "the pods started", "its pods have ended", …
	Count     int64     `json:"count"`             // occurrences since the onset
	// Scope is what its pods have in common: "2 of 2 pods of the new revision, 0 of 3 of the old
	// one".
	Scope   []string `json:"scope,omitempty"`
	Ended   string   `json:"ended,omitempty"`   // how the container ended last, and how often so; empty: not known
	Message string   `json:"message"`           // the first 240 bytes of the message that says most
	Causes  []Cause  `json:"causes"`            // the likeliest first; empty: not known
	Unknown string   `json:"unknown,omitempty"` // why no cause is known; empty: there is one
	// LastChange is the newest change of the workload before the onset, if it is no cause: it is
	// too old, or cannot have this effect.
	LastChange *Cause      `json:"last_change,omitempty"`
	Earlier    []time.Time `json:"earlier,omitempty"` // onsets of the same problem before it was over for a while, the newest first
	// Revisions, Pods and Nodes have the first 20 names; Revisions are empty if it is not about
	// pods, or not known.
	Revisions []string `json:"revisions,omitempty"`
	Pods      []string `json:"pods,omitempty"`
	// PodCount, NodeCount and WorkloadCount are how many there are in all.
	PodCount, NodeCount, WorkloadCount int      `json:"-"`
	Nodes                              []string `json:"nodes,omitempty"`
	Record                             string   `json:"record"`  // log.record.uid of the message
	Records                            []string `json:"records"` // log.record.uid of the records that show the problem, the oldest first, at most 20
	// Members are the first 100 workloads that have it, if they share it; empty: only one does. Shared is
	// what they share.
	Members []Member `json:"members,omitempty"`
	Shared  string   `json:"shared,omitempty"` // registry, webhook, quota, config, storage class, node, message, namespace
	// LeftOut is what the answer does not have, and what was not looked at: "1 cause, 900 older
	// scalings".
	LeftOut string `json:"left_out,omitempty"`

	// CanBeHarmless is set if a probe has failed so few times that nothing may be wrong.
	CanBeHarmless bool `json:"-"`

	id        string
	facts     []*Fact
	intervals []*interval
	before    []*interval // of the same problem earlier
	pods      []string    // UIDs
	members   []*Problem  // that are one with others
	aliases   []string    // the series of its effects
	newestEnd *record.Ended
	// isExplained is set if Causes are known.
	isExplained bool
}

// Change is something that happened, as its records say.
type Change struct {
	Kind   string    `json:"kind"` // rollout, scaling, autoscaler, node, eviction, preemption, pod, gitops, volume, quota, webhook, config
	Text   string    `json:"text"`
	At     time.Time `json:"time"`
	Until  time.Time `json:"until,omitzero"`   // the end of a state, such as NotReady; zero: it goes on, or is none
	Key    Key       `json:"workload"`         // or the node or other object that changed
	Object string    `json:"object,omitempty"` // the revision, node, autoscaler or pod
	*Size            // of a scaling; nil: it is none
	// Changes are what a rollout changed; empty: not known.
	Changes []string `json:"changes,omitempty"`
	// Outcome is that of a rollout, as in its trace; empty: it is none, or goes on.
	Outcome string   `json:"outcome,omitempty"`
	Records []string `json:"records"` // log.record.uid

	id       string // of the key
	uid      string // of the workload; empty: not known
	revision string // of a rollout or a scaling
	pod      string // UID
	node     string
	done     time.Time // when all pods of a rollout had started; zero: they have not
	final    time.Time // from when on the outcome of a rollout that is complete or replaced stays; zero: it is none
	what     *change   // for links; nil: it is no cause
	isState  bool
	says     string // what tells several changes of an object in the same second apart; empty: there is one
	// isReplaced is set if another rollout began, or this one was taken back.
	isReplaced bool
	names      []name           // what the record of a tool that deploys names
	template   rollout.Template // of a rollout
}

// Size is the number of replicas before and after a scaling.
type Size struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Cause is a change before a problem.
type Cause struct {
	Change
	Before Before `json:"seconds_before"` // from the change to the onset
	Where  string `json:"where"`          // what connects them: workload, node, namespace, elsewhere, message

	weight  int // how likely it is
	isGuess bool
}

// Before is a duration that is in seconds in JSON.
type Before time.Duration

// MarshalJSON writes seconds.
func (b Before) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(b).Seconds()) }

// Dropped is what the Model had no room for.
type Dropped struct {
	Workloads int // the longest quiet first
	Facts     int
}
