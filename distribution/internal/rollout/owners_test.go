// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// machine returns what KubeVirt has of the virtual machine vm-2: the machine itself, and an
// instance, which has its name. A start makes a new instance.
func machine() object {
	return object{kind: "VirtualMachine", name: "vm-2", uid: "uid-vm-2", workload: "VirtualMachine/vm-2"}
}

func instance(uid string) object {
	return object{kind: "VirtualMachineInstance", name: "vm-2", uid: uid, workload: "VirtualMachine/vm-2", chain: []string{"virtualmachine.kubevirt.io/vm-2"}}
}

func launcher(name, of string) object {
	return object{
		kind: "Pod", name: name, uid: "uid-" + name, workload: "VirtualMachine/vm-2", owner: of,
		chain: []string{"virtualmachineinstance.kubevirt.io/vm-2", "virtualmachine.kubevirt.io/vm-2"},
	}
}

// boot has the records of a start of the machine.
func boot(at, number string) (s story) {
	of, name := instance("instance-"+number), "virt-launcher-vm-2-"+number
	s.add(
		occurrence{at: at, about: machine(), reason: "SuccessfulCreate", message: "Started the virtual machine by creating the new virtual machine instance vm-2", event: "start-" + number},
		occurrence{at: at, about: of, reason: "SuccessfulCreate", message: "Created virtual machine pod " + name},
	)
	return join(s, start(at, launcher(name, of.uid)))
}

// shutDown has those of its end.
func shutDown(at, number string) (s story) {
	of, name := instance("instance-"+number), "virt-launcher-vm-2-"+number
	s.add(
		occurrence{at: at, about: machine(), reason: "SuccessfulDelete", message: "Stopped the virtual machine by deleting the virtual machine instance vm-2", event: "stop-" + number},
		occurrence{at: at, about: of, reason: "SuccessfulDelete", message: "Deleted virtual machine pod " + name},
		stop(at, launcher(name, of.uid)),
	)
	return s
}

// threeStarts are far apart. Then the machine moves to another node.
func threeStarts() story {
	const target = "virt-launcher-vm-2-4"
	s := join(boot("0s", "1"), shutDown("10m0s", "1"), boot("20m0s", "2"), shutDown("30m0s", "2"), boot("40m0s", "3"))
	s.add(occurrence{at: "50m0s", about: instance("instance-3"), reason: "SuccessfulCreate", message: "Created migration target pod " + target})
	return join(s, start("50m0s", launcher(target, "instance-3")))
}

// reboots are two minutes apart.
func reboots() story {
	return join(boot("0s", "1"), shutDown("1m50s", "1"), boot("2m0s", "2"), shutDown("3m50s", "2"), boot("4m0s", "3"))
}

// TestTracesOfRestarts: each start of a virtual machine has an id of its own. It is the same for a
// process that knows only this start.
func TestTracesOfRestarts(t *testing.T) {
	t.Parallel()
	ids := idsOf(modelOf(boot("20m0s", "2")))
	require.NotEmpty(t, ids)
	assert.NotEqual(t, ids, idsOf(modelOf(boot("0s", "1"))))
	assert.Subset(t, idsOf(modelOf(threeStarts())), ids)
}

// TestNameThatIsUsedAgain: without the UID of the owner, the starts of a machine cannot be told
// apart, so that they have no traces. Other objects of the same custom resource have theirs.
func TestNameThatIsUsedAgain(t *testing.T) {
	t.Parallel()
	without := func(s story) story {
		return s.changed(func(resource, _ pcommon.Map) { resource.Remove("k8s.owner.uid") })
	}
	assert.Empty(t, spansOf(modelOf(without(threeStarts())), late))
	assert.NotEmpty(t, spansOf(modelOf(without(customResource())), late))
	alone := func(resource, _ pcommon.Map) { resource.Remove("k8s.owner.uid"); only(resource) }
	assert.NotEmpty(t, spansOf(modelOf(boot("0s", "1")[1:].changed(alone)), late), "the owner is the workload, which has a UID")
}

// only makes the instance the workload, as without permission to read it.
func only(resource pcommon.Map) {
	resource.PutStr("k8s.workload.kind", "VirtualMachineInstance")
	resource.PutStr("k8s.workload.uid", "instance")
	if chain, ok := resource.Get("k8s.owner.chain"); ok {
		chain.Slice().RemoveIf(func(owner pcommon.Value) bool { return owner.Str() == "virtualmachine.kubevirt.io/vm-2" })
	}
}

// changed returns the records of a story with other attributes.
func (s story) changed(change func(resource, record pcommon.Map)) (all story) {
	for _, logs := range s {
		of := plog.NewLogs()
		logs.CopyTo(of)
		change(of.ResourceLogs().At(0).Resource().Attributes(), of.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes())
		all = append(all, of)
	}
	return all
}

// TestForbiddenOwner: an account that may not read the custom resource above a Deployment or a
// StatefulSet gets the same traces. When the permission is granted, they stay as they are.
func TestForbiddenOwner(t *testing.T) {
	t.Parallel()
	forbid := func(_, record pcommon.Map) { record.PutStr("k8s.owner.resolution", "forbidden") }
	for name, s := range map[string]story{"two Deployments": customResource(), "a StatefulSet": ofPrometheus()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := spansOf(modelOf(s), late)
			require.NotEmpty(t, want)
			assert.Equal(t, want, spansOf(modelOf(s.changed(forbid)), late))
			assert.Equal(t, want, spansOf(modelOf(join(s[:len(s)/2].changed(forbid), s[len(s)/2:])), late))
		})
	}
}

// ofPrometheus is an update of the StatefulSet of a custom resource.
func ofPrometheus() story {
	return statefulRollout().changed(func(resource, _ pcommon.Map) {
		chain, ok := resource.Get("k8s.owner.chain")
		if !ok {
			chain = pcommon.NewValueEmpty()
			chain.SetEmptySlice().CopyTo(resource.PutEmptySlice("k8s.owner.chain"))
			chain, _ = resource.Get("k8s.owner.chain")
		}
		chain.Slice().AppendEmpty().SetStr("prometheus.monitoring.coreos.com/k8s")
		resource.PutStr("k8s.workload.kind", "Prometheus")
		resource.PutStr("k8s.workload.name", "k8s")
		resource.PutStr("k8s.workload.uid", "uid-k8s")
	})
}

// TestForbiddenPod: nobody knows the owner of a pod that the account may not read, so that it has
// no rollout of its own.
func TestForbiddenPod(t *testing.T) {
	t.Parallel()
	bare := object{kind: "Pod", name: "runner-1", uid: "uid-runner-1", workload: "Pod/runner-1"}
	s := start("0s", bare)
	assert.NotEmpty(t, spansOf(modelOf(s), late))
	forbidden := s.changed(func(_, record pcommon.Map) { record.PutStr("k8s.owner.resolution", "forbidden") })
	assert.Empty(t, spansOf(modelOf(forbidden), late))
}

// TestPodsOfNodes: a static pod belongs to its Node, which rolls nothing out. A custom resource can
// have this kind, too.
func TestPodsOfNodes(t *testing.T) {
	t.Parallel()
	s := start("0s", object{kind: "Pod", name: "proxy-1", uid: "uid-proxy-1", workload: "Node/worker-1", chain: []string{"node/worker-1"}})
	version := func(version string) story {
		return s.changed(func(resource, _ pcommon.Map) { resource.PutStr("k8s.workload.api_version", version) })
	}
	assert.Empty(t, modelOf(version("v1")).Workloads)
	assert.Empty(t, modelOf(s).Workloads, "the attribute is disabled")
	assert.NotEmpty(t, modelOf(version("storage.example.com/v1")).Workloads)
}

// TestMissingAttributes: records without an attribute that rollouts need are in no trace, and the model names the
// attribute.
func TestMissingAttributes(t *testing.T) {
	t.Parallel()
	for removed, s := range map[string]story{
		"k8s.workload.kind": firstRollout("0s"), "k8s.workload.name": firstRollout("0s"), "k8s.object.kind": firstRollout("0s"),
		"k8s.object.name": firstRollout("0s"), "k8s.owner.chain": start("0s", pod("shop-aaa-1")),
		"k8s.object.api_version": start("0s", pod("shop-aaa-1")), "k8s.owner.uid": boot("0s", "1")[2:],
	} {
		t.Run(removed, func(t *testing.T) {
			t.Parallel()
			without := s.changed(func(resource, _ pcommon.Map) { resource.Remove(removed) })
			assert.Empty(t, spansOf(modelOf(without), late))
			read, _ := rollout.Read(without[0])
			assert.Contains(t, read.Lacks, removed)
		})
	}
}

// idsOf returns the ids of all spans, with their names.
func idsOf(m *rollout.Model) (ids []string) {
	for _, s := range spansOf(m, late) {
		ids = append(ids, fmt.Sprint(s.Trace, s.ID, s.Parent, s.Name))
	}
	slices.Sort(ids)
	return ids
}
