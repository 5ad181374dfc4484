// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestRunsDoNotDisplaceOthers: thousands of runs of a CI system in 50 minutes displace no
// Deployment: neither its card, nor its rollout, nor what changed. That is also true for one that
// leaves the page for others, and for another custom resource.
func TestRunsDoNotDisplaceOthers(t *testing.T) {
	for _, tt := range []struct {
		reason string
		runs   int
	}{{"Started", 1_000}, {"BackOff", 10_000}} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			story := slices.Concat(first(0), replace(10), []happening{warn(20, "web-bbb-1", "BackOff")})
			story = append(story, happening{at: 20, object: "Prometheus/k8s", reason: "ReconcileError", message: "m", warning: true})
			for i := range 10 {
				story = append(story, scale(21, fmt.Sprintf("quiet%d-aaa", i), 0, 1))
			}
			for i := range tt.runs {
				run := happening{at: 30 + i*3000/tt.runs, reason: "Scheduled", message: "m", in: fmt.Sprint("ci-", i%2)}
				run.object = fmt.Sprintf([]string{"Run/build%d-pod", "Bare/runner-%d"}[i/2%2], i)
				done := run
				done.reason, done.warning = tt.reason, tt.reason == "BackOff"
				story = append(story, run, done)
			}
			s := storeOf(t, story)
			names := map[string]bool{}
			v := s.see(filterFrom(nil))
			for _, c := range v.Cards {
				names[c.Top.Name] = true
			}
			for _, name := range []string{"web", "k8s", "quiet0", "quiet9"} {
				assert.True(t, names[name], name)
			}
			assert.Len(t, v.Cards, cardsShown)
			assert.Contains(t, statements(s, "web"), "The rollout of replicaset.apps/web-bbb began 10 s before BackOff")
			detail, _ := s.detail("uid-web", filterFrom(nil))
			assert.Len(t, detail.Rollouts, 2)
			assert.Zero(t, s.former.Len(), "a run does not come back")
			requireBounds(t, s)
			requireOrder(t, &v)
		})
	}
}

// requireOrder checks that the cards with warnings are between the two headings, and the others
// behind both.
func requireOrder(t *testing.T, v *view) {
	t.Helper()
	warned := map[string]bool{}
	for _, c := range v.Cards {
		warned[c.ID] = c.Warnings > 0
	}
	_, listed := v.parts()
	var html strings.Builder
	require.NoError(t, templates.ExecuteTemplate(&html, "page", v))
	page, behind := html.String(), false
	for _, p := range listed {
		at := strings.Index(page, `id="`+p.id+`"`)
		require.GreaterOrEqual(t, at, 0, p.id)
		page = page[at:]
		behind = behind || p.id == "others"
		if p.template == "card" {
			require.Equal(t, !behind, warned[p.id], p.id)
		}
	}
	require.True(t, behind)
}

// restart has the records of a start of the virtual machine vm, whose instance vm-2 is a new object.
func restart(at int, number string) []happening {
	pod, uid := "vm-2-"+number, "instance-"+number
	return []happening{
		{at: at, object: "VirtualMachineInstance/vm-2", reason: "SuccessfulCreate", message: "Created virtual machine pod " + pod},
		{at: at + 1, object: "Launcher/" + pod, reason: "Scheduled", message: "Successfully assigned shop/" + pod + " to worker-1", owner: uid},
		{at: at + 3, object: "Launcher/" + pod, reason: "Started", message: "Container started", owner: uid},
	}
}

// TestAVirtualMachineThatStartsAgain has a rollout for each start, which begins when its pod was
// created.
func TestAVirtualMachineThatStartsAgain(t *testing.T) {
	s := storeOf(t, join(restart(0, "1"), restart(600, "2"), restart(1200, "3")))
	rows := cardWith(t, s).Rollouts.Rows
	require.Len(t, rows, 3)
	for i, row := range rows {
		assert.Equal(t, "vm-2", row.Name)
		assert.Equal(t, second(1200-600*i), row.Start)
		assert.Contains(t, row.Note, fmt.Sprintf("virtualmachineinstance.kubevirt.io/vm-2/instance-%d, complete: 1 of 1 pods started", 3-i))
		assert.NotContains(t, row.Note, "inferred")
	}
}

// TestAStaticPod: its card is that of its Node, and it has no rollout.
func TestAStaticPod(t *testing.T) {
	s := storeOf(t, []happening{{at: 0, object: "Static/worker-1", reason: "Started", message: "Container started"}})
	c := cardWith(t, s)
	assert.Equal(t, "node/worker", c.Top.String())
	assert.Empty(t, c.Rollouts.Rows)
	assert.Empty(t, s.rollouts.Workloads)
}

// TestADisabledAttribute: the page says once what it lacks, and shows no wrong rollouts. The card
// is that of the workload also without the chain of owners.
func TestADisabledAttribute(t *testing.T) {
	for _, name := range []string{"k8s.owner.chain", "k8s.workload.uid"} {
		t.Run(name, func(t *testing.T) {
			core, logged := observer.New(zap.WarnLevel)
			s, _ := storeAt(second(60))
			e := &pageExporter{config: &Config{}, store: s}
			e.telemetry.Logger = zap.New(core)
			for _, h := range join(first(0), replace(10), []happening{node(20, "worker-1", "NodeNotReady")}) {
				logs := h.logs(t)
				logs.ResourceLogs().At(0).Resource().Attributes().Remove(name)
				require.NoError(t, e.ConsumeLogs(t.Context(), logs))
			}
			v := s.see(filterFrom(nil))
			require.Len(t, v.Cards, 2, "the Deployment, and the Node")
			assert.Equal(t, []string{"node", "deployment"}, []string{v.Cards[0].Top.Kind, v.Cards[1].Top.Kind})
			alone := s.see(filterFrom(map[string][]string{"workload": {v.Cards[1].ID}}))
			assert.Empty(t, alone.Cards[0].Rollouts.Rows)
			require.Len(t, logged.All(), 1)
			assert.Contains(t, logged.All()[0].Message, "event_page needs the attribute "+name)
		})
	}
}
