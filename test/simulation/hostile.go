// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// Oddity is a way in which the content of one producer's events is hostile. Nobody validates it:
// every user who may write events may write this.
type Oddity string

// The oddities.
const (
	NoOddity      Oddity = ""
	OddObjects    Oddity = "odd objects" // Only what the events are about is odd.
	OddTimes      Oddity = "times of all ages"
	InvalidUTF8   Oddity = "invalid UTF-8"
	LongTexts     Oddity = "long texts"
	OddReferences Oddity = "references that name nothing"
	OddNames      Oddity = "odd names"
)

var oddities = []Oddity{OddObjects, OddObjects, OddTimes, InvalidUTF8, LongTexts, OddReferences, OddNames}

// oddAppKinds are workloads whose objects are odd.
var oddAppKinds = []string{
	"without UID", "component status", "own owner", "long cycle", "long owner", manyAnnotations,
	"invalid names",
}

// manyAnnotations are more and larger annotations than those of a pod can be. A rule takes tags from
// them.
const manyAnnotations = "many annotations"

// The kinds of aggregated API servers, which do not validate and set no UIDs.
var (
	components = apiserver.Kind{
		Versions: []string{"v1"}, Kind: "ComponentStatus", Resource: "componentstatuses", NoUIDs: true,
	}
	podMetrics = apiserver.Kind{
		Group: "metrics.k8s.io", Versions: []string{"v1beta1"}, Kind: "PodMetrics", Resource: "pods",
		Namespaced: true, NoUIDs: true,
	}
)

// addHostile adds workloads and producers with hostile content to one plan in five. All other
// producers keep their promises.
func (p *Plan) addHostile() {
	r := draw(p.Seed, "hostile", 0)
	if !chance(r, 5) {
		return
	}
	for range 1 + r.IntN(3) {
		p.addOdd(oneOf(r, oddities...), oneOf(r, oddAppKinds...), r.IntN(min(p.Namespaces, fewNamespaces)))
	}
}

// addOdd adds an app and a producer of events about it.
func (p *Plan) addOdd(odd Oddity, kind string, namespace int) {
	added := p.producer(len(p.Producers))
	added.App, added.Odd = len(p.Apps), odd
	if odd == LongTexts {
		added.Writes = min(added.Writes, 5)
	}
	p.Apps = append(slices.Clone(p.Apps), AppPlan{Kind: kind, Namespace: namespace, LabelAt: len(p.Apps)%4 - 1})
	p.Producers = append(slices.Clone(p.Producers), added)
}

// ownOdd adds what owns the pods of an app of one of oddAppKinds.
func (a *app) ownOdd() {
	switch a.plan.Kind {
	case "component status":
		a.own("ComponentStatus", nil)
	case "own owner":
		o := a.own("Link", nil)
		o.owners = []*object{o}
	case "long cycle":
		first := a.own("Link", nil)
		last := first
		for range 5 {
			last = a.own("Link", last)
		}
		first.owners = []*object{last}
	case "long owner":
		o := a.own("ReplicaSet", nil)
		o.missing, o.name = true, o.name+strings.Repeat("x", 200<<10)
	case "invalid names":
		o := a.own("ReplicaSet", nil)
		o.missing, o.name, o.kind = true, o.name+"\xff\xfe", "Replica\xc3"
	}
}

// makeOdd changes a pod of an app of one of oddAppKinds.
func (a *app) makeOdd(pod *object) {
	switch a.plan.Kind {
	case "without UID":
		is := a.newObject("PodMetrics", pod.name)
		pod.kind, pod.apiVersion, pod.resource, pod.uid = is.kind, is.apiVersion, is.resource, is.uid
		pod.label = a.name + strings.Repeat("\xffx", 3000)
	case manyAnnotations:
		pod.annotations = map[string]string{
			"odd/large": strings.Repeat("ä", 100<<10), "odd/inv\xffd": "\xff", "odd/inv\xfed": "\xfe",
			"odd/" + strings.Repeat("x", 4<<10): "long", "other": strings.Repeat("x", 1<<20),
		}
		for i := range 3000 {
			pod.annotations[fmt.Sprint("odd/many", i)] = strings.Repeat("x", 100)
		}
	}
}

// odd changes an event of a producer, again each time that it is written.
func (p *producer) odd(ev *corev1.Event, i int) {
	r := draw(p.seed, fmt.Sprint("odd ", p.number), i)
	switch p.plan.Odd {
	case OddTimes:
		ev.FirstTimestamp, ev.LastTimestamp = metav1.NewTime(oddTime(r)), metav1.NewTime(oddTime(r))
		ev.EventTime = metav1.NewMicroTime(oddTime(r))
		if ev.Series != nil {
			ev.Series.LastObservedTime = metav1.NewMicroTime(oddTime(r))
		}
	case InvalidUTF8:
		for _, text := range texts(ev) {
			*text += oneOf(r, "", "\xff", "\xfe\xff", "\xc3", "\xed\xa0\x80")
		}
		ev.Annotations = map[string]string{styleAnnotation: "\xff\xfe", "\xff": "\xff"}
		ev.Labels = map[string]string{appLabel: "app\xff"}
	case LongTexts:
		all := texts(ev)
		for range 1 + r.IntN(3) {
			*oneOf(r, all...) += strings.Repeat("é", oneOf(r, 512, 50<<10, 50<<10, 100<<10))
		}
		ev.Message += strings.Repeat("é", oneOf(r, 31<<10, 32<<10, 33<<10, 33<<10, 500<<10))
		ev.Annotations = map[string]string{"large": strings.Repeat("x", 200<<10)}
	case OddReferences:
		ref := &ev.InvolvedObject
		*oneOf(r, &ref.APIVersion, &ref.Kind, &ref.Name) = oneOf(r, "", "..", "a/b/c", "%2f", "Unknown", " ")
		ref.UID, ref.ResourceVersion = "", "no number"
		ev.Related = &corev1.ObjectReference{Kind: "\xff", Name: strings.Repeat("x", 5000)}
	}
}

// texts are the texts of an event that nobody validates, and that its name and its filters do not
// need.
func texts(ev *corev1.Event) []*string {
	return []*string{
		&ev.Reason, &ev.Message, &ev.Action, &ev.ReportingController, &ev.ReportingInstance,
		&ev.Source.Component, &ev.Type, &ev.InvolvedObject.Kind, &ev.InvolvedObject.FieldPath,
		&ev.InvolvedObject.ResourceVersion,
	}
}

// oddName returns a name that the core API accepts for an event: it is a segment of a path. It starts
// with a name of its own. Names that are the same in valid UTF-8, or cut, are names of one event. The
// contract: "Invalid UTF-8 is replaced before it is compared, wherever it comes from."
func oddName(r *rand.Rand, name string) string {
	return name + oneOf(r, " x", ":\n\"?", "ü", "\xff", "\xfe\xff", strings.Repeat("x", 2000))
}

// oddTime returns a time that protobuf can hold.
func oddTime(r *rand.Rand) time.Time {
	year := oneOf(r, -10, 0, 1, 1969, 1970, 2026, 2262, 2263, 2554, 2555, 9999, 10000, 200_000)
	return time.Date(year, 1, 1, 0, 0, oneOf(r, 0, 1), 0, time.UTC)
}
