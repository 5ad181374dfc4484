// SPDX-License-Identifier: Apache-2.0

package pageexporter

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

// changesOf returns the changes that a workload's own records show. The rollouts, those of all objects
// that had its name, decide which scale-up from zero began a rollout.
func changesOf(records []record, rollouts []*rollout.Workload) (changes []change) {
	scaled := replicasIn(records)
	for _, r := range withRevisions(records, rollouts) {
		var c change
		ok := true
		switch r.Reason {
		case rollout.ReasonScaled:
			c, ok = scaled[r.Object].change(r)
		case rollout.ReasonCreatedPod:
			c, ok = creation(r)
		case rollout.ReasonScheduled:
			c = change{Kind: kindPod, Object: r.Object, Text: "The pod " + nameOf(r.Object) + " was scheduled"}
		default:
			by, _ := evictionOf(r.Reason, r.Message)
			c = change{Kind: by.kind, Object: r.Object, Text: "The pod " + nameOf(r.Object) + " was " + by.text}
		}
		if ok {
			c.Time, c.Records = r.Time, []record{r}
			changes = append(c.withoutStep(changes), c)
		}
	}
	return changes
}

// eviction is a record about a pod that names the reason why the pod ends.
type eviction struct{ reason, message, kind, text string }

// evictions have the beginnings of messages: an eviction by a kubelet is a warning, and a taint can be removed
// before it ends the pod.
var evictions = []eviction{
	{"Preempted", "", kindPreemption, "preempted"},
	{"TaintManagerEviction", markedForDeletion, kindEviction, "marked for deletion because of a taint of its node"},
	{"EvictedByVPA", "", kindEviction, "evicted by the VerticalPodAutoscaler"},
	{"ScaleDown", "deleting pod", kindEviction, "deleted because its node is scaled down"}, // by cluster-autoscaler
	{"Evicted", "Evicted pod", kindEviction, "evicted"},                                    // by Karpenter
}

const markedForDeletion = "Marking for deletion"

func evictionOf(reason, message string) (of eviction, ok bool) {
	i := slices.IndexFunc(evictions, func(of eviction) bool { return of.reason == reason && strings.HasPrefix(message, of.message) })
	if i < 0 {
		return of, false
	}
	return evictions[i], true
}

// withRevisions returns the records with the revisions whose rollouts they began. What the rollouts
// showed once stays: they can have been forgotten since.
func withRevisions(records []record, rollouts []*rollout.Workload) []record {
	begun, introduced := map[string]string{}, map[rollout.Creation]rollout.Introduction{}
	for _, w := range rollouts {
		maps.Copy(begun, w.Begun())
		maps.Copy(introduced, w.Introduced())
	}
	records = slices.Clone(records)
	for i := range records {
		r := &records[i]
		r.began = cmp.Or(begun[r.UID], r.began)
		if r.Reason == rollout.ReasonCreatedPod {
			_, name := rollout.NamedIn(r.Message)
			if of, ok := introduced[rollout.Creation{Pod: name, At: r.written.UnixNano()}]; ok {
				r.began, r.replaced = of.Revision, of.Replaced
			}
		}
	}
	return records
}

// stepPause is how long after the scale-down of one revision the scale-up of another one can come, in a
// rollout that adds no pods before it has ended others. Recreate waits for their end.
const stepPause = time.Minute

// withoutStep removes the scale-down of another revision with which the rollout began.
func (c change) withoutStep(changes []change) []change {
	if c.Kind != kindRollout {
		return changes
	}
	return slices.DeleteFunc(changes, func(other change) bool {
		isDown := other.Kind == kindScaling && *other.To < *other.From && other.Object != c.Object
		return isDown && other.Records[0].Object == c.Records[0].Object && c.Time.Sub(other.Time) < stepPause
	})
}

// replicas are those of a Deployment's revisions, as far as records show them.
type replicas struct {
	current   string // revision
	last      []rollout.Scaling
	reduced   string // the revision that was scaled down last
	reducedAt time.Time
	times     map[string][]time.Time // of all scalings of a revision, also of later ones
}

// replicasIn returns the replicas of each Deployment, of which only the times of scalings are known yet.
func replicasIn(records []record) map[string]*replicas {
	all := map[string]*replicas{}
	for _, r := range records {
		s, ok := rollout.ScalingOf(r.Message)
		if r.Reason != rollout.ReasonScaled || !ok {
			continue
		}
		if all[r.Object] == nil {
			all[r.Object] = &replicas{times: map[string][]time.Time{}}
		}
		times := all[r.Object].times
		times[s.Revision] = append(times[s.Revision], r.Time)
	}
	return all
}

// change returns the change that a record shows. A step of a rolling update is none. The rollouts can
// have forgotten that one began.
func (of *replicas) change(r record) (c change, ok bool) {
	s, ok := rollout.ScalingOf(r.Message)
	if !ok {
		return c, false
	}
	if s.From > 0 && s.Revision != of.current && of.isOnly(of.current) {
		of.current = s.Revision // It had pods, but no record of them: the rollout after it was undone.
	}
	isStep := of.isStep(s, r.Time)
	replaces := of.other(s.Revision) != "" || of.makesRoom(s, r.Time)
	begins := s.From == 0 && replaces && of.current != s.Revision || r.began != "" && !of.isOnly(s.Revision)
	of.add(s, r.Time)
	c = change{Kind: kindScaling, Object: s.Revision, From: &s.From, To: &s.To}
	switch {
	case begins:
		of.current = s.Revision
		c = change{Kind: kindRollout, Object: s.Revision, Text: "The rollout of " + s.Revision + " began"}
	case s.From < 0 || isStep:
		return c, false
	default:
		c.Text = fmt.Sprintf("%s was scaled from %d to %d", s.Revision, s.From, s.To)
	}
	return c, true
}

// add notes a scaling. If the current revision has no pods left, a rollout was undone before it was
// complete, and the other revision is the current one again.
func (of *replicas) add(s rollout.Scaling, at time.Time) {
	if !s.Up {
		of.reduced, of.reducedAt = s.Revision, at
	}
	of.last = append(slices.DeleteFunc(of.last, func(other rollout.Scaling) bool { return other.Revision == s.Revision }), s)
	if other := of.other(s.Revision); s.To == 0 && of.current == s.Revision && other != "" {
		of.current = other
	}
}

// isStep reports whether the scaling is a step of a rolling update: another revision is the current one, or has
// pods. If it was not scaled for a long time, this update has ended, and its last steps have no record.
func (of *replicas) isStep(s rollout.Scaling, at time.Time) bool {
	return of.makesRoom(s, at) || slices.ContainsFunc(of.last, func(other rollout.Scaling) bool {
		isOther := other.Revision != s.Revision && (other.Revision == of.current || other.To > 0)
		return isOther && slices.ContainsFunc(of.times[other.Revision], func(t time.Time) bool { return at.Sub(t).Abs() <= rolloutPause })
	})
}

// makesRoom reports whether another revision was scaled down right before the scale-up.
func (of *replicas) makesRoom(s rollout.Scaling, at time.Time) bool {
	return s.Up && of.reduced != "" && of.reduced != s.Revision && at.Sub(of.reducedAt) < stepPause
}

// other returns the newest of the other revisions that have pods; empty: there is none.
func (of *replicas) other(revision string) string {
	for _, s := range slices.Backward(of.last) {
		if s.Revision != revision && s.To > 0 {
			return s.Revision
		}
	}
	return ""
}

// isOnly reports whether the revision was scaled to zero last, and no other one has pods: then it was
// the current one, and is so again.
func (of *replicas) isOnly(revision string) bool {
	if len(of.last) == 0 || of.other(revision) != "" {
		return false
	}
	newest := of.last[len(of.last)-1]
	return newest.Revision == revision && newest.To == 0
}

// creation returns the change that the creation of a pod, or of a CronJob's Job, shows.
func creation(r record) (c change, ok bool) {
	kind, name := rollout.NamedIn(r.Message)
	switch {
	case kind == "job":
		return change{Kind: kindRollout, Object: "job.batch/" + name, Text: "The rollout of job.batch/" + name + " began"}, true
	case r.replaced != "":
		return change{Kind: kindRollout, Object: r.began, Text: "A pod of revision " + r.began + ", " + name + ", replaced one of " + r.replaced}, true
	case r.began != "":
		return change{Kind: kindRollout, Object: r.began, Text: "The first pod of revision " + r.began + ", " + name + ", was created"}, true
	case kind == "pod":
		return change{Kind: kindPod, Object: "pod/" + name, Text: "The pod " + name + " was created"}, true
	}
	return c, false
}

// reasonRescaled is the reason of a HorizontalPodAutoscaler that has set another size.
const reasonRescaled = "SuccessfulRescale"

var newSize = regexp.MustCompile(`New size: (\d+)`)

// autoscalerDelay is how long the scaling comes after the record of the autoscaler.
const autoscalerDelay = 10 * time.Second

// withAutoscalers adds what autoscalers did. An Event of an autoscaler does not name what it scales. So an
// autoscaler counts if it has the name of the workload, and no other workload has it. It also counts
// if it is the only one that set the size right before the scaling. named is how many workloads have a
// name, of those that can be scaled.
func withAutoscalers(changes []change, workload string, named map[string]int, records []record) []change {
	used := map[string]bool{}
	for i, c := range changes {
		r, ok := c.setBy(records)
		if !ok || nameOf(r.Object) != workload && named[nameOf(r.Object)] > 0 {
			continue
		}
		used[r.UID] = true
		changes[i].Kind, changes[i].Object = kindAutoscaler, r.Object
		changes[i].Text = fmt.Sprintf("The HorizontalPodAutoscaler %s set the size to %d, and %s", nameOf(r.Object), *c.To, c.Text)
		changes[i].Records = append([]record{r}, c.Records...)
	}
	if named[workload] != 1 {
		return changes
	}
	for _, r := range records {
		if nameOf(r.Object) != workload || used[r.UID] {
			continue
		}
		if size, ok := sizeOf(r); ok {
			changes = insert(changes, change{
				Kind: kindAutoscaler, Object: r.Object, To: &size, Time: r.Time, Records: []record{r},
				Text: fmt.Sprintf("The HorizontalPodAutoscaler %s set the size to %d", workload, size),
			}, timeOf)
		}
	}
	return changes
}

// setBy returns the newest record of the only autoscaler that the change can follow. ok is false if there
// is none, or several.
func (c change) setBy(records []record) (by record, ok bool) {
	for _, r := range records {
		switch {
		case !c.follows(r):
		case ok && by.Object != r.Object:
			return by, false
		default:
			by, ok = r, true
		}
	}
	return by, ok
}

// canBeScaled reports whether an autoscaler can scale the object.
func (o object) canBeScaled() bool {
	switch o.kind() {
	case "deployment.apps", "statefulset.apps", "replicaset.apps", "replicationcontroller":
		return true
	}
	isCustom := strings.Contains(o.Group, ".") && !strings.HasSuffix(o.Group, ".k8s.io")
	return isCustom
}

func timeOf(c change) time.Time { return c.Time }

// follows reports whether the change can be what the autoscaler did.
func (c change) follows(r record) bool {
	delay := c.Time.Sub(r.Time)
	if c.Kind != kindScaling || delay < -time.Second || delay > autoscalerDelay {
		return false
	}
	size, ok := sizeOf(r)
	return ok && *c.To == size
}

func sizeOf(r record) (size int, ok bool) {
	match := newSize.FindStringSubmatch(r.Message)
	if match == nil {
		return 0, false
	}
	size, err := strconv.Atoi(match[1])
	return size, err == nil
}

// conditions are the reasons of events about nodes that can matter to pods, and those that end
// them. late is how long after the change its record can come.
var conditions = []struct {
	reason, text, end string
	late              time.Duration
}{
	{"NodeNotReady", "became NotReady", "NodeReady", 0},
	{"NodeNotSchedulable", "was cordoned", "NodeSchedulable", statusUpdate},
	{"NodeHasInsufficientMemory", "had too little memory", "NodeHasSufficientMemory", statusUpdate},
	{"NodeHasDiskPressure", "had disk pressure", "NodeHasNoDiskPressure", statusUpdate},
	{"NodeHasInsufficientPID", "had too few process ids", "NodeHasSufficientPID", statusUpdate},
	{"Rebooted", "was rebooted", "", 0},
	{"EvictionThresholdMet", "tried to reclaim resources", "", 0},
	{"SystemOOM", "ran out of memory", "", 0},
}

// statusUpdate is the time between two updates of a node's status, in which a kubelet reports conditions. So
// the pods that a drain ends can end before the record of the cordon.
const statusUpdate = 10 * time.Second

func isNodeCondition(reason string) bool {
	for _, condition := range conditions {
		if reason == condition.reason || reason == condition.end {
			return reason != ""
		}
	}
	return false
}

// nodeChanges returns the changes of a node. One of the records placed has to show that a pod was on it;
// nil: the workload is the node.
func nodeChanges(node string, placed []placement, records []record) (changes []change) {
	for _, condition := range conditions {
		open, last := -1, record{}
		for _, r := range records {
			switch {
			case r.Reason == condition.end && open >= 0:
				changes[open].until, open, last = r.Time, -1, record{}
			case r.Reason == condition.reason && r.repeats(last):
				last = r
			case r.Reason == condition.reason && (open < 0 || condition.end == ""):
				text, shown, ok := whereOn(node, placed, r, condition.late)
				if !ok {
					continue
				}
				open, last = len(changes), r
				changes = append(changes, change{
					Kind: kindNode, Object: "node/" + node, Time: r.Time, Text: text + " " + condition.text, Records: shown, late: condition.late, left: leftAfter(placed, r.Time.Add(-condition.late)),
				})
			}
		}
	}
	return changes
}

// leftAfter returns when the first pod left the node, from a time on; zero: none did.
func leftAfter(placed []placement, at time.Time) (first time.Time) {
	for _, p := range placed {
		if left := p.left; !left.Before(at) && (first.IsZero() || left.Before(first)) {
			first = left
		}
	}
	return first
}

// repeats reports whether the Event of another record goes on. A kubelet repeats some each 10 s.
func (r *record) repeats(other record) bool {
	return r.event != "" && r.event == other.event && r.Time.Sub(other.Time) < warningPause
}

// whereOn names the node and the pod that was there at the time of the record, which can be late. ok is false if there
// was none.
func whereOn(node string, placed []placement, r record, late time.Duration) (text string, shown []record, ok bool) {
	text = "The node " + node
	if placed == nil {
		return text, []record{r}, true
	}
	for _, p := range slices.Backward(placed) {
		if p.covers(r.Time, late) {
			return text + ", where the pod " + nameOf(p.Object) + " was,", []record{r, p.record}, true
		}
	}
	return text, nil, false
}

// nameOf returns the name in the form of kubectl, KIND/NAME.
func nameOf(object string) string {
	_, name, _ := strings.Cut(object, "/")
	return name
}

// explained returns what changed before the first warning of a workload.
func (s *store) explained(w *workload) *answer {
	placed := s.placements(w)
	autoscalers, nodes := s.about(w)
	changes := changesOf(w.changed, s.rolloutsOf(w))
	if w.top.canBeScaled() {
		changes = withAutoscalers(changes, w.top.Name, s.scalable(w), autoscalers)
	}
	for _, node := range slices.Sorted(maps.Keys(placed)) {
		changes = append(changes, nodeChanges(node, placed[node], nodes[node])...)
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.Time.Compare(b.Time) })
	return explain(s.warnings(w), changes, s.overall.start())
}

// warnings returns the first warnings of a workload, in the order in which they began.
func (s *store) warnings(w *workload) []record {
	warned := slices.Clone(w.warned)
	for i := range warned {
		if r := &warned[i]; r.written.Equal(r.Time) { // Else the time of its pod is in the future, too.
			r.created = s.beganAt(w, r.pod)
		}
	}
	slices.SortStableFunc(warned, func(a, b record) int { return a.warnedAt().Compare(b.warnedAt()) })
	return warned
}

// beganAt returns when a pod was created or scheduled; zero: not known.
func (s *store) beganAt(w *workload, pod string) time.Time {
	for _, of := range s.rolloutsOf(w) {
		if at := of.Began(pod); at != 0 {
			return timeAt(at)
		}
	}
	return time.Time{}
}

func (s *store) rolloutsOf(w *workload) (known []*rollout.Workload) {
	for _, l := range w.lives {
		if of := s.rollouts.Workloads[l.rollouts]; of != nil {
			known = append(known, of)
		}
	}
	return known
}

// scalable returns how many workloads have a name, of those in the namespace that can be scaled.
func (s *store) scalable(w *workload) map[string]int {
	named := map[string]int{}
	for key := range s.workloads {
		if key.cluster == w.cluster && key.namespace == w.namespace && key.top.canBeScaled() {
			named[key.top.Name]++
		}
	}
	return named
}

// about returns the records of autoscalers in the namespace of a workload, and of its nodes.
func (s *store) about(w *workload) (autoscalers []record, nodes map[string][]record) {
	on := w.nodes()
	nodes = map[string][]record{}
	for i := range s.elsewhere {
		n := &s.elsewhere[i]
		switch {
		case !n.canMatter(w, on):
		case n.node == "":
			autoscalers = append(autoscalers, n.record)
		default:
			nodes[n.node] = append(nodes[n.node], n.record)
		}
	}
	return autoscalers, nodes
}
