// SPDX-License-Identifier: Apache-2.0

package docs

// recordedMessage is a message with the facts in it.
type recordedMessage struct {
	reason, text string
	facts        facts
}

// recordedMessages are in the words of kubelets, schedulers and Deployment controllers, by the
// versions of Kubernetes that use them. README.md of the recipe lists the same versions.
var recordedMessages = map[string]recordedMessage{
	"1.28 and 1.29, a pull": {
		"Pulled", `Successfully pulled image "nginx:1.29" in 1.5s (2.25s including waiting)`,
		facts{"pull.image": "nginx:1.29", "pull.duration": 1.5, "pull.duration_with_waiting": 2.25},
	},
	"1.30 to 1.36, a pull": {
		"Pulled", `Successfully pulled image "nginx:1.29" in 845ms (1m2.5s including waiting). Image size: 62863107 bytes.`,
		facts{"pull.image": "nginx:1.29", "pull.duration": 0.845, "pull.duration_with_waiting": 62.5, "pull.size": int64(62863107)},
	},
	"no pull": {
		"Pulled", `Container image "nginx:1.29" already present on machine and can be accessed by the pod`, facts{},
	},
	"1.28, scheduling": {
		"FailedScheduling",
		"0/5 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 3 node(s) didn't match Pod's node affinity/selector. " +
			"preemption: 0/5 nodes are available: 1 No preemption victims found for incoming pod, 4 Preemption is not helpful for scheduling..",
		facts{"scheduling.nodes": int64(5), "scheduling.causes": []any{
			"Insufficient cpu", "node(s) had untolerated taint {node.kubernetes.io/not-ready: }", "node(s) didn't match Pod's node affinity/selector",
		}},
	},
	"1.34 to 1.36, scheduling": {
		"FailedScheduling",
		"0/3 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
		facts{"scheduling.nodes": int64(3), "scheduling.causes": []any{"Insufficient memory", "node(s) had untolerated taint(s)"}},
	},
	"1.29 to 1.33, scheduling": {
		"FailedScheduling",
		"0/3 nodes are available: 1 Insufficient example.com/seat, 2 node(s) had untolerated taint {dedicated: gpu}. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
		facts{"scheduling.nodes": int64(3), "scheduling.causes": []any{"Insufficient example.com/seat", "node(s) had untolerated taint {dedicated: gpu}"}},
	},
	"scheduling, a volume": {
		"FailedScheduling", `0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.`,
		facts{"scheduling.nodes": int64(3), "scheduling.causes": []any{`persistentvolumeclaim "data" not found`}},
	},
	"scheduling, without nodes": {
		"FailedScheduling", "no nodes available to schedule pods", facts{},
	},
	"a readiness probe": {
		"Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500", facts{"probe.kind": "readiness", "probe.outcome": "failed"},
	},
	"a probe with output of several lines": {
		"Unhealthy", "Liveness probe failed: first line\nStartup probe failed\n", facts{"probe.kind": "liveness", "probe.outcome": "failed"},
	},
	"1.28 to 1.32, a probe that cannot run": {
		"Unhealthy", `Startup probe errored: rpc error: code = NotFound`, facts{"probe.kind": "startup", "probe.outcome": "errored"},
	},
	"1.33 to 1.36, a probe that cannot run": {
		"Unhealthy", `Startup probe errored and resulted in unknown state: rpc error: code = NotFound`, facts{"probe.kind": "startup", "probe.outcome": "errored"},
	},
	"a redirect": {
		"ProbeWarning", "Readiness probe warning: Probe terminated redirects", facts{"probe.kind": "readiness", "probe.outcome": "warning"},
	},
	"killed by a probe": {
		"Killing", "Container shop failed liveness probe, will be restarted", facts{"probe.kind": "liveness"},
	},
	"killed by its user": {
		"Killing", "Stopping container shop", facts{},
	},
	"1.28 to 1.31, a new ReplicaSet": {
		"ScalingReplicaSet", "Scaled up replica set shop-5d4f8c7b9 to 3", facts{"scaling.replica_set": "shop-5d4f8c7b9", "scaling.to": int64(3)},
	},
	"1.28 to 1.31, scaling": {
		"ScalingReplicaSet", "Scaled down replica set shop-5d4f8c7b9 to 1 from 3",
		facts{"scaling.replica_set": "shop-5d4f8c7b9", "scaling.from": int64(3), "scaling.to": int64(1)},
	},
	"1.32 to 1.36, scaling": {
		"ScalingReplicaSet", "Scaled up replica set shop-5d4f8c7b9 from 0 to 3",
		facts{"scaling.replica_set": "shop-5d4f8c7b9", "scaling.from": int64(0), "scaling.to": int64(3)},
	},
	"1.36, a resize that is complete": {
		"ResizeCompleted", `Pod resize completed: {"containers":[{"name":"shop","resources":{"requests":{"cpu":"2"}}}],"generation":3}`,
		facts{"resize.generation": int64(3), "resize.containers": []any{
			map[string]any{"name": "shop", "resources": map[string]any{"requests": map[string]any{"cpu": "2"}}},
		}},
	},
	"1.36, a resize that does not fit": {
		"ResizeInfeasible", `Pod resize Infeasible: {"containers":[{"name":"shop","resources":{}}],"generation":4,"error":"Node didn't have enough capacity: cpu, requested: 100000, capacity: 2000"}`,
		facts{
			"resize.generation": int64(4), "resize.error": "Node didn't have enough capacity: cpu, requested: 100000, capacity: 2000",
			"resize.containers": []any{map[string]any{"name": "shop", "resources": map[string]any{}}},
		},
	},
	"a resize without its resources": {
		"ResizeStarted", "Pod resize started", facts{},
	},
	"a resize whose text is cut off": {
		"ResizeStarted", `Pod resize started: {"containers":[{"name":"shop}`, facts{},
	},
}
