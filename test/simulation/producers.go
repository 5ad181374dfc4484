// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

var events = schema.GroupResource{Resource: "events"}

// ProducerPlan is a program that writes events about one object.
type ProducerPlan struct {
	Style   Style
	App     int // of Plan.Apps
	Pod     int
	Start   time.Duration
	Gap     time.Duration // between two writes, on average
	Writes  int
	Skew    time.Duration // of its clock
	Reason  string
	Type    string
	Size    int  // of the message, in bytes
	Edits   bool // with Relabeler: the count as well
	NewPods bool // each write is about a pod of its own
	Deleted bool // the object is deleted before the last write, as a killed pod is
	Odd     Oddity
}

// newPods is the number of the first pod that comes only for one event.
const newPods = 1000

// Style is how a producer writes its events: as client-go's two recorders and kube-rs's do, or by
// hand.
type Style string

// The styles.
const (
	OldRecorder Style = "old recorder"
	NewRecorder Style = "new recorder"
	KubeRS      Style = "kube-rs recorder"
	Kubelet     Style = "kubelet"
	HandMade    Style = "hand-made"
	Relabeler   Style = "relabels its event"
	Recreating  Style = "deletes its event and creates it again"
)

func (p *Plan) addProducers() {
	r := draw(p.Seed, "producers", 0)
	n := 3 + r.IntN(12)
	if p.Namespaces > fewNamespaces {
		n = p.Namespaces
	}
	for i := range n {
		pp := p.producer(i)
		if p.Namespaces > fewNamespaces {
			pp.App, pp.Start = i, firstWrite+time.Duration(i)*time.Millisecond
		}
		p.Producers = append(p.Producers, pp)
	}
	if chance(r, 8) { // A storm: one-shot events of many pods at once.
		p.storm(50+r.IntN(600), 0)
	}
	if chance(r, 25) {
		p.storm(3000, 0)
	}
	if chance(r, 40) {
		p.storm(300, largeText)
	}
}

func (p *Plan) producer(i int) ProducerPlan {
	r := draw(p.Seed, "producer", i)
	pp := ProducerPlan{
		Style: oneOf(r, OldRecorder, OldRecorder, OldRecorder, NewRecorder, NewRecorder, KubeRS,
			Kubelet, Kubelet, HandMade, HandMade, Relabeler),
		App:   r.IntN(len(p.Apps)),
		Pod:   r.IntN(6),
		Start: between(r, firstWrite, p.Active),
		Gap: oneOf(r, between(r, 10*time.Millisecond, time.Second),
			between(r, time.Second, 20*time.Second), p.Active/8),
		Writes: 1 + r.IntN(15),
		Skew: oneOf(r, 0, 0, between(r, -3*time.Second, 3*time.Second), -50*time.Minute,
			time.Hour),
		Reason:  oneOf(r, "BackOff", "Failed", "Pulling", "Unhealthy", "Scheduled", "Created"),
		Type:    oneOf(r, "Warning", "Warning", "Normal", "Normal", "Notice"),
		Size:    oneOf(r, 20, 20, 20, 2000),
		Deleted: chance(r, 4),
	}
	if pp.Style == HandMade && chance(r, 5) {
		pp.Skew = -3 * time.Hour // Without a count only: others would belong to the past.
	}
	pp.Writes = max(1, min(pp.Writes, int((p.Active-pp.Start)/pp.Gap)))
	return pp
}

// largeText makes a page of a list too large: it is requested again with fewer events.
const largeText = 64 << 10

// storm adds one-shot events that are written within two seconds.
func (p *Plan) storm(n, size int) {
	r := draw(p.Seed, "storm", n)
	p.Producers = append(p.Producers, ProducerPlan{
		Style: HandMade, App: r.IntN(len(p.Apps)), Start: between(r, firstWrite, p.Active),
		Gap: 2 * time.Second / time.Duration(n), Writes: n, Reason: "Storm", Type: "Warning",
		Size: size, NewPods: size == 0 && n < 1000 && chance(r, 2),
	})
}

// producer runs a ProducerPlan.
type producer struct {
	plan    ProducerPlan
	seed    uint64
	number  int
	app     *app
	subject *object
	server  *apiserver.Server

	last  *corev1.Event // what it wrote last; nil: nothing
	count int32         // as its memory has it, whatever the API server holds
}

// run writes until the plan is done.
func (p *producer) run(began time.Time) {
	time.Sleep(time.Until(began.Add(p.plan.Start)))
	p.subject.create(p.server)
	for i := range p.plan.Writes {
		last := i > 0 && i == p.plan.Writes-1
		if last && p.plan.Deleted && p.subject.kind == "Pod" {
			p.subject.delete(p.server)
		}
		if p.plan.NewPods {
			p.subject = p.app.subject(newPods + i)
			p.subject.create(p.server)
		}
		p.write(i)
		r := draw(p.seed, fmt.Sprint("producer gap ", p.number), i)
		time.Sleep(between(r, p.plan.Gap/2, p.plan.Gap*3/2+1))
	}
}

func (p *producer) write(i int) {
	r := draw(p.seed, fmt.Sprint("producer write ", p.number), i)
	switch p.plan.Style {
	case HandMade:
		p.create(p.event(i))
		return
	case Recreating:
		p.recreate(i, 1+int32(r.IntN(3)))
		return
	case Relabeler:
		if p.last != nil && i%2 == 1 {
			p.relabel(i)
			return
		}
	}
	p.count++
	if chance(r, 4) { // Recorders count before they are throttled.
		p.count += int32(r.IntN(8))
	}
	if chance(r, 60) {
		p.count += 1 << 17
	}
	p.record(i)
}

// record writes the next occurrence as a recorder does: it patches its event, and creates it again
// under the same name with the count that it remembers if the API server has it no longer.
func (p *producer) record(i int) {
	next := p.event(0)
	if p.last != nil {
		next = p.last.DeepCopy()
		next.ResourceVersion = ""
	}
	p.stamp(next, i)
	if p.last != nil {
		stored, err := p.server.Update(events, next)
		if err == nil {
			p.last = stored.(*corev1.Event)
			return
		}
		if !apierrors.IsNotFound(err) {
			return
		}
		next.UID, next.CreationTimestamp = "", metav1.Time{}
	}
	p.create(next)
}

// stamp writes what changes with each occurrence.
func (p *producer) stamp(ev *corev1.Event, i int) {
	now := time.Now().Add(p.plan.Skew)
	switch p.plan.Style {
	case NewRecorder, KubeRS:
		if p.last != nil || p.count > 1 {
			seen := metav1.NewMicroTime(now)
			ev.Series = &corev1.EventSeries{Count: max(2, p.count), LastObservedTime: seen}
		}
	default:
		ev.Count = p.count
		ev.LastTimestamp = metav1.NewTime(now)
	}
	if i%3 == 2 {
		ev.Message = p.message(i) // Some recorders rewrite their message with each patch.
	}
	if p.plan.Odd == OddTimes {
		p.odd(ev, i)
	}
}

func (p *producer) create(ev *corev1.Event) {
	if stored, err := p.server.Create(events, ev); err == nil {
		p.last = stored.(*corev1.Event)
	}
}

// recreate writes an event of one name again and again, each time as another object.
func (p *producer) recreate(i int, count int32) {
	next := p.event(i)
	next.Name = fmt.Sprintf("%s.%d", p.subject.name, p.number)
	next.Count, next.LastTimestamp = count, metav1.NewTime(time.Now().Add(p.plan.Skew))
	if p.last != nil {
		_ = p.server.Delete(events, next.Namespace, next.Name) // It may have expired.
	}
	p.create(next)
}

// relabel changes the event without a new occurrence.
func (p *producer) relabel(i int) {
	next := p.last.DeepCopy()
	next.ResourceVersion = ""
	next.Labels = map[string]string{"seen": fmt.Sprint(i)}
	if p.plan.Edits && i%4 == 3 { // A user edits the count; the next patch corrects it.
		next.Count = max(1, next.Count-2)
	}
	if stored, err := p.server.Update(events, next); err == nil {
		p.last = stored.(*corev1.Event)
	}
}

func (p *producer) message(i int) string {
	what := fmt.Sprintf("%s happened to %s (%d)", p.plan.Reason, p.subject.name, i)
	return what + strings.Repeat(".", p.plan.Size)
}

// versionsGone are versions that old producers still name.
var versionsGone = map[string]string{
	"ReplicaSet": "extensions/v1beta1", "Deployment": "extensions/v1beta1",
	"StatefulSet": "apps/v1beta2",
}

// The container that kubelets report about.
const (
	fieldPathContainer = "main"
	fieldPath          = "spec.containers{" + fieldPathContainer + "}"
)

// event is a new event of the producer's style, without its first occurrence's count.
func (p *producer) event(i int) *corev1.Event {
	now := time.Now().Add(p.plan.Skew)
	s := p.subject
	ev := s.event(fmt.Sprintf("%s.%x.%d.%d", s.name, now.UnixNano(), p.number, i))
	ev.Reason, ev.Type, ev.Message = p.plan.Reason, p.plan.Type, p.message(i)
	if s.namespace == "" {
		ev.Namespace = metav1.NamespaceDefault
	}
	switch p.plan.Style {
	case NewRecorder, KubeRS:
		ev.EventTime = metav1.NewMicroTime(now)
		ev.ReportingController, ev.ReportingInstance = "scheduler", "scheduler-0"
		ev.Action = "Binding"
	case Kubelet:
		host := s.host()
		ev.Source = corev1.EventSource{Component: "kubelet", Host: host}
		ev.ReportingController, ev.ReportingInstance = "kubelet", host
		ev.FirstTimestamp = metav1.NewTime(now)
		if s.kind == "Node" {
			ev.InvolvedObject.UID = types.UID(s.name) // Kubelets up to 1.36 do that.
		} else {
			ev.InvolvedObject.FieldPath = fieldPath
		}
	case HandMade:
		if p.plan.Reason != "Storm" {
			ev.Name = fmt.Sprintf("%s.deployed-%d", s.name, i) // The same in every namespace.
		}
		ev.Source = corev1.EventSource{Component: "by-hand"}
		switch gone := versionsGone[s.kind]; {
		case i%3 == 0:
			ev.InvolvedObject.APIVersion = ""
		case i%3 == 1 && gone != "":
			ev.InvolvedObject.APIVersion = gone
		case i%3 == 2: // All the times that an event can have.
			ev.FirstTimestamp = metav1.NewTime(now.Add(-time.Minute))
			ev.EventTime, ev.LastTimestamp = metav1.NewMicroTime(now.Add(-time.Second)), metav1.NewTime(now)
		}
	default:
		ev.Source = corev1.EventSource{Component: "controller", Host: "host-1"}
		ev.FirstTimestamp = metav1.NewTime(now)
	}
	if p.plan.Odd == OddNames {
		ev.Name = oddName(draw(p.seed, fmt.Sprint("odd name ", p.number), i), fmt.Sprint(s.name, ".", p.number, ".", i))
	}
	p.odd(ev, i)
	return ev
}

// event is an event about the object.
func (o *object) event(name string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: o.apiVersion, Kind: o.kind, Namespace: o.namespace, Name: o.name,
			UID: o.uid,
		},
	}
}
