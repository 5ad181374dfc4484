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
	want := document()
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(documented, []byte(want), 0o600))
	}
	got, err := os.ReadFile(documented)
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "run make generate")
}

func document() string {
	var b strings.Builder
	b.WriteString(`# Problems and their causes

<!-- make generate writes this file from the tables in distribution/internal/incident. -->

[The page](page.md) judges by these tables. Each row has tests.

## Problems

A problem is of the first class that has its Event. Without a repeat for the time in the fourth column, it is over.
The end of a pod ends its problems, except an eviction. A problem hides the classes in the last column, if the same
container has them at the same time.

| Class | Problem | Events | Over without a repeat for | Over earlier, when | Hides |
| --- | --- | --- | --- | --- | --- |
`)
	for _, s := range symptoms {
		var shows, ends []string
		for _, e := range s.shows {
			shows = append(shows, eventsText(e))
		}
		for _, e := range s.ends {
			ends = append(ends, endText(e))
		}
		if s.restarts {
			shows = append(shows, "a container that starts again, and was not killed")
		}
		fmt.Fprintf(&b, "| %s | %s%s | %s | %s | %s | %s |\n", s.class, s.text, graceText(&s), strings.Join(shows, "; "), InWords(s.quiet), strings.Join(ends, "; "), strings.Join(s.hides, ", "))
	}
	b.WriteString(`
These warnings are no problem: ` + codes(record.HarmlessReasons()) + `. The option ` + "`harmless_reasons`" + ` adds others.

## Changes

Rollouts, scalings and deleted pods are computed from several Events. Other changes have an Event:

| Change | Events | It lasts until |
| --- | --- | --- |
`)
	for _, c := range changesOfRows() {
		var events, ends []string
		for _, r := range changeEvents {
			if r.shows != c {
				continue
			}
			events = append(events, "`"+r.reason+"`")
			if r.end != "" {
				ends = append(ends, "`"+r.end+"`")
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.text, strings.Join(slices.Compact(events), ", "), strings.Join(ends, ", "))
	}
	b.WriteString(`
## Causes

A change is a cause if a row connects it with the problem. Rows with a higher rank come first, then the newest change.

| Rank | Change | In | Can cause | Within | After | Only if |
| --- | --- | --- | --- | --- | --- | --- |
`)
	for _, l := range links {
		var changes, only []string
		for _, c := range l.changes {
			changes = append(changes, c.text)
		}
		for _, c := range l.only {
			only = append(only, c.text)
		}
		if l.isGuess {
			only = append(only, "no change with a higher rank is known")
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s | %s |\n", l.weight, strings.Join(changes, "; "), l.where.text, classesText(l.can), InWords(l.within), l.from.text, strings.Join(only, "; "))
	}
	b.WriteString(`
The message of a problem can name its cause. These come before all others:

| Cause | Problems |
| --- | --- |
`)
	for i := range messages {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.NewReplacer("%1", "…", "%2", "…").Replace(messages[i].text), strings.Join(messages[i].can, ", "))
	}
	return b.String()
}

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
	of := map[place]string{placePods: " of pods", placeNodes: " of nodes"}[e.of]
	if len(all) == 0 {
		return "any other warning" + of
	}
	return strings.Join(all, ", ") + of
}

func graceText(s *symptom) (text string) {
	if s.grace > 0 {
		text = fmt.Sprintf(" In the first %s of a container, only if it goes on; fewer than %d failures that are over are none.", InWords(s.grace), s.least)
	}
	return text
}

func endText(e end) string {
	text := e.text
	if len(e.reasons) > 0 && !strings.HasPrefix(e.reasons[0], "(") {
		text += " (" + codes(e.reasons) + " of " + string(e.on) + ")"
	}
	if e.holds > 0 {
		text += ", for " + InWords(e.holds)
	}
	if e.after > time.Second {
		text += ", " + InWords(e.after) + " later"
	}
	return text
}

func classesText(all []string) string {
	if len(all) == len(allClasses) {
		return "all"
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
