// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// DetailedPlan is a workload whose events call for details.
type DetailedPlan struct {
	Kind      string // one of detailedKinds
	Namespace int
	Start     time.Duration
}

const crashLoop = "crash loop"

var detailedKinds = []string{crashLoop, crashLoop, crashLoop, "Deployment", "Deployment", "StatefulSet", "DaemonSet"}

// controllerRevisions are a kind that only reads of details need.
var controllerRevisions = apiserver.Kind{
	Group: "apps", Versions: []string{"v1"}, Kind: "ControllerRevision", Resource: "controllerrevisions", Namespaced: true,
}

// addDetailed adds workloads whose events call for details to one plan in four. All of it is drawn apart, so that
// it changes no other plan.
func (p *Plan) addDetailed() {
	r := draw(p.Seed, "detailed", 0)
	if !chance(r, 4) || p.Namespaces > fewNamespaces || p.Active > time.Hour || slices.Contains(corpus, p.Seed) {
		return
	}
	p.Active = max(p.Active, between(r, 2*time.Minute, 7*time.Minute))
	if chance(r, 8) { // A container that runs for ten minutes starts again at once.
		p.Active = between(r, 20*time.Minute, 40*time.Minute)
	}
	p.EventTTL = max(p.EventTTL, 10*time.Minute)
	p.NoDetails = chance(r, 10)
	for i := range 1 + r.IntN(5) {
		r := draw(p.Seed, "detailed plan", i)
		p.Detailed = append(p.Detailed, DetailedPlan{
			Kind: oneOf(r, detailedKinds...), Namespace: r.IntN(p.Namespaces), Start: between(r, firstWrite, firstWrite+40*time.Second),
		})
	}
	for i := range r.IntN(4) {
		p.addDetailFault(draw(p.Seed, "detail fault", i))
	}
	if chance(r, 10) {
		p.Faults = append(p.Faults, Fault{Kind: DetailsFail, To: forever, Status: http.StatusForbidden, Replica: everyone})
	}
	p.lastUntilFaultsEnd()
}

func (p *Plan) addDetailFault(r *rand.Rand) {
	f := Fault{Kind: DetailsFail, Replica: everyone, OneIn: oneOf(r, 1, 1, 2, 5)}
	f.From = between(r, firstWrite, p.Active)
	f.To = f.From + oneOf(r, between(r, time.Second, 20*time.Second), between(r, 20*time.Second, 2*time.Minute))
	f.Resource = oneOf(r, "", "", "pods", "replicasets", "deployments", "statefulsets", "daemonsets", controllerRevisions.Resource)
	switch f.Status = oneOf(r, 0, 0, 0, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusInternalServerError); {
	case f.Status == 0 && chance(r, 3): // It hangs.
	case f.Status == 0:
		f.Delay = between(r, 20*time.Millisecond, 3*time.Second)
	}
	p.Faults = append(p.Faults, f)
}

// allowed is what a record of an event may say.
type allowed struct {
	end      *endOfRun  // nil: none
	changes  []revision // one of them
	changers []string   // one of them
	release  string     // of Helm
}

// detailed writes what happens to a workload, and the events about it.
type detailed struct {
	env       *environment
	plan      DetailedPlan
	name      string
	namespace string
	r         *rand.Rand
	moments   []moment
	events    map[string]*corev1.Event // the last state of each, by what it is about
}

// moment is something that happens at a time of the run.
type moment struct {
	at time.Duration
	do func()
}

func newDetailed(e *environment, number int) *detailed {
	plan := e.plan.Detailed[number]
	d := &detailed{
		env: e, plan: plan, name: fmt.Sprint("detailed-", number), namespace: namespace(plan.Namespace),
		r: draw(e.plan.Seed, "detailed", 1+number), events: map[string]*corev1.Event{},
	}
	switch plan.Kind {
	case crashLoop:
		d.addPods()
	case "Deployment":
		d.addDeployment()
	default:
		d.addRevisions()
	}
	slices.SortStableFunc(d.moments, func(a, b moment) int { return int(a.at - b.at) })
	return d
}

func (d *detailed) at(t time.Duration, do func()) { d.moments = append(d.moments, moment{t, do}) }

// run lets everything happen. What comes after the plan's end does not.
func (d *detailed) run() {
	for _, m := range d.moments {
		if m.at > d.env.plan.Active {
			return
		}
		time.Sleep(time.Until(d.env.began.Add(m.at)))
		m.do()
	}
}

// recorder writes the events of one program in their order: one that is written late delays the others.
type recorder struct {
	*detailed
	component string
	isSlow    bool // many of them are late
	written   time.Duration
}

func (d *detailed) newRecorder(component string) *recorder {
	return &recorder{detailed: d, component: component, isSlow: chance(d.r, 4)}
}

// record writes an occurrence of an event: again the same event if there was one about the same.
func (rec *recorder) record(occurred time.Duration, about corev1.ObjectReference, reason, message string, may allowed) {
	d, r := rec.detailed, rec.r
	delay := between(r, 0, 50*time.Millisecond)
	if chance(r, 10) || rec.isSlow && chance(r, 2) {
		delay = oneOf(r, between(r, 0, 3*time.Second), between(r, 0, 3*time.Second), between(r, 0, time.Minute))
	}
	rec.written = max(rec.written, occurred+delay)
	key := fmt.Sprint(about.UID, about.FieldPath, reason, message)
	d.at(rec.written, func() {
		next := d.events[key]
		if next == nil {
			next = &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: d.namespace, Name: fmt.Sprintf("%s.%x", about.Name, d.env.began.Add(rec.written).UnixNano()+int64(len(d.events)))},
				InvolvedObject: about, Reason: reason, Message: message, Type: "Normal",
				Source: corev1.EventSource{Component: rec.component, Host: "node-1"}, FirstTimestamp: d.timeOf(occurred),
			}
		}
		next.Count++
		next.LastTimestamp, next.ResourceVersion = d.timeOf(occurred), ""
		stored, err := d.env.server.Update(events, next)
		if apierrors.IsNotFound(err) {
			next.UID, next.CreationTimestamp = "", metav1.Time{}
			stored, err = d.env.server.Create(events, next)
		}
		if err != nil {
			return
		}
		d.events[key] = stored.(*corev1.Event)
		d.env.mu.Lock()
		defer d.env.mu.Unlock()
		may.release = d.name
		d.env.allowed[recordUID(d.events[key])] = may
	})
}

func (d *detailed) timeOf(t time.Duration) metav1.Time { return metav1.NewTime(d.env.began.Add(t)) }

func (d *detailed) reference(apiVersion, kind, name string, uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: d.namespace, Name: name, UID: uid}
}

// write creates or updates an object. After a restore, there may be none, or another one of the name.
func (d *detailed) write(gr schema.GroupResource, object apiserver.Object) {
	object.SetResourceVersion("")
	_, err := d.env.server.Update(gr, object)
	if apierrors.IsNotFound(err) {
		_, _ = d.env.server.Create(gr, object)
	}
}

// secret is in each value that must not leave the receiver.
const secret = "s3cret"
