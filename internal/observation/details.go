// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"time"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Details are what an Event does not say, and one read of the object it is about does.
type Details struct {
	// Resolution is why something is missing: forbidden, timeout, not_found or unavailable. Empty means
	// that each read had an answer. What the answer does not have is absent all the same.
	Resolution resolver.Resolution
	// Ended is how the container ended before the Event; nil: nothing shows it.
	Ended *Termination
	// ConfigMaps say which of the pod's ConfigMaps changed last, and who changed it; nil: not known.
	ConfigMaps []string
	// Changes are sentences about what the new revision of a workload changed, in a stable order; nil: not
	// known, or nothing.
	Changes []string
	// DeployedBy names the tool's object that deployed the workload, and ChangedBy the manager that
	// changed its pod template last, at ChangedAt. Empty: not known.
	DeployedBy, ChangedBy string
	ChangedAt             time.Time
}

// Termination is the end of one run of a container.
type Termination struct {
	Reason                string // the kubelet's word, such as OOMKilled; empty: it has none
	ExitCode, Signal      int32  // Signal is 0 if none ended it
	Restarts              int32  // of the container so far
	StartedAt, FinishedAt time.Time
	MemoryLimit           int64 // in bytes; 0: none
}

// reasons are those that kubelets and container runtimes give for the end of a container.
// (kubernetes/pkg/kubelet/kuberuntime, containerd/internal/cri/server)
var reasons = map[string]bool{
	"OOMKilled": true, "Error": true, "Completed": true, "ContainerCannotRun": true, "StartError": true,
	"DeadlineExceeded": true, "Evicted": true, "ContainerStatusUnknown": true, "Unknown": true,
}

// EndedBy returns the reason for which the container ended if it is one of the documented ones, and "other" if
// it is not. Empty means that nothing shows it.
func (d *Details) EndedBy() string {
	switch {
	case d == nil || d.Ended == nil:
		return ""
	case d.Ended.Reason == "" || reasons[d.Ended.Reason]:
		return d.Ended.Reason
	default:
		return "other"
	}
}
