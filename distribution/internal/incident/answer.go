// SPDX-License-Identifier: Apache-2.0

package incident

import "time"

// Query chooses what an answer is about. An empty text admits everything; zero times are the whole hour.
type Query struct {
	From, Until time.Time
	Namespace   string // Cluster for objects without a namespace
	Workload    string // the ID of its Key
	Reason      string
	Type        string
	Manifest    string // tilt.manifest
}

// ClusterScoped is in the place of the namespace for objects without one. No namespace has such a name.
const ClusterScoped = "(cluster-scoped)"

// Problem is a problem of a workload: warnings, or restarts, of one class and container.
type Problem struct {
	Key       Key
	Class     string // image, start, mount, schedule, create, crash, probe, eviction, job, node, other
	Reason    string // of the Event that says most
	Container string
	Revisions []string // of the pods that have it; empty: it is not about pods, or not known
	Onset     time.Time
	Last      time.Time
	Over      time.Time   // zero: it goes on
	Because   string      // why it is over: "the pods started", "its pods have ended", …
	Count     int64       // occurrences since the onset
	Earlier   []time.Time // onsets of the same problem before it was over for a while, the newest first
	Pods      []string    // names
	Nodes     []string
	Scope     []string // what it has in common: "2 of 2 pods of the new revision, 0 of 3 of the old one"
	Message   string   // the first 100 characters of the message that says most
	Record    string   // log.record.uid of this message
	Causes    []Cause  // the likeliest first; empty: not known
	Unknown   string   // why no cause is known; empty: there is one
	// LastChange is the newest change of the workload before the onset, if it is no cause: it is too old, or cannot
	// have this effect.
	LastChange *Cause
	Records    []string // log.record.uid of the records that show the problem, the oldest first, at most 20

	facts  []*Fact
	spells []*spell
	before []*spell // of the same problem earlier
	pods   []string // UIDs
}

// Change is something that happened, as its records say.
type Change struct {
	Kind     string // rollout, scaling, autoscaler, node, eviction, preemption, pod, gitops, volume, quota, webhook, config
	Text     string
	At       time.Time
	Until    time.Time // the end of a state, such as NotReady; zero: it goes on, or is none
	Key      Key       // of the workload, node or other object that changed
	Object   string    // the revision, node, autoscaler or pod
	From, To int       // replicas of a scaling
	Records  []string  // log.record.uid

	revision string // of a rollout or a scaling
	pod      string // UID
	node     string
	done     time.Time // when all pods of a rollout had started; zero: they have not
	isFirst  bool      // no revision is known that the rollout replaced
	row      *row      // of the table; nil: a rollout, a scaling, or a pod that was created
}

// Cause is a change before a problem.
type Cause struct {
	Change
	Before time.Duration // from the change to the onset; below a second: in the same second
	Where  string        // what connects them: workload, node, namespace, message
}

// Dropped counts what the Model had no room for.
type Dropped struct {
	Workloads int // the longest quiet first
	Facts     int
}
