// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// changesOf returns the changes that a workload's own records show. The rollouts decide which scale-up
// from zero began a rollout; nil: none are known.
func changesOf(records []record, rollouts *rollout.Workload) (changes []change) {
	if rollouts == nil {
		rollouts = &rollout.Workload{}
	}
	begun, introduced, scaled := rollouts.Begun(), rollouts.Introduced(), map[string]*replicas{}
	for _, r := range records {
		var c change
		ok := true
		switch r.Reason {
		case rollout.ReasonScaled:
			if scaled[r.Object] == nil {
				scaled[r.Object] = &replicas{}
			}
			c, ok = scaled[r.Object].change(r, begun[r.UID] != "")
		case rollout.ReasonCreatedPod:
			c, ok = creation(r, introduced)
		case reasonPreempted:
			c = change{Kind: kindPreemption, Object: r.Object, Text: "The pod " + nameOf(r.Object) + " was preempted"}
		default:
			c = change{Kind: kindPod, Object: r.Object, Text: "The pod " + nameOf(r.Object) + " was scheduled"}
		}
		if ok {
			c.Time, c.Records = r.Time, []record{r}
			changes = append(changes, c)
		}
	}
	return changes
}

// replicas are those of a Deployment's revisions, as far as records show them.
type replicas struct {
	current string // revision
	last    []rollout.Scaling
}

// change returns the change that a record shows. A step of a rolling update is none.
func (of *replicas) change(r record, begins bool) (c change, ok bool) {
	s, ok := rollout.ScalingOf(r.Message)
	if !ok {
		return c, false
	}
	isCurrent := of.current == "" || of.current == s.Revision
	isStep := slices.ContainsFunc(of.last, func(other rollout.Scaling) bool { return other.Revision != s.Revision && other.To > 0 })
	of.last = append(slices.DeleteFunc(of.last, func(other rollout.Scaling) bool { return other.Revision == s.Revision }), s)
	c = change{Kind: kindScaling, Object: s.Revision, From: &s.From, To: &s.To}
	switch {
	case begins:
		of.current = s.Revision
		c = change{Kind: kindRollout, Object: s.Revision, Text: "The rollout of " + s.Revision + " began"}
	case s.From < 0 || !isCurrent || isStep:
		return c, false
	default:
		c.Text = fmt.Sprintf("%s was scaled from %d to %d", s.Revision, s.From, s.To)
	}
	return c, true
}

// creation returns the change that the creation of a pod, or of a CronJob's Job, shows.
func creation(r record, introduced map[rollout.Creation]string) (c change, ok bool) {
	kind, name := rollout.NamedIn(r.Message)
	revision := introduced[rollout.Creation{Pod: name, At: r.Time.UnixNano()}]
	switch {
	case kind == "job":
		return change{Kind: kindRollout, Object: "job.batch/" + name, Text: "The rollout of job.batch/" + name + " began"}, true
	case revision != "":
		return change{Kind: kindRollout, Object: revision, Text: "The first pod of revision " + revision + ", " + name + ", was created"}, true
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
// autoscaler counts if it has the name of the workload, or if it is the only one that set the size
// right before the scaling.
func withAutoscalers(changes []change, workload string, records []record) []change {
	used := map[string]bool{}
	for i, c := range changes {
		set := slices.DeleteFunc(slices.Clone(records), func(r record) bool { return !c.follows(r) })
		if len(set) == 0 || slices.ContainsFunc(set, func(r record) bool { return r.Object != set[0].Object }) {
			continue
		}
		r := set[len(set)-1]
		used[r.UID] = true
		changes[i].Kind = kindAutoscaler
		changes[i].Text = fmt.Sprintf("The HorizontalPodAutoscaler %s set the size to %d, and %s", nameOf(r.Object), *c.To, c.Text)
		changes[i].Records = append([]record{r}, c.Records...)
	}
	for _, r := range records {
		if size, ok := sizeOf(r); ok && !used[r.UID] && nameOf(r.Object) == workload {
			changes = insert(changes, change{
				Kind: kindAutoscaler, Object: r.Object, To: &size, Time: r.Time, Records: []record{r},
				Text: fmt.Sprintf("The HorizontalPodAutoscaler %s set the size to %d", workload, size),
			}, timeOf)
		}
	}
	return changes
}

func timeOf(c change) time.Time { return c.Time }

// follows reports whether the change can be what the autoscaler did.
func (c change) follows(r record) bool {
	size, ok := sizeOf(r)
	delay := c.Time.Sub(r.Time)
	return ok && c.Kind == kindScaling && *c.To == size && -time.Second <= delay && delay <= autoscalerDelay
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
// them.
var conditions = []struct{ reason, text, end string }{
	{"NodeNotReady", "became NotReady", "NodeReady"},
	{"NodeNotSchedulable", "was cordoned", "NodeSchedulable"},
	{"NodeHasInsufficientMemory", "had too little memory", "NodeHasSufficientMemory"},
	{"NodeHasDiskPressure", "had disk pressure", "NodeHasNoDiskPressure"},
	{"NodeHasInsufficientPID", "had too few process ids", "NodeHasSufficientPID"},
	{"Rebooted", "was rebooted", ""},
}

func isNodeCondition(reason string) bool {
	for _, condition := range conditions {
		if reason == condition.reason || reason == condition.end {
			return reason != ""
		}
	}
	return false
}

// nodeChanges returns the changes of a node. The record placed shows that a pod was on it; nil: the
// workload is the node.
func nodeChanges(node string, placed *record, records []record) (changes []change) {
	text := "The node " + node
	if placed != nil {
		text += ", where the pod " + nameOf(placed.Object) + " was,"
	}
	for _, condition := range conditions {
		open := -1
		for _, r := range records {
			switch {
			case r.Reason == condition.end && open >= 0:
				changes[open].until, open = r.Time, -1
			case r.Reason == condition.reason && (open < 0 || condition.end == ""):
				open = len(changes)
				c := change{Kind: kindNode, Object: "node/" + node, Time: r.Time, Text: text + " " + condition.text, Records: []record{r}}
				if placed != nil {
					c.Records = append(c.Records, *placed)
				}
				changes = append(changes, c)
			}
		}
	}
	return changes
}

// nameOf returns the name in the form of kubectl, KIND/NAME.
func nameOf(object string) string {
	_, name, _ := strings.Cut(object, "/")
	return name
}

// explained returns what changed before the first warning of a workload.
func (s *store) explained(w *workload) *answer {
	changes := changesOf(w.changed, s.rollouts.Workloads[w.rollouts])
	changes = withAutoscalers(changes, w.top.Name, s.about(func(n notice) bool {
		return n.top.Kind != "node" && n.cluster == w.cluster && n.Namespace == w.namespace
	}))
	placed := w.placements()
	for _, node := range slices.Sorted(maps.Keys(placed)) {
		changes = append(changes, nodeChanges(node, placed[node], s.about(func(n notice) bool {
			return n.top.Kind == "node" && n.cluster == w.cluster && n.top.Name == node
		}))...)
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.Time.Compare(b.Time) })
	return explain(w.warned, changes, s.overall.start())
}

// about returns the records of nodes and autoscalers that meet a condition.
func (s *store) about(condition func(notice) bool) (records []record) {
	for _, n := range s.elsewhere {
		if condition(n) {
			records = append(records, n.record)
		}
	}
	return records
}
