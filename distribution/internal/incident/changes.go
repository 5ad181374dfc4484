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

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// Changes returns what changed in the time and namespace of the Query, the newest first.
func (m *Model) Changes(q Query, now time.Time) (all []Change) {
	from, until := q.window(now)
	for _, w := range m.look(until).workloads {
		if !q.admitsKey(w.key, w.key.ID) {
			continue
		}
		for _, c := range w.changes {
			if !c.At.Before(from) && c.Kind != kindPod {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return -compareChanges(a, b) })
	return all
}

func compareChanges(a, b Change) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key.ID(), b.Key.ID()), cmp.Compare(a.Text, b.Text))
}

const (
	kindRollout    = "rollout"
	kindScaling    = "scaling"
	kindAutoscaler = "autoscaler"
	kindPod        = "pod" // was created: an effect of most changes, so that it counts only without them
)

// changesOf returns the changes of a workload until the time of the view, the oldest first.
func (v *view) changesOf(w *known) (all []Change) {
	all = append(w.rollouts(), v.scalings(w)...)
	for _, f := range w.facts {
		if f.Last.After(v.now) && f.First.After(v.now) {
			continue
		}
		if r := rowOf(f); r != nil {
			all = append(all, w.stateOf(r, f)...)
		} else if c, ok := creation(f); ok {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, compareChanges)
	return all
}

// stateOf returns the changes that an Event of the table shows. Each occurrence of one that ends no state is one.
func (w *known) stateOf(r *row, f *Fact) (all []Change) {
	c := Change{
		Kind: r.change, Text: r.tell(f), Key: f.Key, Object: f.Object().String(), Records: []string{f.Record}, pod: f.Pod, row: r, node: f.Node,
	}
	if f.Object().GroupKind() == "node" {
		c.node = f.Object().Name
	}
	for _, m := range f.Moments {
		if m.At.After(w.now) || len(all) > 0 && m.At.Sub(all[len(all)-1].At) < usualQuiet {
			continue
		}
		c.At, c.Until = m.At, time.Time{}
		for _, end := range w.progress[f.subject()] {
			if r.end != "" && end.Reason == r.end && !end.Last.Before(m.At) && !end.Last.After(w.now) {
				c.Until = end.Last
			}
		}
		all = append(all, c)
	}
	return all
}

// creation returns that a controller created a pod.
func creation(f *Fact) (c Change, ok bool) {
	kind, name := rollout.NamedIn(f.Message)
	if f.Reason != rollout.ReasonCreatedPod || kind != "pod" {
		return c, false
	}
	return Change{
		Kind: kindPod, Text: "The pod " + name + " was created", At: f.Last, Key: f.Key, Object: "pod/" + name, Records: []string{f.Record},
		revision: f.Revision,
	}, true
}

// rollouts returns the rollouts that began, with what they changed.
func (w *known) rollouts() (all []Change) {
	for i, r := range w.rolled {
		c := Change{
			Kind: kindRollout, Text: w.tellRollout(i), At: timeAt(r.Start), Key: w.key, Object: r.Revision, revision: r.Revision,
		}
		if r.Available != 0 {
			c.done = timeAt(r.Available)
		}
		if r.Record != "" {
			c.Records = []string{r.Record}
		} else if f := w.firstOf(r.Revision, c.At); f != nil {
			c.Records = []string{f.Record}
		}
		all = append(all, c)
	}
	return all
}

// firstOf returns the first record of a revision from a time on.
func (w *known) firstOf(revision string, at time.Time) (first *Fact) {
	for _, f := range w.facts {
		if f.Revision == revision && !f.Last.Before(at.Add(-2*time.Second)) && (first == nil || compareFirst(f, first) < 0) {
			first = f
		}
	}
	return first
}

func compareFirst(a, b *Fact) int {
	return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Record, b.Record))
}

// tellRollout says what a rollout changed.
func (w *known) tellRollout(i int) string {
	r := w.rolled[i]
	text := nameOf(r.Revision) + " was rolled out"
	switch changed := changedImages(r); {
	case r.Reason == rollout.First:
		return text + ", the first rollout" + withImages(r.Images)
	case r.Reason == rollout.Rollback:
		if at := w.rolledBefore(i); !at.IsZero() {
			text += ", back to the revision of " + at.UTC().Format("15:04")
		} else {
			text += ", back to an earlier revision"
		}
		return text + withChanges(changed)
	case len(changed) > 0:
		return text + withChanges(changed)
	case r.Reason == rollout.Restart:
		return text + " with the same images: a restart or a changed setting"
	}
	return text + withImages(r.Images)
}

// rolledBefore returns when the revision of a rollout was rolled out before; zero: not known.
func (w *known) rolledBefore(i int) (at time.Time) {
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

// nameOf returns the name of a revision in the form of kubectl, KIND/NAME or KIND/NAME/UID; a hash is one.
func nameOf(revision string) string {
	parts := strings.Split(revision, "/")
	return parts[min(1, len(parts)-1)]
}

// stepPause is the longest time between two steps of a rolling update.
const stepPause = 10 * time.Minute

// scalings returns those of a workload's revisions that are no steps of rollouts.
func (v *view) scalings(w *known) (all []Change) {
	for _, f := range w.facts {
		s, ok := rollout.ScalingOf(f.Message)
		if f.Reason != rollout.ReasonScaled || !ok || s.From < 0 || w.isStep(f, s) {
			continue
		}
		for _, m := range f.Moments {
			if m.At.After(v.now) {
				continue
			}
			c := Change{
				Kind: kindScaling, Text: fmt.Sprintf("%s was scaled from %d to %d", f.Object().Name, s.From, s.To), At: m.At, Key: w.key,
				Object: s.Revision, From: s.From, To: s.To, Records: []string{f.Record}, revision: s.Revision,
			}
			all = append(all, v.scaledBy(c))
		}
	}
	return all
}

// isStep reports whether a scaling belongs to a rollout: it began one, or another revision was scaled shortly before
// or after.
func (w *known) isStep(f *Fact, s rollout.Scaling) bool {
	for _, r := range w.rolled {
		began := timeAt(r.Start)
		if r.Revision == s.Revision && f.Last.Sub(began).Abs() <= 2*time.Second && r.Reason != "" && s.From == 0 {
			return true
		}
		if r.Record != "" && r.Record == f.Record {
			return true
		}
	}
	for _, other := range w.facts {
		o, ok := rollout.ScalingOf(other.Message)
		if ok && other.Reason == rollout.ReasonScaled && o.Revision != s.Revision && other.Object() == f.Object() && other.Last.Sub(f.Last).Abs() <= stepPause {
			return true
		}
	}
	return false
}

// autoscalerDelay is how long the scaling comes after the record of the autoscaler.
const autoscalerDelay = 10 * time.Second

var newSize = regexp.MustCompile(`New size: (\d+)(?:; reason: (.*))?`)

// scaledBy adds the HorizontalPodAutoscaler that set the size, if it is the only one that did, or has the name of the
// workload: its Event does not name what it scales.
func (v *view) scaledBy(c Change) Change {
	var found *Fact
	why, several := "", false
	for key, w := range v.workloads {
		if key.Cluster != c.Key.Cluster || key.Namespace != c.Key.Namespace {
			continue
		}
		for _, f := range w.facts {
			match := newSize.FindStringSubmatch(f.Message)
			if match == nil || f.Object().Kind != "horizontalpodautoscaler" || match[1] != strconv.Itoa(c.To) || !f.occurredIn(c.At.Add(-autoscalerDelay), c.At.Add(time.Second)) {
				continue
			}
			several = several || found != nil && found.Object() != f.Object()
			if found == nil || f.Object().Name == c.Key.Top.Name {
				found, why = f, match[2]
			}
		}
	}
	if found == nil || several && found.Object().Name != c.Key.Top.Name {
		return c
	}
	c.Kind, c.Object, c.Records = kindAutoscaler, found.Object().String(), append([]string{found.Record}, c.Records...)
	c.Text += " by the HorizontalPodAutoscaler " + found.Object().Name
	if why != "" {
		c.Text += ": " + cut(why, 100)
	}
	return c
}

func (f *Fact) occurredIn(from, until time.Time) bool {
	return slices.ContainsFunc(f.Moments, func(m Moment) bool { return !m.At.Before(from) && !m.At.After(until) })
}
