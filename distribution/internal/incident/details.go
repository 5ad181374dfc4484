// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// What follows uses what the receiver read because no Event says it. See docs/configuration.md#details.

// maxEnds bounds the ends of containers that are told apart for a problem.
const maxEnds = 1000

// ends returns how the containers of the problem ended since it began, the oldest first.
func (p *Problem) ends() (all []*record.Ended) {
	type end struct {
		pod, container string
		at             time.Time
	}
	isKnown := map[end]bool{}
	for _, f := range p.facts {
		for _, m := range f.Moments {
			if m.details == nil || m.details.Ended == nil || m.At.Before(p.Onset) || len(all) == maxEnds {
				continue
			}
			ended := m.details.Ended
			if key := (end{f.Pod, f.Container, ended.At}); !isKnown[key] {
				isKnown[key], all = true, append(all, ended)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *record.Ended) int { return a.At.Compare(b.At) })
	return all
}

// describeEnd says how the container ended last, and how often so: "OOMKilled at 128 MiB, exit 137, 3rd
// time in 20 min".
func (p *Problem) describeEnd() {
	all := p.ends()
	if len(all) == 0 {
		return
	}
	p.newestEnd = all[len(all)-1]
	p.Ended = p.newestEnd.String()
	same := slices.DeleteFunc(all, func(e *record.Ended) bool { return e.Reason != p.newestEnd.Reason })
	if n := len(same); n > 1 {
		p.Ended += fmt.Sprintf(", %s time in %s", ordinal(n), InWords(p.newestEnd.At.Sub(same[0].At)))
	}
}

// ordinal returns 2nd, 3rd, 4th and so on.
func ordinal(n int) string {
	ending := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return strconv.Itoa(n) + ending
}

// shownChanges bounds the sentences about one rollout.
const shownChanges = 3

// withTemplate returns what a rollout changed, by which tool and manager, as far as it is known.
func withTemplate(t *rollout.Template) (text string) {
	text = withChanges(t.Changes[:min(shownChanges, len(t.Changes))])
	if more := len(t.Changes) - shownChanges; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + byWhom(t)
}

// byWhom names what made a rollout, as far as it is known.
func byWhom(t *rollout.Template) (text string) {
	if t.ChangedBy != "" {
		text += ", by " + t.ChangedBy
	}
	if t.Tool != "" {
		text += ", deployed by " + t.Tool
	}
	return text
}

// memoryLimit matches a sentence about a limit of memory that existed before.
var memoryLimit = regexp.MustCompile(`^memory limit (\S+): (?:(\S+) → (\S+)|\S+ added)$`)

// loweredLimit returns the sentence of a rollout that set or lowered the limit of memory of a container;
// empty: it did not.
func loweredLimit(t *rollout.Template, container string) string {
	for _, change := range t.Changes {
		match := memoryLimit.FindStringSubmatch(change)
		if match != nil && match[1] == container && (match[2] == "" || bytesOf(match[3]) < bytesOf(match[2])) {
			return change
		}
	}
	return ""
}

// units are the endings of quantities. (apimachinery, resource.Quantity)
var units = map[string]float64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "m": 1e-3,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
}

func bytesOf(quantity string) float64 {
	number := strings.TrimRight(quantity, "kMGTPEmi")
	n, _ := strconv.ParseFloat(number, 64)
	return n * units[quantity[len(number):]]
}

// configMap returns the last change of a ConfigMap of the pods before the problem began, and the record
// that has it; nil: none is known. One that was only created is returned if none changed.
func (p *Problem) configMap() (last *record.ConfigMapChange, by *Fact) {
	for _, f := range p.facts {
		for _, m := range f.Moments {
			if m.details == nil || m.details.ConfigMap == nil {
				continue
			}
			if c := m.details.ConfigMap; !c.At.After(p.Onset) && (last == nil || cmp.Or(compareBools(last.IsNew, c.IsNew), c.At.Compare(last.At)) > 0) {
				last, by = c, f
			}
		}
	}
	return last, by
}

// changedConfigMap returns the ConfigMap that changed before the problem as its cause.
func (e *explanation) changedConfigMap() []Cause {
	c, by := e.p.configMap()
	if c == nil || c.IsNew || e.p.Onset.Sub(c.At) > soon {
		return nil
	}
	text := "the ConfigMap " + c.Name + " was changed by " + c.By
	change := Change{Kind: kindConfig, Text: text, At: c.At, Key: e.p.Key, Object: "configmap/" + c.Name, Records: []string{by.ID}}
	weight := rankConfigMap
	if slices.ContainsFunc(e.w.changes, func(o *Change) bool { return o.changesMore(c.At, e.p.Onset) }) {
		weight = rankRollout - 1
	}
	return []Cause{{Change: change, Before: Before(e.p.Onset.Sub(c.At)), Where: "configmap", weight: weight}}
}

// changesMore reports whether the change is a rollout of more than a restart, between two times.
func (c *Change) changesMore(from, until time.Time) bool {
	isRollout := c.what == rolledOut || c.what == firstRolledOut
	return isRollout && !c.At.Before(from.Add(-soon)) && !c.At.After(until) && !c.template.IsOnlyRestart()
}

// quietConfigMaps says since when no ConfigMap of the pods has changed; empty: that is not known.
func (p *Problem) quietConfigMaps() string {
	c, _ := p.configMap()
	if c == nil {
		return ""
	}
	return "no ConfigMap that it uses has changed since " + c.At.UTC().Format("2 January 15:04")
}

// tool returns the object of the tool that deployed the workload; empty: not known.
func (e *explanation) tool() string {
	for _, c := range slices.Backward(e.w.changes) {
		if c.template.Tool != "" && !c.At.After(e.p.Onset.Add(resolution)) {
			return c.template.Tool
		}
	}
	return ""
}

// deployments returns what tools did that the workload is a part of: those of its own tool, if it is
// known, and not those of others with equal names.
func (e *explanation) deployments() (all []*Change) {
	k := e.p.Key
	if tool := e.tool(); tool != "" {
		return e.newest(e.byTool[name{cluster: k.Cluster, name: tool}], "deployment")
	}
	for _, kind := range []string{k.Top.Kind, ""} {
		all = append(all, e.newest(e.naming[name{k.Cluster, kind, k.Namespace, k.Top.Name}], "deployment")...)
	}
	return all
}

// ranOutOfMemory reports whether the containers of the problem ended because of their limit of memory.
func (p *Problem) ranOutOfMemory() bool {
	return p.newestEnd != nil && p.newestEnd.Reason == record.OOMKilled
}

// titleOfEnd is what a problem says instead of its class, if it is known how the container ended.
func (p *Problem) titleOfEnd() string {
	return cmp.Or(p.Container, "its container") + " ended: " + p.Ended
}
