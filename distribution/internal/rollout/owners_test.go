// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// boot has the records of the second start of a virtual machine.
func boot() story {
	return storyOf(`20m0s VirtualMachine/vm-2 SuccessfulCreate event=start-2: Started the virtual machine by creating the new virtual machine instance vm-2
20m0s VirtualMachineInstance/vm-2<virtualmachine.kubevirt.io/vm-2 SuccessfulCreate uid=instance-2: Created virtual machine pod virt-launcher-vm-2-2
20m0s Pod/virt-launcher-vm-2-2<virtualmachineinstance.kubevirt.io/vm-2<virtualmachine.kubevirt.io/vm-2 starts owner=instance-2`)
}

// TestTracesOfRestarts: each start of a virtual machine has an id of its own. It is the same for a
// process that knows only this start.
func TestTracesOfRestarts(t *testing.T) {
	t.Parallel()
	idsOf := func(s story) (ids []string) {
		for _, span := range spansOf(modelOf(s), late) {
			ids = append(ids, fmt.Sprint(span.Trace, span.ID, span.Parent, span.Name))
		}
		slices.Sort(ids)
		return ids
	}
	ids := idsOf(boot())
	require.NotEmpty(t, ids)
	assert.Subset(t, idsOf(read(t, "a virtual machine that starts again")), ids)
}

// TestScaleUpWithoutMemory: a process that knows only a scale-up from zero delivers the same spans
// as one that knows the rollout, and nothing about the rollout.
func TestScaleUpWithoutMemory(t *testing.T) {
	t.Parallel()
	scaleUp := read(t, "from zero again, by a process that does not know the revision")
	whole := append(read(t, "a first rollout"), storyOf("40m0s Deployment/shop ScalingReplicaSet: Scaled down replica set shop-aaa from 2 to 0")...)
	spans := spansOf(modelOf(scaleUp), late)
	require.NotEmpty(t, spans)
	assert.Subset(t, spansOf(modelOf(append(whole, scaleUp...)), late), spans)
}

// TestForbiddenOwner: an account that may not read the custom resource above a Deployment or a
// StatefulSet gets the same traces. When the permission is granted, they stay as they are.
func TestForbiddenOwner(t *testing.T) {
	t.Parallel()
	forbid := func(_, record pcommon.Map) { record.PutStr("k8s.owner.resolution", "forbidden") }
	for _, name := range []string{"a custom resource with two Deployments", "a StatefulSet of a custom resource"} {
		s := read(t, name)
		want := spansOf(modelOf(s), late)
		require.NotEmpty(t, want)
		assert.Equal(t, want, spansOf(modelOf(s.changed(forbid)), late))
		assert.Equal(t, want, spansOf(modelOf(append(s[:len(s)/2].changed(forbid), s[len(s)/2:]...)), late))
	}
}

// TestPodsWithoutAWorkload: nobody knows the owner of a pod that the account may not read, and a
// static pod belongs to its Node, which rolls nothing out. A custom resource can have this kind,
// too.
func TestPodsWithoutAWorkload(t *testing.T) {
	t.Parallel()
	static := "0s Pod/proxy-1<node/worker-1 starts"
	version := func(version string) story {
		return storyOf(static).changed(func(resource, _ pcommon.Map) { resource.PutStr("k8s.workload.api_version", version) })
	}
	for name, c := range map[string]struct {
		story story
		has   bool
	}{
		"a bare pod": {storyOf("0s Pod/runner-1< starts"), true}, "a forbidden pod": {storyOf("0s Pod/runner-1< starts resolution=forbidden"), false},
		"a static pod": {version("v1"), false}, "a static pod without the version": {storyOf(static), false},
		"a custom resource Node": {version("storage.example.com/v1"), true},
	} {
		assert.Equal(t, c.has, len(spansOf(modelOf(c.story), late)) > 0, name)
	}
}

// TestMissingAttributes: records without an attribute that rollouts need are in no trace, and the
// model names the attribute.
func TestMissingAttributes(t *testing.T) {
	t.Parallel()
	update, pod := read(t, "an update"), storyOf("0s Pod/shop-aaa-1 starts")
	for removed, s := range map[string]story{
		"k8s.workload.kind": update, "k8s.workload.name": update, "k8s.object.kind": update, "k8s.object.name": update,
		"k8s.owner.chain": pod, "k8s.object.api_version": pod, "k8s.owner.uid": boot()[2:],
		"k8s.workload.uid": update,
	} {
		without := s.changed(func(resource, _ pcommon.Map) { resource.Remove(removed) })
		assert.Empty(t, spansOf(modelOf(without), late), removed)
		read, _ := rollout.Read(record.Read(without[0]), &rollout.Model{})
		assert.Contains(t, read.Lacks, removed)
	}
}

// TestRecordsOfNothing: what has no workload, or no time, says nothing about rollouts, and nothing is missing.
func TestRecordsOfNothing(t *testing.T) {
	t.Parallel()
	bare := storyOf("0s Pod/shop-aaa-1 starts").changed(func(resource, _ pcommon.Map) {
		for _, name := range []string{"k8s.workload.uid", "k8s.workload.name", "k8s.workload.kind"} {
			resource.Remove(name)
		}
	})
	timeless := storyOf("0s Pod/shop-aaa-1 starts").changed(func(_, _ pcommon.Map) {})
	for _, logs := range timeless {
		logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetTimestamp(0)
	}
	for _, s := range []story{bare, timeless} {
		for _, logs := range s {
			read, used := rollout.Read(record.Read(logs), &rollout.Model{})
			assert.Empty(t, read.Lacks)
			assert.Empty(t, read.Workloads)
			assert.Zero(t, used)
		}
	}
}
