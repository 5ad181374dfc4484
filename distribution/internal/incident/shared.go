// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// sharing is something that problems of several workloads can have in common: they are one problem
// then. A new one is a row of shares, and a story.
type sharing struct {
	name string // in answers
	text string
	can  []string // classes of problems
	// of returns what a problem can share with others; empty: nothing.
	of    func(p *Problem) string
	title string // %o is what they share, and %n how many they are
	// isLocal is set if only workloads of one namespace can share it.
	isLocal bool
	// within is the time between the beginnings of two problems. Zero: their messages name what they
	// share, and it is enough that they overlap.
	within time.Duration
	least  int                                        // workloads
	only   func(node string, members []*Problem) bool // nil: nothing else must hold
}

// atOnce is the longest time between the beginnings of two problems that begin at once.
const atOnce = time.Minute

// shares are what problems share. The first row that joins a problem with others counts.
var shares = []sharing{
	{name: "registry", text: "the registry of the image, which fails for another reason than that it lacks the image", can: []string{classImage}, of: registryOf, title: "pull from %o fails: %n", least: 2},
	{name: "webhook", text: "the webhook that does not answer", can: []string{classCreate}, of: inMessage(brokenWebhook), title: "the webhook %o fails: %n", least: 2},
	{name: "quota", text: "the quota", can: []string{classCreate}, of: inMessage(usedQuota), title: "the quota %o is used up: %n", isLocal: true, least: 2},
	{name: "config", text: "the ConfigMap or Secret that is missing", can: inVolumes, of: inMessage(noConfig), title: "%o not found: %n", isLocal: true, least: 2},
	{name: "changed config", text: "the ConfigMap that changed last before them", can: []string{classCrash, classProbe}, of: changedBefore, title: "the ConfigMap %o changed: %n", isLocal: true, least: 2},
	{name: "storage class", text: "the StorageClass that is missing", can: inOthers, of: inMessage(noStorageClass), title: "the StorageClass %o does not exist: %n", least: 2},
	{name: "node", text: "the node of all their pods, which has a problem or a change, or they are of several namespaces", can: []string{classNode, classCrash, classProbe, classStart, classMount, classEviction, classImage}, of: onlyNode, title: "all on %o: %n", within: atOnce, least: 3, only: isOfNode},
	{name: "message", text: "the message", can: []string{classSchedule, classCreate, classMount, classStart, classScale, classOther}, of: messageOf, title: "the same message: %n", isLocal: true, within: atOnce, least: 3},
	{name: "namespace", text: "the namespace", can: []string{classCrash, classProbe}, of: func(p *Problem) string { return p.Key.Namespace }, title: "%n in %o at once", isLocal: true, within: onceTime, least: 3},
}

// Member is a workload that has a problem together with others.
type Member struct {
	Key   Key       `json:"workload"`
	ID    string    `json:"id"` // that the problem of the workload would have on its own
	Onset time.Time `json:"since"`
	Over  time.Time `json:"over,omitzero"` // zero: it goes on
}

// shareKey is what the problems of a group share.
type shareKey struct {
	row                       *sharing
	cluster, namespace, value string
}

// joined returns the problems of all workloads, those that are one problem of several as one.
func (v *cut) joined() []*Problem {
	if v.problems != nil {
		return v.problems
	}
	v.problems = []*Problem{}
	for _, w := range v.workloads {
		v.problems = append(v.problems, w.problems...)
	}
	slices.SortFunc(v.problems, compareOnsets)
	for i := range shares {
		v.problems = v.joinBy(&shares[i], v.problems)
	}
	return v.problems
}

// joinBy joins the problems that share what a row says. They are in the order of their beginning.
func (v *cut) joinBy(s *sharing, all []*Problem) (left []*Problem) {
	groups := map[shareKey][]*Problem{}
	var keys []shareKey
	for _, p := range all {
		value := ""
		if len(p.members) == 0 && slices.Contains(s.can, p.Class) {
			value = s.of(p)
		}
		if value == "" {
			left = append(left, p)
			continue
		}
		key := shareKey{row: s, cluster: p.Key.Cluster, value: value}
		if s.isLocal {
			key.namespace = p.Key.Namespace
		}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], p)
	}
	for _, key := range keys {
		for _, group := range s.cut(groups[key]) {
			left = append(left, v.join(key, group)...)
		}
	}
	slices.SortFunc(left, compareOnsets)
	return left
}

func compareOnsets(a, b *Problem) int {
	return cmp.Or(a.Onset.Compare(b.Onset), cmp.Compare(a.Series, b.Series))
}

// cut separates the problems that began too late, or when those before them were over.
func (s *sharing) cut(all []*Problem) (groups [][]*Problem) {
	var until time.Time
	for i, p := range all {
		isLate := i > 0 && p.Onset.After(until)
		if i == 0 || isLate {
			groups, until = append(groups, nil), p.Onset
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], p)
		switch {
		case s.within > 0:
			until = p.Onset.Add(s.within)
		case p.Over.IsZero():
			until = later(until, p.Onset.Add(Horizon))
		default:
			until = later(until, p.Over.Add(atOnce))
		}
	}
	return groups
}

// maxJoined bounds the problems of a namespace that are explained because they may be one.
const maxJoined = 200

// join returns one problem instead of a group, if those of enough workloads have no other cause.
func (v *cut) join(key shareKey, group []*Problem) []*Problem {
	s := key.row
	if !s.areEnough(group) {
		return group
	}
	var members, others []*Problem
	for _, p := range group {
		if in := (space{p.Key.Cluster, p.Key.Namespace}); s.within > 0 && v.explainedToJoin[in] < maxJoined {
			v.explainedToJoin[in]++
			v.explain(p)
		}
		if s.within > 0 && p.hasOwnCause(key.value) {
			others = append(others, p)
		} else {
			members = append(members, p)
		}
	}
	if !s.areEnough(members) || s.only != nil && !s.only(key.value, members) {
		return group
	}
	return append(others, v.joinedProblem(key, members))
}

// areEnough reports whether problems are of enough workloads. With the problem of their node, one is.
func (s *sharing) areEnough(all []*Problem) bool {
	n := workloadsOf(all)
	return n >= s.least || n == 2 && slices.ContainsFunc(all, (*Problem).isOfNodeItself)
}

func workloadsOf(all []*Problem) int {
	is := map[Key]bool{}
	for _, p := range all {
		is[p.Key] = true
	}
	return len(is)
}

// hasOwnCause reports whether a likely cause is another one than a change of the node that problems
// share.
func (p *Problem) hasOwnCause(node string) bool {
	if len(p.Causes) == 0 {
		return false
	}
	best := p.Causes[0]
	return !best.isGuess && best.weight > 1 && (best.Where != whereNode.name || best.node != node)
}

// joinedProblem returns the problem of several workloads. It has the id and the message of the one
// that began first, or of their node.
func (v *cut) joinedProblem(key shareKey, members []*Problem) *Problem {
	slices.SortStableFunc(members, func(a, b *Problem) int { return compareBools(b.isOfNodeItself(), a.isOfNodeItself()) })
	v.explain(members[0])
	p := *members[0]
	p.members, p.Shared, p.Over, p.Because, p.Earlier = members, key.row.name, time.Time{}, "", nil
	p.Count, p.Records, p.Pods, p.Nodes, p.Revisions, p.facts, p.pods = 0, nil, nil, nil, nil, nil, nil
	goesOn := false
	for _, m := range members {
		if goesOn = goesOn || m.Over.IsZero(); m.Over.After(p.Over) {
			p.Over, p.Because = m.Over, m.Because
		}
		p.Last, p.Count, p.LeftOut = later(p.Last, m.Last), p.Count+m.Count, cmp.Or(p.LeftOut, m.LeftOut)
		p.Pods, p.Nodes = append(p.Pods, m.Pods...), append(p.Nodes, m.Nodes...)
		p.facts, p.pods, p.Records = append(p.facts, m.facts...), append(p.pods, m.pods...), append(p.Records, m.Records...)
		p.Members = append(p.Members, Member{m.Key, m.ID, m.Onset, m.Over})
	}
	if goesOn {
		p.Over, p.Because = time.Time{}, ""
	}
	p.CanBeHarmless = p.Count < manyFailures && !slices.ContainsFunc(members, func(m *Problem) bool { return !m.CanBeHarmless })
	slices.Sort(p.Nodes)
	p.Nodes = slices.Compact(p.Nodes)
	p.PodCount, p.NodeCount, p.WorkloadCount = len(p.pods), len(p.Nodes), workloadsOf(members)
	p.Records = p.Records[:min(len(p.Records), maxRecords)]
	p.Scope = []string{key.row.describe(key.value, &p)}
	p.keepCommonCauses()
	return &p
}

// describe says what a problem is, and how far it spreads.
func (s *sharing) describe(value string, p *Problem) string {
	workloads, namespaces := map[Key]bool{}, map[string]bool{}
	for _, m := range p.members {
		if !m.isOfNodeItself() {
			workloads[m.Key], namespaces[m.Key.Namespace] = true, true
		}
	}
	number := rollout.Plural(len(workloads), "workload")
	if len(namespaces) > 1 {
		number += " in " + rollout.Plural(len(namespaces), "namespace")
	}
	text := strings.NewReplacer("%o", value, "%n", number).Replace(s.title)
	if p.PodCount > 0 {
		text += ", " + rollout.Plural(p.PodCount, "pod")
	}
	return text
}

// keepCommonCauses leaves the causes that the message names, and those outside of the workload: a
// change of one workload is no cause of what all have.
func (p *Problem) keepCommonCauses() {
	var own []Cause
	p.Causes = slices.DeleteFunc(slices.Clone(p.Causes), func(c Cause) bool {
		isOwn := c.Where == whereWorkload.name
		if isOwn {
			own = append(own, c)
		}
		return isOwn
	})
	if p.Unknown = ""; len(p.Causes) > 0 {
		return
	}
	p.Unknown = "not known: no record shows a change that all of them share"
	if len(own) > 0 {
		p.LastChange = &own[0]
	}
}

// hostInMessage matches the host of a registry in the messages of a kubelet.
var (
	hostInMessage = says(`(?:https?://|lookup |dial tcp: lookup )([^/ "]+)`)
	hostOfImage   = says(`image "([^/"]*[.:][^/"]*)/`)
	lacksImage    = says(`(?i)not found|manifest unknown|404|denied|unauthorized|authorization`)
)

// registryOf returns the host of the registry that fails.
func registryOf(p *Problem) string {
	for _, f := range slices.Backward(p.facts) {
		if !record.HasCause(f.Message) || lacksImage.MatchString(withoutImages(f.Message)) {
			continue
		}
		for _, pattern := range []*regexp.Regexp{hostInMessage, hostOfImage} {
			if match := pattern.FindStringSubmatch(f.Message); match != nil {
				return strings.TrimSuffix(match[1], ":")
			}
		}
	}
	return ""
}

// quoted matches what a message quotes.
var quoted = says(`"[^"]*"`)

func withoutImages(message string) string { return quoted.ReplaceAllString(message, "") }

// inMessage returns what the first group of a pattern has, in the messages of a problem.
func inMessage(pattern *regexp.Regexp) func(*Problem) string {
	return func(p *Problem) string {
		for _, f := range slices.Backward(p.facts) {
			if match := pattern.FindStringSubmatch(f.Message); match != nil {
				return match[1]
			}
		}
		return ""
	}
}

// changedBefore returns the ConfigMap of the pods that changed soon before the problem.
func changedBefore(p *Problem) string {
	if c, _ := p.configMap(); c != nil && !c.IsNew && p.Onset.Sub(c.At) <= soon {
		return c.Name
	}
	return ""
}

// onlyNode returns the node of all pods of the problem, or the node that has it.
func onlyNode(p *Problem) string {
	switch {
	case p.isOfNodeItself():
		return p.Key.Top.Name
	case len(p.Nodes) == 1 && len(p.pods) > 0:
		return p.Nodes[0]
	}
	return ""
}

// isOfNode reports whether something else than the time says that the node matters: it has a problem
// or a change itself, or what fails on it is of several namespaces.
func isOfNode(node string, members []*Problem) bool {
	return slices.ContainsFunc(members, func(p *Problem) bool {
		isChange := len(p.Causes) > 0 && p.Causes[0].Where == whereNode.name && p.Causes[0].node == node
		return isChange || p.isOfNodeItself() || p.Key.Namespace != members[0].Key.Namespace
	})
}

// isOfNodeItself reports whether the problem is that of a Node object.
func (p *Problem) isOfNodeItself() bool { return p.Class == classNode && len(p.pods) == 0 }

// ownNames matches what differs between the messages of two workloads: quoted names, and words with
// digits or slashes.
var ownNames = says(`"[^"]*"|\S*[/]\S*`)

// messageOf returns the message without the names that only one workload has.
func messageOf(p *Problem) string {
	return p.Reason + ": " + ownNames.ReplaceAllString(p.Message, "…")
}
