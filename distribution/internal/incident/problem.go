// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The classes of problems.
const (
	classImage    = "image"    // the image cannot be pulled
	classStart    = "start"    // the container cannot be created
	classMount    = "mount"    // a volume cannot be attached or mounted
	classSchedule = "schedule" // no node has room
	classCreate   = "create"   // the owner cannot create the pod
	classCrash    = "crash"    // the container ends by itself, again and again
	classProbe    = "probe"
	classEviction = "eviction"
	classJob      = "job"
	classNode     = "node"
	classScale    = "scale" // an autoscaler has no metrics
	classOther    = "other"
)

// reasonStarted is that of an Event of a container. In a container that starts again, its count rises.
const reasonStarted = "Started"

// classes are by the kind of an Event.
var classes = map[string]string{
	record.KindPullFailed: classImage, "Failed": classStart, "FailedCreatePodSandBox": classStart, "FailedPostStartHook": classStart,
	"FailedPodSandBoxStatus": classStart, "NetworkNotReady": classStart, "FailedMount": classMount, "FailedAttachVolume": classMount,
	"FailedMapVolume": classMount, "FailedScheduling": classSchedule, "FailedCreate": classCreate, record.KindCrashed: classCrash,
	"Unhealthy": classProbe, "Evicted": classEviction, "BackoffLimitExceeded": classJob, "DeadlineExceeded": classJob, "FailedIndexes": classJob,
	"PodFailurePolicy": classJob, "FailedGetResourceMetric": classScale, "FailedComputeMetricsReplicas": classScale,
	"NodeNotReady": classNode, "FailedGetExternalMetric": classScale, "FailedGetPodsMetric": classScale, "FailedGetObjectMetric": classScale,
}

// transient are warnings of controllers that repeat what has failed at once, and of kubelets that start.
var transient = []string{"CgroupV1", "InvalidDiskCapacity", "CheckLimitsForResolvConf", "FailedToUpdateEndpoint", "FailedToUpdateEndpointSlices", "FailedToCreateEndpoint"}

// ofContainers are classes of pods only.
var ofContainers = []string{classImage, classStart, classMount, classCrash, classProbe}

// broken are states of a node that are a problem, although their Events are no warnings.
var broken = []string{"NodeNotReady", "NodeHasInsufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID"}

// classOf returns the class of the problem that an Event shows; empty: it shows none.
func classOf(f *Fact) string {
	isKill := f.Kind == record.KindRestarted && strings.Contains(f.Message, "probe")
	isNode := f.Object().GroupKind() == "node"
	switch {
	case isKill:
		return classProbe
	case isNode && slices.Contains(broken, f.Reason):
		return classNode
	case !f.IsWarning(), rollout.IsHarmless(f.Reason), slices.Contains(transient, f.Reason):
		return ""
	case isNode:
		return classNode
	case f.Pod == "" && slices.Contains(ofContainers, classes[f.Kind]):
		return classOther // Others use such reasons, too: a Certificate has Failed.
	}
	return cmp.Or(classes[f.Kind], classOther)
}

// quiets has, for each class of Events, the time without a repeat after which the problem counts as
// over. A kubelet writes one at least every 5 minutes, a ReplicaSet's controller after up to 1000
// s.
var quiets = map[string]time.Duration{
	classCreate: 17 * time.Minute, classCrash: 10 * time.Minute, classJob: Horizon, classNode: Horizon, classOther: 17 * time.Minute,
	classSchedule: 35 * time.Minute, // A scheduler writes a series of events.k8s.io each 30 minutes (client-go, tools/events).
}

const (
	usualQuiet = 6 * time.Minute
	// probeQuiet is the least for a probe, which a kubelet reports each time at first: periods of two minutes exist.
	probeQuiet = 150 * time.Second
	// startTime is the time for which a probe may fail after the start of a container.
	startTime = time.Minute
	// endTime is the time for which a pod that ends may have warnings.
	endTime = 2 * time.Minute
)

func quietOf(class string) time.Duration { return cmp.Or(quiets[class], usualQuiet) }

// occurrence is one moment of a fact that shows a problem.
type occurrence struct {
	*Fact
	at time.Time
	n  int64
}

// spell is a problem of one pod or other object without a pause.
type spell struct {
	class, reason, container string
	fact                     *Fact // of the object
	occurrences              []occurrence
	over                     time.Time // zero: it goes on
	because                  string
}

func (s *spell) onset() time.Time { return s.occurrences[0].at }
func (s *spell) last() time.Time  { return s.occurrences[len(s.occurrences)-1].at }

// name identifies the problem that spells of several pods are.
func (s *spell) name() string {
	return strings.Join([]string{s.class, s.reason, s.container, s.fact.part().String()}, "\n")
}

// Problems returns the ongoing problems, and then those that are over, each the newest first.
func (v *At) Problems() (all []Problem) {
	for _, w := range v.workloads {
		for i := range w.problems {
			if v.admits(&w.problems[i]) {
				all = append(all, w.problems[i])
			}
		}
	}
	slices.SortFunc(all, compareProblems)
	spread(all)
	for i := range all {
		if i < maxExplained {
			v.explain(&all[i])
		} else {
			all[i].Unknown = fmt.Sprintf("not looked for: there are more than %d problems", maxExplained)
		}
	}
	return all
}

// mostOfNamespace is the maximum number of problems of a namespace that come before those of
// others, so that one tenant does not displace what others look for.
const mostOfNamespace = 10

// spread puts the problems of a namespace that are too many behind all others.
func spread(all []Problem) {
	ranks, counts := map[*spell]bool{}, map[space]int{}
	for i := range all {
		in := space{all[i].Key.Cluster, all[i].Key.Namespace}
		counts[in]++
		ranks[all[i].spells[0]] = counts[in] > mostOfNamespace
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		x, y := ranks[a.spells[0]], ranks[b.spells[0]]
		if x == y {
			return 0
		}
		return map[bool]int{false: -1, true: 1}[x]
	})
}

// maxExplained bounds the problems of an answer that are explained, so that no answer takes long.
const maxExplained = 200

// onset is the beginning of a problem of a workload.
type onset struct {
	at    time.Time
	key   Key
	class string
}

func compareProblems(a, b Problem) int {
	if a.Over.IsZero() != b.Over.IsZero() {
		return map[bool]int{true: -1, false: 1}[a.Over.IsZero()]
	}
	if order := cmp.Or(b.Over.Compare(a.Over), b.Onset.Compare(a.Onset)); order != 0 {
		return order
	}
	return cmp.Or(a.Key.compare(b.Key), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Container, b.Container))
}

// admits reports whether something of the problem is in what the Query chooses.
func (v *At) admits(p *Problem) bool {
	isIn := p.Over.IsZero() || !later(p.Last, p.Over).Before(v.from)
	return isIn && v.query.admitsKey(p.Key, p.Key.ID) && slices.ContainsFunc(p.facts, v.query.admits)
}

// index notes what answers ask for often.
func (w *known) index(f *Fact) {
	if f.Pod != "" {
		w.events[f.Pod] += f.Count
	}
	if !f.IsWarning() || rowOf(f) != nil {
		w.progress[f.subject()] = append(w.progress[f.subject()], f)
	}
	switch f.Reason {
	case rollout.ReasonScaled:
		if s, ok := record.ScalingOf(f.Message); ok {
			for _, m := range f.Moments { // An Event that repeats is a scaling each time.
				w.scaled = append(w.scaled, scaled{s, f, m.At})
			}
		}
	case "SuccessfulRescale":
		w.rescaled = append(w.rescaled, f)
	case "SuccessfulDelete":
		if _, name := record.NamedIn(f.Message); name != "" {
			w.deleted[name] = true
		}
	}
}

// subject is the pod's UID, or the name of another object.
func (f *Fact) subject() string { return cmp.Or(f.Pod, f.Object().String()) }

// findProblems returns the problems of the workload. The spells of several pods that overlap are one.
func (w *known) findProblems() (all []Problem) {
	groups := map[string][]*spell{}
	for _, s := range w.spells() {
		groups[s.name()] = append(groups[s.name()], s)
	}
	for _, spells := range groups {
		all = append(all, w.newestProblem(spells))
	}
	slices.SortFunc(all, compareProblems)
	return w.absorbed(all)
}

// effects are the classes of problems that a problem of another class, of the same container, shows as well: a
// container that ends fails its probes, and one that cannot be created is also started again and again.
var effects = map[string][]string{
	classCrash: {classProbe}, classStart: {classCrash, classProbe}, classImage: {classStart, classCrash, classProbe},
}

// absorbed returns the problems without those that are an effect of another one at the same time.
func (w *known) absorbed(all []Problem) (left []Problem) {
	gone := make([]bool, len(all))
	for _, class := range []string{classImage, classStart, classCrash} {
		for i := range all {
			if p := &all[i]; p.Class == class && !gone[i] {
				spells := slices.Clip(p.spells)
				for j := range all {
					if !gone[j] && all[j].isEffectOf(p) {
						gone[j], spells = true, append(spells, all[j].spells...)
					}
				}
				if len(spells) > len(p.spells) {
					earlier, before := p.Earlier, p.before
					all[i] = w.problemOf(class, spells)
					all[i].Earlier, all[i].before = earlier, before
				}
			}
		}
	}
	for i := range all {
		if !gone[i] {
			left = append(left, all[i])
		}
	}
	return left
}

// isEffectOf reports whether another problem, of the same container of one of its pods, shows this one as well.
func (p *Problem) isEffectOf(other *Problem) bool {
	isOfPod := slices.ContainsFunc(p.pods, func(pod string) bool { return slices.Contains(other.pods, pod) })
	return slices.Contains(effects[other.Class], p.Class) && p.Container == other.Container && isOfPod && p.overlaps(other)
}

// overlaps reports whether two problems were there at about the same time.
func (p *Problem) overlaps(other *Problem) bool {
	return !p.Onset.After(other.Last.Add(startTime)) && !other.Onset.After(p.Last.Add(startTime))
}

// newestProblem returns the newest problem of one kind, with the onsets of the earlier ones. One that goes on in
// other pods after a pause is another one.
func (w *known) newestProblem(spells []*spell) Problem {
	slices.SortStableFunc(spells, func(a, b *spell) int { return a.onset().Compare(b.onset()) })
	var groups [][]*spell
	end := time.Time{}
	for _, s := range spells {
		if len(groups) == 0 || s.onset().After(end.Add(probeQuiet)) {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], s)
		if end = later(end, s.over); s.over.IsZero() {
			end = w.now
		}
	}
	p := w.problemOf(spells[0].class, groups[len(groups)-1])
	for _, before := range slices.Backward(groups[:len(groups)-1]) {
		p.Earlier = append(p.Earlier, before[0].onset())
		p.before = append(p.before, before...)
	}
	hadOther := func(s *spell) bool { return s.fact.Revision != "" && !slices.Contains(p.Revisions, s.fact.Revision) }
	if slices.ContainsFunc(p.before, hadOther) {
		p.Scope = append(p.Scope, "an earlier revision had it, too")
	}
	return p
}

// problemOf returns the problem that spells of several pods are.
func (w *known) problemOf(class string, spells []*spell) Problem {
	slices.SortStableFunc(spells, func(a, b *spell) int { return a.onset().Compare(b.onset()) })
	p := Problem{Key: w.key, Class: class, Container: spells[0].container, Onset: spells[0].onset(), Causes: []Cause{}, spells: spells}
	goesOn := slices.ContainsFunc(spells, func(s *spell) bool { return s.over.IsZero() })
	var shown []occurrence
	for _, s := range spells {
		p.Last = later(p.Last, s.last())
		shown = append(shown, s.occurrences...)
		if !goesOn && s.over.After(p.Over) {
			p.Over, p.Because = s.over, s.because
		}
		p.affect(s, w.pods[s.fact.Pod])
	}
	slices.SortStableFunc(shown, func(a, b occurrence) int { return a.at.Compare(b.at) })
	for _, o := range shown {
		p.Count += o.n
		if !slices.Contains(p.facts, o.Fact) {
			p.facts = append(p.facts, o.Fact)
		}
	}
	p.tell()
	p.Scope = w.scope(&p)
	return p
}

// affect adds the pod of a spell.
func (p *Problem) affect(s *spell, pod *rollout.PodState) {
	add := func(to *[]string, value string) {
		if value != "" && !slices.Contains(*to, value) {
			*to = append(*to, value)
		}
	}
	add(&p.Revisions, s.fact.Revision)
	if s.fact.Pod == "" {
		return
	}
	add(&p.Pods, s.fact.Object().Name)
	add(&p.pods, s.fact.Pod)
	if pod != nil {
		add(&p.Nodes, pod.Node)
	} else {
		add(&p.Nodes, s.fact.Node)
	}
}

const (
	maxRecords = 20  // of an answer
	maxText    = 240 // bytes of a message in an answer
)

// tell chooses the most telling message: the newest one that names a cause.
func (p *Problem) tell() {
	best := p.facts[0]
	for _, f := range p.facts {
		isOwn := func(f *Fact) int { return map[bool]int{true: 1}[classOf(f) == p.Class] }
		if cmp.Or(cmp.Compare(isOwn(f), isOwn(best)), cmp.Compare(meaning(f), meaning(best)), f.Last.Compare(best.Last)) >= 0 {
			best = f
		}
	}
	p.Reason, p.Message, p.Record = best.Reason, record.Cut(best.Message, maxText), best.ID
	if best.Reason == reasonStarted {
		p.Message = fmt.Sprintf("The container %s started again, and nobody had killed it: it ended by itself", p.Container)
	}
	for _, f := range p.facts[max(0, len(p.facts)-maxRecords):] {
		p.Records = append(p.Records, f.ID)
	}
}

// meaning rates how much a message explains: "Back-off pulling image" and "Error: ErrImagePull" name no cause.
func meaning(f *Fact) int {
	switch {
	case !f.IsWarning():
		return 0
	case !record.HasCause(f.Message):
		return 1
	}
	return 2
}
