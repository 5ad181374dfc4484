// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// epoch is when all stories begin.
var epoch = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

// story is a list of records, as the receiver emits them.
type story []plog.Logs

// object is what a record is about.
type object struct {
	kind, name, uid string
	chain           []string // its owners, the nearest first
	workload        string   // kind/name of the end of the chain
	hash            string   // the label controller-revision-hash
	node            string
	owner           string // the UID of the nearest owner
}

func deployment(name string) object {
	return object{kind: "Deployment", name: name, uid: "uid-" + name, workload: "Deployment/" + name}
}

func replicaSet(name string) object {
	owner := name[:strings.LastIndex(name, "-")]
	return object{kind: "ReplicaSet", name: name, uid: "uid-" + name, chain: []string{"deployment.apps/" + owner}, workload: "Deployment/" + owner}
}

// pod returns a pod of a ReplicaSet.
func pod(name string) object {
	owner := name[:strings.LastIndex(name, "-")]
	top := owner[:strings.LastIndex(owner, "-")]
	return object{
		kind: "Pod", name: name, uid: "uid-" + name, workload: "Deployment/" + top,
		chain: []string{"replicaset.apps/" + owner, "deployment.apps/" + top},
	}
}

func statefulSet(name string) object {
	return object{kind: "StatefulSet", name: name, uid: "uid-" + name, workload: "StatefulSet/" + name}
}

// member returns a pod of a StatefulSet. Pods of the same name have different UIDs.
func member(name, uid, hash string) object {
	owner := name[:strings.LastIndex(name, "-")]
	return object{kind: "Pod", name: name, uid: uid, hash: hash, chain: []string{"statefulset.apps/" + owner}, workload: "StatefulSet/" + owner}
}

// occurrence is an occurrence of an Event.
type occurrence struct {
	at        string // after the epoch
	about     object
	reason    string
	message   string
	container string // init:NAME for an init container, debug:NAME for an ephemeral one
	count     int64
	since     string // the first occurrence; empty: this one
	kind      string // Normal or Warning; empty: the reason decides
	event     string // UID; empty: one for each object, reason, container and message

	resolution string // empty: complete
}

// add adds records, each in a request of its own.
func (s *story) add(all ...occurrence) {
	for _, o := range all {
		*s = append(*s, o.logs())
	}
}

func after(offset string) time.Time {
	d, err := time.ParseDuration(offset)
	if err != nil {
		panic(err)
	}
	return epoch.Add(d)
}

func (o occurrence) logs() plog.Logs {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	o.about.write(rl.Resource().Attributes())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("github.com/kubeevents/kubeeventsreceiver")
	record := sl.LogRecords().AppendEmpty()
	record.SetEventName("k8s.event")
	record.SetTimestamp(pcommon.NewTimestampFromTime(after(o.at)))
	record.Body().SetStr(o.message)
	record.Attributes().PutStr("k8s.owner.resolution", cmp.Or(o.resolution, "complete"))
	o.write(record.Attributes(), rl.Resource().Attributes())
	return logs
}

func (o object) write(attributes pcommon.Map) {
	kind, name, _ := strings.Cut(o.workload, "/")
	attributes.PutStr("k8s.cluster.uid", "cluster")
	attributes.PutStr("k8s.namespace.name", "shop")
	attributes.PutStr("k8s.object.api_version", map[bool]string{true: "v1", false: "apps/v1"}[o.kind == "Pod"])
	attributes.PutStr("k8s.object.kind", o.kind)
	attributes.PutStr("k8s.object.name", o.name)
	attributes.PutStr("k8s.object.uid", o.uid)
	attributes.PutStr("k8s.workload.kind", kind)
	attributes.PutStr("k8s.workload.name", name)
	attributes.PutStr("k8s.workload.uid", "uid-"+name)
	attributes.PutStr("service.name", name)
	if o.hash != "" {
		attributes.PutStr("k8s.pod.label.controller-revision-hash", o.hash)
	}
	if o.node != "" {
		attributes.PutStr("k8s.node.name", o.node)
	}
	if o.owner != "" {
		attributes.PutStr("k8s.owner.uid", o.owner)
	}
	if len(o.chain) > 0 {
		chain := attributes.PutEmptySlice("k8s.owner.chain")
		for _, owner := range o.chain {
			chain.AppendEmpty().SetStr(owner)
		}
	}
}

func (o occurrence) write(record, resource pcommon.Map) {
	count, uid := max(1, o.count), o.event
	if uid == "" {
		uid = fmt.Sprintf("%s.%s.%s.%s", o.about.uid, o.reason, o.container, o.message)
	}
	eventType := "Normal"
	if strings.HasPrefix(o.reason, "Failed") || slices.Contains([]string{"Unhealthy", "BackOff", "BackoffLimitExceeded", "DeadlineExceeded"}, o.reason) {
		eventType = "Warning"
	}
	eventType = cmp.Or(o.kind, eventType)
	record.PutStr("k8s.event.uid", uid)
	record.PutStr("k8s.event.reason", o.reason)
	record.PutStr("k8s.event.type", eventType)
	record.PutInt("k8s.event.count", count)
	record.PutStr("log.record.uid", fmt.Sprintf("%s-%d", uid, count))
	if o.since != "" {
		record.PutStr("k8s.event.start_time", after(o.since).Format(time.RFC3339Nano))
	}
	if o.container != "" {
		name, field := o.container, "spec.containers"
		if init, ok := strings.CutPrefix(o.container, "init:"); ok {
			name, field = init, "spec.initContainers"
		}
		if debug, ok := strings.CutPrefix(o.container, "debug:"); ok {
			name, field = debug, "spec.ephemeralContainers"
		}
		resource.PutStr("k8s.container.name", name)
		record.PutStr("k8s.object.fieldpath", field+"{"+name+"}")
	}
}

// scale is the record of a Deployment that scales a ReplicaSet.
func scale(at, replicaSet string, from, to int) occurrence {
	direction := "up"
	if to < from {
		direction = "down"
	}
	owner := replicaSet[:strings.LastIndex(replicaSet, "-")]
	return occurrence{at: at, about: deployment(owner), reason: "ScalingReplicaSet", message: fmt.Sprintf("Scaled %s replica set %s from %d to %d", direction, replicaSet, from, to)}
}

func create(at, name string) occurrence {
	return occurrence{at: at, about: replicaSet(name[:strings.LastIndex(name, "-")]), reason: "SuccessfulCreate", message: "Created pod: " + name}
}

// startOf has the records of a pod that starts within 4 seconds: those from the second `from` on.
func startOf(at string, of object) []occurrence {
	t := func(seconds int) string { return (after(at).Sub(epoch) + time.Duration(seconds)*time.Second).String() }
	return []occurrence{
		{at: t(0), about: of, reason: "Scheduled", message: "Successfully assigned shop/" + of.name + " to worker-1"},
		{at: t(1), about: of, reason: "Pulling", container: "app", message: `Pulling image "shop:2"`},
		{at: t(3), about: of, reason: "Pulled", container: "app", message: `Successfully pulled image "shop:2" in 1.9s (2s including waiting). Image size: 1234 bytes.`},
		{at: t(3), about: of, reason: "Created", container: "app", message: "Container created"},
		{at: t(4), about: of, reason: "Started", container: "app", message: "Container started"},
	}
}

func stop(at string, of object) occurrence {
	return occurrence{at: at, about: of, reason: "Killing", container: "app", message: "Stopping container app"}
}
