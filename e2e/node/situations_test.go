// SPDX-License-Identifier: Apache-2.0

package node

// nodeStart is the situation that the start of the node causes.
const nodeStart = "node-start"

// The kinds of objects that events are about.
const (
	pod         = "Pod"
	nodeKind    = "Node"
	deployment  = "Deployment"
	replicaSet  = "ReplicaSet"
	statefulSet = "StatefulSet"
	daemonSet   = "DaemonSet"
	job         = "Job"
	cronJob     = "CronJob"
)

var situations = []situation{
	{
		name: nodeStart, always: true,
		about: "A node starts. The kubelet's events have no UID, and that of kube-proxy, which uses the new recorder, has no message.",
		wants: []want{
			{nodeKind, "Starting", "Starting kubelet", 1},
			{nodeKind, "Starting", "kube-proxy", 1},
			{nodeKind, "NodeHasSufficientMemory", "", 1},
			{nodeKind, "NodeAllocatableEnforced", "", 1},
			{nodeKind, "RegisteredNode", "node-controller", 1},
			{nodeKind, "NodeReady", "kubelet", 1},
		},
	},
	{
		name: "image-pull", always: true,
		about: "An image cannot be pulled: ErrImagePull, ImagePullBackOff, and the kubelet's BackOff, which repeats.",
		wants: []want{
			{pod, "Scheduled", "", 1},
			{pod, "Pulling", "", 1},
			{pod, "Failed", "Failed to pull image", 1},
			{pod, "Failed", "Error: ErrImagePull", 1},
			{pod, "Failed", "Error: ImagePullBackOff", 1},
			{pod, "BackOff", "Back-off pulling image", 2},
		},
	},
	{
		name:  "image-names",
		about: "An image that may not be pulled, and a name that is not one.",
		wants: []want{
			{pod, "ErrImageNeverPull", "", 1},
			{pod, "InspectFailed", "", 1},
			{pod, "Failed", "Error: InvalidImageName", 2},
		},
	},
	{
		name:  "crash-loop",
		about: "A container crashes again and again: its events repeat, and then the kubelet's BackOff does.",
		wants: []want{
			{deployment, "ScalingReplicaSet", "", 1},
			{replicaSet, "SuccessfulCreate", "", 1},
			{pod, "Created", "", 1},
			{pod, "Started", "", 2},
			{pod, "BackOff", "Back-off restarting failed container", 2},
		},
	},
	{
		name: "probes", always: true,
		about: "Three containers of a pod, each with a probe that fails. Two of them are restarted.",
		wants: []want{
			{pod, "Unhealthy", "Liveness probe failed", 1},
			{pod, "Unhealthy", "Readiness probe failed", 2},
			{pod, "Unhealthy", "Startup probe failed", 1},
			{pod, "Killing", "failed liveness probe", 1},
			{pod, "Killing", "failed startup probe", 1},
		},
	},
	{
		name: "hooks", cause: stopPod,
		about: "A container whose postStart hook fails, and one that is deleted and whose preStop hook fails.",
		wants: []want{
			{pod, "FailedPostStartHook", "", 1},
			{pod, "Killing", "FailedPostStartHook", 1},
			{pod, "FailedPreStopHook", "", 1},
			{pod, "Killing", "Stopping container", 1},
		},
	},
	{
		name: "scale-down", cause: scaleDown,
		about: "A Deployment loses its only pod. The kubelet's Killing is about a pod that no longer exists.",
		wants: []want{
			{deployment, "ScalingReplicaSet", "Scaled down", 1},
			{replicaSet, "SuccessfulDelete", "", 1},
			{pod, "Killing", "Stopping container", 1},
		},
	},
	{
		name:  "failed-mount",
		about: "A volume of a ConfigMap that does not exist.",
		wants: []want{
			{statefulSet, "SuccessfulCreate", "", 1},
			{pod, "FailedMount", "configmap", 3},
		},
	},
	{
		name:  "failed-sandbox",
		about: "A pod whose RuntimeClass the container runtime does not know. Each message names another sandbox, so the events are combined.",
		wants: []want{
			{pod, "FailedCreatePodSandBox", "no runtime", 1},
			{pod, "FailedCreatePodSandBox", "(combined from similar events)", 2},
		},
	},
	{
		name: "failed-scheduling", cause: freeResources,
		about: "A pod that fits on no node: the scheduler's series. Its first event is another one, because the pod changed since.",
		wants: []want{
			{pod, "FailedScheduling", "", 1},
			{pod, "FailedScheduling", "", 2},
		},
	},
	{
		name: "preemption", cause: offerSeat,
		about: "A pod with a higher priority preempts another one. Only the message of Preempted names it: the event has no related object.",
		wants: []want{
			{pod, "Preempted", "", 1},
			{pod, "Killing", "", 1},
			{pod, "FailedScheduling", "", 1},
		},
	},
	{
		name: "containers", always: true, cause: addEphemeralContainer,
		about: "An init container, a sidecar, an ordinary and an ephemeral container of a DaemonSet's pod.",
		wants: []want{
			{daemonSet, "SuccessfulCreate", "", 1},
			{pod, "Started", "spec.initContainers{setup}", 1},
			{pod, "Started", "spec.initContainers{sidecar}", 1},
			{pod, "Started", "spec.containers{app}", 1},
			{pod, "Started", "spec.ephemeralContainers{debug}", 1},
		},
	},
	{
		name: "static-pod", always: true, cause: addAndRemoveStaticPod,
		about: "A static pod: its UID in the kubelet's events is the hash of its manifest, and the mirror pod's owner is the node.",
		wants: []want{
			{pod, "Started", "", 1},
			{pod, "Killing", "", 1},
		},
	},
	{
		name:  "cronjob",
		about: "A CronJob runs, and a Job fails.",
		wants: []want{
			{job, "SuccessfulCreate", "", 1},
			{job, "BackoffLimitExceeded", "", 1},
			{cronJob, "SuccessfulCreate", "", 1},
			{pod, "Started", "hourly-", 1},
			{job, "Completed", "", 1},
			{cronJob, "SawCompletedJob", "", 1},
		},
	},
	{
		name:  "out-of-memory",
		about: "The kernel kills a container at its memory limit. No event of the kubelet says so: it is a crash like any other.",
		wants: []want{
			{pod, "Started", "", 2},
			{pod, "BackOff", "Back-off restarting failed container", 1},
		},
	},
	{
		name:  "quota",
		about: "A ResourceQuota forbids pods: the names differ, so the old recorder combines the events from the 10th on.",
		wants: []want{
			{replicaSet, "FailedCreate", "exceeded quota", 1},
			{replicaSet, "FailedCreate", "(combined from similar events)", 2},
		},
	},
	{
		name:  "controllers",
		about: "Objects of other controllers: an autoscaler without metrics, a claim without a volume, a budget without pods.",
		wants: []want{
			{"HorizontalPodAutoscaler", "FailedGetResourceMetric", "", 1},
			{"PersistentVolumeClaim", "FailedBinding", "", 2},
			{"PodDisruptionBudget", "NoPods", "", 1},
		},
	},
}
