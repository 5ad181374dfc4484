// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// Changes returns what changed in the time and namespace of the Query, the newest first.
func (v *At) Changes() []Change {
	var chosen []*Change
	for _, w := range v.workloads {
		if !v.query.admitsKey(w.key, w.id) {
			continue
		}
		for _, c := range w.changes {
			if !c.At.Before(v.from) {
				chosen = append(chosen, c)
			}
		}
	}
	slices.SortFunc(chosen, compareChanges)
	all := make([]Change, 0, len(chosen))
	for _, c := range slices.Backward(chosen) {
		all = append(all, *c)
	}
	return all
}

func compareChanges(a, b *Change) int {
	if order := a.At.Compare(b.At); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.Text, b.Text))
}

// The kinds of changes.
const (
	kindNode       = "node"
	kindEviction   = "eviction"
	kindPreemption = "preemption"
	kindVolume     = "volume"
	kindGitOps     = "gitops"
	kindQuota      = "quota"
	kindWebhook    = "webhook"
	kindConfig     = "config"
	kindRegistry   = "registry"
	kindRollout    = "rollout"
	kindScaling    = "scaling"
	kindAutoscaler = "autoscaler"
	kindDeletion   = "deletion"
)

// progressDeadline is the time that a rollout has: the default progressDeadlineSeconds of a Deployment.
const progressDeadline = 10 * time.Minute

// IsOver reports whether a state has ended, or the outcome of a rollout is known. One that fails is not over at once: a pod
// that waits for a node, or a registry that does not answer, fails for a while. Nor is one whose pods have just started,
// or that another one has just replaced: they can crash, or a probe that failed once has succeeded.
func (c *Change) IsOver(now time.Time) bool {
	switch {
	case c.Outcome == rollout.Failed && !c.isReplaced:
		return now.Sub(c.At) >= progressDeadline
	case c.Outcome == rollout.Complete, c.Outcome == rollout.Superseded, c.Outcome == rollout.Failed:
		return !now.Before(c.final)
	}
	return !c.Until.IsZero()
}

// changesOf returns the changes of a workload, the oldest first.
func (v *cut) changesOf(w *workloadAt) []*Change {
	all := append(w.rolloutChanges(), v.scalings(w)...)
	all = append(all, w.deletions()...)
	for _, f := range w.facts {
		if f.change != nil {
			all = append(all, w.stateOf(v.withPreemptor(f))...)
		}
	}
	slices.SortFunc(all, compareChanges)
	return all
}

// preemptor matches the message of the scheduler, which names a pod by its UID.
var preemptor = regexp.MustCompile(`^Preempted by (?:a )?pod ([0-9a-f-]{36})`)

// withPreemptor returns the Event with the name of the pod that preempts, if other records have its
// UID.
func (v *cut) withPreemptor(f *Fact) *Fact {
	if f.change.shows != podPreempted {
		return f
	}
	match := preemptor.FindStringSubmatch(f.Message)
	if match == nil || v.podNamed[match[1]] == nil {
		return f
	}
	named, by := *f, v.podNamed[match[1]]
	if named.Related = "the pod " + by.Object().Name; by.Key.Namespace != f.Key.Namespace {
		named.Related += " of the namespace " + by.Key.Namespace
	}
	named.text = named.change.describe(&named)
	return &named
}

// stateOf returns the changes that an Event of the table shows. Each occurrence of one that ends no
// state is one.
func (w *workloadAt) stateOf(f *Fact) (all []*Change) {
	r, ends := f.change, w.timesOf(sign{f.subject, anyContainer, f.change.end})
	for _, m := range f.Moments {
		if len(all) > 0 && m.At.Sub(all[len(all)-1].At) < usualQuiet {
			continue
		}
		c := &Change{
			uid: f.Workload.UID, Kind: r.shows.kind, Text: f.text, At: m.At, Until: firstFrom(ends, m.At), Key: w.key, id: w.id, Object: f.Object().String(),
			Records: []string{f.ID}, pod: f.Pod, node: f.Node, what: r.shows, isState: r.end != "", names: f.names,
		}
		if f.isAboutNode() {
			c.node = f.Object().Name
		}
		if f.Pod == "" { // What preempts a pod can become known later.
			c.says = f.text
		}
		all = append(all, c)
	}
	return all
}

// name is that of an object in a record of a tool that deploys; an empty kind is any.
type name struct{ cluster, kind, namespace, name string }

// objectName matches the names of objects in what Flux writes: "Deployment/shop/web configured".
var objectName = regexp.MustCompile(`\b([A-Za-z]+)/([a-z0-9-]+)/([a-z0-9.-]*[a-z0-9])`)

// namesIn returns the objects that a record names. A release can have the name of what it deploys
// in its namespace.
func namesIn(f *Fact) []name {
	all := []name{{f.Cluster, "", f.Namespace, f.Object().Name}}
	for _, match := range objectName.FindAllStringSubmatch(f.Message, -1) {
		all = append(all, name{f.Cluster, strings.ToLower(match[1]), match[2], match[3]})
	}
	return all
}

// deletions returns the pods that somebody ended, such as a drain: neither does their controller
// say that it deleted them, nor does an Event say that they were evicted.
func (w *workloadAt) deletions() (all []*Change) {
	for uid, pod := range w.pods {
		if pod.Stopped == 0 || w.deleted[pod.Name] || rollout.IsJob(pod.Revision) {
			continue
		}
		var killed *Fact
		for _, f := range w.eventsOf(uid) {
			if f.change != nil {
				killed = nil
				break
			}
			if f.Kind == record.KindStopping {
				killed = f
			}
		}
		if killed == nil {
			continue
		}
		all = append(all, &Change{
			Kind: kindDeletion, what: podDeleted, Text: "the pod " + pod.Name + " was deleted", At: timeAt(pod.Stopped), Key: w.key, id: w.id, Object: "pod/" + pod.Name,
			Records: []string{killed.ID}, revision: pod.Revision, pod: uid, node: pod.Node,
		})
	}
	return all
}

// rolloutChanges returns the rollouts that began, with what they changed.
func (w *workloadAt) rolloutChanges() (all []*Change) {
	begins := w.begins()
	for i, r := range w.rolled {
		if begin := begins[r.Revision]; !w.isSeen(&r, begin) {
			continue
		}
		c := &Change{
			uid: r.UID, Kind: kindRollout, Text: w.describeRollout(i), At: timeAt(r.Start), Key: w.key, id: w.id, Object: r.Revision, revision: r.Revision,
			Changes: r.Template.Changes, Outcome: r.Outcome, isReplaced: r.IsOver, final: timeAt(r.Final), template: r.Template,
		}
		switch {
		case rollout.IsJob(r.Revision):
		case r.Replaced == "" && r.Reason != rollout.Rollback && len(r.Template.Changes) == 0:
			c.what = firstRolledOut
		default:
			c.what = rolledOut
		}
		if r.Done != 0 {
			c.done = timeAt(r.Done)
		}
		if r.Record != "" {
			c.Records = []string{r.Record}
		} else if f := w.firstOf(r.Revision, c.At); f != nil {
			c.Records = []string{f.ID}
		}
		all = append(all, c)
	}
	return all
}

// isSeen reports whether records show that a rollout began: the one that began it, or, if that is missing, the first ones
// about its pods; a zero begin: there are none.
func (w *workloadAt) isSeen(r *rollout.Rollout, begin time.Time) bool {
	switch {
	case r.Record != "":
		return true
	case begin.IsZero(), begin.After(timeAt(r.Start).Add(time.Minute)), w.before.begun[r.Revision]:
		return false
	case r.Replaced != "":
		return true
	case strings.HasPrefix(r.Controller, "deployment.apps/"), w.ranBefore(r, begin):
		// A Deployment writes that it begins a rollout, unless it wrote too much before. A pod that takes the place of
		// another one, such as after a drain, begins none.
		return false
	}
	switch kind, _, _ := strings.Cut(r.Controller, "/"); kind {
	case "statefulset.apps": // Its first rollout begins with the first pod, and a scale-up does not.
		return slices.ContainsFunc(w.firstPods(r), func(pod *rollout.PodState) bool { return strings.HasSuffix(pod.Name, "-0") })
	case "daemonset.apps":
		return !w.isOnNewNodes(r)
	}
	return true
}

// firstPods returns the pods with which a rollout began.
func (w *workloadAt) firstPods(r *rollout.Rollout) (first []*rollout.PodState) {
	for _, pod := range w.pods {
		if pod.Revision == r.Revision && pod.Began >= r.Start && pod.Began <= r.Start+int64(time.Minute) {
			first = append(first, pod)
		}
	}
	return first
}

// ranBefore reports whether a pod of the revision ended when its rollout seems to begin, or had run for a while.
func (w *workloadAt) ranBefore(r *rollout.Rollout, begin time.Time) bool {
	began := map[string]bool{}
	for _, f := range w.facts {
		if f.Revision == r.Revision && f.showsBegin() {
			began[f.Pod] = true
		}
	}
	return slices.ContainsFunc(w.facts, func(f *Fact) bool {
		if f.Revision != r.Revision || f.Workload.UID != r.UID || f.Pod == "" || began[f.Pod] {
			return false
		}
		ends := f.Kind == record.KindStopping || f.change != nil || f.shows(classEviction) || f.shows(classNode)
		return ends && !f.First.After(begin) || f.First.Before(begin.Add(-time.Minute))
	})
}

// joined are the reasons of the Events of a node that is new, and newNode is the time in which a DaemonSet makes a pod for it.
var joined = []string{"RegisteredNode", "Starting"}

const newNode = 2 * time.Minute

// isOnNewNodes reports whether the first pods of a rollout are on nodes that were just added: then it is none.
func (w *workloadAt) isOnNewNodes(r *rollout.Rollout) bool {
	first := w.firstPods(r)
	return len(first) > 0 && !slices.ContainsFunc(first, func(pod *rollout.PodState) bool {
		node, began := w.node(w.key.Cluster, pod.Node), timeAt(pod.Began)
		return node == nil || !slices.ContainsFunc(node.facts, func(f *Fact) bool {
			return slices.Contains(joined, f.Reason) && f.occurredIn(began.Add(-newNode), began.Add(newNode))
		})
	})
}

// ofOldPods are the classes of problems that pods have which have run before: those do not show that their revision began.
var ofOldPods = []string{classCrash, classProbe, classNode, classEviction}

// begins returns when each revision began, as far as records show it. That a pod goes on failing shows none, such as after
// a restart of the Collector.
func (w *workloadAt) begins() map[string]time.Time {
	first := map[string]time.Time{}
	for _, f := range w.facts {
		if at, ok := first[f.Revision]; f.showsBegin() && (!ok || f.First.Before(at)) {
			first[f.Revision] = f.First
		}
	}
	return first
}

// showsBegin reports whether the Event can be the first one of its revision, or of its pod.
func (f *Fact) showsBegin() bool {
	isOfOldPod := f.symptom != nil && slices.Contains(ofOldPods, f.symptom.class) || f.Pod != "" && (f.Kind == record.KindStopping || f.change != nil)
	return !isOfOldPod && f.Moments[0].At.Sub(f.First) < time.Minute
}

// firstOf returns the first record of a revision from a time on.
func (w *workloadAt) firstOf(revision string, at time.Time) (first *Fact) {
	for _, f := range w.facts {
		if f.Revision == revision && !f.Last.Before(at.Add(-resolution)) && (first == nil || compareFirst(f, first) < 0) {
			first = f
		}
	}
	return first
}

func compareFirst(a, b *Fact) int {
	return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.ID, b.ID))
}

// describeRollout describes what a rollout changed.
func (w *workloadAt) describeRollout(i int) string {
	r := w.rolled[i]
	text := nameOf(r.Revision) + " was rolled out"
	if r.Reason == rollout.Rollback {
		if at := w.rolledBefore(i); !at.IsZero() {
			text += ", back to the revision of " + at.UTC().Format("15:04")
		} else {
			text += ", back to an earlier revision"
		}
	}
	switch changed := changedImages(r); {
	case len(r.Template.Changes) > 0:
		return text + withTemplate(&r.Template)
	case r.Reason == rollout.First:
		return text + ", the first rollout" + withImages(r.Images) + withTemplate(&r.Template)
	case r.Reason == rollout.Rollback:
		return text + withChanges(changed)
	case len(changed) > 0:
		return text + withChanges(changed)
	case r.Reason == rollout.Restart:
		return text + " with the same images: a restart or a changed setting"
	}
	return text + withImages(r.Images)
}

// rolledBefore returns when the revision of a rollout was rolled out before; zero: not known.
func (w *workloadAt) rolledBefore(i int) (at time.Time) {
	for _, r := range w.rolled[:i] {
		if r.Revision == w.rolled[i].Revision {
			at = timeAt(r.Start)
		}
	}
	return at
}

func changedImages(r rollout.Rollout) (changed []string) {
	for _, container := range slices.Sorted(maps.Keys(r.Images)) {
		if before := r.Former[container]; before != "" && before != r.Images[container] {
			changed = append(changed, before+" → "+r.Images[container])
		}
	}
	return changed
}

func withChanges(changed []string) string {
	if len(changed) == 0 {
		return ""
	}
	return ": " + strings.Join(changed, ", ")
}

func withImages(images map[string]string) string {
	if len(images) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Values(images))
	return ": " + strings.Join(slices.Compact(names), ", ")
}

// nameOf returns the name of a revision in the form of kubectl, KIND/NAME or KIND/NAME/UID; a hash
// is one.
func nameOf(revision string) string {
	parts := strings.Split(revision, "/")
	return parts[min(1, len(parts)-1)]
}

// scaled is a scaling with its record.
type scaled struct {
	record.Scaling
	fact *Fact
	at   time.Time
}

// scalings returns those of a workload's revisions that are no steps of rollouts, and the rollouts
// that were taken back while the former revision still had pods: nothing scales that up from zero.
func (v *cut) scalings(w *workloadAt) (all []*Change) {
	if w.older > 0 {
		text := rollout.Plural(w.older, "older scaling") + " not looked at"
		oldest := w.scaled[0]
		all = append(all, &Change{Kind: kindScaling, Text: text, At: oldest.at, Key: w.key, id: w.id, Records: []string{oldest.fact.ID}})
	}
	for _, s := range w.scaled {
		if s.From < 0 {
			continue
		}
		c := &Change{
			uid: s.fact.Workload.UID, Kind: kindScaling, Text: fmt.Sprintf("%s was scaled from %d to %d", s.fact.Object().Name, s.From, s.To), At: s.at, Key: w.key, id: w.id,
			Object: s.Revision, Size: &Size{s.From, s.To}, Records: []string{s.fact.ID}, revision: s.Revision, what: scaledUp,
		}
		if s.To == 0 {
			c.what = scaledToZero
		} else if s.To < s.From {
			c.what = scaledDown
		}
		switch {
		case w.isTakenBack(s):
			c.Kind, c.what, c.Text = kindRollout, takenBack, "the rollout of "+nameOf(s.Revision)+" was taken back"
			all = append(all, c)
		case !w.isStep(s) && s.at.Sub(w.before.scaled) > soon: // Else it can be a step of a rollout that is forgotten.
			v.addAutoscaler(c)
			all = append(all, c)
		}
	}
	return all
}

// isTakenBack reports whether a rollout that was not complete was scaled to zero, and no other one
// began instead.
func (w *workloadAt) isTakenBack(s scaled) bool {
	at := s.at.UnixNano()
	isUndone := func(r rollout.Rollout) bool {
		// Of a Deployment that is old, nothing may be known of the pods that the rollout did not replace.
		return r.Revision == s.Revision && r.Undone == at && (r.Replaced != "" && r.Outcome != rollout.Complete || r.Outcome == rollout.Failed)
	}
	i := slices.IndexFunc(w.rolled, isUndone)
	return i >= 0 && !slices.ContainsFunc(w.rolled[i+1:], func(r rollout.Rollout) bool {
		return r.Controller == w.rolled[i].Controller && r.Start > w.rolled[i].Start && r.Start <= at+int64(delay)
	})
}

// isStep reports whether a scaling belongs to a rollout: it began one, or one of the same object
// was not complete.
func (w *workloadAt) isStep(s scaled) bool {
	at := s.at.UnixNano()
	return slices.ContainsFunc(w.rolled, func(r rollout.Rollout) bool {
		if r.Controller != s.fact.Object().String() || at < r.Start-int64(resolution) || at > r.Closed {
			return false
		}
		return r.Replaced != "" || r.Revision == s.Revision && s.From == 0 && at <= r.Start+int64(resolution)
	})
}

var newSize = regexp.MustCompile(`New size: (\d+)(?:; reason: (.*))?`)

// addAutoscaler adds the HorizontalPodAutoscaler that set the size, if it is the only one that did,
// or has the name of the workload: its Event does not name what it scales.
func (v *cut) addAutoscaler(c *Change) {
	var found *Fact
	why, several := "", false
	for _, f := range v.rescaled[space{c.Key.Cluster, c.Key.Namespace}] {
		match := newSize.FindStringSubmatch(f.Message)
		if match == nil || match[1] != strconv.Itoa(c.To) || !f.occurredIn(c.At.Add(-delay), c.At.Add(time.Second)) {
			continue
		}
		several = several || found != nil && found.Object() != f.Object()
		if found == nil || f.Object().Name == c.Key.Top.Name {
			found, why = f, match[2]
		}
	}
	if found == nil || several && found.Object().Name != c.Key.Top.Name {
		return
	}
	c.Kind, c.Object, c.Records = kindAutoscaler, found.Object().String(), append([]string{found.ID}, c.Records...)
	c.Text += " by the HorizontalPodAutoscaler " + found.Object().Name
	if why != "" {
		c.Text += ": " + record.Cut(why, 100)
	}
}

func (f *Fact) occurredIn(from, until time.Time) bool {
	return slices.ContainsFunc(f.Moments, func(m Moment) bool { return !m.At.Before(from) && !m.At.After(until) })
}
