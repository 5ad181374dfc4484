// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"slices"
	"time"
)

// link connects a kind of change with the problems that it can cause. A new link is a row of links,
// and a story.
type link struct {
	changes []*change
	where   *where
	can     []string // classes of problems
	from    since
	within  time.Duration // from then to the beginning of the problem
	late    time.Duration // how long after its effect the record of the change can come
	only    []condition
	weight  int  // how likely it is
	isGuess bool // it is no cause if a likelier one is known
	// text is what the cause says; nil: what the change does.
	text func(c *Change, e *explanation) string
}

// where is what connects a change with a problem.
type where struct {
	name string // in answers
	text string
}

var (
	whereWorkload  = &where{"workload", "the same workload"}
	whereSameNode  = &where{"node", "the node that has the problem"}
	whereNode      = &where{"node", "the node of the pods"}
	whereLeftNode  = &where{"node", "a node that pods of the workload left"}
	whereNamespace = &where{"namespace", "another object in the namespace"}
	whereName      = &where{"namespace", "an object of the namespace that deployed the workload, or, if its tool is not known, whose record names it"}
	// A name in a message is no proof: anybody may write it.
	whereNameElsewhere = &where{"elsewhere", "such an object of another namespace"}
)

// since is the time from which a link counts; ok is false if there is none.
type since struct {
	text string // empty: the change, and the end of a state
	of   func(c *Change, e *explanation) (at time.Time, ok bool)
}

// condition must hold for a change to be a cause.
type condition struct {
	text  string // empty: where the change is says it
	holds func(c *Change, e *explanation) bool
}

// Sets of classes.
var (
	allClasses = []string{
		classImage, classStart, classMount, classSchedule, classCreate, classCrash, classProbe, classEviction, classJob, classNode, classScale, classOther,
	}
	startups  = []string{classImage, classStart, classMount, classSchedule, classCreate, classCrash, classProbe}
	creations = []string{classSchedule, classCreate}
	runtimes  = []string{classCrash, classProbe, classOther}
	places    = []string{classSchedule, classEviction}
)

const (
	// podTime is the time after its pods began for which a rollout can be a cause, doneTime the
	// time after all of them had started, and onceTime the time in which what fails at once begins
	// to fail: after all pods had started, and in several workloads.
	podTime, doneTime, onceTime = 15 * time.Minute, 5 * time.Minute, 30 * time.Second
	soon                        = 10 * time.Minute
	othersTime                  = 2 * time.Minute // after a change of another workload in the namespace
	stateTime                   = time.Minute     // after the end of a state of a node
	// delay is how much later a kubelet reports its node, a workload follows its autoscaler, the
	// next rollout begins, and another workload fails of the same cause.
	delay        = 10 * time.Second
	volumeUpdate = 30 * time.Second // the controller of volumes retries that often
	// resolution is the longest time by which the record of a change can be later than its effect,
	// because times have whole seconds.
	resolution = 2 * time.Second
)

// ofOthers are the changes that can cause what another object in the namespace has.
var ofOthers = linkedBy(whereNamespace)

func linkedBy(of *where) map[*change]bool {
	all := map[*change]bool{}
	for _, l := range links {
		for _, c := range l.changes {
			all[c] = all[c] || l.where == of
		}
	}
	return all
}

// Ranks that several causes have.
const (
	rankRollout   = 4
	rankConfigMap = 5
)

var links = []link{
	{
		changes: []*change{rolledOut}, where: whereWorkload, can: []string{classCrash, classProbe, classJob}, from: sinceChange, within: Horizon, only: []condition{ofItsPods, ofLowerLimit}, weight: 5,
		text: func(c *Change, e *explanation) string {
			return loweredLimit(&c.template, e.p.Container) + ", when " + nameOf(c.revision) + " was rolled out" + byWhom(&c.template)
		},
	},
	// The rollout is the consequence.
	{changes: []*change{reloaded}, where: whereWorkload, can: startups, from: sinceChange, within: soon, only: []condition{ofNewPods}, weight: 5},
	{changes: []*change{rolledOut, firstRolledOut}, where: whereWorkload, can: allClasses, from: sincePods, within: podTime, only: []condition{ofItsPods}, weight: 4},
	{changes: []*change{rolledOut, firstRolledOut}, where: whereWorkload, can: allClasses, from: sinceDone, within: onceTime, only: []condition{ofItsPods, failsWithFew}, weight: 4},
	// A rollout makes the pods that find no room, whatever others found before.
	{changes: []*change{rolledOut, firstRolledOut}, where: whereWorkload, can: creations, from: sincePods, within: podTime, only: []condition{ofPodsItMade}, weight: 4},
	// As likely as what changed elsewhere: then the nearest one counts.
	{changes: []*change{rolledOut}, where: whereWorkload, can: allClasses, from: sinceDone, within: doneTime, only: []condition{ofItsPods, failsAlone}, weight: 1, isGuess: true},
	{changes: []*change{scaledDown}, where: whereWorkload, can: runtimes, from: sinceChange, within: soon, weight: 4},
	{changes: []*change{scaledUp}, where: whereWorkload, can: startups, from: sinceChange, within: soon, only: []condition{ofItsRevision, ofNewPods}, weight: 4},
	{changes: []*change{podDeleted}, where: whereWorkload, can: startups, from: sinceChange, within: soon, only: []condition{ofNewPod}, weight: 2},
	{changes: []*change{podEvicted, podPreempted}, where: whereWorkload, can: startups, from: sinceChange, within: soon, only: []condition{ofReplacements}, weight: 4},

	{changes: nodeChanges, where: whereSameNode, can: []string{classNode}, from: sinceEnd, within: soon, only: []condition{isEarlier}, weight: 3},
	{changes: []*change{nodeNotReady}, where: whereNode, can: []string{classNode, classProbe, classStart, classMount, classSchedule, classEviction}, from: sinceEnd, within: soon, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeCordoned}, where: whereNode, can: places, from: sinceEnd, within: soon, late: delay, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeMemory}, where: whereNode, can: []string{classEviction, classCrash, classSchedule, classProbe}, from: sinceEnd, within: soon, late: delay, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeDisk}, where: whereNode, can: []string{classEviction, classImage, classSchedule, classStart}, from: sinceEnd, within: soon, late: delay, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeProcesses}, where: whereNode, can: []string{classEviction, classCrash, classStart, classProbe}, from: sinceEnd, within: soon, late: delay, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeRebooted}, where: whereNode, can: []string{classCrash, classProbe, classStart, classMount}, from: sinceEnd, within: soon, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeEvicts}, where: whereNode, can: []string{classEviction, classImage}, from: sinceEnd, within: soon, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeOutOfMemory}, where: whereNode, can: []string{classCrash, classProbe}, from: sinceEnd, within: soon, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeKilled}, where: whereNode, can: []string{classCrash, classProbe}, from: sinceEnd, within: delay, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeShutDown}, where: whereNode, can: []string{classEviction, classSchedule, classProbe}, from: sinceEnd, within: soon, only: []condition{onlyThere}, weight: 3},
	{changes: []*change{nodeRemoved, nodeNotDrained}, where: whereNode, can: places, from: sinceEnd, within: soon, only: []condition{onlyThere}, weight: 3},
	{
		changes: []*change{nodeNotReady, nodeCordoned, nodeMemory, nodeDisk, nodeProcesses, nodeEvicts, nodeShutDown, nodeRemoved},
		where:   whereLeftNode, can: startups, from: sinceEnd, within: soon, late: delay, only: []condition{ofMovedPods}, weight: 3,
	},

	{changes: []*change{rolledOut, takenBack}, where: whereNamespace, can: runtimes, from: sinceDoneElsewhere, within: othersTime, only: []condition{isNoVictim}, weight: 1},
	{changes: []*change{scaledDown, scaledToZero, podDeleted}, where: whereNamespace, can: runtimes, from: sinceChange, within: othersTime, only: []condition{isNoVictim}, weight: 1},
	{changes: []*change{noVolume}, where: whereNamespace, can: []string{classSchedule, classMount}, from: sinceChange, within: Horizon, late: volumeUpdate, weight: 1},
	{changes: []*change{notResized}, where: whereNamespace, can: []string{classMount}, from: sinceChange, within: soon, weight: 1},
	{changes: []*change{deployed}, where: whereName, can: startups, from: sinceChange, within: soon, only: []condition{isHere}, weight: 1},
	{changes: []*change{deployed}, where: whereNameElsewhere, can: startups, from: sinceChange, within: soon, only: []condition{isElsewhere}},
}

var (
	sinceChange = since{"", func(c *Change, _ *explanation) (time.Time, bool) { return c.At, true }}
	sincePods   = since{"the start of its pods, until all of them have started", func(c *Change, e *explanation) (time.Time, bool) {
		return e.began, c.done.IsZero() || !e.p.Onset.After(c.done)
	}}
	sinceDone = since{"the start of all its pods", func(c *Change, e *explanation) (time.Time, bool) {
		isLater := e.began.After(c.done) && !e.began.Equal(e.p.Onset)
		return c.done, !c.done.IsZero() && !isLater && e.p.Onset.Sub(e.began) <= podTime
	}}
	// sinceDoneElsewhere: a rollout replaces its pods one after the other.
	sinceDoneElsewhere = since{"the start of its pods", func(c *Change, e *explanation) (time.Time, bool) {
		if e.p.Onset.Sub(c.At) >= soon {
			return c.At, true
		}
		return earlier(later(c.At, c.done), e.p.Onset), true
	}}
	sinceEnd = since{"", func(c *Change, e *explanation) (time.Time, bool) {
		switch {
		case !c.isState:
			return c.At, true
		case c.Until.IsZero():
			return e.p.Onset, true
		}
		return c.Until, e.p.Onset.Sub(c.Until) <= stateTime
	}}
)

var (
	ofLowerLimit = condition{"it set or lowered the limit of memory at which the container was OOMKilled", func(c *Change, e *explanation) bool {
		return e.p.ranOutOfMemory() && loweredLimit(&c.template, e.p.Container) != ""
	}}
	ofItsPods = condition{"only pods of this revision have it, and did not have it before", func(c *Change, e *explanation) bool {
		wasThere := e.wasThereBefore(c, e.p.before) || e.wasThereBefore(c, e.p.intervals)
		return len(e.p.Revisions) == 0 || slices.Contains(e.p.Revisions, c.revision) && !wasThere
	}}
	ofPodsItMade = condition{"only pods of this revision have it", func(c *Change, e *explanation) bool {
		return slices.Contains(e.p.Revisions, c.revision) && !e.wasThereBefore(c, e.p.intervals)
	}}
	ofItsRevision = condition{"pods of the scaled revision have it", func(c *Change, e *explanation) bool {
		return slices.Contains(e.p.Revisions, c.revision)
	}}
	failsAlone   = condition{"fewer than two other workloads or namespaces began to fail with it", func(_ *Change, e *explanation) bool { return len(e.others) < 2 }}
	failsWithFew = condition{"fewer than five other workloads or namespaces began to fail with it", func(_ *Change, e *explanation) bool { return len(e.others) < 5 }}
	ofNewPods    = condition{"the pod began after it, or cannot be created", func(c *Change, e *explanation) bool {
		return !e.began.Before(c.At.Add(-resolution)) || e.p.Class == classCreate
	}}
	ofNewPod = condition{"the pod began after it", func(c *Change, e *explanation) bool {
		return e.pod != nil && !e.began.Before(c.At.Add(-resolution))
	}}
	ofReplacements = condition{"all its pods began after it, or cannot be created", func(c *Change, e *explanation) bool {
		return e.p.Class == classCreate || e.beganAfter(c.At.Add(-resolution))
	}}
	isEarlier = condition{"it is another change, and earlier", func(c *Change, e *explanation) bool { return c.At.Before(e.p.Onset) }}
	onlyThere = condition{"all its pods are there, or on nodes with the same change", func(c *Change, e *explanation) bool {
		return slices.Contains(e.p.Nodes, c.node) && !slices.ContainsFunc(e.p.Nodes, func(node string) bool { return node != c.node && !e.hadChange(node, c) })
	}}
	ofMovedPods = condition{"all pods with the problem began after that", func(c *Change, e *explanation) bool {
		return e.w != nil && e.w.leftAfter(c.node, earlier(e.p.Onset, c.At).Add(-delay)) && e.beganAfter(c.At.Add(-delay))
	}}
	isHere      = condition{"", func(c *Change, e *explanation) bool { return c.Key.Namespace == e.p.Key.Namespace }}
	isElsewhere = condition{"", func(c *Change, e *explanation) bool { return c.Key.Namespace != e.p.Key.Namespace }}
	isNoVictim  = condition{"it did not begin to fail at the same time", func(c *Change, e *explanation) bool { return !slices.Contains(e.others, c.Key) }}
)
