// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// happening is an occurrence of an Event, in seconds after noon.
type happening struct {
	at      int
	object  string // KIND/NAME; for a pod, a ReplicaSet and a Deployment, the name implies the owners
	reason  string
	message string
	warning bool
	node    string // that a kubelet reports
	hash    string // the label controller-revision-hash
	life    string // of the workload, if it was created again
	owner   string // the UID of the nearest owner
	cluster string // its name, if its UID is not known
	in      string // the namespace; empty: shop
	count   int64
	since   int   // of an Event that occurred several times
	new     int64 // occurrences; 0: one
}

// owners are the kinds of owners by the kind of the object, the nearest first.
var owners = map[string][]string{
	"Pod": {"replicaset.apps", "deployment.apps"}, "ReplicaSet": {"deployment.apps"}, "Deployment": {}, "Member": {"statefulset.apps"}, "Agent": {"daemonset.apps"}, "Task": {"job.batch", "cronjob.batch"}, "Job": {"cronjob.batch"},
	"KedaAutoscaler": {"scaledobject.keda.sh"}, "PartDeployment": {"market.example.com"}, "Static": {"node"}, "Run": {"pipelinerun.tekton.dev"},
	"Launcher": {"virtualmachineinstance.kubevirt.io", "virtualmachine.kubevirt.io"}, "VirtualMachineInstance": {"virtualmachine.kubevirt.io"},
}

// mixedCase are kinds as a record has them.
var mixedCase = map[string]string{"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet", "cronjob": "CronJob", "node": "Node", "virtualmachine": "VirtualMachine"}

// kinds are the kinds of objects of which the stories have several names.
var kinds = strings.NewReplacer("Member", "Pod", "Agent", "Pod", "Task", "Pod", "Bare", "Pod", "Static", "Pod", "Run", "Pod", "Launcher", "Pod", "Keda", "HorizontalPod", "Part", "")

// versions are the API versions of kinds; others have v1.
var versions = map[string]string{"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "HorizontalPodAutoscaler": "autoscaling/v2", "KedaAutoscaler": "autoscaling/v2", "PartDeployment": "apps/v1", "CronJob": "batch/v1", "Job": "batch/v1"}

func (h happening) logs(t *testing.T) plog.Logs {
	t.Helper()
	kind, name, _ := strings.Cut(h.object, "/")
	version := cmp.Or(versions[kind], "v1")
	top, topKind, topVersion, chain := name, kinds.Replace(kind), version, []any{}
	for _, owner := range owners[kind] {
		top = top[:strings.LastIndex(top, "-")]
		chain = append(chain, owner+"/"+top)
		lower, group, hasGroup := strings.Cut(owner, ".")
		topKind, topVersion = cmp.Or(mixedCase[lower], lower), map[bool]string{true: group + "/v1", false: "v1"}[hasGroup]
	}
	attributes := map[string]any{
		"k8s.cluster.uid": "cluster", "k8s.namespace.name": cmp.Or(h.in, "shop"), "k8s.object.name": name, "k8s.object.uid": "uid-" + name + h.hash,
		"k8s.object.kind": kinds.Replace(kind), "k8s.object.api_version": version,
		"k8s.workload.api_version": topVersion, "k8s.workload.kind": topKind, "k8s.workload.name": top, "k8s.workload.uid": "uid-" + top + h.life, "k8s.owner.chain": chain,
	}
	if kind == "Pod" && slices.Contains([]string{"Pulling", "Started", "Failed", "BackOff"}, h.reason) {
		attributes["k8s.container.name"] = "app"
	}
	if h.node != "" {
		attributes["k8s.node.name"] = h.node
	}
	if h.owner != "" {
		attributes["k8s.owner.uid"] = h.owner
	}
	if h.hash != "" {
		attributes["k8s.pod.label.controller-revision-hash"] = h.hash
	}
	if h.cluster != "" {
		delete(attributes, "k8s.cluster.uid")
		attributes["k8s.cluster.name"] = h.cluster
	}
	if kind == "Node" {
		delete(attributes, "k8s.namespace.name")
	}
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	require.NoError(t, resource.Resource().Attributes().FromRaw(attributes))
	scope := resource.ScopeLogs().AppendEmpty()
	scope.Scope().SetName("github.com/kubeevents/kubeeventsreceiver")
	h.write(t, scope.LogRecords().AppendEmpty())
	return logs
}

func (h happening) write(t *testing.T, record plog.LogRecord) {
	t.Helper()
	sum := fnv.New64a()
	_, _ = fmt.Fprint(sum, h.object, h.reason, h.message)
	uid := fmt.Sprintf("%x", sum.Sum64())
	if h.count == 0 {
		h.count, h.since = 1, h.at
	}
	record.SetEventName("k8s.event")
	record.SetTimestamp(pcommon.NewTimestampFromTime(second(h.at)))
	record.SetSeverityText(map[bool]string{true: "Warning", false: "Normal"}[h.warning])
	record.Body().SetStr(h.message)
	require.NoError(t, record.Attributes().FromRaw(map[string]any{
		"k8s.event.uid": uid, "log.record.uid": fmt.Sprint(uid, "-", h.count), "k8s.event.reason": h.reason,
		"k8s.event.count": h.count, "k8s.event.occurrences": max(1, h.new),
		"k8s.event.type": record.SeverityText(), "k8s.event.start_time": second(h.since).Format(time.RFC3339), "k8s.owner.resolution": "complete",
	}))
}

func second(after int) time.Time { return noon.Add(time.Duration(after) * time.Second) }

// storeOf returns a store that has the records, a minute after the last one.
func storeOf(t *testing.T, story []happening) *store {
	t.Helper()
	var logs []plog.Logs
	end := 0
	for _, h := range story {
		logs = append(logs, h.logs(t))
		end = max(end, h.at)
	}
	return storeWith(second(end+60), logs...)
}

// storeAlong returns a store that got each record at its time.
func storeAlong(t *testing.T, story []happening) *store {
	t.Helper()
	s, clock := storeAt(noon)
	e := &pageExporter{config: &Config{}, store: s}
	for _, h := range story {
		clock.Time = later(clock.Time, second(h.at))
		require.NoError(t, e.ConsumeLogs(t.Context(), h.logs(t)))
	}
	return s
}

func storeWith(now time.Time, logs ...plog.Logs) *store {
	s, _ := storeAt(now)
	e := &pageExporter{config: &Config{}, store: s}
	for _, batch := range logs {
		_ = e.ConsumeLogs(nil, batch) //nolint:staticcheck // It uses no context, and writes no lines.
	}
	return s
}

func scale(at int, revision string, from, to int) happening {
	direction := "up"
	if to < from {
		direction = "down"
	}
	owner := revision[:strings.LastIndex(revision, "-")]
	return happening{at: at, object: "Deployment/" + owner, reason: "ScalingReplicaSet", message: fmt.Sprintf("Scaled %s replica set %s from %d to %d", direction, revision, from, to)}
}

func rescale(at int, name string, size int) happening {
	return happening{at: at, object: "HorizontalPodAutoscaler/" + name, reason: "SuccessfulRescale", message: fmt.Sprintf("New size: %d; reason: cpu resource utilization (percentage of request) above target", size)}
}

// start has the records of a pod that starts.
func start(at int, pod, node string) []happening {
	owner := pod[:strings.LastIndex(pod, "-")]
	return []happening{
		{at: at, object: "ReplicaSet/" + owner, reason: "SuccessfulCreate", message: "Created pod: " + pod},
		{at: at, object: "Pod/" + pod, reason: "Scheduled", message: "Successfully assigned shop/" + pod + " to " + node},
		{at: at + 2, object: "Pod/" + pod, reason: "Started", message: "Container started", node: node},
	}
}

func warn(at int, pod, reason string) happening {
	return happening{at: at, object: "Pod/" + pod, reason: reason, message: reason + " of " + pod, warning: true}
}

func node(at int, name, reason string) happening {
	return happening{at: at, object: "Node/" + name, reason: reason, message: "Node " + name + " status is now: " + reason}
}

func join(stories ...[]happening) []happening { return slices.Concat(stories...) }
