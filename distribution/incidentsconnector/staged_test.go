// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// TestStagedIncidents: each incident that was staged on a real node, through the connector, and through one that is killed
// 20 times. Each problem is opened once and ended once, and kills change nothing.
func TestStagedIncidents(t *testing.T) {
	files, err := filepath.Glob("../internal/incident/testdata/real/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			all := recorded(t, file)
			whole := replay(t, all, 0)
			states := map[string][]string{}
			for _, r := range whole {
				if r.event == "k8s.problem" && r.text("k8s.problem.state") != "changed" {
					states[r.text("k8s.problem.id")] = append(states[r.text("k8s.problem.id")], r.text("k8s.problem.state"))
				}
			}
			for id, told := range states {
				assert.Equal(t, "opened", told[0], id)
				assert.Equal(t, "ended", told[len(told)-1], id)
			}
			assert.Equal(t, textsOf(whole), textsOf(replay(t, all, 20)), "kills lose nothing, and repeat nothing but with the same uid")
		})
	}
}

// textsOf returns STATE: BODY of the records, each uid once.
func textsOf(all []told) (texts []string) {
	isKnown := map[string]bool{}
	for _, r := range all {
		if uid := r.text("log.record.uid"); !isKnown[uid] {
			isKnown[uid] = true
			texts = append(texts, r.text(r.event+".state")+": "+r.body)
		}
	}
	slices.Sort(texts)
	return texts
}

// recorded returns the records of a file one by one, the first observed first.
func recorded(t *testing.T, file string) (all []plog.Logs) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(content)
	require.NoError(t, err)
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				one := plog.NewLogs()
				own := one.ResourceLogs().AppendEmpty()
				rl.Resource().CopyTo(own.Resource())
				r.CopyTo(own.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b plog.Logs) int { return seen(a).Compare(seen(b)) })
	return all
}

func recordOf(logs plog.Logs) plog.LogRecord {
	return logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
}

func seen(logs plog.Logs) time.Time {
	return max(recordOf(logs).ObservedTimestamp(), recordOf(logs).Timestamp()).AsTime()
}

// replay gives a connector recorded records at their times, and kills it so many times.
func replay(t *testing.T, all []plog.Logs, kills int) (reported []told) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		w := startWatching(t, d, nil)
		first, length := seen(all[0]), seen(all[len(all)-1]).Sub(seen(all[0]))+2*incident.Horizon
		epoch, next := time.Now(), 1
		until := func(at time.Duration) {
			for ; next <= kills && length*time.Duration(next)/time.Duration(kills+1) <= at; next++ {
				time.Sleep(time.Until(epoch.Add(length*time.Duration(next)/time.Duration(kills+1) + 1500*time.Millisecond))) // What came is stored.
				left := d.copied()
				reported = append(reported, w.told...)
				w.set(nil, true) // Nobody hears of what it does afterwards.
				w.stop(t)
				d, w = left, startWatching(t, left, nil)
			}
			time.Sleep(time.Until(epoch.Add(at)))
		}
		for _, logs := range all {
			until(seen(logs).Sub(first))
			w.consume(t, shifted(logs, epoch.Sub(first)))
		}
		until(length)
		w.stop(t)
		reported = append(reported, w.told...)
	})
	return reported
}

// shifted returns the records at other times.
func shifted(logs plog.Logs, by time.Duration) plog.Logs {
	moved := plog.NewLogs()
	logs.CopyTo(moved)
	r := recordOf(moved)
	r.SetTimestamp(pcommon.NewTimestampFromTime(r.Timestamp().AsTime().Add(by)))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(r.ObservedTimestamp().AsTime().Add(by)))
	if start, ok := r.Attributes().Get("k8s.event.start_time"); ok {
		if at, err := time.Parse(time.RFC3339Nano, start.Str()); err == nil {
			start.SetStr(at.Add(by).Format(time.RFC3339Nano))
		}
	}
	return moved
}
