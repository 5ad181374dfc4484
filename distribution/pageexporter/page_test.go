// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares a text with a file in testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// render returns the content of the page with these parameters.
func render(t testing.TB, b *board, parameters string) string {
	t.Helper()
	query, err := url.ParseQuery(parameters)
	require.NoError(t, err)
	f, err := filterFrom(query)
	require.NoError(t, err)
	html, err := viewOf(b, f).render("content")
	require.NoError(t, err)
	return string(html)
}

// texts returns the text of each element of the content, without tags.
func texts(html, element string) (found []string) {
	for _, match := range regexp.MustCompile(`(?s)<`+element+`[ >].*?</`+element+`>`).FindAllString(html, -1) {
		found = append(found, strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(match, "")), " "))
	}
	return found
}

// TestTheWholePageIsAsItIsRecorded: what goes on is first, with its scope, its message and its cause; below is what is over.
func TestTheWholePageIsAsItIsRecorded(t *testing.T) {
	b := boardOf("0:10 Pod/web-aaa-1 !FailedMount{app} event=13: secret not found\n0:20 Pod/web-aaa-1 Started{app} event=14: Container started\n" + imageChange)
	html, err := viewOf(b, everything(t)).render("page")
	require.NoError(t, err)
	golden(t, "page.html", string(html))
	id := viewOf(b, everything(t)).at().Problems()[0].Key.ID()
	golden(t, "workload.html", render(t, b, "workload="+id))
}

func TestTheFilterIsWhatThePageIsAbout(t *testing.T) {
	b := boardOf(imageChange)
	for parameters, want := range map[string]string{
		"":                             "1 problem goes on",
		"minutes=5":                    "1 problem goes on in what is chosen",
		"reason=Failed&type=Warning":   "1 problem goes on in what is chosen",
		"reason=FailedMount":           "0 problems go on in what is chosen",
		"namespace=other":              "0 problems go on in what is chosen",
		"manifest=other":               "0 problems go on in what is chosen",
		"until=2026-03-01T10:04:00Z":   "0 problems go on in what is chosen",
		"from=2026-03-01T10:04&until=": "1 problem goes on in what is chosen",
	} {
		assert.Equal(t, want, texts(render(t, b, parameters), "h2")[0], parameters)
	}
	assert.Contains(t, render(t, b, "workload=checkout&reason=NoEventHasIt"), "Nothing of this workload has happened")
}

func TestTheTimelineShowsPodsThatFailedFirst(t *testing.T) {
	many := &span{Name: "rollout deployment/web", Start: story.Epoch, End: story.Epoch}
	for i := range podsShown + 7 {
		many.Spans = append(many.Spans, &span{Name: fmt.Sprint("pod ", i), Error: map[bool]string{true: "Failed"}[i == podsShown+3]})
	}
	many.Warnings = make([]spanWarning, marksShown+7)
	for i := range many.Warnings {
		many.Warnings[i].Time = story.Epoch.Add(time.Duration(i) * time.Second)
	}
	many.draw(story.Epoch)
	assert.Len(t, many.Marks, marksShown)
	assert.Equal(t, marksShown+7, many.Warned)
	assert.InDelta(t, 0, many.Spans[0].X, 0)
	assert.InDelta(t, minWidth, many.Width, 0, "its warnings come later")
	many.cut(podsShown)
	assert.Equal(t, 7, many.Hidden())
	assert.Equal(t, fmt.Sprint("pod ", podsShown+3), many.Spans[0].Name, "pods that failed first")
}

// TestWhatIsMissingIsSaid: half a story, and what there was no room for.
func TestWhatIsMissingIsSaid(t *testing.T) {
	b := boardOf(imageChange)
	v := viewOf(b, everything(t))
	v.missed = 7
	html, err := v.render("content")
	require.NoError(t, err)
	limits := texts(string(html), "p")
	assert.Contains(t, limits[0], "Records are complete from 10:0")
	assert.Contains(t, limits[1], "7 records came while the page was busy")

	greedy := plog.NewLogs()
	for i := range 30_000 { // more than 32 MiB
		line := fmt.Sprint("5:10 ConfigMap/c", i, " Odd", i, " namespace=greedy: ", strings.Repeat("x", 1024))
		story.Logs(line)[0].ResourceLogs().MoveAndAppendTo(greedy.ResourceLogs())
	}
	b.add(greedy)
	crowded := render(t, b, "")
	assert.Less(t, len(crowded), 1<<20)
	assert.Regexp(t, `\d+ workloads were dropped \(the longest quiet first\)`, texts(crowded, "p")[1])
	assert.Contains(t, texts(crowded, "h3"), "deployment checkout", "a namespace does not displace another one")
	assert.NotContains(t, texts(render(t, b, "namespace=shop"), "p")[1], "dropped", "nothing of this one was")
}

// TestExtremeTimesAndCounts: anybody may write any time and count into an Event.
func TestExtremeTimesAndCounts(t *testing.T) {
	b := boardOf("")
	for i, year := range []int{-1, 1, 1970, 2300, 10000} {
		at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		logs := story.Logs(fmt.Sprintf("0:00 Pod/odd-aaa-%d !BackOff{app} x%d: year %d", i, math.MaxInt64-i, year))[0]
		record := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		if year > 1970 {
			record.SetTimestamp(pcommon.NewTimestampFromTime(at))
		}
		record.Attributes().PutStr("k8s.event.start_time", at.Format(time.RFC3339))
		record.Attributes().PutInt("k8s.event.occurrences", math.MaxInt64)
		b.add(logs)
	}
	html := render(t, b, "")
	_, events := fetch(t, b, "/api/events")
	assert.Contains(t, events, "year 2300", "a time that is too late counts as the last one")
	assert.NotContains(t, html, `datetime=""`)
	assert.NotRegexp(t, `[ "]-\d|NaN|Inf`, strings.Join(regexp.MustCompile(`(height|width|x|y)="[^"]*"`).FindAllString(html, -1), " "))
	for name := range endpoints {
		if name != "workload" {
			status, body := fetch(t, b, "/api/"+name)
			assert.True(t, status == http.StatusOK && json.Valid([]byte(body)), name)
		}
	}
	for _, parameters := range []string{"from=0000-01-01T00:00:00Z", "until=9999-12-31T23:59:59Z", "from=9999-01-01T00:00:00Z", "until=0000-01-01T00:00:00Z"} {
		assert.NotEmpty(t, texts(render(t, b, parameters), "h2"), parameters)
	}
}

func FuzzWhatEventsSayStaysText(f *testing.F) {
	f.Add(`<script>alert(1)</script>`)
	f.Add(`"><img src=x onerror=alert(1)>`)
	f.Add(`" autofocus onfocus="alert(1)`)
	f.Add("</textarea>'\"`\u202e\x00\xff")
	f.Fuzz(func(t *testing.T, hostile string) {
		show := func(text string) string {
			logs, b := story.Logs("0:00 Pod/odd-aaa-1 !x: x")[0], boardOf("")
			resource := logs.ResourceLogs().At(0).Resource().Attributes()
			record := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
			for _, name := range []string{"k8s.object.name", "k8s.object.kind", "k8s.container.name", "tilt.manifest", "k8s.node.name", "k8s.namespace.name"} {
				resource.PutStr(name, text)
			}
			resource.PutEmptySlice("k8s.owner.chain").AppendEmpty().SetStr("deployment.apps/" + text)
			record.SetSeverityText(text)
			record.Body().SetStr(text)
			record.Attributes().PutStr("log.record.uid", text)
			record.Attributes().PutStr("k8s.event.reason", text)
			b.add(logs)
			v := viewOf(b, everything(t))
			all := ""
			for _, workload := range []string{"", v.at().Workloads()[0].Key.ID()} {
				v.filter.Workload = workload
				html, err := v.render("page")
				require.NoError(t, err)
				all += string(html)
			}
			return all
		}
		for quoted, becomes := range map[string]string{"<": "an element", `"`: "an attribute"} {
			assert.Equal(t, strings.Count(show("x"), quoted), strings.Count(show("x"+hostile), quoted), becomes+" comes of it")
		}
	})
}
