// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

var (
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	replicaSets = schema.GroupResource{Group: "apps", Resource: "replicasets"}
)

// revision is one time that a workload got a template: the number-th, from 1.
type revision struct {
	number   int
	template int           // each has its own
	replaces int           // the template before; below 0: none
	changed  time.Duration // when the workload is written
	begins   time.Duration // when its ReplicaSet, or its ControllerRevision, is written
}

// sentences are what the receiver may say that the revision changed.
func (r *revision) sentences() []string {
	if r.replaces < 0 {
		return nil
	}
	return []string{"args main changed", "env main PASSWORD changed", fmt.Sprintf("image main: app:%d → app:%d", r.replaces, r.template)}
}

// by is the field manager that changed the template.
func (r *revision) by() string { return fmt.Sprint("deployer-", r.number) }

// changers are the field managers that an event of a revision may name: times have whole seconds.
func (d *detailed) changers(all []revision, of revision, t time.Duration) (managers []string) {
	for i := range all {
		other, second := &all[i], d.second(all[i].changed)
		if other.number == of.number || second == d.second(of.changed) || other.number > of.number && second <= d.second(max(t, of.begins)) {
			managers = append(managers, other.by())
		}
	}
	return managers
}

// second is the whole second of a time.
func (d *detailed) second(t time.Duration) time.Duration {
	return d.env.began.Add(t).Truncate(time.Second).Sub(d.env.began)
}

// newRevisions returns revisions that a user rolls out. One in two is a rollback.
func (d *detailed) newRevisions() (all []revision) {
	next := revision{replaces: -1, changed: d.plan.Start}
	for templates := 1; next.changed < d.env.plan.Active && len(all) < 12; {
		next.number++
		next.begins = next.changed + between(d.r, 10*time.Millisecond, 400*time.Millisecond)
		all = append(all, next)
		next.changed = next.begins + oneOf(d.r, between(d.r, 500*time.Millisecond, 3*time.Second), between(d.r, 3*time.Second, 30*time.Second), between(d.r, 20*time.Second, 3*time.Minute))
		next.replaces = next.template
		if back := d.r.IntN(templates); chance(d.r, 2) && back != next.template {
			next.template = back
			continue
		}
		next.template = templates
		templates++
	}
	return all
}

func (d *detailed) template(number int) corev1.PodTemplateSpec {
	value := fmt.Sprint(secret, "-", number)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": d.name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: fmt.Sprint("app:", number), Args: []string{"--password=" + value}, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: value}},
		}}},
	}
}

func (d *detailed) meta(name string, uid types.UID, owner *corev1.ObjectReference) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: d.namespace, Name: name, UID: uid, Labels: map[string]string{"app": d.name}}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: new(true)}}
	}
	return m
}

func (d *detailed) selector(hash string) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": d.name}}
	if hash != "" {
		selector.MatchLabels["pod-template-hash"] = hash
	}
	return selector
}

// managed is what a field manager wrote now.
func managed(by, fields string) metav1.ManagedFieldsEntry {
	owned := &metav1.FieldsV1{}
	owned.SetRawBytes([]byte(fields))
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return metav1.ManagedFieldsEntry{Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, Time: &now, FieldsV1: owned}
}

// change writes a workload with a new template. Its managers are in the order of their times.
func (d *detailed) change(gr schema.GroupResource, workload apiserver.Object, r revision) {
	d.at(r.changed, func() {
		workload.SetGeneration(int64(r.number))
		workload.SetAnnotations(map[string]string{"meta.helm.sh/release-name": d.name, corev1.LastAppliedConfigAnnotation: secret})
		workload.SetManagedFields(append(workload.GetManagedFields(), managed(r.by(), `{"f:spec":{"f:template":{"f:spec":{}}}}`)))
		d.write(gr, workload)
	})
}

// addDeployment rolls out a Deployment.
func (d *detailed) addDeployment() {
	deployment := &appsv1.Deployment{ObjectMeta: d.meta(d.name, types.UID("uid-"+d.name+"-"+d.namespace), nil)}
	owner := d.reference("apps/v1", "Deployment", d.name, deployment.UID)
	controller := d.newRecorder("deployment-controller")
	ofSets := d.newRecorder("replicaset-controller")
	sets, all := map[int]*appsv1.ReplicaSet{}, d.newRevisions()
	for i, r := range all {
		d.change(deployments, deployment, r)
		name := fmt.Sprintf("%s-%d", d.name, r.template)
		set := sets[r.template]
		if set == nil {
			set = &appsv1.ReplicaSet{ObjectMeta: d.meta(name, types.UID("uid-"+name+"-"+d.namespace), &owner)}
			set.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: d.selector(fmt.Sprint(r.template)), Template: d.template(r.template)}
			set.Annotations, sets[r.template] = map[string]string{}, set
		}
		d.at(r.begins, func() {
			const key, history = "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"
			if before := set.Annotations[key]; before != "" {
				set.Annotations[history] = strings.TrimPrefix(set.Annotations[history]+","+before, ",")
			}
			set.Annotations[key] = fmt.Sprint(r.number)
			set.Spec.Replicas = new(int32(1))
			d.write(replicaSets, set)
		})
		ends := r.begins + between(d.r, time.Second, 40*time.Second)
		overtaken := d.env.plan.Active
		if i+1 < len(all) {
			overtaken = all[i+1].begins
		}
		about := d.reference("apps/v1", "ReplicaSet", name, set.UID)
		t := r.begins + between(d.r, time.Millisecond, 900*time.Millisecond)
		for pod := 0; pod < 4 && t < min(ends, overtaken); pod++ {
			may := allowed{changes: []revision{r}, changers: d.changers(all, r, t)}
			controller.record(t, owner, "ScalingReplicaSet", fmt.Sprintf("Scaled up replica set %s from %d to %d", name, pod, pod+1), may)
			created := t + between(d.r, time.Millisecond, 300*time.Millisecond)
			ofSets.record(created, about, "SuccessfulCreate", fmt.Sprintf("Created pod: %s-%d", name, d.r.IntN(1000)), may)
			t = created + oneOf(d.r, between(d.r, time.Millisecond, time.Second), between(d.r, time.Second, 20*time.Second))
		}
		if ends < overtaken {
			former := sets[r.replaces]
			isPruned := former != nil && chance(d.r, 6) && !slices.ContainsFunc(all[i+1:], func(later revision) bool { return later.template == r.replaces })
			d.at(ends, func() {
				for template := range len(sets) {
					if other := sets[template]; template != r.template && *other.Spec.Replicas > 0 && other.Annotations != nil {
						other.Spec.Replicas = new(int32(0))
						d.write(replicaSets, other)
					}
				}
				if isPruned {
					_ = d.env.server.Delete(replicaSets, d.namespace, former.Name)
				}
			})
		}
	}
}

// addRevisions rolls out a StatefulSet or a DaemonSet.
func (d *detailed) addRevisions() {
	gr := schema.GroupResource{Group: "apps", Resource: strings.ToLower(d.plan.Kind) + "s"}
	owner := d.reference("apps/v1", d.plan.Kind, d.name, types.UID("uid-"+d.name+"-"+d.namespace))
	stateful := &appsv1.StatefulSet{ObjectMeta: d.meta(d.name, owner.UID, nil), Spec: appsv1.StatefulSetSpec{Selector: d.selector("")}}
	workload := apiserver.Object(stateful)
	if d.plan.Kind == "DaemonSet" {
		workload = &appsv1.DaemonSet{ObjectMeta: stateful.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: d.selector("")}}
	}
	controller := d.newRecorder(strings.ToLower(d.plan.Kind) + "-controller")
	stored, all := map[int]*appsv1.ControllerRevision{}, d.newRevisions()
	for i, r := range all {
		d.change(gr, workload, r)
		name := fmt.Sprintf("%s-%d", d.name, r.template)
		one := stored[r.template]
		if one == nil {
			one = &appsv1.ControllerRevision{ObjectMeta: d.meta(name, types.UID("uid-"+name+"-"+d.namespace), &owner)}
			one.Data = d.encoded(r.template)
			stored[r.template] = one
		}
		d.at(r.begins, func() {
			one.Revision = int64(r.number)
			one.ManagedFields = []metav1.ManagedFieldsEntry{managed("kube-controller-manager", `{"f:data":{},"f:revision":{}}`)}
			d.write(schema.GroupResource{Group: "apps", Resource: controllerRevisions.Resource}, one)
			stateful.Status.UpdateRevision = name
			d.write(gr, workload)
		})
		overtaken := d.env.plan.Active
		if i+1 < len(all) {
			overtaken = all[i+1].begins
		}
		t := r.begins + between(d.r, time.Millisecond, 2*time.Second)
		for pod := 0; pod < 6 && t < overtaken; pod++ {
			message := fmt.Sprintf("create Pod %s-%d in StatefulSet %s successful", d.name, pod, d.name)
			if d.plan.Kind == "DaemonSet" {
				message = fmt.Sprintf("Created pod: %s-%d", d.name, d.r.IntN(1000))
			}
			may := allowed{changes: d.newestWithin(all, t)}
			for _, r := range may.changes {
				may.changers = append(may.changers, d.changers(all, r, t)...)
			}
			controller.record(t, owner, "SuccessfulCreate", message, may)
			t += oneOf(d.r, between(d.r, time.Millisecond, time.Second), between(d.r, time.Second, 40*time.Second), between(d.r, time.Second, 2*time.Minute))
		}
		if ends := r.begins + between(d.r, 5*time.Second, time.Minute); ends < overtaken {
			d.at(ends, func() {
				stateful.Status.CurrentRevision = name
				d.write(gr, workload)
			})
		}
	}
}

// newestWithin returns the revisions that were the newest within the second of a time: events have whole seconds.
func (d *detailed) newestWithin(all []revision, t time.Duration) (newest []revision) {
	second := d.second(t)
	for i, r := range all {
		if r.begins < second+time.Second && (i+1 == len(all) || all[i+1].begins >= second) {
			newest = append(newest, r)
		}
	}
	return newest
}

func (d *detailed) encoded(template int) runtime.RawExtension {
	t := d.template(template)
	c := t.Spec.Containers[0]
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"main","image":%q,"args":[%q],"env":[{"name":"PASSWORD","value":%q}]}]}}}}`,
		c.Image, c.Args[0], c.Env[0].Value)}
}
