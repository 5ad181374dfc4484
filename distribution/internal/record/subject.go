// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// HashAttribute has the revision of a StatefulSet's or a DaemonSet's pods. The receiver writes it
// with the option extract.labels: {key: controller-revision-hash, from: pod}.
const HashAttribute = "k8s.pod.label.controller-revision-hash"

// Object is a Kubernetes object with the name that kubectl uses.
type Object struct{ Kind, Group, Name string }

// String returns the form of kubectl: replicaset.apps/fe-649447bf8.
func (o Object) String() string { return o.GroupKind() + "/" + o.Name }

// GroupKind returns the kind with its group: replicaset.apps.
func (o Object) GroupKind() string {
	if o.Group == "" {
		return o.Kind
	}
	return o.Kind + "." + o.Group
}

// Subject is the object that records are about, and where it belongs.
type Subject struct {
	Cluster    string
	Namespace  string   // empty: the object is cluster-scoped
	Chain      []Object // from the workload down to the object; never empty
	Workload   Workload
	Pod        string // its UID; empty: the object is not a pod
	Revision   string // empty: the object has pods of several revisions, or it is not known
	Controller string // of the revision, or of those that the record names
	Container  string
	Node       string
	Manifest   string   // tilt.manifest
	Missing    []string // the attributes without which revisions would be wrong
}

// Workload is the object without an owner, as the record names it.
type Workload struct{ UID, Kind, Name, Version string }

// SubjectOf reads the attributes of a resource.
func SubjectOf(attributes pcommon.Map) *Subject {
	s := &Subject{
		Cluster:   cmp.Or(text(attributes, "k8s.cluster.uid"), text(attributes, "k8s.cluster.name")),
		Namespace: text(attributes, "k8s.namespace.name"),
		Workload: Workload{
			UID: text(attributes, "k8s.workload.uid"), Kind: text(attributes, "k8s.workload.kind"),
			Name: text(attributes, "k8s.workload.name"), Version: text(attributes, "k8s.workload.api_version"),
		},
		Container: text(attributes, "k8s.container.name"), Node: text(attributes, "k8s.node.name"), Manifest: text(attributes, "tilt.manifest"),
	}
	owners := ownersIn(attributes)
	s.Chain = chainOf(attributes, owners)
	if s.Object().GroupKind() == "pod" {
		s.Pod = cmp.Or(text(attributes, "k8s.pod.uid"), text(attributes, "k8s.object.uid"))
	}
	s.Revision = s.revision(attributes, owners)
	s.Controller = s.controller(attributes, owners)
	s.Missing = s.missing(attributes, owners)
	return s
}

// Object is the object of the Event.
func (s *Subject) Object() Object { return s.Chain[len(s.Chain)-1] }

// BelongsToNode reports whether the workload is a Node: static pods belong to it, and it rolls
// nothing out. Other API groups have kinds of this name, too.
func (s *Subject) BelongsToNode() bool {
	return s.Workload.Kind == "Node" && (s.Workload.Version == "v1" || s.Workload.Version == "")
}

// IsWorkload reports whether the records are about the workload itself.
func (s *Subject) IsWorkload() bool {
	return strings.EqualFold(s.Object().Kind, s.Workload.Kind) && s.Object().Name == s.Workload.Name
}

// ownersIn returns the owners in the form of kubectl, the nearest one first.
func ownersIn(attributes pcommon.Map) []string {
	owners, ok := attributes.Get("k8s.owner.chain")
	if !ok || owners.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	last := owners.Slice().Len() - 1
	all := make([]string, 0, min(last, maxChain)+1)
	for i, owner := range owners.Slice().All() {
		if i < maxChain || i == last { // The end of the chain is the workload.
			all = append(all, Cut(owner.AsString(), 3*maxName))
		}
	}
	return all
}

func chainOf(attributes pcommon.Map, owners []string) []Object {
	chain := make([]Object, 0, len(owners)+2)
	for _, owner := range slices.Backward(owners) {
		kind, name, _ := strings.Cut(owner, "/")
		kind, group, _ := strings.Cut(kind, ".")
		chain = append(chain, Object{kind, group, name})
	}
	involved, top := objectIn(attributes, "k8s.object."), objectIn(attributes, "k8s.workload.")
	if len(chain) == 0 && top.Name != "" && (top.Kind != involved.Kind || top.Name != involved.Name) {
		chain = append(chain, top) // The records have no chain.
	}
	return append(chain, involved)
}

// objectIn returns the object that attributes with this prefix describe.
func objectIn(attributes pcommon.Map, prefix string) Object {
	group, _, isNamed := strings.Cut(text(attributes, prefix+"api_version"), "/")
	if !isNamed {
		group = ""
	}
	return Object{strings.ToLower(text(attributes, prefix+"kind")), group, text(attributes, prefix+"name")}
}

// revision returns the name of the revision. Owners have the form of kubectl.
func (s *Subject) revision(attributes pcommon.Map, owners []string) string {
	switch o := s.Object(); {
	case s.Pod != "":
		return cmp.Or(text(attributes, HashAttribute), s.ownerRevision(attributes, owners))
	case o.Kind == "replicaset":
		return "replicaset.apps/" + o.Name
	case o.Kind == "job":
		return "job.batch/" + o.Name
	}
	return ""
}

// controller returns what makes the revision, and other revisions after it. A ReplicaSet and a Job
// are made once; what has the label of revisions makes all of them.
func (s *Subject) controller(attributes pcommon.Map, owners []string) string {
	switch {
	case s.Pod != "" && text(attributes, HashAttribute) == "":
		return nameAt(owners, 1)
	case s.Pod != "", s.Revision != "":
		return nameAt(owners, 0)
	}
	return s.Object().String()
}

func nameAt(owners []string, i int) string {
	if i >= len(owners) {
		return ""
	}
	return owners[i]
}

// ownerRevision returns the revision that the owner of a pod is; empty: it is not known. The name
// of a ReplicaSet or a Job is used once, and a StatefulSet or a DaemonSet labels its pods. The name
// of another owner can be used again: when a virtual machine restarts, its new instance has the old
// name. Then the UID tells them apart. If the owner is the workload, its UID is part of all ids
// anyway.
func (s *Subject) ownerRevision(attributes pcommon.Map, owners []string) string {
	if len(owners) == 0 {
		return "pod/" + s.Object().Name
	}
	owner := owners[0]
	if kind, _, _ := strings.Cut(owner, "/"); len(owners) == 1 || kind == "job.batch" || lasts(kind) {
		return owner
	}
	uid := text(attributes, "k8s.owner.uid")
	if uid == "" {
		return ""
	}
	return owner + "/" + uid
}

// lasts reports whether objects of a kind, such as deployment.apps, live on while what they run
// changes. Objects of other kinds, such as Jobs, can be made for a single run.
func lasts(kind string) bool {
	switch kind {
	case "deployment.apps", "replicaset.apps", "statefulset.apps", "daemonset.apps", "replicationcontroller",
		"cronjob.batch", "node", "rollout.argoproj.io":
		return true
	}
	return false
}

// missing returns the attributes without which revisions would be wrong.
func (s *Subject) missing(attributes pcommon.Map, owners []string) (names []string) {
	need := func(all ...string) {
		for _, name := range all {
			if text(attributes, name) == "" {
				names = append(names, name)
			}
		}
	}
	need("k8s.object.kind", "k8s.object.name", "k8s.workload.kind", "k8s.workload.name")
	if len(names) > 0 || s.IsWorkload() {
		return names
	}
	need("k8s.object.api_version") // An Event about the workload itself can lack it.
	isPod := s.Object().GroupKind() == "pod"
	if isPod && s.Pod == "" {
		names = append(names, "k8s.pod.uid")
	}
	if len(owners) == 0 {
		names = append(names, "k8s.owner.chain")
	} else if isPod && s.Revision == "" {
		names = append(names, "k8s.owner.uid")
	}
	return names
}

// IsOfWorkload reports whether a resource attribute is the same for all pods of a revision.
func IsOfWorkload(name string) bool {
	for _, prefix := range []string{"k8s.pod.", "k8s.object.", "k8s.owner.", "k8s.container.", "k8s.node.", "service.instance."} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}
