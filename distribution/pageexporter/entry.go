// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// How many bytes are kept of what anybody may have written into an event.
const (
	maxMessage = 1024
	maxName    = 256 // no name or reason of Kubernetes is longer
)

// entry is what the page keeps of one record: an observation of an event.
type entry struct {
	id          string // log.record.uid, the same for a record that is delivered again; empty: not known
	event       string // the event's UID
	at          time.Time
	of          traits
	occurrences int64 // new ones; at least the one that the record is
	count       int64 // those so far
	message     string
	container   string
	resolution  string   // how the search for owners ended
	cluster     string   // the cluster's UID
	chain       []object // from the end of the chain to the involved object, which is the last; never empty
}

// traits are what can be filtered by. An empty one is absent.
type traits [4]string

// The traits, and their names in the page's address.
const (
	traitType = iota
	traitReason
	traitNamespace
	traitManifest
)

var traitNames = traits{"type", "reason", "namespace", "manifest"}

// isWarning says whether it is something to look at, as an unknown type may be.
func (t traits) isWarning() bool { return t[traitType] != "Normal" }

// object is one of Kubernetes as kubectl names it: replicaset.apps/fe-649447bf8.
type object struct {
	Kind, Group, Name string
}

func (o object) String() string {
	kind := o.Kind
	if o.Group != "" {
		kind += "." + o.Group
	}
	return kind + "/" + o.Name
}

// entriesIn reads the records of events.
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
			traitType:      record.SeverityText(),
			traitReason:    text(event, "k8s.event.reason"),
			traitNamespace: text(resource, "k8s.namespace.name"),
			traitManifest:  text(resource, "tilt.manifest"),
		},
		occurrences: max(1, number(event, "k8s.event.occurrences")),
		count:       number(event, "k8s.event.count"),
		message:     cut(record.Body().AsString(), maxMessage),
		container:   text(resource, "k8s.container.name"),
		resolution:  text(event, "k8s.owner.resolution"),
		cluster:     text(resource, "k8s.cluster.uid"),
		chain:       chainOf(resource),
	}
}

// chainOf turns the owners around, which the record names from the nearest on, and puts the involved object behind them.
func chainOf(resource pcommon.Map) (chain []object) {
	if owners, ok := resource.Get("k8s.owner.chain"); ok && owners.Type() == pcommon.ValueTypeSlice {
		for _, owner := range owners.Slice().All() {
			kind, name, _ := strings.Cut(cut(owner.AsString(), 3*maxName), "/")
			kind, group, _ := strings.Cut(kind, ".")
			chain = append(chain, object{kind, group, name})
		}
	}
	slices.Reverse(chain)
	group, _, named := strings.Cut(text(resource, "k8s.object.api_version"), "/")
	if !named {
		group = ""
	}
	return append(chain, object{strings.ToLower(text(resource, "k8s.object.kind")), group, text(resource, "k8s.object.name")})
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
