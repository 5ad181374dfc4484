// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// first rolls out the first revision.
func first(at int) []happening {
	return join([]happening{scale(at, "web-aaa", 0, 1)}, start(at, "web-aaa-1", "worker-1"))
}

// replace replaces it by a pod on another node.
func replace(at int) []happening {
	return join([]happening{scale(at, "web-bbb", 0, 1)}, start(at, "web-bbb-1", "worker-3"), []happening{scale(at+3, "web-aaa", 1, 0)})
}

func createMember(at int, count int64) happening {
	return happening{at: at, object: "StatefulSet/web", reason: "SuccessfulCreate", message: "create Pod web-0 in StatefulSet web successful", count: count}
}

func memberEvent(at int, hash, reason string) happening {
	return happening{at: at, object: "Member/web-0", reason: reason, message: reason, hash: hash, warning: reason == "BackOff"}
}

// evict ends a pod. The next one cannot be scheduled.
func evict(reason, message string) []happening {
	return []happening{{at: 600, object: "Pod/web-aaa-1", reason: reason, message: message}, warn(602, "web-aaa-2", "FailedScheduling")}
}

// reclaim is what a kubelet reports before it evicts a pod.
func reclaim(at int, count int64) happening {
	return happening{at: at, object: "Node/worker-3", reason: "EvictionThresholdMet", message: "Attempting to reclaim ephemeral-storage", warning: true, count: count, since: 590}
}

func evicted(at int, pod string) happening {
	return happening{at: at, object: "Pod/" + pod, reason: "Evicted", message: "The node was low on resource", warning: true, node: "worker-3"}
}

// drain ends a pod of a node, and then a kubelet or controller reports why.
func drain(reported int, reason string) []happening {
	return join(start(0, "web-aaa-1", "worker-3"), []happening{
		{at: 600, object: "Pod/web-aaa-1", reason: "Killing", message: "Stopping container app", node: "worker-3"}, node(reported, "worker-3", reason),
	})
}

// jobs of a CronJob, which overlap.
var jobs = []happening{
	{at: 0, object: "CronJob/web", reason: "SuccessfulCreate", message: "Created job web-29"}, {at: 60, object: "CronJob/web", reason: "SuccessfulCreate", message: "Created job web-2"},
}

// replaceAgent ends a pod of a DaemonSet on worker-1, and starts one of another revision.
func replaceAgent(node string) []happening {
	return []happening{
		{at: 570, object: "Agent/web-x1", reason: "Killing", message: "Stopping container app", hash: "hash-1", node: "worker-1"},
		{at: 600, object: "DaemonSet/web", reason: "SuccessfulCreate", message: "Created pod: web-x2"},
		{at: 602, object: "Agent/web-x2", reason: "Started", message: "m", hash: "hash-2", node: node},
		{at: 609, object: "Agent/web-x2", reason: "BackOff", message: "m", hash: "hash-2", node: node, warning: true},
	}
}

func TestWhatChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		story []happening
		want  []string // what changed, and how long before
	}{
		"a rollout": {
			join(first(0), replace(600), []happening{warn(638, "web-bbb-1", "BackOff")}),
			[]string{"The rollout of replicaset.apps/web-bbb began 38 s before BackOff"},
		},
		"a warning of the rollout before": {
			join(first(0), []happening{warn(3, "web-aaa-1", "Unhealthy")}, replace(600), []happening{warn(602, "web-bbb-1", "Failed")}),
			[]string{"The rollout of replicaset.apps/web-bbb began 2 s before Failed", "older: Unhealthy"},
		},
		"a rollback": {
			join(first(0), replace(600), []happening{
				{at: 1200, object: "Deployment/web", reason: "ScalingReplicaSet", message: "Scaled up replica set web-aaa from 0 to 1", count: 2},
				scale(1203, "web-bbb", 1, 0), warn(1210, "web-aaa-2", "BackOff"),
			}),
			[]string{"The rollout of replicaset.apps/web-aaa began 10 s before BackOff"},
		},
		"a scale-up": {
			join(first(0), []happening{scale(600, "web-aaa", 1, 30), warn(605, "web-aaa-9", "FailedScheduling")}),
			[]string{"replicaset.apps/web-aaa was scaled from 1 to 30 5 s before FailedScheduling", "The rollout of replicaset.apps/web-aaa began 10 min before FailedScheduling"},
		},
		"a scale-up from zero is no rollout": {
			join(first(0), []happening{scale(300, "web-aaa", 1, 0), scale(600, "web-aaa", 0, 2), warn(605, "web-aaa-9", "FailedScheduling")}),
			[]string{"replicaset.apps/web-aaa was scaled from 0 to 2 5 s before FailedScheduling", "The rollout of replicaset.apps/web-aaa began 10 min before FailedScheduling"},
		},
		"a step of a rolling update is no scaling": {
			join(first(0), []happening{
				scale(600, "web-bbb", 0, 1), scale(603, "web-aaa", 3, 2), scale(604, "web-bbb", 1, 2), warn(610, "web-bbb-1", "BackOff"),
			}),
			[]string{"The rollout of replicaset.apps/web-bbb began 10 s before BackOff"},
		},
		"a scaling long after an update whose last steps have no record": {
			join(first(0), []happening{scale(10, "web-bbb", 0, 1), scale(13, "web-aaa", 3, 2), scale(1200, "web-bbb", 3, 30), warn(1205, "web-bbb-9", "FailedScheduling")}),
			[]string{
				"replicaset.apps/web-bbb was scaled from 3 to 30 5 s before FailedScheduling",
				"The rollout of replicaset.apps/web-bbb began 19 min before FailedScheduling",
			},
		},
		"a scaling of the revision before, long after an update whose end has no record": {
			join(first(0), []happening{scale(10, "web-bbb", 0, 1), scale(1200, "web-aaa", 3, 30), warn(1205, "web-aaa-9", "FailedScheduling")}),
			[]string{
				"replicaset.apps/web-aaa was scaled from 3 to 30 5 s before FailedScheduling",
				"The rollout of replicaset.apps/web-bbb began 19 min before FailedScheduling",
			},
		},
		"a slow step of an update": {
			join(first(0), []happening{scale(10, "web-bbb", 0, 1), scale(550, "web-aaa", 3, 2), scale(551, "web-bbb", 1, 2), warn(560, "web-bbb-9", "FailedScheduling")}),
			[]string{"The rollout of replicaset.apps/web-bbb began 9 min before FailedScheduling"},
		},
		"the steps of an update that adds no pods before it has ended others": {
			[]happening{
				scale(600, "web-aaa", 3, 2), scale(600, "web-bbb", 0, 1), scale(620, "web-aaa", 2, 1), scale(621, "web-bbb", 1, 2),
				rescale(639, "any", 3), scale(640, "web-aaa", 1, 0), scale(641, "web-bbb", 2, 3), warn(650, "web-bbb-3", "BackOff"),
			},
			[]string{"The rollout of replicaset.apps/web-bbb began 50 s before BackOff"},
		},
		"the first pod of such an update": {
			[]happening{scale(600, "web-aaa", 3, 2), scale(601, "web-bbb", 0, 1), warn(603, "web-bbb-1", "BackOff")},
			[]string{"The rollout of replicaset.apps/web-bbb began 2 s before BackOff"},
		},
		"an update that ends all pods first": {
			[]happening{scale(600, "web-aaa", 3, 0), scale(635, "web-bbb", 0, 3), warn(640, "web-bbb-1", "BackOff")},
			[]string{"The rollout of replicaset.apps/web-bbb began 5 s before BackOff"},
		},
		"a scale-up and a scale-down long after such an update": {
			[]happening{scale(600, "web-aaa", 1, 0), scale(601, "web-bbb", 0, 1), scale(700, "web-bbb", 1, 3), scale(720, "web-bbb", 3, 2), warn(740, "web-bbb-1", "BackOff")},
			[]string{"replicaset.apps/web-bbb was scaled from 3 to 2 20 s before BackOff", "The rollout of replicaset.apps/web-bbb began 2 min before BackOff"},
		},
		"a scale-down before a rollout of another Deployment of the same owner": {
			[]happening{
				{at: 600, object: "PartDeployment/web-a", reason: "ScalingReplicaSet", message: "Scaled down replica set web-a-aaa from 3 to 2"},
				{at: 601, object: "PartDeployment/web-b", reason: "ScalingReplicaSet", message: "Scaled up replica set web-b-bbb from 0 to 1"},
				{at: 610, object: "PartDeployment/web-a", reason: "ReplicaSetCreateError", message: "m", warning: true},
			},
			[]string{
				"The rollout of replicaset.apps/web-b-bbb began 9 s before ReplicaSetCreateError",
				"replicaset.apps/web-a-aaa was scaled from 3 to 2 10 s before ReplicaSetCreateError",
			},
		},
		"an autoscaler": {
			join(first(0), []happening{rescale(598, "any", 30), scale(600, "web-aaa", 3, 30), warn(605, "web-aaa-9", "FailedScheduling")}),
			[]string{
				"The HorizontalPodAutoscaler any set the size to 30, and replicaset.apps/web-aaa was scaled from 3 to 30 5 s before FailedScheduling",
				"The rollout of replicaset.apps/web-aaa began 10 min before FailedScheduling",
			},
		},
		"an autoscaler with an owner": {
			join(first(0), []happening{
				{at: 598, object: "KedaAutoscaler/keda-hpa-web", reason: "SuccessfulRescale", message: "New size: 30; reason: external metric"},
				scale(600, "web-aaa", 3, 30), warn(605, "web-aaa-9", "FailedScheduling"),
			}),
			[]string{
				"The HorizontalPodAutoscaler keda-hpa-web set the size to 30, and replicaset.apps/web-aaa was scaled from 3 to 30 5 s before FailedScheduling",
				"The rollout of replicaset.apps/web-aaa began 10 min before FailedScheduling",
			},
		},
		"two autoscalers, either of which can be the one": {
			join(first(0), []happening{rescale(598, "any", 30), rescale(599, "other", 30), scale(600, "web-aaa", 3, 30), warn(605, "web-aaa-9", "FailedScheduling")}),
			[]string{"replicaset.apps/web-aaa was scaled from 3 to 30 5 s before FailedScheduling", "The rollout of replicaset.apps/web-aaa began 10 min before FailedScheduling"},
		},
		"an autoscaler of the same name": {
			[]happening{rescale(598, "web", 30), warn(605, "web-aaa-9", "FailedScheduling")},
			[]string{"The HorizontalPodAutoscaler web set the size to 30 7 s before FailedScheduling"},
		},
		"an autoscaler of another workload": {
			[]happening{rescale(598, "other", 30), warn(605, "web-aaa-9", "FailedScheduling")},
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"the node of a pod": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{node(590, "worker-3", "NodeNotReady"), warn(602, "web-aaa-1", "NodeNotReady")}),
			[]string{"The node worker-3, where the pod web-aaa-1 was, became NotReady 12 s before NodeNotReady"},
		},
		"a node that was reported twice": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{
				node(580, "worker-3", "NodeNotReady"), {at: 590, object: "Node/worker-3", reason: "NodeNotReady", message: "by another reporter"}, warn(602, "web-aaa-1", "NodeNotReady"),
			}),
			[]string{"The node worker-3, where the pod web-aaa-1 was, became NotReady 22 s before NodeNotReady"},
		},
		"a node that recovered long before": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{node(100, "worker-3", "NodeNotReady"), node(110, "worker-3", "NodeReady"), warn(602, "web-aaa-1", "BackOff")}),
			[]string{"The pod web-aaa-1 was created 10 min before BackOff"},
		},
		"a node that reclaims resources before it reports the pressure": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{
				reclaim(590, 1), evicted(592, "web-aaa-1"), node(600, "worker-3", "NodeHasDiskPressure"),
			}),
			[]string{
				"The node worker-3, where the pod web-aaa-1 was, had disk pressure as reported 8 s after Evicted",
				"The node worker-3, where the pod web-aaa-1 was, tried to reclaim resources 2 s before Evicted",
			},
		},
		"a node that reclaims resources again and again": {
			join(start(0, "web-aaa-1", "worker-3"), start(0, "web-aaa-2", "worker-3"), []happening{
				reclaim(590, 1), evicted(592, "web-aaa-1"), reclaim(600, 2), reclaim(610, 3), evicted(612, "web-aaa-2"),
			}),
			[]string{"The node worker-3, where the pod web-aaa-2 was, tried to reclaim resources 2 s before Evicted"},
		},
		"a node that reclaims resources again half an hour later": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{reclaim(10, 1), reclaim(1800, 2), evicted(1802, "web-aaa-1")}),
			[]string{"The node worker-3, where the pod web-aaa-1 was, tried to reclaim resources 2 s before Evicted"},
		},
		"a node without memory": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{
				{at: 590, object: "Node/worker-3", reason: "SystemOOM", message: "System OOM encountered, victim process: app, pid: 7", warning: true}, warn(592, "web-aaa-1", "BackOff"),
			}),
			[]string{"The node worker-3, where the pod web-aaa-1 was, ran out of memory 2 s before BackOff"},
		},
		"a drain, which the kubelet reports after the end of the pod": {
			join(drain(606, "NodeNotSchedulable"), []happening{warn(608, "web-aaa-2", "FailedScheduling")}),
			[]string{"The node worker-3, where the pod web-aaa-1 was, was cordoned 2 s before FailedScheduling"},
		},
		"a drain, and the pod that replaces another one fails on its node": {
			join(drain(606, "NodeNotSchedulable"), start(602, "web-aaa-2", "worker-9"), []happening{{at: 640, object: "Pod/web-aaa-2", reason: "FailedMount", message: "m", warning: true, node: "worker-9"}}),
			[]string{"The node worker-3, where the pod web-aaa-1 was, was cordoned 34 s before FailedMount"},
		},
		"a drain, which the kubelet reports after the first warning": {
			join(drain(606, "NodeNotSchedulable"), []happening{warn(601, "web-aaa-1", "Unhealthy")}),
			[]string{"The node worker-3, where the pod web-aaa-1 was, was cordoned as reported 5 s after Unhealthy"},
		},
		"a node that is cordoned later than a drain would report it": {
			join(drain(612, "NodeNotSchedulable"), []happening{warn(601, "web-aaa-1", "Unhealthy")}),
			[]string{"The pod web-aaa-1 was created 10 min before Unhealthy"},
		},
		"a controller reports at once that a node is not ready": {
			join(drain(606, "NodeNotReady"), []happening{warn(601, "web-aaa-1", "Unhealthy")}),
			[]string{"The pod web-aaa-1 was created 10 min before Unhealthy"},
		},
		"a warning on one of two nodes": {
			join(start(0, "web-aaa-1", "worker-1"), start(0, "web-aaa-2", "worker-3"), []happening{
				node(580, "worker-3", "NodeHasDiskPressure"), node(590, "worker-1", "NodeNotReady"), evicted(602, "web-aaa-2"),
			}),
			[]string{"The node worker-3, where the pod web-aaa-2 was, had disk pressure 22 s before Evicted"},
		},
		"a warning that names no node": {
			join(start(0, "web-aaa-1", "worker-1"), start(0, "web-aaa-2", "worker-3"), []happening{node(590, "worker-1", "NodeNotReady"), warn(602, "web-aaa-2", "FailedScheduling")}),
			[]string{"The node worker-1, where the pod web-aaa-1 was, became NotReady 12 s before FailedScheduling"},
		},
		"a node that was rebooted with another pod before": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{node(100, "worker-3", "Rebooted")}, start(300, "web-aaa-2", "worker-3"), []happening{
				{at: 400, object: "Node/worker-3", reason: "Rebooted", message: "again"}, warn(402, "web-aaa-2", "NodeNotReady"),
			}),
			[]string{"The node worker-3, where the pod web-aaa-2 was, was rebooted 2 s before NodeNotReady"},
		},
		"many nodes, and a rollout": {
			join(first(0), start(1, "web-aaa-2", "worker-2"), start(1, "web-aaa-3", "worker-3"), start(1, "web-aaa-4", "worker-4"), start(1, "web-aaa-5", "worker-5"), []happening{
				node(591, "worker-1", "NodeNotReady"), node(592, "worker-2", "NodeNotReady"), node(593, "worker-3", "NodeNotReady"), node(594, "worker-4", "NodeNotReady"),
				node(595, "worker-5", "NodeNotReady"), warn(602, "web-aaa-6", "FailedScheduling"),
			}),
			[]string{
				"The node worker-5, where the pod web-aaa-5 was, became NotReady 7 s before FailedScheduling",
				"The node worker-4, where the pod web-aaa-4 was, became NotReady 8 s before FailedScheduling",
				"The rollout of replicaset.apps/web-aaa began 10 min before FailedScheduling",
			},
		},
		"a node as the workload": {
			[]happening{node(590, "web", "Rebooted"), {at: 602, object: "Node/web", reason: "FailedMount", message: "m", warning: true}},
			[]string{"The node web was rebooted 12 s before FailedMount"},
		},
		"a reboot, which is a warning": {
			[]happening{{at: 590, object: "Node/web", reason: "Rebooted", message: "m", warning: true}},
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"a warning after a reboot, which is a warning": {
			[]happening{{at: 590, object: "Node/web", reason: "Rebooted", message: "m", warning: true}, {at: 602, object: "Node/web", reason: "FailedMount", message: "m", warning: true}},
			[]string{"The node web was rebooted 12 s before FailedMount", "older: Rebooted"},
		},
		"a node that was rebooted before the pod was there": {
			join([]happening{node(100, "worker-3", "Rebooted")}, start(500, "web-aaa-1", "worker-3"), []happening{warn(602, "web-aaa-1", "BackOff")}),
			[]string{"The pod web-aaa-1 was created 102 s before BackOff"},
		},
		"a node that was rebooted after the older of two pods was there": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{node(100, "worker-3", "Rebooted")}, start(500, "web-aaa-2", "worker-3"), []happening{warn(602, "web-aaa-1", "BackOff")}),
			[]string{"The node worker-3, where the pod web-aaa-1 was, was rebooted 8 min before BackOff"},
		},
		"a node that the pod had left": {
			join(first(0), start(10, "web-aaa-2", "worker-3"), []happening{
				{at: 300, object: "Pod/web-aaa-2", reason: "Killing", message: "Stopping container app", node: "worker-3"},
				node(500, "worker-3", "NodeNotReady"), warn(602, "web-aaa-1", "BackOff"),
			}),
			[]string{"The rollout of replicaset.apps/web-aaa began 10 min before BackOff"},
		},
		"the node of a pod that got a new sandbox": {
			join(first(0), start(10, "web-aaa-2", "worker-3"), []happening{
				{at: 300, object: "Pod/web-aaa-2", reason: "Killing", message: "Stopping container app", node: "worker-3"},
				{at: 305, object: "Pod/web-aaa-2", reason: "Started", message: "again", node: "worker-3"},
				node(500, "worker-3", "NodeNotReady"), warn(602, "web-aaa-2", "NodeNotReady"),
			}),
			[]string{
				"The node worker-3, where the pod web-aaa-2 was, became NotReady 102 s before NodeNotReady",
				"The rollout of replicaset.apps/web-aaa began 10 min before NodeNotReady",
			},
		},
		"a node that only a later record of the pod names": {
			[]happening{node(590, "worker-3", "NodeHasDiskPressure"), {at: 602, object: "Pod/web-aaa-1", reason: "Evicted", message: "m", warning: true, node: "worker-3"}},
			[]string{"The node worker-3, where the pod web-aaa-1 was, had disk pressure 12 s before Evicted"},
		},
		"an autoscaler of the same name, but nothing can scale an Ingress": {
			[]happening{rescale(598, "web", 30), {at: 605, object: "Ingress/web", reason: "Sync", message: "m", warning: true}},
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"an autoscaler of the same name, but two workloads have it": {
			[]happening{{at: 5, object: "StatefulSet/web", reason: "SuccessfulCreate", message: "m"}, rescale(598, "web", 30), warn(605, "web-aaa-9", "FailedScheduling")},
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"a scaling right after that of another workload by its autoscaler": {
			join(first(0), []happening{rescale(598, "api", 3), scale(599, "api-aaa", 1, 3), scale(600, "web-aaa", 1, 3), warn(605, "web-aaa-1", "BackOff")}),
			[]string{"replicaset.apps/web-aaa was scaled from 1 to 3 5 s before BackOff", "The rollout of replicaset.apps/web-aaa began 10 min before BackOff"},
		},
		"what is preempted and scheduled, but is no pod": {
			[]happening{
				{at: 598, object: "Workload/web", reason: "Scheduled", message: "m"}, {at: 600, object: "Workload/web", reason: "Preempted", message: "m"},
				{at: 602, object: "Workload/web", reason: "Failed", message: "m", warning: true},
			},
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"a Deployment that was created again, and a late record of a pod of the former one": {
			join(first(0), []happening{
				{at: 600, object: "Deployment/web", reason: "ScalingReplicaSet", message: "Scaled up replica set web-aaa from 0 to 2", life: "-2"},
				{at: 605, object: "Pod/web-aaa-1", reason: "Killing", message: "Stopping container app", node: "worker-1"},
				{at: 610, object: "Pod/web-aaa-2", reason: "BackOff", message: "m", warning: true, life: "-2"},
				{at: 611, object: "Pod/web-aaa-1", reason: "FailedKillPod", message: "m", node: "worker-1", warning: true},
			}),
			[]string{"The rollout of replicaset.apps/web-aaa began 10 s before BackOff"},
		},
		"a preemption": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{
				{at: 600, object: "Pod/web-aaa-1", reason: "Preempted", message: "Preempted by pod other on node worker-3"}, warn(602, "web-aaa-2", "FailedScheduling"),
			}),
			[]string{"The pod web-aaa-1 was preempted 2 s before FailedScheduling"},
		},
		"a pod that a taint of its node ends": {
			evict("TaintManagerEviction", "Marking for deletion Pod shop/web-aaa-1"),
			[]string{"The pod web-aaa-1 was marked for deletion because of a taint of its node 2 s before FailedScheduling"},
		},
		"a taint that is removed before it ends the pod": {
			evict("TaintManagerEviction", "Cancelling deletion of Pod shop/web-aaa-1"),
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"a pod that the VerticalPodAutoscaler evicts": {
			evict("EvictedByVPA", "Pod was evicted by VPA Updater to apply resource recommendation."),
			[]string{"The pod web-aaa-1 was evicted by the VerticalPodAutoscaler 2 s before FailedScheduling"},
		},
		"a pod whose node the autoscaler of the cluster removes": {
			evict("ScaleDown", "deleting pod for node scale down"),
			[]string{"The pod web-aaa-1 was deleted because its node is scaled down 2 s before FailedScheduling"},
		},
		"a pod that Karpenter evicts": {
			evict("Evicted", "Evicted pod: Node is being disrupted"),
			[]string{"The pod web-aaa-1 was evicted 2 s before FailedScheduling"},
		},
		"a pod that a kubelet evicts, which is a warning": {
			[]happening{{at: 600, object: "Pod/web-aaa-1", reason: "Evicted", message: "The node was low on resource: memory.", warning: true}, warn(602, "web-aaa-2", "FailedScheduling")},
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"another node": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{node(590, "worker-1", "NodeNotReady"), warn(602, "web-aaa-1", "BackOff")}),
			[]string{"The pod web-aaa-1 was created 10 min before BackOff"},
		},
		"a change after the warning": {
			[]happening{warn(0, "web-aaa-1", "BackOff"), scale(1, "web-bbb", 0, 1)},
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"a change in the second of the warning": {
			[]happening{scale(0, "web-aaa", 0, 1), warn(0, "web-aaa-1", "FailedScheduling")},
			[]string{"The rollout of replicaset.apps/web-aaa began in the same second as FailedScheduling"},
		},
		"a warning that is older than the page": {
			[]happening{{at: 0, object: "Pod/web-aaa-1", reason: "BackOff", message: "again", warning: true, count: 50, since: -7000}},
			[]string{"Nothing is known: the first warning is older than the page’s first record."},
		},
		"a warning that says that it is older than the rollout": {
			join(replace(0), []happening{{at: 60, object: "Pod/web-aaa-1", reason: "BackOff", message: "again", warning: true, count: 50, since: -20}}),
			[]string{"Nothing is known: the first warning is older than the page’s first record."},
		},
		"the first revision of a StatefulSet that is known": {
			[]happening{createMember(0, 1), memberEvent(1, "hash-1", "Started"), memberEvent(9, "hash-1", "BackOff")},
			[]string{"The pod web-0 was created 9 s before BackOff"},
		},
		"another revision of a StatefulSet": {
			[]happening{createMember(0, 1), memberEvent(1, "hash-1", "Started"), createMember(600, 2), memberEvent(601, "hash-2", "Started"), memberEvent(609, "hash-2", "BackOff")},
			[]string{"The first pod of revision hash-2, web-0, was created 9 s before BackOff"},
		},
		"another revision of a StatefulSet, and of the one before only the end of a pod is known": {
			[]happening{
				{at: 598, object: "Member/web-0", reason: "Killing", message: "Stopping container app", hash: "hash-1"},
				createMember(600, 2), memberEvent(601, "hash-2", "Started"), memberEvent(609, "hash-2", "BackOff"),
			},
			[]string{"A pod of revision hash-2, web-0, replaced one of hash-1 9 s before BackOff"},
		},
		"another revision of a StatefulSet, after the end of another pod": {
			[]happening{
				{at: 598, object: "Member/web-1", reason: "Killing", message: "Stopping container app", hash: "hash-1"},
				createMember(600, 2), memberEvent(601, "hash-2", "Started"), memberEvent(609, "hash-2", "BackOff"),
			},
			[]string{"The pod web-0 was created 9 s before BackOff"},
		},
		"another revision of a DaemonSet, and of the one before only the end of a pod is known": {
			replaceAgent("worker-1"), []string{"A pod of revision hash-2, web-x2, replaced one of hash-1 9 s before BackOff"},
		},
		"another revision of a DaemonSet, after the end of a pod on another node": {
			replaceAgent("worker-2"), []string{"The pod web-x2 was created 9 s before BackOff"},
		},
		"a Job of a CronJob": {
			[]happening{
				{at: 0, object: "CronJob/web", reason: "SuccessfulCreate", message: "Created job web-29"},
				{at: 4, object: "CronJob/web", reason: "BackoffLimitExceeded", message: "m", warning: true},
			},
			[]string{"The rollout of job.batch/web-29 began 4 s before BackoffLimitExceeded"},
		},
		"a pod of a Job, after a CronJob has created the next one": {
			join(jobs, []happening{{at: 70, object: "Task/web-29-abc", reason: "BackOff", message: "m", warning: true}}),
			[]string{"The rollout of job.batch/web-29 began 70 s before BackOff"},
		},
		"a Job, after a CronJob has created the next one": {
			join(jobs, []happening{{at: 70, object: "Job/web-29", reason: "BackoffLimitExceeded", message: "m", warning: true}}),
			[]string{"The rollout of job.batch/web-29 began 70 s before BackoffLimitExceeded"},
		},
		"a CronJob that has created two Jobs": {
			join(jobs, []happening{{at: 70, object: "CronJob/web", reason: "UnexpectedJob", message: "m", warning: true}}),
			[]string{"The rollout of job.batch/web-2 began 10 s before UnexpectedJob"},
		},
		"a pod, before another one was created": {
			join(start(0, "web-aaa-1", "worker-1"), start(600, "web-aaa-2", "worker-1"), []happening{warn(603, "web-aaa-1", "BackOff")}),
			[]string{"The pod web-aaa-1 was created 10 min before BackOff"},
		},
		"a pod without a record of its creation": {
			join(start(600, "web-aaa-2", "worker-1"), []happening{warn(603, "web-aaa-1", "BackOff")}),
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"a ReplicaSet that has created a pod": {
			join(start(600, "web-aaa-2", "worker-1"), []happening{{at: 603, object: "ReplicaSet/web-aaa", reason: "FailedCreate", message: "m", warning: true}}),
			[]string{"The pod web-aaa-2 was created 3 s before FailedCreate"},
		},
		"a pod that was created again long after a rollout": {
			join(first(0), start(1200, "web-aaa-2", "worker-1"), []happening{warn(1203, "web-aaa-2", "BackOff")}),
			[]string{"The pod web-aaa-2 was created 3 s before BackOff", "The rollout of replicaset.apps/web-aaa began 20 min before BackOff"},
		},
		"another pod that was created again long after a rollout": {
			join(first(0), start(1200, "web-aaa-2", "worker-1"), []happening{warn(1203, "web-aaa-1", "BackOff")}),
			[]string{"The rollout of replicaset.apps/web-aaa began 20 min before BackOff"},
		},
		"a pod that was created again soon after a rollout": {
			join(first(0), start(500, "web-aaa-2", "worker-1"), []happening{warn(503, "web-aaa-2", "BackOff")}),
			[]string{"The rollout of replicaset.apps/web-aaa began 8 min before BackOff"},
		},
		"a pod that was created again after the first warning": {
			join(first(0), []happening{warn(5, "web-aaa-1", "BackOff")}, start(1200, "web-aaa-2", "worker-1"), []happening{warn(1203, "web-aaa-2", "BackOff")}),
			[]string{"The rollout of replicaset.apps/web-aaa began 5 s before BackOff"},
		},
		"a pod without an owner": {
			[]happening{
				{at: 0, object: "Bare/web", reason: "Scheduled", message: "Successfully assigned shop/web to worker-1"},
				{at: 4, object: "Bare/web", reason: "BackOff", message: "m", warning: true},
			},
			[]string{"The pod web was scheduled 4 s before BackOff"},
		},
		"a scaling after an unfinished rollout was undone": {
			[]happening{scale(0, "web-aaa", 0, 3), scale(600, "web-bbb", 0, 1), scale(660, "web-bbb", 1, 0), scale(1200, "web-aaa", 3, 30), warn(1205, "web-aaa-9", "FailedScheduling")},
			[]string{"replicaset.apps/web-aaa was scaled from 3 to 30 5 s before FailedScheduling", "The rollout of replicaset.apps/web-bbb began 10 min before FailedScheduling"},
		},
		"a scaling after an unfinished rollout was undone, without a record of the revision before": {
			[]happening{scale(0, "web-bbb", 0, 1), scale(300, "web-bbb", 1, 0), rescale(1200, "any", 30), scale(1200, "web-aaa", 3, 30), warn(1205, "web-aaa-9", "FailedScheduling")},
			[]string{
				"The HorizontalPodAutoscaler any set the size to 30, and replicaset.apps/web-aaa was scaled from 3 to 30 5 s before FailedScheduling",
				"replicaset.apps/web-bbb was scaled from 1 to 0 15 min before FailedScheduling",
				"The rollout of replicaset.apps/web-bbb began 20 min before FailedScheduling",
			},
		},
		"another attempt after an undone rollout, without a record of the revision before": {
			[]happening{
				scale(0, "web-bbb", 0, 1), scale(300, "web-bbb", 1, 0), scale(600, "web-aaa", 3, 4),
				{at: 1200, object: "Deployment/web", reason: "ScalingReplicaSet", message: "Scaled up replica set web-bbb from 0 to 1", count: 2}, warn(1205, "web-bbb-9", "BackOff"),
			},
			[]string{
				"The rollout of replicaset.apps/web-bbb began 5 s before BackOff",
				"replicaset.apps/web-aaa was scaled from 3 to 4 10 min before BackOff",
			},
		},
		"the revision of a DaemonSet before": {
			join(replaceAgent("worker-1")[:3], []happening{
				{at: 1170, object: "Agent/web-x2", reason: "Killing", message: "Stopping container app", hash: "hash-2", node: "worker-1"},
				{at: 1200, object: "DaemonSet/web", reason: "SuccessfulCreate", message: "Created pod: web-x3"},
				{at: 1202, object: "Agent/web-x3", reason: "Started", message: "m", hash: "hash-1", node: "worker-1"},
				{at: 1209, object: "Agent/web-x3", reason: "BackOff", message: "m", hash: "hash-1", node: "worker-1", warning: true},
			}),
			[]string{"A pod of revision hash-1, web-x3, replaced one of hash-2 9 s before BackOff"},
		},
		"a rolling update with many steps": {
			join(first(0), steps(600, 100), []happening{warn(720, "web-bbb-9", "BackOff")}),
			[]string{"The rollout of replicaset.apps/web-bbb began 2 min before BackOff"},
		},
		"rollouts of two Deployments of a custom resource": {
			[]happening{
				{at: 600, object: "PartDeployment/web-a", reason: "ScalingReplicaSet", message: "Scaled up replica set web-a-aaa from 0 to 1"},
				{at: 601, object: "PartDeployment/web-b", reason: "ScalingReplicaSet", message: "Scaled up replica set web-b-bbb from 0 to 1"},
				{at: 610, object: "PartDeployment/web-a", reason: "ReplicaSetCreateError", message: "m", warning: true},
			},
			[]string{
				"The rollout of replicaset.apps/web-b-bbb began 9 s before ReplicaSetCreateError",
				"The rollout of replicaset.apps/web-a-aaa began 10 s before ReplicaSetCreateError",
			},
		},
		"a node that the pod of this name had left for another one": {
			[]happening{assign(0, "web-0", "worker-1"), assign(400, "web-0", "worker-2"), node(500, "worker-1", "Rebooted"), memberEvent(520, "hash-1", "BackOff")},
			[]string{"Nothing is known: the page has no record of a change before the first warning."},
		},
		"the node of a pod whose former node ends the pod that had its name": {
			[]happening{
				assign(0, "web-0", "worker-1"), assign(400, "web-0", "worker-2"), {at: 500, object: "Member/web-0", reason: "Killing", message: "Stopping container app", node: "worker-1"},
				node(600, "worker-2", "NodeNotReady"), memberEvent(605, "hash-1", "NodeNotReady"), memberEvent(606, "hash-1", "BackOff"),
			},
			[]string{"The node worker-2, where the pod web-0 was, became NotReady 6 s before BackOff"},
		},
		"a node that its taint had removed the pod from": {
			join(start(0, "web-aaa-1", "worker-3"), []happening{
				{at: 400, object: "Pod/web-aaa-1", reason: "TaintManagerEviction", message: "Marking for deletion Pod shop/web-aaa-1"},
				node(600, "worker-3", "Rebooted"), warn(610, "web-aaa-2", "BackOff"),
			}),
			[]string{"The pod web-aaa-1 was marked for deletion because of a taint of its node 3 min before BackOff"},
		},
		"a node that was rebooted before the pod was created, without a record of the scheduler": {
			[]happening{
				node(100, "worker-3", "Rebooted"), {at: 500, object: "ReplicaSet/web-aaa", reason: "SuccessfulCreate", message: "Created pod: web-aaa-1"},
				{at: 502, object: "Pod/web-aaa-1", reason: "Started", message: "m", node: "worker-3"}, warn(602, "web-aaa-1", "BackOff"),
			},
			[]string{"The pod web-aaa-1 was created 102 s before BackOff"},
		},
		"a node of the same name in another cluster without UID": {
			join(inCluster("a", start(0, "web-aaa-1", "worker-3")), inCluster("b", []happening{node(590, "worker-3", "NodeNotReady")}), inCluster("a", []happening{warn(602, "web-aaa-1", "BackOff")})),
			[]string{"The pod web-aaa-1 was created 10 min before BackOff"},
		},
		"a rollout on a node whose clock is half a minute behind": {
			join(first(0), replace(600)[:3], []happening{warn(573, "web-bbb-1", "Failed")}),
			[]string{"The rollout of replicaset.apps/web-bbb began before Failed"},
		},
		"a clock that is 3 s behind, and a warning that comes before the record of the scheduler": {
			join(first(0), []happening{warn(597, "web-bbb-1", "Failed")}, replace(600)[:3]),
			[]string{"The rollout of replicaset.apps/web-bbb began before Failed"},
		},
		"a clock that is behind, and a warning of the revision before": {
			join(first(0), []happening{warn(590, "web-aaa-1", "Unhealthy")}, replace(600)[:3], []happening{warn(573, "web-bbb-1", "Failed")}),
			[]string{"The rollout of replicaset.apps/web-bbb began before Failed", "older: Unhealthy"},
		},
		"an Event that comes again half an hour later, after a change": {
			join(first(0), []happening{
				warn(5, "web-aaa-1", "Unhealthy"), scale(1800, "web-aaa", 30, 3),
				{at: 1830, object: "Pod/web-aaa-1", reason: "Unhealthy", message: "Unhealthy of web-aaa-1", warning: true, count: 2, since: 5},
				{at: 1890, object: "Pod/web-aaa-1", reason: "Unhealthy", message: "Unhealthy of web-aaa-1", warning: true, count: 3, since: 5},
			}),
			[]string{
				"replicaset.apps/web-aaa was scaled from 30 to 3 30 s before Unhealthy", "The rollout of replicaset.apps/web-aaa began 30 min before Unhealthy",
				"older: Unhealthy",
			},
		},
		"an Event that goes on, of which the producer writes a state every half an hour": {
			join(first(0), []happening{
				warn(5, "web-aaa-2", "FailedScheduling"), scale(1200, "web-aaa", 30, 3),
				{at: 1805, object: "Pod/web-aaa-2", reason: "FailedScheduling", message: "FailedScheduling of web-aaa-2", warning: true, count: 8, new: 7, since: 5},
			}),
			[]string{"The rollout of replicaset.apps/web-aaa began 5 s before FailedScheduling"},
		},
		"no warning": {first(0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storeOf(t, tt.story)
			assert.Equal(t, tt.want, statements(s, "web"))
			requireRecords(t, s, tt.story)
		})
	}
}

// TestAClockThatIsBehind: the page and the API say why the record of a warning has an earlier time than the change
// before it.
func TestAClockThatIsBehind(t *testing.T) {
	for at, isBehind := range map[int]bool{573: true, 598: false, 600: false, 610: false} {
		s := storeOf(t, join(first(0), replace(600)[:3], []happening{warn(at, "web-bbb-1", "Failed")}))
		c := cardWith(t, s)
		var html bytes.Buffer
		require.NoError(t, templates.ExecuteTemplate(&html, "card", &c))
		assert.Equal(t, isBehind, strings.Contains(html.String(), "by the clock of its node, which is behind"))
		_, body := answerOf(t, s, "/api/workloads/uid-web")
		assert.Equal(t, isBehind, strings.Contains(body, `"clock_behind": true`))
		assert.Contains(t, body, `"first_time": "`+second(at).Format(time.RFC3339)+`"`, "the record is as it came")
	}
}

// TestACollectorWhoseClockIsBehind: the times of its records are in the future. The clock of no node is behind then.
func TestACollectorWhoseClockIsBehind(t *testing.T) {
	for name, tt := range map[string]struct {
		story []happening
		want  string
	}{
		"a Deployment": {
			join(first(0), replace(600)[:3], []happening{warn(603, "web-bbb-1", "Failed")}), "The rollout of replicaset.apps/web-bbb began 3 s before Failed",
		},
		"a StatefulSet": {
			[]happening{createMember(0, 1), memberEvent(1, "hash-1", "Started"), createMember(600, 2), memberEvent(601, "hash-2", "Started"), memberEvent(603, "hash-2", "BackOff")},
			"The first pod of revision hash-2, web-0, was created 3 s before BackOff",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock := storeAt(noon)
			e := &pageExporter{config: &Config{}, store: s}
			for _, h := range tt.story {
				clock.Time = second(h.at - 10)
				require.NoError(t, e.ConsumeLogs(t.Context(), h.logs(t)))
			}
			assert.Equal(t, []string{tt.want}, statements(s, "web"))
		})
	}
}

// steps are those of a rolling update, one in a second.
func steps(at, size int) (story []happening) {
	story = append(story, scale(at, "web-bbb", 0, 1))
	for i := 1; i < size; i++ {
		story = append(story, scale(at+i, "web-aaa", size-i+1, size-i), scale(at+i, "web-bbb", i, i+1))
	}
	return story
}

func assign(at int, pod, node string) happening {
	return happening{at: at, object: "Member/" + pod, reason: "Scheduled", message: "Successfully assigned shop/" + pod + " to " + node, hash: "hash-1"}
}

// inCluster moves a story into a cluster that has a name, but no known UID.
func inCluster(name string, story []happening) []happening {
	for i := range story {
		story[i].cluster = name
	}
	return story
}

// TestARolloutThatThePageHasForgotten: other workloads displace the rollout from the timeline. What
// began it is still known.
func TestARolloutThatThePageHasForgotten(t *testing.T) {
	others := func(at int) (story []happening) {
		for i := range maxRollouts {
			story = append(story, happening{at: at, object: fmt.Sprintf("Pod/other%d-%d.%d-1", i%100, at, i), reason: "Started", message: "m"})
		}
		return story
	}
	update := []happening{scale(0, "web-aaa", 0, 1), scale(600, "web-bbb", 0, 1), scale(603, "web-aaa", 1, 0)}
	for name, tt := range map[string]struct {
		story []happening
		want  []string
	}{
		"an update": {
			join(update, others(610), []happening{warn(638, "web-bbb-1", "BackOff")}),
			[]string{"The rollout of replicaset.apps/web-bbb began 38 s before BackOff"},
		},
		"a rollback": {
			join(update, others(610), []happening{
				{at: 1200, object: "Deployment/web", reason: "ScalingReplicaSet", message: "Scaled up replica set web-aaa from 0 to 1", count: 2},
				scale(1203, "web-bbb", 1, 0), warn(1210, "web-aaa-2", "BackOff"),
			}),
			[]string{"The rollout of replicaset.apps/web-aaa began 10 s before BackOff"},
		},
		"a scale-up from zero of the current revision": {
			join(update, []happening{scale(700, "web-bbb", 1, 0)}, others(710), []happening{scale(1200, "web-bbb", 0, 2), warn(1205, "web-bbb-9", "FailedScheduling")}),
			[]string{"replicaset.apps/web-bbb was scaled from 0 to 2 5 s before FailedScheduling", "The rollout of replicaset.apps/web-bbb began 10 min before FailedScheduling"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storeAlong(t, tt.story)
			assert.Equal(t, tt.want, statements(s, "web"))
			requireRecords(t, s, tt.story)
		})
	}
}

// statements returns what the page states about a workload; empty: about all.
func statements(s *store, name string) (all []string) {
	for _, w := range slices.SortedFunc(maps.Values(s.workloads), func(a, b *workload) int { return a.order - b.order }) {
		a := s.explained(w)
		if a == nil || name != "" && w.top.Name != name {
			continue
		}
		for _, c := range a.Changes {
			all = append(all, c.Text+" "+c.Before()+" "+a.First.Reason)
		}
		if a.Nothing != "" {
			all = append(all, a.Nothing)
		}
		if a.Older != nil {
			all = append(all, "older: "+a.Older.Reason)
		}
	}
	return all
}

// requireRecords checks that the page states nothing without a record, and that each record is as it came.
func requireRecords(t *testing.T, s *store, story []happening) {
	t.Helper()
	came := map[string]string{}
	for _, h := range story {
		for _, e := range entriesIn(h.logs(t)) {
			came[e.id] = fmt.Sprint(e.at, e.of[traitReason], e.message)
		}
	}
	for _, w := range s.workloads {
		a := s.explained(w)
		for _, r := range a.records() {
			require.Equal(t, came[r.UID], fmt.Sprint(r.Time, r.Reason, r.Message))
		}
		if a != nil {
			for _, c := range a.Changes {
				require.NotEmpty(t, c.Records, c.Text)
			}
		}
	}
}

// TestWhatChangedInRealRecords has the answers to what real kubelets, schedulers and controllers
// emit.
func TestWhatChangedInRealRecords(t *testing.T) {
	files, err := filepath.Glob("../../testdata/producers/kubernetes/*.logs.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 15)
	var got strings.Builder
	for _, file := range files {
		logs, err := golden.ReadLogs(file)
		require.NoError(t, err)
		now := noon
		for _, e := range entriesIn(logs) {
			now = later(now, e.at)
		}
		_, _ = fmt.Fprintf(&got, "%s\n", strings.TrimSuffix(filepath.Base(file), ".logs.yaml"))
		for _, statement := range statements(storeWith(now, logs), "") {
			_, _ = fmt.Fprintf(&got, "  %s\n", statement)
		}
	}
	requireGolden(t, "answers.txt", got.String())
}

// requireGolden compares a text with a file in testdata.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	expected, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -args -update")
	assert.Equal(t, string(expected), got)
}
