// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

const documented = "../../../docs/problems.md"

// TestTheTablesAreDocumented: docs/problems.md has all rows. make generate writes it.
func TestTheTablesAreDocumented(t *testing.T) {
	t.Parallel()
	want := document(t)
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(documented, []byte(want), 0o600))
	}
	got, err := os.ReadFile(documented)
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "run make generate")
}

func document(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`# Problems and their causes

<!-- make generate writes this file from the tables in distribution/internal/incident. -->

[The page](page.md) judges by these tables.

## Problems

An Event is of the first class that lists it. A problem is over when nothing has repeated it for the time in the third
column, or earlier as the fourth says. The end of a pod ends its problems, except an eviction. Those from image to
schedule also end when its Job has completed, or its ReplicaSet was scaled to zero. Of ` + strings.Join(onlyFirst(t), ", ") + `,
a container has only the first.

| Class | Problem and Events | Over after | Earlier |
| --- | --- | --- | --- |
`)
	for i := range symptoms {
		writeSymptom(&b, &symptoms[i])
	}
	b.WriteString(`
No problem: ` + codes(record.HarmlessReasons()) + `, and what ` + "`harmless_reasons`" + ` adds.

## Changes

Rollouts, scalings and deleted pods are computed from several Events. Others have one:

`)
	for _, c := range changesOfRows() {
		writeChange(&b, c)
	}
	b.WriteString(`
## Causes

A change is a cause if a line below connects it with the problem. The highest rank comes first, then the newest change.
A change counts for ` + InWords(soon) + `, if the line has no other time. A state of a node counts while it lasts, and
` + InWords(stateTime) + ` longer.
*Startup* is ` + strings.Join(startups, ", ") + `; *running* is ` + strings.Join(runtimes, ", ") + `.
`)
	for _, group := range groupsOf(links) {
		l := &group[0]
		isCommon := !slices.ContainsFunc(group, func(o link) bool {
			return conditionsText(&o) != conditionsText(l) || o.weight != l.weight
		})
		fmt.Fprintf(&b, "\n%s%s", strings.ToUpper(l.where.text[:1]), l.where.text[1:])
		if isCommon {
			fmt.Fprintf(&b, ", with rank %d%s", l.weight, conditionsText(l))
		}
		b.WriteString(":\n\n")
		for i := range group {
			writeLink(&b, &group[i], isCommon)
		}
	}
	fmt.Fprintf(&b, `
A ConfigMap of its pods, if the receiver reads them (details.config_maps):

- a change at most %s before a crash or a failed probe; rank %d, or %d if a rollout of more than a restart began about then

`, InWords(soon), rankConfigMap, rankRollout-1)
	b.WriteString(`What the message of a problem names comes before all others:

`)
	for _, can := range [][]string{inImages, inVolumes, inCreations, inOthers} {
		var texts []string
		for _, m := range messages {
			if slices.Equal(m.can, can) {
				texts = append(texts, strings.NewReplacer("%1", "…", "%2", "…").Replace(m.text))
			}
		}
		fmt.Fprintf(&b, "- %s: %s\n", strings.Join(can, ", "), strings.Join(texts, "; "))
	}
	b.WriteString(`
## Problems of several workloads

Problems that share something are one problem. The first line that joins them counts. Where a line has a time, each begins
within it after the one before, and none has a likely cause of its own. Elsewhere they overlap, or are
at most ` + InWords(atOnce) + ` apart. Anybody who may create Events in a namespace can add its workloads to a problem of others.

| Shared | Classes | Workloads | Begin within |
| --- | --- | --- | --- |
`)
	for _, s := range shares {
		within, text := "", s.text
		if s.within > 0 {
			within = InWords(s.within)
		}
		if s.isLocal {
			text += ", in one namespace"
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", text, strings.Join(s.can, ", "), s.least, within)
	}
	return b.String()
}

func writeSymptom(b *strings.Builder, s *symptom) {
	var shows, ends []string
	for _, e := range s.shows {
		if len(e.kinds) > 0 {
			shows = append(shows, eventsText(e))
		}
	}
	if s.restarts {
		shows = append(shows, "a container that starts again, and was not killed")
	}
	if s.grace > 0 {
		shows = append(shows, fmt.Sprintf("in the first %s of a container, only if it goes on; fewer than %d that are over are none", InWords(s.grace), s.least))
	}
	for _, e := range s.ends {
		isOfPods := slices.ContainsFunc(s.ends, func(e end) bool { return e.text == jobDone.text })
		if !isOfPods || e.text != jobDone.text && e.text != scaledAway.text {
			ends = append(ends, endText(e))
		}
	}
	text := strings.TrimSpace(s.text + " " + strings.Join(shows, "; "))
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", s.class, text, shortly(s.quiet), strings.Join(ends, "; "))
}

// onlyFirst returns the classes of which each hides all that come after it.
func onlyFirst(t *testing.T) (classes []string) {
	t.Helper()
	for i := range symptoms {
		s := &symptoms[i]
		if len(s.hides) == 0 {
			continue
		}
		if len(classes) == 0 {
			classes = append([]string{s.class}, s.hides...)
		}
		require.Equal(t, classes[slices.Index(classes, s.class)+1:], s.hides, s.class)
	}
	return classes
}

func writeChange(b *strings.Builder, c *change) {
	var events, ends []string
	for _, r := range changeEvents {
		if r.shows != c {
			continue
		}
		events = append(events, "`"+r.reason+"`")
		if r.end != "" {
			ends = append(ends, ", until `"+r.end+"`")
		}
	}
	fmt.Fprintf(b, "- %s: %s%s\n", c.text, strings.Join(slices.Compact(events), ", "), strings.Join(ends, ""))
}

// groupsOf returns the links of each place.
func groupsOf(all []link) (groups [][]link) {
	for i, l := range all {
		if i == 0 || all[i-1].where != l.where {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], l)
	}
	return groups
}

func writeLink(b *strings.Builder, l *link, isCommon bool) {
	var changes []string
	for _, c := range l.changes {
		changes = append(changes, c.text)
	}
	text := strings.Join(changes, ", ")
	if len(l.changes) == len(nodeChanges) {
		text = "any change of a node"
	}
	fmt.Fprintf(b, "- %s: %s", text, classesText(l.can))
	if l.within != soon || l.from.text != "" {
		b.WriteString(", within " + shortly(l.within))
	}
	if !isCommon {
		fmt.Fprintf(b, "%s; rank %d", conditionsText(l), l.weight)
	}
	b.WriteString("\n")
}

func conditionsText(l *link) (text string) {
	if l.from.text != "" {
		text = " after " + l.from.text
	}
	joint := ", if "
	for _, c := range l.only {
		if c.text != "" {
			text, joint = text+joint+c.text, ", and "
		}
	}
	if l.isGuess {
		text += ", and nothing has a higher rank"
	}
	return text
}

// shortly is a time in words, without minutes if there are none.
func shortly(d time.Duration) string { return strings.TrimSuffix(InWords(d), " 0 min") }

func codes(all []string) string { return "`" + strings.Join(all, "`, `") + "`" }

// kindTexts are what kinds of Events are called.
var kindTexts = map[string]string{
	record.KindPullFailed: "`Failed` and `BackOff` about an image, `ErrImageNeverPull`, `InspectFailed`", record.KindCrashed: "`BackOff` about a container",
	record.KindRestarted: "`Killing` because of a probe",
}

func eventsText(e events) string {
	var all []string
	for _, kind := range e.kinds {
		text := "`" + kind + "`"
		if kindTexts[kind] != "" {
			text = kindTexts[kind]
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ") + map[place]string{placePods: " of pods", placeNodes: " of nodes"}[e.of]
}

func endText(e end) string {
	switch {
	case e.holds > 0:
		return "(the end is then the last " + codes(e.reasons) + ")"
	case slices.Equal(e.reasons, []string{signSuccess}):
		return "a Normal Event of the object reports success"
	case len(e.reasons) == 0 || strings.HasPrefix(e.reasons[0], "("):
		return e.text
	}
	return codes(e.reasons) + " of " + string(e.on)
}

func classesText(all []string) string {
	switch {
	case len(all) == len(allClasses):
		return "all"
	case slices.Equal(all, startups):
		return "startup"
	case slices.Equal(all, runtimes):
		return "running"
	}
	return strings.Join(all, ", ")
}

// changesOfRows returns the changes that have an Event, in the order of the table.
func changesOfRows() (all []*change) {
	for _, r := range changeEvents {
		if !slices.Contains(all, r.shows) {
			all = append(all, r.shows)
		}
	}
	return all
}
