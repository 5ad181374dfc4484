// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"
)

// FaultKind is one way in which an environment misbehaves. Tables and stories have its text.
type FaultKind string

// The faults of the API server and of the connections to it.
const (
	APIDown        FaultKind = "API server unreachable"
	APIRefuses     FaultKind = "API server refuses requests"
	APIHangs       FaultKind = "requests of a kind hang"
	APISlow        FaultKind = "API server answers slowly"
	AnswersLost    FaultKind = "API server's answers are lost"
	WatchBreaks    FaultKind = "watch breaks between messages"
	Compaction     FaultKind = "history compacted"
	ConnectionsCut FaultKind = "connections cut"
	ConnectionsDie FaultKind = "connections die silently"
	Stalled        FaultKind = "connections stall"
	SlowNetwork    FaultKind = "connections are slow"
	ListNeverEnds  FaultKind = "list of events never ends"
	BackupRestored FaultKind = "etcd restored from a backup"
	ClusterNew     FaultKind = "another cluster at the address"
	LeaseForbidden FaultKind = "lease permission missing"
	// ProgressForbidden refuses requests for the ConfigMap in which the leader notes its
	// progress. A verb limits it to one.
	ProgressForbidden FaultKind = "progress permission missing"
	KindMissing       FaultKind = "a kind is not served for a while"
	// DetailsFail concerns the reads of details alone: it refuses them with a status, lets them hang, or
	// answers late, with a newer state.
	DetailsFail FaultKind = "reads of details fail"
)

// The faults of storage, of pipelines and of the process.
const (
	StorageUnreadable FaultKind = "storage cannot be read"
	StorageUnwritable FaultKind = "storage cannot be written"
	StorageSlow       FaultKind = "storage answers slowly"
	StorageAnswerLost FaultKind = "storage applies a write, its answer is lost"

	PipelineRejects   FaultKind = "pipeline rejects, retryable"
	PipelinePermanent FaultKind = "pipeline rejects, permanent"
	PipelinePartial   FaultKind = "pipeline accepts a part"
	PipelineHangs     FaultKind = "pipeline hangs"
	PipelineSlow      FaultKind = "pipeline is slow"
	MetricsRejected   FaultKind = "metrics pipeline rejects"
	MetricsHangs      FaultKind = "metrics pipeline hangs"

	Killed    FaultKind = "process killed"
	Restarted FaultKind = "process restarted"
)

// forever is the end of a fault that outlasts the run.
const forever = 1000 * time.Hour

// Who a fault concerns, where it is not one replica.
const (
	everyone = -1
	leader   = -2 // of a kill or restart: the replica that then holds the lease
)

// Fault is one fault of a plan. Its times count from the start of the run.
type Fault struct {
	Kind     FaultKind
	From, To time.Duration // a moment's To is its From; a killed process starts again at To
	Replica  int           // everyone, leader, or a replica's index
	// Of APIRefuses, APIHangs, APISlow: which requests; empty: all. Those for the documents of
	// discovery have a name, too.
	Resource  string
	Verb      string        // of APIRefuses; empty: all
	Namespace string        // of APIRefuses; empty: all
	Status    int           // of APIRefuses and DetailsFail
	Delay     time.Duration // of what is slow: for each call; of a backup: its age
	Exporter  int           // whose pipeline
	OneIn     int           // one call in n is hit; 0 and 1: each
	Deaf      bool          // a pipeline that hangs does so after the end of the context, too

	// A process is killed at its Nth call at a seam after From, before the call acts or after it.
	Seam  Seam
	Nth   int
	Acted bool

	// While the process is down, one workload in n is deleted with its pods and owners; 0: none.
	Deletes int
}

// Seam is where a receiver meets its environment, and where a kill can cut a call.
type Seam string

// The seams. At AnyTime, a process is killed at From, whatever it does.
const (
	AnyTime      Seam = ""
	AtStorage    Seam = "storage"
	AtPipeline   Seam = "pipeline"
	AtConnection Seam = "API request"
	AtElection   Seam = "lease request"
)

// covers reports whether the fault may have an effect at any moment from begin to end.
func (f *Fault) covers(begin, end time.Duration) bool { return f.From <= end && begin <= f.To }

func (f *Fault) actsAt(now time.Duration) bool { return f.From <= now && now < f.To }

// concerns reports whether the fault concerns a replica.
func (f *Fault) concerns(replica int) bool { return f.Replica == everyone || f.Replica == replica }

// is reports whether the fault is of one of the kinds.
func (f *Fault) is(kinds ...FaultKind) bool { return slices.Contains(kinds, f.Kind) }

func (k FaultKind) isOfPipelines() bool {
	switch k {
	case PipelineRejects, PipelinePermanent, PipelinePartial, PipelineHangs, PipelineSlow:
		return true
	}
	return false
}

// isOfAPI reports whether the fault can keep owners from being found.
func (k FaultKind) isOfAPI() bool {
	switch k {
	case APIDown, APIRefuses, APIHangs, APISlow, AnswersLost, ConnectionsCut, ConnectionsDie,
		Stalled, SlowNetwork, KindMissing, BackupRestored, ClusterNew:
		return true
	}
	return false
}

func (p *Plan) hasAPIFaults() bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Kind.isOfAPI() })
}

// delaysRecords reports whether the fault does more than keep owners from being found.
func (f *Fault) delaysRecords() bool {
	if f.is(MetricsRejected, StorageUnwritable, StorageAnswerLost, DetailsFail) || f.isOfProgress() && f.Verb != "" && f.Verb != "get" {
		return false
	}
	ofOneResource := f.is(APIRefuses, APIHangs, APISlow, KindMissing)
	// A process that starts reads the namespace kube-system, which identifies the cluster.
	return !ofOneResource || slices.Contains([]string{"", "events", "namespaces", "configmaps"}, f.Resource)
}

// isOfProgress reports whether the fault is about the leader's progress alone.
func (f *Fault) isOfProgress() bool { return f.Kind == ProgressForbidden || f.Resource == "configmaps" }

// reachesProgress reports whether the fault may keep a leader from noting its progress, or a
// process from reading it.
func (f *Fault) reachesProgress() bool {
	return f.Kind == ProgressForbidden ||
		f.Kind.isOfAPI() && (f.Resource == "" || f.Resource == "configmaps")
}

// mayLoseCheckpoints reports whether the fault may leave storage behind what was delivered.
func (f *Fault) mayLoseCheckpoints() bool {
	return f.is(StorageUnwritable, StorageUnreadable, StorageSlow, StorageAnswerLost)
}
