// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The exporter keeps at most this many bytes of each text, because anybody may write any text into
// an event.
const (
	maxMessage = 1024
	maxName    = 256 // no name or reason of Kubernetes is longer
	maxChain   = 32  // objects
)

// entry is what the page keeps of one record: an observation of an event.
type entry struct {
	// id is log.record.uid. It is the same for a repeated record. It is empty if it is not known.
	id          string
	event       string // the event's UID
	at          time.Time
	written     time.Time // at, as the producer wrote it
	of          traits
	occurrences int64 // new ones; at least 1
	count       int64 // occurrences so far
	message     string
	container   string
	resolution  string // k8s.owner.resolution
	cluster     string // the cluster's UID, or its name if the UID is not known
	clusterName string
	since       time.Time // the first occurrence; zero: at
	node        string    // of a pod; empty: not known
	uid         string    // of the workload
	pod         string    // the UID of the pod that the record is about; empty: it is about another object
	rollouts    string    // the workload's key in the model of rollouts; empty: it has none
	// chain starts with the end of the chain of owners. The involved object is the last. The chain
	// is never empty.
	chain []object
}

// traits are the values that a filter can select. An empty value is absent.
type traits [4]string

const (
	traitType = iota
	traitReason
	traitNamespace
	traitManifest
)

// clusterScoped is in the place of the namespace for objects without one, such as Nodes. No
// namespace has such a name.
const clusterScoped = "(cluster-scoped)"

// isWarning reports whether the type is not Normal. An unknown type counts as a warning.
func (t traits) isWarning() bool { return t[traitType] != "Normal" }

// object is a Kubernetes object, with the name that kubectl uses: replicaset.apps/fe-649447bf8.
type object struct {
	Kind, Group, Name string
}

func (o object) String() string { return o.kind() + "/" + o.Name }

// kind returns the kind with its group: replicaset.apps.
func (o object) kind() string {
	if o.Group == "" {
		return o.Kind
	}
	return o.Kind + "." + o.Group
}

// involved returns the object that the record is about.
func (e *entry) involved() object { return e.chain[len(e.chain)-1] }

// entriesIn returns an entry for each record of an event.
func entriesIn(logs plog.Logs) (all []entry) {
	for _, resource := range logs.ResourceLogs().All() {
		attributes := resource.Resource().Attributes()
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if record.EventName() == "k8s.event" {
					all = append(all, entryOf(attributes, record))
				}
			}
		}
	}
	return all
}

func entryOf(resource pcommon.Map, record plog.LogRecord) entry {
	event := record.Attributes()
	return entry{
		id:    text(event, "log.record.uid"),
		event: text(event, "k8s.event.uid"),
		at:    cmp.Or(record.Timestamp(), record.ObservedTimestamp()).AsTime(),
		of: traits{
			traitType:      cut(record.SeverityText(), maxName),
			traitReason:    text(event, "k8s.event.reason"),
			traitNamespace: cmp.Or(text(resource, "k8s.namespace.name"), clusterScoped),
			traitManifest:  text(resource, "tilt.manifest"),
		},
		occurrences: max(1, number(event, "k8s.event.occurrences")),
		count:       number(event, "k8s.event.count"),
		message:     cut(record.Body().AsString(), maxMessage),
		container:   text(resource, "k8s.container.name"),
		resolution:  text(event, "k8s.owner.resolution"),
		cluster:     cmp.Or(text(resource, "k8s.cluster.uid"), text(resource, "k8s.cluster.name")),
		clusterName: text(resource, "k8s.cluster.name"),
		since:       sinceOf(event),
		node:        nodeOf(resource, record),
		uid:         text(resource, "k8s.workload.uid"),
		pod:         podOf(resource),
		rollouts:    cut(rollout.WorkloadKey(resource), 2*maxName),
		chain:       chainOf(resource),
	}
}

// sinceOf returns the first occurrence of an event that occurred several times.
func sinceOf(event pcommon.Map) (since time.Time) {
	if number(event, "k8s.event.count") > 1 {
		since, _ = time.Parse(time.RFC3339Nano, text(event, "k8s.event.start_time")) // zero if it is missing
	}
	return since.UTC()
}

// assigned matches the message of the scheduler: the events of other producers do not name the node.
var assigned = regexp.MustCompile(`^Successfully assigned \S+ to (\S+)$`)

func nodeOf(resource pcommon.Map, record plog.LogRecord) string {
	if text(resource, "k8s.object.kind") != "Pod" {
		return ""
	}
	if match := assigned.FindStringSubmatch(record.Body().AsString()); match != nil {
		return cut(match[1], maxName)
	}
	return text(resource, "k8s.node.name")
}

func podOf(resource pcommon.Map) string {
	if text(resource, "k8s.object.kind") != "Pod" {
		return ""
	}
	return cmp.Or(text(resource, "k8s.pod.uid"), text(resource, "k8s.object.uid"))
}

// chainOf returns the owners in reverse order, and then the involved object. The record has the
// nearest owner first.
func chainOf(resource pcommon.Map) (chain []object) {
	if owners, ok := resource.Get("k8s.owner.chain"); ok && owners.Type() == pcommon.ValueTypeSlice {
		last := owners.Slice().Len() - 1
		for i, owner := range owners.Slice().All() {
			if i >= maxChain && i < last {
				continue // The end of the chain is the workload.
			}
			kind, name, _ := strings.Cut(cut(owner.AsString(), 3*maxName), "/")
			kind, group, _ := strings.Cut(kind, ".")
			chain = append(chain, object{kind, group, name})
		}
	}
	slices.Reverse(chain)
	involved, top := objectIn(resource, "k8s.object."), objectIn(resource, "k8s.workload.")
	if len(chain) == 0 && top.Name != "" && (top.Kind != involved.Kind || top.Name != involved.Name) {
		chain = []object{top} // The records have no chain.
	}
	return append(chain, involved)
}

// objectIn returns the object that attributes with this prefix describe.
func objectIn(resource pcommon.Map, prefix string) object {
	group, _, named := strings.Cut(text(resource, prefix+"api_version"), "/")
	if !named {
		group = ""
	}
	return object{strings.ToLower(text(resource, prefix+"kind")), group, text(resource, prefix+"name")}
}

func text(m pcommon.Map, key string) string {
	value, ok := m.Get(key)
	if !ok {
		return ""
	}
	return cut(value.AsString(), maxName)
}

func number(m pcommon.Map, key string) int64 {
	value, ok := m.Get(key)
	if !ok || value.Type() != pcommon.ValueTypeInt {
		return 0
	}
	return value.Int()
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
