// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// maxMessage bounds a message in the model.
const maxMessage = 512

// The reasons of Events that a rollout is made of.
const (
	ReasonScaled     = "ScalingReplicaSet" // of a Deployment
	ReasonCreatedPod = "SuccessfulCreate"  // of a pod's owner; of a CronJob, it is about a Job
	ReasonScheduled  = "Scheduled"
	reasonDeletedPod = "SuccessfulDelete"
	reasonUnplaced   = "FailedScheduling"
	reasonPulling    = "Pulling"
	reasonPulled     = "Pulled"
	reasonCreated    = "Created"
	reasonStarted    = "Started"
	reasonBackOff    = "BackOff"
	reasonFailed     = "Failed"
	reasonUnhealthy  = "Unhealthy"
	reasonKilling    = "Killing"
	reasonCompleted  = "Completed" // of a Job
)

// reader adds what records say to a model.
type reader struct {
	to, known *Model
}

// Read returns what records say about rollouts, and how many of them say something. It leaves out
// attributes that another model has anyway: they are most of what records say, and most of what is
// saved of them.
func Read(records []*record.Record, known *Model) (*Model, int) {
	in, used := reader{&Model{}, known}, 0
	for _, r := range records {
		switch s := r.Subject; {
		case s.BelongsToNode():
		case s.Workload.UID == "" && s.Workload.Name != "":
			in.to.Lacks = []string{"k8s.workload.uid"}
		case s.Workload.UID == "":
		case len(s.Missing) > 0:
			in.to.Lacks = s.Missing
		case in.read(r):
			used++
		}
	}
	in.to.measure()
	return in.to, used
}

// read reports whether the record says something about rollouts.
func (in reader) read(r *record.Record) bool {
	switch {
	case r.At.UnixNano() == 0:
		return false
	case r.Pod != "":
		return !hasUnknownOwner(r) && in.readPod(r)
	case r.Reason == ReasonScaled:
		return in.readScaling(r)
	case r.Reason == ReasonCreatedPod || r.Reason == reasonDeletedPod:
		return in.readNames(r)
	case r.Revision != "" && (r.IsFailure() && !r.IsHarmless || r.Reason == reasonCompleted && IsJob(r.Revision)):
		in.revision(r, r.Revision).add(r)
		return true
	}
	return false
}

// hasUnknownOwner reports whether the owner of a pod is not known: the receiver may not read the
// pod, or records do not have the owner's UID.
func hasUnknownOwner(r *record.Record) bool {
	return r.Revision == "" || r.IsWorkload() && r.Resolution == "forbidden"
}

func eventOf(r *record.Record) Event {
	e := Event{
		Reason: r.Reason, Warning: r.IsFailure(), Harmless: r.IsHarmless && r.IsFailure(), First: r.First.UnixNano(), Last: r.At.UnixNano(), Count: r.Count,
		Message: record.Cut(r.Text(), maxMessage),
	}
	if r.Kind != r.Reason {
		e.Kind = r.Kind
	}
	if r.Details != nil {
		e.Ended = r.Details.Ended
	}
	return e
}

// add adds an Event above the pods.
func (r *Revision) add(of *record.Record) {
	e := eventOf(of)
	r.First = earliest(r.First, e.First)
	joinEvents(&r.Events, map[string]Event{of.Event: e})
}

// phases are the kinds of Events, other than warnings, that a pod's spans are made of.
var phases = map[string]bool{
	ReasonScheduled: true, reasonPulling: true, reasonPulled: true, record.KindPresent: true, reasonCreated: true,
	reasonStarted: true, record.KindStopping: true, record.KindRestarted: true,
}

// hasText has the kinds of Events other than warnings whose message a span shows.
var hasText = map[string]bool{reasonPulling: true, reasonPulled: true, record.KindPresent: true, record.KindRestarted: true}

func (in reader) readPod(of *record.Record) bool {
	if !of.IsFailure() && !phases[of.Kind] || of.IsDebug { // To debug the pod is no part of a rollout.
		return false
	}
	e := eventOf(of)
	e.Container, e.Init = of.Container, of.IsInit
	if !e.Warning && !hasText[of.Kind] {
		e.Message = ""
	}
	r := in.revision(of, of.Revision)
	p := r.pod(of.Pod)
	p.Name, p.Node = of.Object().Name, max(p.Node, of.NodeOfPod())
	joinEvents(&p.Events, map[string]Event{of.Event: e})
	if of.Kind != record.KindStopping {
		p.First = earliest(p.First, e.First)
		r.First = earliest(r.First, e.First)
	}
	return true
}

// KeyOf returns the key in a Model of what records are about; an empty workload has no rollouts,
// and an empty revision is not known.
func KeyOf(s *record.Subject) (key Key) {
	if s.Workload.UID != "" && !s.BelongsToNode() {
		key = Key{s.Cluster + "/" + s.Namespace + "/" + s.Workload.UID, s.Revision}
	}
	return key
}

// workload returns the workload in the model.
func (in reader) workload(s *record.Subject) *Workload {
	w := in.to.workload(KeyOf(s).Workload)
	w.Cluster, w.Namespace, w.UID = s.Cluster, s.Namespace, s.Workload.UID
	w.Kind, w.Name = s.Workload.Kind, s.Workload.Name
	return w
}

// revision returns the revision in the model, with the attributes that become the resource of its
// spans.
func (in reader) revision(of *record.Record, name string) *Revision {
	r := in.workload(of.Subject).revision(name)
	r.Controller = max(r.Controller, of.Controller)
	var known map[string]string
	if _, same := in.known.Revision(Key{KeyOf(of.Subject).Workload, name}); same != nil {
		known = same.Attributes
	}
	for attribute, value := range of.Attributes.All() {
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

// readScaling reads that a Deployment scaled one of its ReplicaSets.
func (in reader) readScaling(of *record.Record) bool {
	scaling, ok := record.ScalingOf(of.Message)
	if !ok {
		return false
	}
	e, r := eventOf(of), in.revision(of, scaling.Revision)
	r.joinSteps(stepsOf(e, scaling))
	if scaling.Up { // A former occurrence shows that the revision is older, and not what it was then.
		r.First = earliest(r.First, e.Last)
	}
	in.readTemplate(of, scaling.Revision)
	if scaling.From == 0 {
		activation := Activation{Revision: scaling.Revision, Controller: of.Controller, At: e.Last, Repeated: e.Count > 1 || scaling.Existed}
		put(&in.workload(of.Subject).Activations, cmp.Or(of.ID, of.Event), activation)
	}
	return true
}

// readNames reads that an owner created or deleted a pod, or a CronJob a Job.
func (in reader) readNames(of *record.Record) bool {
	kind, name := record.NamedIn(of.Message)
	at := of.At.UnixNano()
	switch {
	case kind == "", kind == "job" && of.Reason == reasonDeletedPod: // A CronJob deletes its old Jobs.
		return false
	case kind == "job":
		r := in.revision(of, "job.batch/"+name)
		joinEvents(&r.Events, map[string]Event{name: {Reason: ReasonCreatedPod, First: at, Last: at, Count: 1}})
		r.First = earliest(r.First, at)
		return true
	}
	in.readTemplate(of, of.Revision)
	if of.Revision == "" {
		in.workload(of.Subject).Names.join(namesIn(of, name))
		return true
	}
	r := in.revision(of, of.Revision)
	r.Names.join(namesIn(of, name))
	if of.Reason == ReasonCreatedPod {
		r.First = earliest(r.First, at)
	}
	return true
}

// readTemplate reads what the template of a new revision changed.
func (in reader) readTemplate(of *record.Record, revision string) {
	d := of.Details
	if d == nil || len(d.Changes) == 0 && d.Tool == "" && d.ChangedBy == "" {
		return
	}
	put(&in.workload(of.Subject).Templates, cmp.Or(of.ID, of.Event), Template{
		Revision: revision, Controller: of.Object().String(), At: of.At.UnixNano(), Changes: d.Changes, Tool: d.Tool, ChangedBy: d.ChangedBy,
	})
}

func namesIn(of *record.Record, name string) Names {
	times := map[string][]int64{name: {of.At.UnixNano()}}
	if of.Reason == reasonDeletedPod {
		return Names{Deleted: times}
	}
	return Names{Created: times}
}
