// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cardWith returns the card of the page of a single workload.
func cardWith(t *testing.T, s *store) card {
	t.Helper()
	cards := s.see(filterFrom(map[string][]string{"workload": {s.see(filterFrom(nil)).Cards[0].ID}, "minutes": {"60"}})).Cards
	require.Len(t, cards, 1)
	return cards[0]
}

// drawn writes rows as text: a name, its bar, and its marks.
func drawn(rows []spanRow, indent string) (text string) {
	for _, r := range rows {
		marks := ""
		for _, m := range r.Marks {
			marks += fmt.Sprintf(" !%s at %.0f", m.Reason, m.X)
		}
		text += fmt.Sprintf("%s%s %s %.0f+%.0f%s\n", indent, r.Kind, r.Name, r.X, r.Width, marks) + drawn(r.Rows, indent+"  ")
	}
	return text
}

// TestTheTimelineIsTheTreeOfTheTrace: each rollout is on the axis of all, its pods on that of the
// rollout, and a warning is a mark of each row above it.
func TestTheTimelineIsTheTreeOfTheTrace(t *testing.T) {
	c := cardWith(t, storeOf(t, failedUpdate()))
	assert.Equal(t, `rollout web-bbb 99+1 !Failed at 99
  pod web-bbb-1 0+100 !Failed at 99
    schedule  0+1
    pull app 50+50 !Failed at 99
rollout web-aaa 0+1
  pod web-aaa-1 0+100
    schedule  0+1
    start app 99+1
`, drawn(c.Rollouts.Rows, ""))
	assert.Regexp(t, "^replicaset.apps/web-bbb, incomplete: 0 of 1 pods started, 1 failed; trace [0-9a-f]{32}$", c.Rollouts.Rows[0].Note)
	assert.Regexp(t, "^replicaset.apps/web-aaa, complete: 1 of 1 pods started, 0 failed; trace [0-9a-f]{32}$", c.Rollouts.Rows[1].Note)
	assert.Equal(t, second(0), c.Rollouts.From)
	assert.Equal(t, second(302), c.Rollouts.Until)
}

// TestAStartThatIsInferred: without the record that began a rollout, the page says that its start is not known.
func TestAStartThatIsInferred(t *testing.T) {
	c := cardWith(t, storeOf(t, start(0, "web-aaa-1", "worker-1")[2:]))
	assert.Regexp(t, "^replicaset.apps/web-aaa, complete: 1 of 1 pods started, 0 failed; start inferred; trace [0-9a-f]{32}$", c.Rollouts.Rows[0].Note)
}

func TestTheMostThatATimelineShows(t *testing.T) {
	var story []happening
	for i := range 60 {
		story = append(story, start(i, fmt.Sprint("web-aaa-", i), "worker-1")...)
	}
	story = append(story, warn(70, "web-aaa-59", "BackOff"))
	for i := range 30 {
		story = append(story, scale(100+10*i, fmt.Sprint("web-r", i), 0, 1))
	}
	rollouts := cardWith(t, storeOf(t, story)).Rollouts
	assert.Len(t, rollouts.Rows, rolloutsShown)
	assert.Equal(t, 11, rollouts.Hidden)

	rollouts = cardWith(t, storeOf(t, story[:181])).Rollouts
	assert.Len(t, rollouts.Rows[0].Rows, podsShown)
	assert.Equal(t, 10, rollouts.Rows[0].Hidden)
	assert.Equal(t, "web-aaa-59", rollouts.Rows[0].Rows[0].Name, "the pod that failed is first")
}

// TestEachLinkLeadsToARecord: the page of the workload has the record of each link in the answer.
func TestEachLinkLeadsToARecord(t *testing.T) {
	s := storeOf(t, join(first(0), []happening{warn(3, "web-aaa-1", "Unhealthy")}, failedUpdate()[4:], []happening{node(301, "worker-3", "NodeNotReady")}))
	c := cardWith(t, s)
	var html bytes.Buffer
	require.NoError(t, templates.ExecuteTemplate(&html, "card", &c))
	links := strings.Split(html.String(), "#record-")[1:]
	require.Greater(t, len(links), 5)
	for _, link := range links {
		uid, _, _ := strings.Cut(link, `"`)
		assert.Contains(t, html.String(), `<tr id="record-`+uid+`"`)
	}
}

// TestTheEvidenceOfAStatement: it names the object of the first warning. A statement uses the first time of
// an Event, so the row of its record has it, too.
func TestTheEvidenceOfAStatement(t *testing.T) {
	again := happening{at: 638, object: "Pod/web-bbb-1", reason: "BackOff", message: "again", warning: true, count: 3, since: 620}
	c := cardWith(t, storeOf(t, join(first(0), replace(600), []happening{again})))
	var html bytes.Buffer
	require.NoError(t, templates.ExecuteTemplate(&html, "card", &c))
	assert.Contains(t, html.String(), `BackOff of pod/web-bbb-1 at <time datetime="2026-03-01T12:10:20Z">12:10:20</time></a>`)
	assert.Contains(t, html.String(), `<time datetime="2026-03-01T12:10:38Z">12:10:38</time>, first <time datetime="2026-03-01T12:10:20Z">12:10:20</time></td>`)
	assert.Equal(t, 1, strings.Count(html.String(), ", first <time"), "other Events occurred once")
}

// TestTwoClusters: their workloads can have the same name, so a card names the cluster. A single cluster needs no name.
func TestTwoClusters(t *testing.T) {
	one := storeOf(t, failedUpdate()).see(filterFrom(nil))
	require.Len(t, one.Cards, 1)
	assert.NotContains(t, htmlOf(t, &one.Cards[0]), `class="cluster"`)
	s := storeOf(t, join(failedUpdate(), inCluster("b", []happening{warn(310, "web-bbb-1", "BackOff")})))
	for i, want := range []string{"b", "cluster"} {
		c := s.see(filterFrom(nil)).Cards[i]
		assert.Contains(t, htmlOf(t, &c), `<span class="cluster">`+want+`</span>`)
		alone := s.see(filterFrom(map[string][]string{"workload": {c.ID}})).Cards[0]
		assert.Contains(t, htmlOf(t, &alone), `<span class="cluster">`+want+`</span>`, "on the page of a single workload, too")
	}
}

func htmlOf(t *testing.T, c *card) string {
	t.Helper()
	var html bytes.Buffer
	require.NoError(t, templates.ExecuteTemplate(&html, "card", c))
	return html.String()
}

func TestTheOverviewHasTheAnswerAndNoTimeline(t *testing.T) {
	c := storeOf(t, failedUpdate()).see(filterFrom(nil)).Cards[0]
	assert.NotNil(t, c.Changed)
	assert.Empty(t, c.Rollouts.Rows)
}
