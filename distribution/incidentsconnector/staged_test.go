// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestStagedIncidents: each incident that was staged on a real node, through the connector, and through one that is killed
// 20 times. Each problem is opened once and ended once. Kills change nothing but the outcome of a rollout that became final
// while no process looked.
func TestStagedIncidents(t *testing.T) {
	files, err := filepath.Glob("../internal/incident/testdata/real/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			all, err := story.Recorded(file)
			require.NoError(t, err)
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

// textsOf returns STATE: BODY of the records, without the outcome of changes, each uid once.
func textsOf(all []told) (texts []string) {
	isKnown := map[string]bool{}
	for _, r := range all {
		if uid := r.text("log.record.uid"); !isKnown[uid] {
			isKnown[uid] = true
			outcome := ": " + r.text("k8s.change.outcome")
			texts = append(texts, r.text(r.event+".state")+": "+strings.TrimSuffix(r.body, outcome))
		}
	}
	slices.Sort(texts)
	return texts
}

// replay gives a connector recorded records at their times, and kills it so many times.
func replay(t *testing.T, all []plog.Logs, kills int) (reported []told) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		w := startWatching(t, d, nil)
		first, length := story.Seen(all[0]), story.Seen(all[len(all)-1]).Sub(story.Seen(all[0]))+2*incident.Horizon
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
			until(story.Seen(logs).Sub(first))
			moved := plog.NewLogs()
			logs.CopyTo(moved)
			story.Move(moved, epoch.Sub(first))
			w.consume(t, moved)
		}
		until(length)
		w.stop(t)
		reported = append(reported, w.told...)
	})
	return reported
}
