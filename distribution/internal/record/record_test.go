// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// only returns the record of a line.
func only(t *testing.T, line string, change func(plog.LogRecord)) *record.Record {
	t.Helper()
	logs := story.Logs(line)
	change(logs[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0))
	all := record.Read(logs[0])
	require.Len(t, all, 1)
	return all[0]
}

func unchanged(plog.LogRecord) {}

// TestCombinedEvents: each record of a combined Event is an Event of its own, unless all of them
// report a failure.
func TestCombinedEvents(t *testing.T) {
	t.Parallel()
	created := only(t, "10s ReplicaSet/web-aaa SuccessfulCreate event=e x12/1s: (combined from similar events): Created pod: web-aaa-x", unchanged)
	assert.Equal(t, "e-12", created.Event)
	assert.EqualValues(t, 1, created.Count)
	assert.Equal(t, created.At, created.First)
	assert.Equal(t, "Created pod: web-aaa-x", created.Text())
	for _, line := range []string{
		"10s Pod/web-aaa-x !FailedMount event=e x12/1s: (combined from similar events): no such secret",
		"10s Pod/web-aaa-x BackOff{app} event=e x12/1s: (combined from similar events): Back-off pulling image",
	} {
		failed := only(t, line, unchanged)
		assert.Equal(t, "e", failed.Event)
		assert.EqualValues(t, 12, failed.Count)
		assert.Equal(t, 9*time.Second, failed.At.Sub(failed.First))
	}
}

// TestTimesOutsideOfTheRange: no time overflows when it is a number of nanoseconds, or when a
// duration is added.
func TestTimesOutsideOfTheRange(t *testing.T) {
	t.Parallel()
	for _, start := range []string{"-0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "9999-01-01T00:00:00Z"} {
		r := only(t, "10s Pod/web-aaa-x BackOff{app} x2/1s: again", func(log plog.LogRecord) {
			log.SetTimestamp(pcommon.Timestamp(1 << 63))
			log.Attributes().PutStr("k8s.event.start_time", start)
		})
		assert.GreaterOrEqual(t, r.First.UnixNano(), int64(0), start)
		assert.LessOrEqual(t, r.First.UnixNano(), r.At.UnixNano(), start)
		assert.Positive(t, r.At.UnixNano()+int64(24*time.Hour))
	}
}

// TestChosenNode: a pod that waits for its volumes has the node that the scheduler has chosen.
func TestChosenNode(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		"": "node-7", "reporter=my-scheduler": "node-7", "reporter=gpu action=Binding": "node-7", "reporter=some-operator": "", "node=node-1": "node-1",
	} {
		line := "0s Pod/web-aaa-x Scheduled " + settings + ": Successfully assigned shop/web-aaa-x to node-7"
		assert.Equal(t, want, only(t, line, unchanged).NodeOfPod(), settings)
	}
	for _, line := range []string{
		"0s Widget/w Scheduled: Successfully assigned shop/w to node-7",
		"0s Pod/web-aaa-x Scheduled reporter=my-scheduler: It waits for its volumes",
		"0s Pod/web-aaa-x Nominated action=Binding: Successfully assigned shop/web-aaa-x to node-7",
	} {
		assert.Empty(t, only(t, line, unchanged).NodeOfPod(), line)
	}
}

// TestAnEventThatOccurredOnce began at its only occurrence: anybody may write another start.
func TestAnEventThatOccurredOnce(t *testing.T) {
	t.Parallel()
	r := only(t, "10s Pod/web-aaa-x BackOff{app}: again", func(log plog.LogRecord) {
		log.Attributes().PutStr("k8s.event.start_time", "2026-02-01T10:00:00Z")
	})
	assert.Equal(t, r.At, r.First)
}

// TestRecordsWithoutTheUIDOfTheirEvent are of one Event if their object, reason and message are the same.
func TestRecordsWithoutTheUIDOfTheirEvent(t *testing.T) {
	t.Parallel()
	of := func(line string) string {
		return only(t, line, func(log plog.LogRecord) { log.Attributes().Remove("k8s.event.uid") }).Event
	}
	event := of("10s Pod/web-aaa-x BackOff{app} action=Pull: again")
	assert.Equal(t, event, of("20s Pod/web-aaa-x BackOff{app} action=Start x2/10s: again"))
	for _, other := range []string{"10s Pod/web-aaa-y BackOff{app}: again", "10s Pod/web-aaa-x Killing{app} action=Pull: again", "10s Pod/web-aaa-x BackOff{app}: once"} {
		assert.NotEqual(t, event, of(other), other)
	}
}

// TestRecordsOfOneObject: what is no Event is left out, and all Events of an object share what is known of it.
func TestRecordsOfOneObject(t *testing.T) {
	t.Parallel()
	logs := story.Logs("0s Pod/web-aaa-1 !Odd: odd")[0]
	all := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	for _, name := range []string{"device.app.lifecycle", "", "k8s.event"} {
		other := all.AppendEmpty()
		all.At(0).CopyTo(other)
		other.SetEventName(name)
	}
	read := record.Read(logs)
	require.Len(t, read, 2)
	assert.Same(t, read[0].Subject, read[1].Subject)
}

// TestHarmlessWarnings: those that are known, and those that a user adds by their reason.
func TestHarmlessWarnings(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"0s Pod/web-aaa-1 !DNSConfigForming: too many name servers": true, "0s Pod/web-aaa-1 !AuditOnly: no limits": true,
		"0s Pod/web-aaa-1 !BackOff{app}: again": false, "0s Pod/web-aaa-1 !Odd action=AuditOnly: odd": false, "0s Pod/web-aaa-1 !Odd action=DNSConfigForming: odd": false,
	} {
		assert.Equal(t, want, record.Read(story.Logs(line)[0], "AuditOnly")[0].IsHarmless, line)
	}
}

// TestAnEventThatIsRepeated began at the time that its records name, if they name one.
func TestAnEventThatIsRepeated(t *testing.T) {
	t.Parallel()
	r := only(t, "10s Pod/web-aaa-x Pulled{app} event=e x3/1s: pulled", unchanged)
	assert.Equal(t, "e", r.Event)
	assert.EqualValues(t, 3, r.Count)
	assert.Equal(t, story.Epoch.Add(time.Second), r.First)
	for _, start := range []string{"", "yesterday"} {
		r = only(t, "10s Pod/web-aaa-x Pulled{app} x3: pulled", func(log plog.LogRecord) { log.Attributes().PutStr("k8s.event.start_time", start) })
		assert.Equal(t, r.At, r.First, start)
	}
}

// TestNumbersThatAnybodyMayWrite: a count is at least 1, and sums of counts do not overflow.
func TestNumbersThatAnybodyMayWrite(t *testing.T) {
	t.Parallel()
	for count, want := range map[int64]int64{-1: 1, 0: 1, 1: 1, 7: 7, math.MaxInt64: record.MaxCount} {
		r := only(t, "10s Pod/web-aaa-x BackOff{app}: again", func(log plog.LogRecord) { log.Attributes().PutInt("k8s.event.count", count) })
		assert.Equal(t, want, r.Count)
	}
	r := only(t, "10s Pod/web-aaa-x BackOff{app}: again", func(log plog.LogRecord) { log.Attributes().PutStr("k8s.event.count", "7") })
	assert.EqualValues(t, 1, r.Count)
}

// TestLongTexts: what is cut ends with an ellipsis, and no letter is cut in half.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "abc": "abc", "abcd": "abcd", "abcde": "abcd…", "abcä": "abc…", "abä": "abä"} {
		assert.Equal(t, want, record.Cut(text, 4))
	}
}

// TestObjectsOfOthers: an Event about an object that its namespace does not speak for is known as such.
func TestObjectsOfOthers(t *testing.T) {
	t.Parallel()
	for resolution, want := range map[string]bool{"foreign": true, "complete": false, "not_found": false} {
		assert.Equal(t, want, only(t, "0s Node/node-0 !Odd resolution="+resolution+": odd", unchanged).IsForeign(), resolution)
	}
}

func TestHarmlessReasonsAreNames(t *testing.T) {
	assert.NoError(t, record.CheckHarmless([]string{"AuditOnly", "BackOff", "my_reason", "net.io/Reason"}))
	for _, reason := range []string{"", " ", "*", "Audit*", "Audit?", "[A]udit", " AuditOnly", "audit only", "Audit\tonly"} {
		assert.ErrorContains(t, record.CheckHarmless([]string{"AuditOnly", reason}), fmt.Sprintf("harmless_reasons[1]: %q is not the name of a reason", reason))
	}
}

// TestReasonsOfFailedJobs: the alerts, the example of severities, and what reads why a container ended have
// all reasons with which a Job fails.
func TestReasonsOfFailedJobs(t *testing.T) {
	t.Parallel()
	details, err := os.ReadFile("../../../internal/details/details.go")
	require.NoError(t, err)
	for _, reason := range record.JobFailures {
		assert.Contains(t, string(details), `"`+reason+`": true`)
	}
	list := regexp.MustCompile(`"([^"]*BackoffLimitExceeded\|[^"]*)"`)
	for file, lists := range map[string]int{"deploy/chart/rules/kube-events.yaml": 5, "deploy/manifests/prometheusrule.yaml": 5, "examples/severity/collector.yaml": 1} {
		content, err := os.ReadFile(filepath.Join("../../..", file))
		require.NoError(t, err)
		found := list.FindAllStringSubmatch(string(content), -1)
		assert.Len(t, found, lists, file)
		for _, match := range found {
			pattern, err := regexp.Compile("^(?:" + match[1] + ")$")
			require.NoError(t, err, file)
			for _, reason := range record.JobFailures {
				assert.Regexp(t, pattern, reason, file)
			}
		}
	}
}
