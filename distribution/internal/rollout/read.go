// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// HashAttribute has the revision of a StatefulSet's or a DaemonSet's pods. The receiver writes it
// with the option extract.labels: {key: controller-revision-hash, from: pod}.
const HashAttribute = "k8s.pod.label.controller-revision-hash"

// eventName is the name of the receiver's records.
const eventName = "k8s.event"

// maxMessage bounds a message in the model.
const maxMessage = 512

// Read returns what the records say about rollouts, and how many of them say something.
func Read(logs plog.Logs) (*Model, int) { return ReadNew(logs, &Model{}) }

// ReadNew leaves out attributes that another model has anyway. They are most of what records say, and
// most of what is saved of them.
func ReadNew(logs plog.Logs, known *Model) (*Model, int) {
	m, used := &Model{}, 0
	for _, resource := range logs.ResourceLogs().All() {
		s, ok := subjectOf(resource.Resource().Attributes())
		if !ok {
			if s.isWithoutUIDs() {
				m.Lacks = []string{"k8s.workload.uid"}
			}
			continue
		}
		if lacks := s.missing(); len(lacks) > 0 {
			m.Lacks = lacks
			continue
		}
		s.known = known
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if record.EventName() == eventName && s.read(m, record) {
					used++
				}
			}
		}
	}
	return m, used
}

// subject is the object that records are about, and where it belongs.
type subject struct {
	attributes pcommon.Map
	known      *Model // whose attributes are left out
	cluster    string
	namespace  string // empty: the object is cluster-scoped
	workload   string // its UID
	kind, name string // of the object
	pod        string // its UID; empty: the object is not a pod
	revision   string // empty: the object has pods of several revisions
	controller string // of the revision, or of those that the record names
}

func subjectOf(attributes pcommon.Map) (s subject, ok bool) {
	s = subject{
		attributes: attributes,
		cluster:    cmp.Or(Text(attributes, "k8s.cluster.uid"), Text(attributes, "k8s.cluster.name")),
		namespace:  Text(attributes, "k8s.namespace.name"),
		workload:   Text(attributes, "k8s.workload.uid"),
		kind:       Text(attributes, "k8s.object.kind"),
		name:       Text(attributes, "k8s.object.name"),
	}
	if s.workload == "" || s.belongsToNode() {
		return s, false
	}
	if s.isPod() {
		s.pod = cmp.Or(Text(attributes, "k8s.pod.uid"), Text(attributes, "k8s.object.uid"))
	}
	s.revision = s.revisionOf()
	s.controller = s.controllerOf()
	return s, true
}

// belongsToNode reports whether the workload is a Node: static pods belong to it, and it rolls
// nothing out. Other API groups have kinds of this name, too.
func (s *subject) belongsToNode() bool {
	version := Text(s.attributes, "k8s.workload.api_version")
	return Text(s.attributes, "k8s.workload.kind") == "Node" && (version == "v1" || version == "")
}

// isWithoutUIDs reports whether the workload is known by its name only.
func (s *subject) isWithoutUIDs() bool {
	return s.workload == "" && Text(s.attributes, "k8s.workload.name") != "" && !s.belongsToNode()
}

func (s *subject) isPod() bool {
	return s.kind == "Pod" && Text(s.attributes, "k8s.object.api_version") == "v1"
}

// revisionOf returns the name of the revision. Owners have the form of kubectl.
func (s *subject) revisionOf() string {
	switch {
	case s.isPod():
		return cmp.Or(Text(s.attributes, HashAttribute), s.ownerRevision())
	case s.kind == "ReplicaSet":
		return "replicaset.apps/" + s.name
	case s.kind == "Job":
		return "job.batch/" + s.name
	}
	return ""
}

// controllerOf returns what makes the revision, and other revisions after it. A ReplicaSet and a Job
// are made once; what has the label of revisions makes all of them.
func (s *subject) controllerOf() string {
	switch {
	case s.isPod() && Text(s.attributes, HashAttribute) == "":
		return ownerOf(s.attributes, 1)
	case s.isPod(), s.revision != "":
		return ownerOf(s.attributes, 0)
	}
	kind, group := strings.ToLower(s.kind), ""
	if before, _, ok := strings.Cut(Text(s.attributes, "k8s.object.api_version"), "/"); ok {
		group = "." + before
	}
	return kind + group + "/" + s.name
}

// ownerRevision returns the revision that the owner of a pod is; empty: it is not known. The name
// of a ReplicaSet or a Job is used once, and a StatefulSet or a DaemonSet labels its pods. The name
// of another owner can be used again: when a virtual machine restarts, its new instance has the old
// name. Then the UID tells them apart. If the owner is the workload, its UID is part of all ids
// anyway.
func (s *subject) ownerRevision() string {
	owner := ownerOf(s.attributes, 0)
	if owner == "" {
		return "pod/" + s.name
	}
	kind, _, _ := strings.Cut(owner, "/")
	if ownerOf(s.attributes, 1) == "" || IsJob(owner) || Lasts(kind) {
		return owner
	}
	uid := Text(s.attributes, "k8s.owner.uid")
	if uid == "" {
		return ""
	}
	return owner + "/" + uid
}

// ownerOf returns an owner from the chain, the nearest one first; empty: there is none.
func ownerOf(attributes pcommon.Map, index int) string {
	chain, ok := attributes.Get("k8s.owner.chain")
	if !ok || chain.Type() != pcommon.ValueTypeSlice || chain.Slice().Len() <= index {
		return ""
	}
	return chain.Slice().At(index).AsString()
}

// read adds the record to the model, and reports whether it has something for it.
func (s *subject) read(m *Model, record plog.LogRecord) bool {
	e := eventOf(record)
	uid := Text(record.Attributes(), "k8s.event.uid")
	if uid == "" || e.Last == 0 || s.hasUnknownOwner(record) {
		return false
	}
	if IsCombined(record.Body().AsString()) && !e.Warning {
		// Each occurrence has another message, so it is an Event of its own.
		uid, e.First, e.Count = uid+"-"+strconv.FormatInt(e.Count, 10), e.Last, 1
	}
	if s.pod != "" {
		return s.readPod(m, record, uid, e)
	}
	return s.readOwner(m, record, uid, e)
}

// missing returns the attributes without which revisions would be wrong.
func (s *subject) missing() (names []string) {
	need := func(name string) {
		if Text(s.attributes, name) == "" {
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
		names = append(names, "k8s.owner.chain")
	} else if s.pod != "" && s.revision == "" {
		names = append(names, "k8s.owner.uid")
	}
	return names
}

// isWorkload reports whether the records are about the workload itself.
func (s *subject) isWorkload() bool {
	return s.kind == Text(s.attributes, "k8s.workload.kind") && s.name == Text(s.attributes, "k8s.workload.name")
}

// hasUnknownOwner reports whether the owner of a pod is not known: the receiver may not read the
// pod, or records do not have the owner's UID.
func (s *subject) hasUnknownOwner(record plog.LogRecord) bool {
	return s.pod != "" && (s.revision == "" || s.isWorkload() && Text(record.Attributes(), "k8s.owner.resolution") == "forbidden")
}

// combined begins the messages of an Event that stands for others with the same reason: from the tenth
// message within ten minutes on, a controller writes all of them into one Event.
const combined = "(combined from similar events): "

// IsCombined reports whether the message is that of an Event that stands for others.
func IsCombined(message string) bool { return strings.HasPrefix(message, combined) }

func eventOf(record plog.LogRecord) Event {
	attributes := record.Attributes()
	message := Cut(strings.TrimPrefix(record.Body().AsString(), combined), maxMessage)
	reason := Text(attributes, "k8s.event.reason")
	kind := kindOf(reason, message)
	e := Event{
		Reason: reason, Kind: kind,
		Warning: Text(attributes, "k8s.event.type") == "Warning" || kind == KindPullFailed,
		Last:    TimeOf(record.Timestamp()).UnixNano(),
		Count:   max(1, Number(attributes, "k8s.event.count")),
		Message: message,
	}
	e.First = e.Last
	if e.Count > 1 {
		e.First = min(e.Last, startOf(attributes, e.Last))
	}
	return e
}

func startOf(attributes pcommon.Map, otherwise int64) int64 {
	start, err := time.Parse(time.RFC3339Nano, Text(attributes, "k8s.event.start_time"))
	if err != nil {
		return otherwise
	}
	return Bounded(start).UnixNano()
}

// phases are the reasons of Events, other than warnings, that a pod's spans are made of.
var phases = map[string]bool{
	ReasonScheduled: true, reasonPulling: true, reasonPulled: true, KindPresent: true, reasonCreated: true,
	reasonStarted: true, KindStopping: true, KindRestarted: true,
}

// hasText has the kinds of Events other than warnings whose message a span shows.
var hasText = map[string]bool{reasonPulling: true, reasonPulled: true, KindPresent: true, KindRestarted: true}

func (s *subject) readPod(m *Model, record plog.LogRecord, uid string, e Event) bool {
	if !e.Warning && !phases[e.kind()] {
		return false
	}
	field := Text(record.Attributes(), "k8s.object.fieldpath")
	if strings.HasPrefix(field, "spec.ephemeralContainers") {
		return false // Someone debugs the pod, which is no part of a rollout.
	}
	e.Container, e.Init = Text(s.attributes, "k8s.container.name"), strings.HasPrefix(field, "spec.initContainers")
	if !e.Warning && !hasText[e.kind()] {
		e.Message = ""
	}
	r := s.revisionIn(m, s.revision)
	p := r.pod(s.pod)
	p.Name, p.Node = s.name, max(p.Node, Text(s.attributes, "k8s.node.name"))
	joinEvents(&p.Events, map[string]Event{uid: e})
	if e.kind() != KindStopping {
		p.First = earliest(p.First, e.First)
		r.First = earliest(r.First, e.First)
	}
	return true
}

// KeyOf returns the key in a Model of what records with this resource are about; an empty workload has no rollouts, and an
// empty revision is not known.
func KeyOf(resource pcommon.Map) (key Key) {
	if s, ok := subjectOf(resource); ok {
		key = Key{s.key(), s.revision}
	}
	return key
}

// key returns the key of the workload in a Model.
func (s *subject) key() string { return s.cluster + "/" + s.namespace + "/" + s.workload }

// in returns the workload in the model.
func (s *subject) in(m *Model) *Workload {
	w := m.workload(s.key())
	w.Cluster, w.Namespace, w.UID = s.cluster, s.namespace, s.workload
	w.Kind, w.Name = Text(s.attributes, "k8s.workload.kind"), Text(s.attributes, "k8s.workload.name")
	return w
}

// revisionIn returns the revision in the model, with the attributes that become the resource of its spans.
func (s *subject) revisionIn(m *Model, name string) *Revision {
	r := s.in(m).revision(name)
	r.Controller = max(r.Controller, s.controller)
	var known map[string]string
	if _, same := s.known.Revision(Key{s.key(), name}); same != nil {
		known = same.Attributes
	}
	for attribute, value := range s.attributes.All() {
		if value.Type() == pcommon.ValueTypeStr && isOfWorkload(attribute) && known[attribute] < value.Str() {
			r.joinAttribute(attribute, value.Str())
		}
	}
	return r
}

// isOfWorkload reports whether a resource attribute is the same for all pods of a revision.
func isOfWorkload(name string) bool {
	for _, prefix := range []string{"k8s.pod.", "k8s.object.", "k8s.owner.", "k8s.container.", "k8s.node.", "service.instance."} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}

// readOwner reads a record of an object above pods.
func (s *subject) readOwner(m *Model, record plog.LogRecord, uid string, e Event) bool {
	switch {
	case e.Reason == ReasonScaled:
		return s.readScaling(m, record, uid, e)
	case e.Reason == ReasonCreatedPod || e.Reason == reasonDeletedPod:
		return s.readNames(m, e)
	case s.revision != "" && (e.Warning && !harmless[e.Reason] || e.Reason == reasonCompleted && IsJob(s.revision)):
		r := s.revisionIn(m, s.revision)
		r.First = earliest(r.First, e.First)
		joinEvents(&r.Events, map[string]Event{uid: e})
		return true
	}
	return false
}

// readScaling reads that a Deployment scaled one of its ReplicaSets.
func (s *subject) readScaling(m *Model, record plog.LogRecord, uid string, e Event) bool {
	scaling, ok := ScalingOf(e.Message)
	if !ok {
		return false
	}
	w, name := s.in(m), scaling.Revision
	r := s.revisionIn(m, name)
	r.joinSteps(stepsOf(e, scaling))
	if scaling.Up {
		r.First = earliest(r.First, e.First)
	}
	if scaling.From == 0 {
		id := cmp.Or(Text(record.Attributes(), "log.record.uid"), uid)
		put(&w.Activations, id, Activation{Revision: name, Controller: s.controller, At: e.Last, Repeated: e.Count > 1})
	}
	return true
}

// readNames reads that an owner created or deleted a pod, or a CronJob a Job.
func (s *subject) readNames(m *Model, e Event) bool {
	kind, name := NamedIn(e.Message)
	switch {
	case kind == "", kind == "job" && e.Reason == reasonDeletedPod: // A CronJob deletes its old Jobs.
		return false
	case kind == "job":
		r := s.revisionIn(m, "job.batch/"+name)
		joinEvents(&r.Events, map[string]Event{name: {Reason: ReasonCreatedPod, First: e.Last, Last: e.Last, Count: 1}})
		r.First = earliest(r.First, e.Last)
		return true
	case s.revision == "":
		s.in(m).Names.join(namesIn(e, name))
		return true
	}
	r := s.revisionIn(m, s.revision)
	r.Names.join(namesIn(e, name))
	if e.Reason == ReasonCreatedPod {
		r.First = earliest(r.First, e.Last)
	}
	return true
}

func namesIn(e Event, name string) Names {
	times := map[string][]int64{name: {e.Last}}
	if e.Reason == reasonDeletedPod {
		return Names{Deleted: times}
	}
	return Names{Created: times}
}

// Text returns an attribute as a text; empty: it is missing.
func Text(m pcommon.Map, key string) string {
	value, ok := m.Get(key)
	if !ok {
		return ""
	}
	return value.AsString()
}

// Number returns an attribute that is an integer; 0: it is missing, or none.
func Number(m pcommon.Map, key string) int64 {
	value, ok := m.Get(key)
	if !ok || value.Type() != pcommon.ValueTypeInt {
		return 0
	}
	return value.Int()
}

// Cut returns at most so many bytes of a text, and an ellipsis if it is longer.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
