// SPDX-License-Identifier: Apache-2.0

package details

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

const (
	// newFor is how long after its begin a revision is taken for a new one.
	newFor = 2 * time.Minute
	// clockSlack is how much the time of an Event, and that of an object, may be off: they have whole seconds,
	// and clocks of their own.
	clockSlack = time.Second
	// begunWithin is how long the controller may take to begin a revision after the template changed. It usually
	// takes less than a second. If it took longer, an undo may have removed the change that began the revision.
	begunWithin = 10 * time.Second
)

// scaledUp returns the ReplicaSet that a Deployment has scaled up.
// (kubernetes/pkg/controller/deployment/sync.go: "Scaled up replica set NAME from 0 to 1"; client-go
// combines the scalings of ten minutes from the tenth on)
func scaledUp(ev *corev1.Event) (name string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(ev.Message, "(combined from similar events): "), "Scaled up replica set ")
	name, _, _ = strings.Cut(rest, " ")
	return name, ok && ev.Reason == "ScalingReplicaSet" && name != "" && !strings.Contains(name, "/")
}

// workload has the fields that are kept of what makes revisions: a ReplicaSet, which is one, a StatefulSet or
// a DaemonSet.
type workload struct {
	metadata
	Spec struct {
		Replicas *int32                 `json:"replicas"`
		Selector *metav1.LabelSelector  `json:"selector"`
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
	Status struct {
		CurrentRevision string `json:"currentRevision"`
		UpdateRevision  string `json:"updateRevision"`
	} `json:"status"`
}

// nothing is the answer if an Event is of no new revision.
func nothing(*corev1.Event) *observation.Details { return nil }

// answers are those to some of the Events.
type answers map[*corev1.Event]*observation.Details

func (a answers) to(ev *corev1.Event) *observation.Details { return a[ev] }

// failed says why a read failed, on the first of the Events.
func failed(failure resolver.Resolution) answer {
	said := &observation.Details{Resolution: failure}
	return func(*corev1.Event) *observation.Details {
		one := said
		said = nil
		return one
	}
}

// hashes are the labels that tell the ReplicaSets of one workload apart.
var hashes = []string{"pod-template-hash", "rollouts-pod-template-hash"}

// askReplicaSet compares a new ReplicaSet with the one before it, once.
func (d *Details) askReplicaSet(ctx context.Context, about subject, events []*corev1.Event) answer {
	known, isCompared := d.replicaSets.Get(about.key())
	if isCompared && (time.Since(known.readAt) < sharedFor || !slices.ContainsFunc(events, isFromZero)) {
		return nothing
	}
	in := path{group: "apps", version: "v1", resource: "replicasets", namespace: about.namespace}
	one := in
	one.name = about.name
	var read workload
	if failure := d.reader.read(ctx, one, &read); failure != "" {
		return failed(failure)
	}
	if involved := events[0].InvolvedObject.UID; read.UID != involved && !isOwnedBy(read.OwnerReferences, involved) {
		return nothing // The Event names a ReplicaSet of another Deployment.
	}
	uses := read.revisions()
	newest := compared{revision: slices.Max(append(uses, 0)), readAt: time.Now()}
	d.replicaSets.Add(about.key(), newest)
	isNew := func(ev *corev1.Event) bool { return isNewAt(read.CreationTimestamp.Time, event.NewestOccurrence(ev)) }
	owner := metav1.GetControllerOf(&read)
	if in.selector = read.selector(); known.revision == newest.revision || owner == nil || in.selector == "" || len(uses) == 1 && !slices.ContainsFunc(events, isNew) {
		return nothing
	}
	var siblings list[workload]
	if failure := d.reader.read(ctx, in, &siblings); failure != "" {
		return failed(failure)
	}
	siblings.Items = slices.DeleteFunc(siblings.Items, func(s workload) bool { return !isOwnedBy(s.OwnerReferences, owner.UID) })
	for _, ev := range events {
		revision, former := useAt(uses, siblings.Items, event.NewestOccurrence(ev))
		if revision <= known.revision {
			continue
		}
		d.replicaSets.Add(about.key(), compared{revision: revision, readAt: newest.readAt})
		// A former revision that is scaled up again without another one that still runs is no rollback.
		if !isNew(ev) && (former == nil || former.Spec.Replicas != nil && *former.Spec.Replicas == 0) {
			return nothing
		}
		return answers{ev: d.compareReplicaSet(ctx, in.namespace, former, &read, ev)}.to
	}
	d.replicaSets.Add(about.key(), compared{revision: known.revision, readAt: newest.readAt})
	return nothing
}

// compareReplicaSet compares a ReplicaSet with the one that it replaced; nil: none is known.
func (d *Details) compareReplicaSet(ctx context.Context, namespace string, former, read *workload, ev *corev1.Event) *observation.Details {
	changes := &observation.Details{}
	if former != nil {
		changes.Changes = compare(former.Spec.Template, read.Spec.Template)
	}
	if owner := metav1.GetControllerOf(read); owner.APIVersion == "apps/v1" && owner.Kind == "Deployment" {
		var deployment metadata
		in := path{group: "apps", version: "v1", resource: "deployments", namespace: namespace, name: owner.Name, metadataOnly: true}
		if changes.Resolution = d.reader.read(ctx, in, &deployment); changes.Resolution == "" {
			at := event.NewestOccurrence(ev)
			if len(read.revisions()) == 1 {
				at = read.CreationTimestamp.Time
			}
			addTools(changes, "apps/Deployment", &deployment, at)
		}
	}
	return changes
}

// isFromZero reports whether a ReplicaSet begins to run: as a new revision, or as a former one again.
func isFromZero(ev *corev1.Event) bool { return strings.Contains(ev.Message, " from 0 to ") }

// maxSelector bounds a selector. Anyone who may write a workload may give it one that is too long for a request.
const maxSelector = 4 << 10

// selector selects the revisions of the workload; empty: nothing does, or it is too long.
func (w *workload) selector() string {
	selector := w.Spec.Selector.DeepCopy()
	if selector == nil {
		return ""
	}
	for _, hash := range hashes {
		delete(selector.MatchLabels, hash)
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || len(parsed.String()) > maxSelector {
		return ""
	}
	return parsed.String()
}

func isNewAt(begun, at time.Time) bool {
	return at.Sub(begun) >= -clockSlack && at.Sub(begun) < newFor
}

// revisions returns the numbers that the controller gave a ReplicaSet: a rollback gives it another one.
func (w *workload) revisions() (numbers []int64) {
	for _, controller := range []string{"deployment.kubernetes.io/", "rollout.argoproj.io/"} {
		for text := range strings.SplitSeq(w.Annotations[controller+"revision-history"]+","+w.Annotations[controller+"revision"], ",") {
			if number, err := strconv.ParseInt(text, 10, 64); err == nil {
				numbers = append(numbers, number)
			}
		}
	}
	return numbers
}

// useAt returns as which of its revisions a ReplicaSet was used at a time, and which one it replaced then: the one
// with the number before. 0: it may be several revisions, after different ones.
func useAt(uses []int64, siblings []workload, at time.Time) (number int64, replaced *workload) {
	used := map[int64]*workload{}
	// That a ReplicaSet is created shows when its first revision began, and nothing does of the others.
	begun, toCome := int64(0), int64(math.MaxInt64)
	for i := range siblings {
		of := siblings[i].revisions()
		for _, one := range of {
			used[one] = &siblings[i]
		}
		switch age := at.Sub(siblings[i].CreationTimestamp.Time); {
		case len(of) == 0:
		case age > clockSlack:
			begun = max(begun, slices.Min(of))
		case age < -clockSlack:
			toCome = min(toCome, slices.Min(of))
		}
	}
	for _, one := range uses {
		if one < begun || one >= toCome {
			continue
		}
		if number > 0 && used[one-1] != replaced {
			return 0, nil
		}
		number, replaced = one, used[one-1]
	}
	return number, replaced
}

// controllerRevision is a revision of a StatefulSet or a DaemonSet.
type controllerRevision struct {
	metadata
	Revision int64 `json:"revision"`
	Data     struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	} `json:"data"`
}

// begun returns since when the revision is the newest one. A rollback numbers an old one again.
func (r *controllerRevision) begun() time.Time {
	if numbered := lastChange(r.ManagedFields, "f:revision").at; numbered.After(r.CreationTimestamp.Time) {
		return numbered
	}
	return r.CreationTimestamp.Time
}

// revisionAt returns which of the revisions, the newest first, was the newest at a time; -1: it is not certain.
func revisionAt(revisions []controllerRevision, at time.Time) int {
	for i := range revisions {
		r := &revisions[i]
		if r.CreationTimestamp.After(at.Add(clockSlack)) {
			continue // The Event is of an earlier one.
		}
		isOlder := func(before controllerRevision) bool { return before.CreationTimestamp.After(r.begun()) }
		if r.begun().After(at) || slices.ContainsFunc(revisions[i+1:], isOlder) {
			return -1
		}
		return i
	}
	return -1
}

// compared is what is remembered of a workload.
type compared struct {
	generation int64 // whose revision was compared; 0: none
	revision   int64 // the newest that was compared
	readAt     time.Time
}

// askWorkload compares the revision of a StatefulSet or a DaemonSet that an Event is of with the one before it, once.
// It keeps none of the revisions: they may be large, and a batch has many workloads.
func (d *Details) askWorkload(ctx context.Context, about subject, events []*corev1.Event) answer {
	in := path{group: "apps", version: "v1", resource: strings.ToLower(about.kind) + "s", namespace: about.namespace, name: about.name}
	known, _ := d.revisions.Get(about.uid)
	if time.Since(known.readAt) < sharedFor {
		return nothing
	}
	var read workload
	if failure := d.reader.read(ctx, in, &read); failure != "" {
		return failed(failure)
	}
	known.readAt = time.Now()
	d.revisions.Add(about.uid, known)
	if read.UID != about.uid || known.generation == read.Generation {
		return nothing
	}
	in = path{group: "apps", version: "v1", resource: "controllerrevisions", namespace: about.namespace, selector: read.selector()}
	if in.selector == "" {
		return nothing
	}
	var revisions list[controllerRevision]
	if failure := d.reader.read(ctx, in, &revisions); failure != "" {
		return failed(failure)
	}
	all := slices.DeleteFunc(revisions.Items, func(r controllerRevision) bool { return !isOwnedBy(r.OwnerReferences, read.UID) })
	slices.SortFunc(all, func(a, b controllerRevision) int { return cmp.Compare(b.Revision, a.Revision) })
	found := answers{}
	for _, ev := range events {
		at := event.NewestOccurrence(ev)
		i := revisionAt(all, at)
		if i < 0 || all[i].Revision <= known.revision {
			continue
		}
		known.revision = all[i].Revision
		if i == 0 {
			known.generation = read.Generation
		}
		isRollingOut := i == 0 && read.Status.CurrentRevision != read.Status.UpdateRevision
		if isNewAt(all[i].begun(), at) || isRollingOut {
			found[ev] = compareRevisions(about, &read, all[i:])
		}
	}
	d.revisions.Add(about.uid, known)
	return found.to
}

// compareRevisions compares the first of the revisions with the one that it replaced.
func compareRevisions(about subject, of *workload, revisions []controllerRevision) *observation.Details {
	changes := &observation.Details{}
	// The number is that of the one before it plus 1: a lower one is not what it replaced.
	if len(revisions) > 1 && revisions[1].Revision == revisions[0].Revision-1 {
		changes.Changes = compare(revisions[1].Data.Spec.Template, revisions[0].Data.Spec.Template)
	}
	addTools(changes, "apps/"+about.kind, &of.metadata, revisions[0].begun())
	return changes
}

// change is the last one of an object.
type change struct {
	at       time.Time
	by, name string
}

// lastChange returns the last change of one of the fields, which f: names, and who made it; zero: not known.
// A nested field is written as f:spec/f:template. (apimachinery, ManagedFieldsEntry)
func lastChange(managers []metav1.ManagedFieldsEntry, fields ...string) (last change) {
	for _, m := range managers {
		if m.Time == nil || m.FieldsV1 == nil || m.Subresource != "" || !m.Time.After(last.at) {
			continue
		}
		if slices.ContainsFunc(fields, func(field string) bool { return owns(m.FieldsV1.GetRawBytes(), strings.Split(field, "/")) }) {
			last = change{at: m.Time.Time, by: m.Manager}
		}
	}
	return last
}

func owns(fields json.RawMessage, names []string) bool {
	if len(names) == 0 {
		return true
	}
	var nested map[string]json.RawMessage
	_ = json.Unmarshal(fields, &nested) // What cannot be read owns nothing.
	inner, ok := nested[names[0]]
	return ok && owns(inner, names[1:])
}

// addTools adds which tool deployed a workload, of a kind as GROUP/KIND, and who changed its template last. A change
// after a revision began is of a later one, and a change long before is of an earlier one.
func addTools(to *observation.Details, kind string, of *metadata, began time.Time) {
	to.DeployedBy = deployedBy(kind, of)
	last := lastChange(of.ManagedFields, "f:spec/f:template")
	if age := began.Sub(last.at); age >= 0 && age <= begunWithin {
		to.ChangedBy, to.ChangedAt = last.by, last.at
	}
}

// deployedBy returns the object of the tool that deployed a workload; empty: not known. What Helm writes is
// last, because tools that use Helm leave it, too.
func deployedBy(kind string, of *metadata) string {
	// https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/: APPLICATION:GROUP/KIND:NAMESPACE/NAME.
	// A copied annotation names another object.
	if app, ok := strings.CutSuffix(of.Annotations["argocd.argoproj.io/tracking-id"], ":"+kind+":"+of.Namespace+"/"+of.Name); ok && app != "" {
		return "application.argoproj.io/" + app
	}
	isOfArgo := slices.ContainsFunc(of.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return strings.HasPrefix(m.Manager, "argocd") })
	for _, tool := range []struct {
		name, object string
		isOurs       bool
	}{
		{of.Labels["helm.toolkit.fluxcd.io/name"], "helmrelease.helm.toolkit.fluxcd.io/", true},
		{of.Labels["kustomize.toolkit.fluxcd.io/name"], "kustomization.kustomize.toolkit.fluxcd.io/", true},
		{of.Labels["app.kubernetes.io/instance"], "application.argoproj.io/", isOfArgo},
		{of.Annotations["meta.helm.sh/release-name"], "helm/", true},
	} {
		if tool.name != "" && tool.isOurs {
			return tool.object + tool.name
		}
	}
	return ""
}
