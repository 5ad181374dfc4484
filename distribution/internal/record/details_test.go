// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestHowAContainerEnded: the limit of memory counts if it ended the container, and a signal only if the
// reason does not say it.
func TestHowAContainerEnded(t *testing.T) {
	t.Parallel()
	const mebibytes = 1 << 20
	for want, ended := range map[string]record.Ended{
		"OOMKilled at 128 MiB, exit 137":  {Reason: "OOMKilled", ExitCode: 137, Signal: 9, MemoryLimit: 128 * mebibytes},
		"OOMKilled at 1536 MiB, exit 0":   {Reason: "OOMKilled", MemoryLimit: 1536 * mebibytes},
		"OOMKilled at 2 GiB, exit 137":    {Reason: "OOMKilled", ExitCode: 137, MemoryLimit: 2048 * mebibytes},
		"OOMKilled at 1000 B, exit 137":   {Reason: "OOMKilled", ExitCode: 137, MemoryLimit: 1000},
		"OOMKilled at 2048 TiB, exit 137": {Reason: "OOMKilled", ExitCode: 137, MemoryLimit: 2 << 50},
		"OOMKilled, exit 137":             {Reason: "OOMKilled", ExitCode: 137},
		"Error, exit 1":                   {Reason: "Error", ExitCode: 1, MemoryLimit: 128 * mebibytes},
		"Error, exit 143, signal 15":      {Reason: "Error", ExitCode: 143, Signal: 15},
		"Completed, exit 0":               {Reason: "Completed"},
	} {
		assert.Equal(t, want, ended.String())
	}
}

// TestWhatTheReceiverRead: each of the details counts alone, and what has another form is left out.
func TestWhatTheReceiverRead(t *testing.T) {
	t.Parallel()
	at := story.Epoch.Add(4 * time.Second)
	put := func(name, value string) func(plog.LogRecord) {
		return func(log plog.LogRecord) { log.Attributes().PutStr(name, value) }
	}
	const ended, configMap = "ended=OOMKilled/137/1024/0:04", "configmap=settings/changed/0:04/kubectl-edit"
	for name, tt := range map[string]struct {
		settings string
		change   func(plog.LogRecord)
		want     *record.Details
	}{
		"nothing": {"", unchanged, nil},
		"how the container ended": {
			ended, func(log plog.LogRecord) { log.Attributes().PutInt("k8s.container.last_terminated.signal", 9) },
			&record.Details{Ended: &record.Ended{Reason: "OOMKilled", ExitCode: 137, Signal: 9, MemoryLimit: 1024, At: at}},
		},
		"an end without a reason": {
			ended, func(log plog.LogRecord) { log.Attributes().Remove("k8s.container.status.last_terminated_reason") },
			&record.Details{Ended: &record.Ended{Reason: "Error", ExitCode: 137, MemoryLimit: 1024, At: at}},
		},
		"an exit code that is a text": {
			ended, put("process.exit.code", "137"), &record.Details{Ended: &record.Ended{Reason: "OOMKilled", MemoryLimit: 1024, At: at}},
		},
		"an end whose time is none":    {ended, put("k8s.container.last_terminated.finished_at", "yesterday"), nil},
		"what a rollout changed":       {"changes=image_app:_a;image_side:_b", unchanged, &record.Details{Changes: []string{"image app: a", "image side: b"}}},
		"changes that are no list":     {"", put("k8s.rollout.changes", "image app: a"), nil},
		"which tool deployed it":       {"tool=application.argoproj.io/shop", unchanged, &record.Details{Tool: "application.argoproj.io/shop"}},
		"who changed it":               {"by=kubectl-edit", unchanged, &record.Details{ChangedBy: "kubectl-edit"}},
		"a ConfigMap that changed":     {configMap, unchanged, &record.Details{ConfigMap: &record.ConfigMapChange{Name: "settings", By: "kubectl-edit", At: at}}},
		"a ConfigMap that is new":      {"configmap=settings/created/0:04/helm", unchanged, &record.Details{ConfigMap: &record.ConfigMapChange{Name: "settings", By: "helm", At: at, IsNew: true}}},
		"a ConfigMap without a time":   {"", sentence("configmap settings changed at noon by helm"), nil},
		"another sentence about one":   {"", sentence("configmap settings was deleted"), nil},
		"a list of ConfigMaps of none": {"", func(log plog.LogRecord) { log.Attributes().PutEmptySlice("k8s.config_map.changes") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, only(t, "10s Pod/web-aaa-x BackOff{app} "+tt.settings+": again", tt.change).Details)
		})
	}
}

// sentence writes what a receiver says about ConfigMaps.
func sentence(text string) func(plog.LogRecord) {
	return func(log plog.LogRecord) {
		log.Attributes().PutEmptySlice("k8s.config_map.changes").AppendEmpty().SetStr(text)
	}
}

// TestManyChanges: of a long list, the first 50 sentences count, and of each what a name can have.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	all := strings.Repeat(strings.Repeat("x", 300)+";", 50) + "last"
	changes := only(t, "10s Deployment/web ScalingReplicaSet changes="+all+": scaled", unchanged).Details.Changes
	assert.Len(t, changes, 50)
	assert.Equal(t, strings.Repeat("x", 256)+"…", changes[49])
}

// TestDetailsTakeMemory: the bounds of memory count each text, and no details take none.
func TestDetailsTakeMemory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	empty := (&record.Details{}).Size()
	assert.Zero(t, (*record.Details)(nil).Size())
	assert.Positive(t, empty)
	for name, details := range map[string]record.Details{
		"the tool": {Tool: long}, "the manager": {ChangedBy: long}, "a change": {Changes: []string{long}},
		"the end of a container": {Ended: &record.Ended{Reason: long}}, "the name of a ConfigMap": {ConfigMap: &record.ConfigMapChange{Name: long}},
		"the manager of a ConfigMap": {ConfigMap: &record.ConfigMapChange{By: long}},
	} {
		assert.InDelta(t, empty+1050, details.Size(), 51, name)
	}
}
