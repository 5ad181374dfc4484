// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
)

// receiverScope is the scope of the receiver's records. Other records can lack any attribute.
const receiverScope = "github.com/kubeevents/kubeeventsreceiver"

const (
	workloadUID = "k8s.workload.uid"
	ownerChain  = "k8s.owner.chain"
	ownerUID    = "k8s.owner.uid"
	resolution  = "k8s.owner.resolution" // of the record
)

// Lacks reports which resource attributes records should have and do not have: the configuration of
// the receiver disables them, or a processor deletes them. The zero value has reported nothing. It
// may be used concurrently.
type Lacks struct{ reported sync.Map }

// Report logs a warning for each attribute that was not reported before.
func (l *Lacks) Report(logger *zap.Logger, component string, logs plog.Logs) {
	for _, resource := range logs.ResourceLogs().All() {
		if !isOfReceiver(resource) {
			continue
		}
		for _, name := range lacking(resource) {
			if _, known := l.reported.LoadOrStore(name, true); known {
				continue
			}
			logger.Warn(component + " needs the attribute " + name + ", but the records of kube_events do not have it: " + effect(name) +
				". Set resource_attributes: {" + name + ": {enabled: true}} in the receiver, and keep the attribute in all processors")
		}
	}
}

// effect returns what happens without an attribute.
func effect(name string) string {
	if name == ownerUID {
		return "there are no rollouts of pods whose owner has an owner and is not a ReplicaSet, StatefulSet, DaemonSet or Job"
	}
	return "there are no rollouts"
}

func isOfReceiver(resource plog.ResourceLogs) bool {
	for _, scope := range resource.ScopeLogs().All() {
		if scope.Scope().Name() == receiverScope {
			return true
		}
	}
	return false
}

// lacking returns the attributes that the resource should have.
func lacking(resource plog.ResourceLogs) []string {
	s, ok := subjectOf(resource.Resource().Attributes())
	switch {
	case s.belongsToNode(): // Its UID is not always known, and it rolls nothing out.
		return nil
	case s.workload == "" && hasCompleteChain(resource):
		return []string{workloadUID}
	case !ok:
		return nil
	case s.pod != "" && s.revision == "":
		return append(s.missing(), ownerUID)
	}
	return s.missing()
}

// hasCompleteChain reports whether the receiver has found the end of the chain, which is the
// workload.
func hasCompleteChain(resource plog.ResourceLogs) bool {
	for _, scope := range resource.ScopeLogs().All() {
		for _, record := range scope.LogRecords().All() {
			if of := text(record.Attributes(), resolution); of == "complete" || of == "ambiguous" {
				return true
			}
		}
	}
	return false
}

// missing returns the attributes without which revisions would be wrong.
func (s *subject) missing() (names []string) {
	need := func(name string) {
		if text(s.attributes, name) == "" {
			names = append(names, name)
		}
	}
	need("k8s.object.kind")
	need("k8s.object.name")
	need("k8s.workload.kind")
	need("k8s.workload.name")
	if len(names) > 0 || s.isWorkload() {
		return names
	}
	need("k8s.object.api_version") // An Event about the workload itself can lack it.
	if s.isPod() && s.pod == "" {
		names = append(names, "k8s.pod.uid")
	}
	if ownerOf(s.attributes, 0) == "" {
		names = append(names, ownerChain)
	}
	return names
}

// isWorkload reports whether the records are about the workload itself.
func (s *subject) isWorkload() bool {
	return s.kind == text(s.attributes, "k8s.workload.kind") && s.name == text(s.attributes, "k8s.workload.name")
}
