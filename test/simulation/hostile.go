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
)

// Oddity is a way in which the content of one producer's events is hostile. Nobody validates it:
// every user who may write events may write this.
type Oddity string

// The oddities.
const (
	NoOddity      Oddity = ""
	OddTimes      Oddity = "times of all ages"
	InvalidUTF8   Oddity = "invalid UTF-8"
	LongTexts     Oddity = "long texts"
	OddReferences Oddity = "references that name nothing"
	OddNames      Oddity = "odd names"
	Foreign       Oddity = "an object outside the namespace"
)

var oddities = []Oddity{OddTimes, OddTimes, OddTimes, InvalidUTF8, LongTexts, OddReferences, OddNames}

// addHostile adds workloads and producers with hostile content to one plan in five. All other
// producers keep their promises.
func (p *Plan) addHostile() {
	r := draw(p.Seed, "hostile", 0)
	if !chance(r, 5) {
		return
	}
	for range 1 + r.IntN(3) {
		p.addOdd(oneOf(r, oddities...), oneOf(r, appKinds...), r.IntN(min(p.Namespaces, fewNamespaces)))
	}
}

// addForeign adds, to one plan in ten, a producer of events about a Node that are stored in a namespace.
func (p *Plan) addForeign() {
	if r := draw(p.Seed, "foreign", 0); chance(r, 10) {
		p.addOdd(Foreign, "node", r.IntN(min(p.Namespaces, fewNamespaces)))
	}
}

// isForeign reports whether an event is one of theirs. No other producer writes about a Node into a
// namespace.
func isForeign(ev *corev1.Event) bool {
	return ev.InvolvedObject.Kind == "Node" && ev.InvolvedObject.Namespace != ""
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
		ev.Annotations = map[string]string{"traceparent": "\xff\xfe", "\xff": "\xff"}
	case LongTexts:
		all := texts(ev)
		for range 1 + r.IntN(3) {
			*oneOf(r, all...) += strings.Repeat("é", oneOf(r, 512, 50<<10, 50<<10, 100<<10))
		}
		ev.Message += strings.Repeat("é", oneOf(r, 31<<10, 32<<10, 33<<10, 33<<10, 500<<10))
		ev.Annotations = map[string]string{"large": strings.Repeat("x", 200<<10)}
	case Foreign:
		ev.Namespace = namespace(p.app.plan.Namespace)
		ev.InvolvedObject.Namespace = ev.Namespace
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
