// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// TestTimeAloneChangesNothing: what is delivered of a rollout is also what the page shows later, as
// long as no record comes.
func TestTimeAloneChangesNothing(t *testing.T) {
	t.Parallel()
	for name, s := range allStories(t) {
		m, sent := &rollout.Model{}, map[string]bool{}
		for i, logs := range s.records {
			read, _ := rollout.Read(record.Read(logs), m)
			now := timeOf(logs)
			read.ReceivedAt(now.UnixNano())
			m.Join(read)
			until := now.AddDate(1, 0, 0)
			if i+1 < len(s.records) {
				until = timeOf(s.records[i+1])
			}
			for now.Before(until) {
				var final []rollout.Span
				final, now = finalAt(m, now, sent)
				for _, span := range final {
					shown := tree(spanOf(m, span, now.AddDate(1, 0, 0)))
					assert.Equal(t, shown, tree([]rollout.Span{span}), "%s: after %s", name, now.Sub(timeOf(s.records[0])))
				}
			}
		}
	}
}

func timeOf(logs plog.Logs) time.Time {
	return logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Timestamp().AsTime()
}

func optionsAt(now time.Time) rollout.Options {
	return rollout.Options{Idle: late.Idle, Settle: 10 * time.Second, Now: now}
}

// finalAt returns the spans of the rollouts that are final at a time, and when the next ones can be.
func finalAt(m *rollout.Model, now time.Time, sent map[string]bool) (roots []rollout.Span, next time.Time) {
	next = now.AddDate(1, 0, 0)
	for _, w := range m.Workloads {
		for revision := range w.Revisions {
			for _, part := range w.Spans(revision, optionsAt(now)) {
				at, key := time.Unix(0, part.News).Add(part.Wait), w.UID+w.Namespace+revision+part.Key
				switch {
				case part.Outcome == "", sent[key]:
				case !at.After(now):
					sent[key], roots = true, append(roots, part.Spans[0])
				case at.Before(next):
					next = at
				}
			}
		}
	}
	return roots, next
}

// spanOf returns what a span is at another time.
func spanOf(m *rollout.Model, like rollout.Span, now time.Time) (found []rollout.Span) {
	for _, s := range spansOf(m, optionsAt(now)) {
		if s.ID == like.ID {
			found = append(found, s)
		}
	}
	return found
}
