// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// AppPlan is one workload: pods and what owns them.
type AppPlan struct {
	Kind      string // one of appKinds
	Namespace int
	LabelAt   int // whose label is tilt-manifest: 0 the pod's, 1 its owner's, …; -1: nobody's
}

// appKinds are chains that clusters have, by the kind at their end. The resolver's tests have the others.
var appKinds = []string{
	"deployment", "deployment", "rollout", "statefulset", "cronjob", "bare", "node", "owner missing",
}

func (p *Plan) addApps() {
	n := 2 + draw(p.Seed, "apps", 0).IntN(8)
	if p.Namespaces > fewNamespaces {
		n = p.Namespaces
	}
	for i := range n {
		r := draw(p.Seed, "app", i)
		kind := oneOf(r, appKinds...)
		app := AppPlan{Kind: kind, Namespace: r.IntN(p.Namespaces), LabelAt: r.IntN(4) - 1}
		if p.Namespaces > fewNamespaces {
			app.Namespace = i
		}
		p.Apps = append(p.Apps, app)
	}
}

// appName names an app. Two apps of different namespaces have one name, unless one of them is a Node.
func (p *Plan) appName(i int) string {
	if i%2 == 1 {
		a, before := p.Apps[i], p.Apps[i-1]
		if a.Namespace != before.Namespace && a.Kind != "node" && before.Kind != "node" {
			i--
		}
	}
	return fmt.Sprint("app-", i)
}

// object is one object of a cluster as it really is, whatever the API server's caches hold.
type object struct {
	resource         schema.GroupResource
	apiVersion, kind string
	namespace, name  string
	uid              types.UID
	owner            *object // nil: none
	label            string  // tilt-manifest
	missing          bool    // only references know it

	mu        sync.Mutex // guards what follows
	formerly  string     // the label until relabeled
	relabeled time.Time  // zero: not
	exists    bool
	created   time.Time // zero: not yet
	deleted   time.Time // zero: not
}

// rollouts are a kind that the receiver has to discover.
var rollouts = apiserver.Kind{
	Group: "argoproj.io", Versions: []string{"v1alpha1"}, Kind: "Rollout", Resource: "rollouts",
	Namespaced: true,
}

// kindsByName has the API version and the resource of each kind.
var kindsByName = map[string]struct{ apiVersion, resource string }{
	"Pod":         {"v1", "pods"},
	"Node":        {"v1", "nodes"},
	"ReplicaSet":  {"apps/v1", "replicasets"},
	"Deployment":  {"apps/v1", "deployments"},
	"StatefulSet": {"apps/v1", "statefulsets"},
	"Job":         {"batch/v1", "jobs"},
	"CronJob":     {"batch/v1", "cronjobs"},
	"Rollout":     {"argoproj.io/v1alpha1", "rollouts"},
}

// app is a workload of a cluster: what its pods belong to.
type app struct {
	plan    AppPlan
	name    string
	owner   *object   // of each pod; nil: none
	objects []*object // that exist from the start
	pods    sync.Map  // number → *object
}

func newApp(plan AppPlan, name string) *app {
	a := &app{plan: plan, name: name}
	switch plan.Kind {
	case "deployment":
		a.own("ReplicaSet", a.own("Deployment", nil))
	case "rollout":
		a.own("ReplicaSet", a.own("Rollout", nil))
	case "statefulset":
		a.own("StatefulSet", nil)
	case "cronjob":
		a.own("Job", a.own("CronJob", nil))
	case "node":
		a.own("Node", nil)
	case "owner missing":
		a.own("ReplicaSet", nil).missing = true
	}
	a.label()
	return a
}

// own adds an object that becomes the owner of the pods.
func (a *app) own(kind string, owner *object) *object {
	o := a.newObject(kind, fmt.Sprintf("%s-%d", a.name, len(a.objects)))
	o.owner = owner
	a.objects, a.owner = append(a.objects, o), o
	return o
}

func (a *app) newObject(kind, name string) *object {
	is := kindsByName[kind]
	version, _ := schema.ParseGroupVersion(is.apiVersion)
	o := &object{
		resource:   schema.GroupResource{Group: version.Group, Resource: is.resource},
		apiVersion: is.apiVersion, kind: kind, namespace: namespace(a.plan.Namespace), name: name,
		uid: types.UID(fmt.Sprintf("uid-%s-%s-%d", kind, name, a.plan.Namespace)),
	}
	if kind == "Node" {
		o.namespace = ""
	}
	return o
}

// label puts the label where the plan has it.
func (a *app) label() {
	o := a.owner
	for range a.plan.LabelAt - 1 {
		if o != nil && o.owner != nil {
			o = o.owner
		}
	}
	if a.plan.LabelAt > 0 && o != nil && !o.missing {
		o.label = a.name + "-manifest"
	}
}

// subject returns what the events of one of the app's producers are about: a pod, or an owner.
func (a *app) subject(pod int) *object {
	if a.plan.Kind == "node" {
		return a.owner
	}
	if above := a.aboveEnd(pod); above != nil {
		return above
	}
	made := a.newObject("Pod", fmt.Sprintf("%s-pod-%d", a.name, pod))
	made.owner = a.owner
	if a.plan.LabelAt == 0 {
		made.label = fmt.Sprintf("%s-manifest-%d", a.name, pod%2)
	}
	found, _ := a.pods.LoadOrStore(pod, made)
	return found.(*object)
}

// host returns the Node whose kubelet reports about the object.
func (o *object) host() string {
	if o.kind == "Node" {
		return o.name
	}
	return "node-1"
}

// existing returns the app's pods.
func (a *app) existing() (pods []*object) {
	a.pods.Range(func(_, pod any) bool {
		pods = append(pods, pod.(*object))
		return true
	})
	return pods
}

// aboveEnd returns an owner instead of a pod with a high number: not all events are about pods.
func (a *app) aboveEnd(pod int) *object {
	unowned := a.owner == nil || a.owner.missing || a.owner.kind == "Node"
	switch {
	case unowned || pod < 4 || pod >= newPods:
		return nil
	case pod == 4:
		return a.owner
	default:
		return a.objects[0]
	}
}

// create writes the object to the API server, once.
func (o *object) create(server *apiserver.Server) {
	o.mu.Lock()
	known := o.exists || o.missing
	o.exists = true
	o.mu.Unlock()
	if known {
		return
	}
	if o.owner != nil {
		o.owner.create(server) // A new ReplicaSet comes a moment before its first pod.
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.created = time.Now()
	meta := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: o.apiVersion, Kind: o.kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name, UID: o.uid},
	}
	if o.label != "" {
		meta.Labels = map[string]string{"tilt-manifest": o.label, "other": "label"}
	}
	if owner := o.owner; owner != nil {
		isController := true
		meta.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: owner.apiVersion, Kind: owner.kind, Name: owner.name, UID: owner.uid, Controller: &isController,
		}}
	}
	_, _ = server.Create(o.resource, meta) // A restored backup may have brought it back.
}

// delete deletes the object, as the end of a pod does.
func (o *object) delete(server *apiserver.Server) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.exists && o.deleted.IsZero() {
		o.deleted = time.Now()
		_ = server.Delete(o.resource, o.namespace, o.name) // A replaced cluster does not have it.
	}
}

// relabel changes the object's label.
func (o *object) relabel(server *apiserver.Server) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, err := server.Get(o.resource, o.namespace, o.name)
	if err != nil || o.label == "" {
		return
	}
	o.formerly, o.label, o.relabeled = o.label, o.label+"-renamed", time.Now()
	found.SetLabels(map[string]string{"tilt-manifest": o.label})
	_, _ = server.Update(o.resource, found) // Nobody else writes it.
}

// manifests returns the values that tilt.manifest may have in a record of an event that was seen
// then.
func (o *object) manifests(seen time.Time, cacheTTL time.Duration) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.relabeled.IsZero() || seen.Sub(o.relabeled) > cacheTTL+lookBack {
		return []string{o.label}
	}
	return []string{o.formerly, o.label}
}

// existedFrom reports whether the object existed from one moment to the other.
func (o *object) existedFrom(begin, end time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.created.IsZero() && o.created.Before(begin) && (o.deleted.IsZero() || end.Before(o.deleted))
}

// aliveAt reports whether the object existed at that time.
func (o *object) aliveAt(at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deleted.IsZero() || at.Before(o.deleted)
}

// allAliveAt reports whether none of the objects was deleted by then.
func allAliveAt(objects []*object, at time.Time) bool {
	return !slices.ContainsFunc(objects, func(o *object) bool { return !o.aliveAt(at) })
}

// chain returns the object and its owners as far as they can be found, and the resolution that the
// contract names for this.
func (o *object) chain(maxDepth int) (objects []*object, resolution string) {
	for at := o; ; at = at.owner {
		if len(objects) > maxDepth {
			return objects, "depth"
		}
		objects = append(objects, at)
		switch {
		case at.missing:
			return objects, "not_found"
		case at.owner == nil:
			return objects, "complete"
		}
	}
}
