// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// subjectOf returns the subject of a line, after a change of its resource.
func subjectOf(line string, change func(pcommon.Map)) *record.Subject {
	attributes := story.Logs(line)[0].ResourceLogs().At(0).Resource().Attributes()
	change(attributes)
	return record.SubjectOf(attributes)
}

func asIs(pcommon.Map) {}

// TestWhereAnObjectBelongs: to which workload and revision, and what makes the revision.
func TestWhereAnObjectBelongs(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct{ chain, revision, controller string }{
		"Deployment/web":     {"deployment.apps/web", "", "deployment.apps/web"},
		"ReplicaSet/web-aaa": {"deployment.apps/web replicaset.apps/web-aaa", "replicaset.apps/web-aaa", "deployment.apps/web"},
		"Pod/web-aaa-1":      {"deployment.apps/web replicaset.apps/web-aaa pod/web-aaa-1", "replicaset.apps/web-aaa", "deployment.apps/web"},
		"Pod/db-0<statefulset.apps/db | hash=db-77": {"statefulset.apps/db pod/db-0", "db-77", "statefulset.apps/db"},
		"Pod/db-0<statefulset.apps/db":              {"statefulset.apps/db pod/db-0", "statefulset.apps/db", ""},
		"Job/report-29<cronjob.batch/report":        {"cronjob.batch/report job.batch/report-29", "job.batch/report-29", "cronjob.batch/report"},
		"Pod/report-29-x<job.batch/report-29<cronjob.batch/report": {
			"cronjob.batch/report job.batch/report-29 pod/report-29-x", "job.batch/report-29", "cronjob.batch/report",
		},
		"Pod/runner-1<": {"pod/runner-1", "pod/runner-1", ""},
		"Pod/web-aaa-1<replicaset.apps/web-aaa<deployment.apps/web<widget.example.com/shop": {
			"widget.example.com/shop deployment.apps/web replicaset.apps/web-aaa pod/web-aaa-1", "replicaset.apps/web-aaa", "deployment.apps/web",
		},
		"Pod/vm-x<virtualmachineinstance.kubevirt.io/vm<virtualmachine.kubevirt.io/vm | owner=instance-2": {
			"virtualmachine.kubevirt.io/vm virtualmachineinstance.kubevirt.io/vm pod/vm-x", "virtualmachineinstance.kubevirt.io/vm/instance-2", "virtualmachine.kubevirt.io/vm",
		},
		"Pod/vm-x<virtualmachineinstance.kubevirt.io/vm<virtualmachine.kubevirt.io/vm": {
			"virtualmachine.kubevirt.io/vm virtualmachineinstance.kubevirt.io/vm pod/vm-x", "", "virtualmachine.kubevirt.io/vm",
		},
		"Node/worker-1":         {"node/worker-1", "", "node/worker-1"},
		"Service/web":           {"service/web", "", "service/web"},
		"Secret/tls<ingress/ui": {"ingress/ui secret/tls", "", "secret/tls"},
		// A kind or a name that the object has in common with its workload does not make it one.
		"Service/web<deployment.apps/web":      {"deployment.apps/web service/web", "", "service/web"},
		"Widget/part<widget.example.com/whole": {"widget.example.com/whole widget/part", "", "widget/part"},
		"Pod/whole-1<widget.example.com/whole": {"widget.example.com/whole pod/whole-1", "widget.example.com/whole", ""},
	} {
		object, settings, _ := strings.Cut(line, " | ")
		s := subjectOf("0s "+object+" Odd "+settings+": odd", asIs)
		var chain []string
		for _, o := range s.Chain {
			chain = append(chain, o.String())
		}
		assert.Equal(t, want.chain, strings.Join(chain, " "), line)
		assert.Equal(t, want.revision, s.Revision, line)
		assert.Equal(t, want.controller, s.Controller, line)
		assert.Equal(t, len(s.Chain) == 1, s.IsWorkload(), line)
	}
}

// TestRecordsWithoutOwners: the workload that they name is the owner, unless it is the object itself.
func TestRecordsWithoutOwners(t *testing.T) {
	t.Parallel()
	without := func(kind, name string) func(pcommon.Map) {
		return func(resource pcommon.Map) {
			resource.PutStr("k8s.owner.chain", "replicaset.apps/web-aaa") // It is a list in all records of the receiver.
			resource.PutStr("k8s.workload.kind", kind)
			resource.PutStr("k8s.workload.name", name)
			resource.PutStr("k8s.workload.api_version", "example.com/v1")
		}
	}
	for name, tt := range map[string]struct {
		change func(pcommon.Map)
		want   []record.Object
	}{
		"of another kind":      {without("Widget", "web"), []record.Object{{Kind: "widget", Group: "example.com", Name: "web"}, {Kind: "service", Name: "web"}}},
		"with another name":    {without("Service", "shop"), []record.Object{{Kind: "service", Group: "example.com", Name: "shop"}, {Kind: "service", Name: "web"}}},
		"the object itself":    {without("Service", "web"), []record.Object{{Kind: "service", Name: "web"}}},
		"a kind and no name":   {without("Widget", ""), []record.Object{{Kind: "service", Name: "web"}}},
		"no workload is known": {without("", ""), []record.Object{{Kind: "service", Name: "web"}}},
	} {
		assert.Equal(t, tt.want, subjectOf("0s Service/web Odd: odd", tt.change).Chain, name)
	}
}

// TestALongChainOfOwners: its bound never cuts the workload off.
func TestALongChainOfOwners(t *testing.T) {
	t.Parallel()
	for _, length := range []int{31, 32, 33, 34, 1000} {
		s := subjectOf("0s Pod/web-aaa-1 Odd: odd", func(resource pcommon.Map) {
			owners := resource.PutEmptySlice("k8s.owner.chain")
			for i := range length {
				owners.AppendEmpty().SetStr(fmt.Sprintf("widget.example.com/w%d", i))
			}
		})
		require.Len(t, s.Chain, min(length, 33)+1, length)
		assert.Equal(t, fmt.Sprintf("w%d", length-1), s.Chain[0].Name)
		assert.Equal(t, "w0", s.Chain[len(s.Chain)-2].Name)
	}
}

// TestStaticPodsBelongToTheirNode: a Node of another API group is a workload.
func TestStaticPodsBelongToTheirNode(t *testing.T) {
	t.Parallel()
	for workload, want := range map[record.Workload]bool{
		{UID: "u", Kind: "Node", Name: "worker-1", Version: "v1"}: true, {UID: "u", Kind: "Node", Name: "worker-1"}: true,
		{UID: "u", Kind: "Node", Name: "disk", Version: "storage.example.com/v1"}: false,
		{UID: "u", Kind: "Pod", Name: "runner", Version: "v1"}:                    false, {UID: "u", Kind: "Widget", Name: "w"}: false,
		{UID: "v1", Kind: "Node", Name: "disk", Version: "storage.example.com/v1"}: false, {Kind: "Node", Name: "disk", Version: "storage.example.com/v1"}: false,
		{UID: "u", Kind: "Widget", Name: "Node", Version: "v1"}: false,
	} {
		assert.Equal(t, want, (&record.Subject{Workload: workload}).BelongsToNode(), workload)
	}
}

// TestAttributesThatAreMissing are named, if without them a pod would be of a wrong revision.
func TestAttributesThatAreMissing(t *testing.T) {
	t.Parallel()
	const (
		pod = "0s Pod/web-aaa-1 Odd: odd"
		vm  = "0s Pod/vm-x<virtualmachineinstance.kubevirt.io/vm<virtualmachine.kubevirt.io/vm Odd owner=u: odd"
	)
	for _, tt := range []struct {
		line    string
		removed string
		want    []string
	}{
		{pod, "", nil}, {vm, "", nil}, {"0s Deployment/web Odd: odd", "", nil}, {"0s ReplicaSet/web-aaa Odd: odd", "", nil},
		{pod, "k8s.object.kind", []string{"k8s.object.kind"}},
		{pod, "k8s.object.name", []string{"k8s.object.name"}},
		{pod, "k8s.workload.kind", []string{"k8s.workload.kind"}},
		{pod, "k8s.workload.name", []string{"k8s.workload.name"}},
		{pod, "k8s.object.api_version", []string{"k8s.object.api_version"}},
		{pod, "k8s.owner.chain", []string{"k8s.owner.chain"}},
		{vm, "k8s.owner.uid", []string{"k8s.owner.uid"}},
		// Of an object whose kind or name is not known, nothing else can be said.
		{pod, "k8s.object.kind k8s.object.api_version k8s.owner.chain", []string{"k8s.object.kind"}},
		// An Event about the workload itself needs neither a version nor owners.
		{"0s Deployment/web Odd: odd", "k8s.object.api_version", nil},
		{"0s ReplicaSet/web-aaa Odd: odd", "k8s.object.uid", nil},
		{"0s ReplicaSet/web-aaa Odd: odd", "k8s.owner.chain", []string{"k8s.owner.chain"}},
		{"0s Service/web<widget.example.com/w Odd: odd", "", nil},
	} {
		assert.Equal(t, tt.want, subjectOf(tt.line, func(resource pcommon.Map) {
			for name := range strings.FieldsSeq(tt.removed) {
				resource.Remove(name)
			}
		}).Missing, "%s without %s", tt.line, tt.removed)
	}
	assert.Contains(t, subjectOf(pod, func(resource pcommon.Map) { resource.Remove("k8s.object.uid") }).Missing, "k8s.pod.uid")
}

// TestAttributesOfAllPods: the resource of a rollout has what all of its pods have.
func TestAttributesOfAllPods(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"k8s.cluster.name": true, "k8s.workload.name": true, "k8s.namespace.name": true, "tilt.manifest": true, "team": true,
		"k8s.pod.uid": false, "k8s.object.name": false, "k8s.owner.chain": false, "k8s.container.name": false, "k8s.node.name": false, "service.instance.id": false,
	} {
		assert.Equal(t, want, record.IsOfWorkload(name), name)
	}
}
