// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// subject is the Kubernetes object that a resource is about, and what else its attributes depend on.
type subject struct {
	kind            kindIndex
	namespace, name string // without a name, the UID alone says which object it is
	uid             string // empty: the object that has the name now
	node, container string // empty unless tags depend on them
}

// kindIndex is a position in kinds.
type kindIndex uint8

const nodeKind kindIndex = kindIndex(len(kinds) - 1)

// kinds are those of the objects that resources may be about. What belongs to the same workload comes before what
// is above it. A resource that names two objects of the same level contradicts itself.
var kinds = [...]struct {
	apiVersion, kind string
	level            int
}{
	{"v1", "Pod", 0},
	{"apps/v1", "ReplicaSet", 1},
	{"apps/v1", "StatefulSet", 1},
	{"apps/v1", "DaemonSet", 1},
	{"batch/v1", "Job", 1},
	{"v1", "ReplicationController", 1},
	{"apps/v1", "Deployment", 2},
	{"batch/v1", "CronJob", 2},
	{"v1", "Node", 3},
}

// field is what an attribute says about an object.
type field struct {
	kind  kindIndex
	isUID bool
}

// fields are the attributes that name objects.
var fields = func() map[string]field {
	all := map[string]field{}
	for i, k := range kinds {
		gv, _ := schema.ParseGroupVersion(k.apiVersion)
		names, _ := semconv.Of(schema.GroupKind{Group: gv.Group, Kind: k.kind})
		all[names.Name] = field{kindIndex(i), false}
		all[names.UID] = field{kindIndex(i), true}
	}
	return all
}()

// ofMachine are the prefixes of what may be said about a Node. Anything else may say that a resource is about what
// runs there: collectors write k8s.node.name on everything that they send.
var ofMachine = []string{"k8s.node.", "k8s.cluster.", "k8s.kubelet.", "host.", "os.", "cloud.", "container.runtime"}

// reading is what a resource says.
type reading struct {
	names, uids                [len(kinds)]string
	namespace, node, container string

	hasMore bool // than a Node
	isDone  bool // it has a workload, or an owner
}

// subjectOf returns what a resource is about; false: it is about no object, or nothing is to be added. Only in
// metrics, a resource may be about a Node: the resource of a log may name the Node where its file was read.
func subjectOf(attributes pcommon.Map, isMetric bool, uses extract.Uses) (s subject, ok bool) {
	var r reading
	for name, value := range attributes.All() {
		r.add(name, value)
	}
	kind, ok := r.lowest(isMetric)
	if !ok || r.isDone {
		return subject{}, false
	}
	s = subject{kind: kind, uid: r.uids[kind]}
	switch {
	case kind == nodeKind:
		s.name = r.names[kind]
	case r.namespace != "" && r.names[kind] != "":
		s.namespace, s.name = r.namespace, r.names[kind]
	}
	if uses.Node && s.name != "" {
		s.node = r.node
	}
	if uses.Container {
		s.container = r.container
	}
	return s, s.name != "" || s.uid != ""
}

func (r *reading) add(name string, value pcommon.Value) {
	if !strings.HasPrefix(name, "k8s.") {
		r.hasMore = r.hasMore || !isOfMachine(name)
		return
	}
	f, isField := fields[name]
	switch {
	case isField && f.isUID:
		r.uids[f.kind] = value.Str()
	case isField:
		r.names[f.kind] = value.Str()
	case name == "k8s.namespace.name":
		r.namespace = value.Str()
	case name == "k8s.container.name":
		r.container = value.Str()
	case strings.HasPrefix(name, "k8s.workload."), strings.HasPrefix(name, "k8s.owner."):
		r.isDone = true
	}
	r.hasMore = r.hasMore || !isOfMachine(name)
	r.node = r.names[nodeKind]
}

func isOfMachine(name string) bool {
	return slices.ContainsFunc(ofMachine, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// lowest returns the kind of the object that belongs to all others that the resource names.
func (r *reading) lowest(isMetric bool) (lowest kindIndex, ok bool) {
	for i := range kinds {
		kind := kindIndex(i)
		isNamed := r.names[i] != "" || r.uids[i] != ""
		switch {
		case !isNamed, kind == nodeKind && (r.hasMore || !isMetric):
		case !ok:
			lowest, ok = kind, true
		case kinds[i].level == kinds[lowest].level:
			return 0, false
		}
	}
	return lowest, ok
}

// withoutName returns the subject of a resource that names only the UID.
func (s subject) withoutName() subject {
	s.namespace, s.name, s.node = "", "", ""
	return s
}
