// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
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

// appKinds are chains that clusters have, by the kind at their end or by what is odd about them.
var appKinds = []string{
	"deployment", "deployment", "rollout", "statefulset", "cronjob", "bare", "node",
	"owner missing", "cycle", "two owners", "deep", "replaced", "cluster-scoped owners", "invalid owner",
	"second is controller", "static", "invented",
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
	p.addCrowd()
}

// addCrowd adds pods that nothing reports about, in one namespace.
func (p *Plan) addCrowd() {
	if p.Namespaces <= fewNamespaces && chance(draw(p.Seed, "crowd", 0), 5) {
		p.Crowd = 1500
	}
}

// createCrowd creates them. They are listed before the pods of apps.
func (e *environment) createCrowd() {
	a := &app{plan: e.plan.Apps[0]}
	for i := range e.plan.Crowd {
		a.newObject("Pod", fmt.Sprint("aside-", i)).create(e.server)
	}
}

// appName names an app. Two apps of different namespaces have one name, unless something of them is
// cluster-scoped.
func (p *Plan) appName(i int) string {
	if i%2 == 1 {
		a, before := p.Apps[i], p.Apps[i-1]
		if a.Namespace != before.Namespace && !a.isClusterScoped() && !before.isClusterScoped() {
			i--
		}
	}
	return fmt.Sprint("app-", i)
}

// isClusterScoped reports whether something of the app is cluster-scoped.
func (a *AppPlan) isClusterScoped() bool {
	return slices.Contains([]string{"node", "static", "cluster-scoped owners", "invalid owner", "component status"}, a.Kind)
}

// object is one object of a cluster as it really is, whatever the API server's caches hold.
type object struct {
	resource         schema.GroupResource
	apiVersion, kind string
	namespace, name  string
	uid              types.UID
	owners           []*object // the first is followed, unless the second is the controller
	controlled       bool      // the first owner is the controller, and the last in the references
	label            string    // tilt-manifest
	// labels and annotations are what it has in addition.
	labels, annotations map[string]string
	missing             bool // only references know it

	// replaces returns the others of its name, which are deleted before it is created; nil: none.
	replaces func() []*object
	// manifest is a static pod's hash, which its kubelet's events have as UID; empty: none.
	manifest types.UID

	mu        sync.Mutex // guards what follows
	formerly  string     // the label until relabeled
	relabeled time.Time  // zero: not
	exists    bool
	created   time.Time // zero: not yet
	deleted   time.Time // zero: not
}

// kinds that the receiver has to discover: rollouts and chains are custom resources.
var (
	rollouts = apiserver.Kind{
		Group: "argoproj.io", Versions: []string{"v1alpha1"}, Kind: "Rollout", Resource: "rollouts",
		Namespaced: true,
	}
	zones = apiserver.Kind{
		Group: "example.com", Versions: []string{"v1"}, Kind: "Zone", Resource: "zones",
	}
	links = apiserver.Kind{
		Group: "example.com", Versions: []string{"v1", "v1beta1"}, Kind: "Link", Resource: "links",
		Namespaced: true,
	}
)

// kindsByName has the API version and the resource of each kind.
var kindsByName = map[string]struct{ apiVersion, resource string }{
	"Pod":         {"v1", "pods"},
	"Node":        {"v1", "nodes"},
	"Namespace":   {"v1", "namespaces"},
	"ReplicaSet":  {"apps/v1", "replicasets"},
	"Deployment":  {"apps/v1", "deployments"},
	"StatefulSet": {"apps/v1", "statefulsets"},
	"Job":         {"batch/v1", "jobs"},
	"CronJob":     {"batch/v1", "cronjobs"},
	"Rollout":     {"argoproj.io/v1alpha1", "rollouts"},
	"Thing":       {"", "things"},
	"Zone":        {"example.com/v1", "zones"},
	"Link":        {"example.com/v1", "links"},
	"PodMetrics":  {"metrics.k8s.io/v1beta1", "pods"},

	"ComponentStatus": {"v1", "componentstatuses"},
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
	case "node", "static":
		a.own("Node", nil)
	case "owner missing":
		a.own("ReplicaSet", nil).missing = true
	case "cycle":
		first := a.own("Link", nil)
		first.owners = []*object{a.own("Link", first)}
	case "invented":
		owner := a.own("Thing", nil)
		owner.missing, owner.apiVersion = true, a.name+".example/v1"
		owner.resource.Group = a.name + ".example"
	case "cluster-scoped owners":
		a.own("Zone", a.own("Zone", nil))
	case "invalid owner":
		a.own("Zone", a.own("Link", nil))
	case "second is controller":
		a.own("ReplicaSet", a.own("Deployment", nil), a.own("Link", nil)).controlled = true
	case "replaced":
		a.own("StatefulSet", nil)
		a.own("ReplicaSet", nil)
	case "two owners":
		a.own("ReplicaSet", a.own("Deployment", nil), a.own("Link", nil))
	case "deep":
		owner := a.own("Link", nil)
		for range 11 {
			owner = a.own("Link", owner)
		}
	}
	a.ownOdd()
	a.label()
	return a
}

// own adds an object that becomes the owner of the pods.
func (a *app) own(kind string, owners ...*object) *object {
	o := a.newObject(kind, fmt.Sprintf("%s-%d", a.name, len(a.objects)))
	if len(owners) > 0 && owners[0] != nil {
		o.owners = owners
	}
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
	switch kind {
	case "Node", "Zone", "Namespace", "ComponentStatus":
		o.namespace = ""
	}
	if kind == "ComponentStatus" || kind == "PodMetrics" {
		o.uid = ""
	}
	return o
}

// label puts the label where the plan has it.
func (a *app) label() {
	o := a.owner
	for range a.plan.LabelAt - 1 {
		if o != nil && len(o.owners) > 0 {
			o = o.owners[0]
		}
	}
	if a.plan.LabelAt > 0 && o != nil && !o.missing {
		o.label = a.name + "-manifest"
	}
}

// subject returns what the events of one of the app's producers are about: a pod, or an owner.
func (a *app) subject(pod int) *object {
	if a.plan.Kind == "node" || a.plan.Kind == "component status" {
		return a.owner
	}
	if above := a.aboveEnd(pod); above != nil {
		return above
	}
	made := a.newObject("Pod", fmt.Sprintf("%s-pod-%d", a.name, pod))
	if a.owner != nil {
		made.owners = []*object{a.owner}
	}
	if a.plan.Kind == "replaced" { // Pods of one name, of different owners, one after the other.
		made.name, made.owners = a.name+"-pod", []*object{a.objects[pod%2]}
		made.replaces = a.existing
	}
	if a.plan.Kind == "static" {
		made.manifest = types.UID("manifest-of-" + made.name)
	}
	if a.plan.LabelAt == 0 {
		made.label = fmt.Sprintf("%s-manifest-%d", a.name, pod%2)
	}
	a.makeOdd(made)
	found, _ := a.pods.LoadOrStore(pod, made)
	return found.(*object)
}

// host returns the Node whose kubelet reports about the object.
func (o *object) host() string {
	isOfNode := len(o.owners) > 0 && o.owners[0].kind == "Node"
	switch {
	case o.kind == "Node":
		return o.name
	case isOfNode: // A static pod belongs to its own Node.
		return o.owners[0].name
	}
	return nodeOf(o.name)
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
	for _, owner := range o.owners {
		owner.create(server) // A new ReplicaSet comes a moment before its first pod.
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.created = time.Now()
	if o.replaces != nil {
		for _, other := range o.replaces() {
			if other != o {
				other.delete(server)
			}
		}
	}
	meta := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: o.apiVersion, Kind: o.kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name, UID: o.uid},
	}
	meta.Labels, meta.Annotations = maps.Clone(o.labels), maps.Clone(o.annotations)
	if o.label != "" {
		meta.Labels = map[string]string{"tilt-manifest": o.label, "other": "label"}
	}
	if o.manifest != "" {
		meta.Annotations = map[string]string{"kubernetes.io/config.mirror": string(o.manifest)}
	}
	meta.OwnerReferences = o.references()
	_, _ = server.Create(o.resource, meta) // A restored backup may have brought it back.
}

func (o *object) references() (refs []metav1.OwnerReference) {
	owners := slices.Clone(o.owners)
	if o.controlled {
		slices.Reverse(owners)
	}
	for _, owner := range owners {
		controller := len(o.owners) == 1 && o.kind != "Link" || o.controlled && owner == o.owners[0]
		refs = append(refs, metav1.OwnerReference{
			APIVersion: owner.apiVersion, Kind: owner.kind, Name: owner.name, UID: owner.uid,
			Controller: &controller,
		})
	}
	return refs
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
	resolution = "complete"
	for at := o; ; at = at.owners[0] {
		if slices.Contains(objects, at) {
			return objects, "cycle"
		}
		if len(objects) > maxDepth {
			return objects, "depth"
		}
		objects = append(objects, at)
		switch {
		case at.missing:
			return objects, "not_found"
		case len(at.owners) == 0:
			return objects, resolution
		case at.namespace == "" && at.owners[0].namespace != "":
			return append(objects, at.owners[0]), "not_found" // Such a reference is not valid.
		case len(at.owners) > 1 && !at.controlled:
			resolution = "ambiguous"
		}
	}
}
