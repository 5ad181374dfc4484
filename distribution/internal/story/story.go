// SPDX-License-Identifier: Apache-2.0

// Package story reads records from lines of text, and recorded ones from files. Only tests and the evaluation of agents
// use it.
//
// A line is TIME OBJECT REASON SETTINGS: MESSAGE. The time is since the begin of the story, as 4:10
// or 4m10s. The object is KIND/NAME, with its owners after a <; pods and ReplicaSets have the usual
// ones. A warning has a ! before the reason, and a container is in braces after it. A setting
// x3/10s is the third occurrence since 10 s. Without a reason, "starts" are the records of a pod
// that starts.
package story

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Epoch is when stories begin.
var Epoch = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// Record is a record of the receiver.
type Record struct {
	At         time.Duration // since the begin of the story
	Kind, Name string
	Owners     []string // the nearest first, in the form of kubectl
	Reason     string
	Container  string // NAME, or KIND:NAME
	Message    string
	Warning    bool
	// Settings are new (occurrences since the record before), time (of the record, if it is late),
	// inside (the namespace of a Node's Event that a tenant wrote), namespace, uid, node, hash,
	// event, count, since, related, owner, resolution, reporter, action, top and topuid. What the
	// receiver read is in ended (REASON/EXIT-CODE/BYTES/TIME of the end), changes (with _ for a blank,
	// and a ; between two), tool, by and configmap (NAME/changed/TIME/MANAGER, or created).
	Settings map[string]string
}

// Records reads lines.
func Records(lines string) (all []Record) {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		head, message, _ := strings.Cut(strings.TrimSpace(line), ": ")
		fields := strings.Fields(head)
		at := Time(fields[0])
		if fields[2] != "starts" {
			all = append(all, recordOf(at, fields[1:], message))
			continue
		}
		for _, step := range starts {
			own := slices.Concat([]string{fields[1], step.reason}, fields[3:])
			all = append(all, recordOf(at+step.at, own, step.message))
		}
	}
	return all
}

// Logs returns the records of a story, one by one.
func Logs(lines string) (all []plog.Logs) {
	for _, r := range Records(lines) {
		all = append(all, r.Logs(Epoch))
	}
	return all
}

// Time reads a time since the begin of a story.
func Time(text string) time.Duration {
	if minutes, seconds, ok := strings.Cut(text, ":"); ok {
		text = minutes + "m" + seconds + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

var starts = []struct {
	at              time.Duration
	reason, message string
}{
	{0, "Scheduled", "Successfully assigned shop/POD to NODE"}, {time.Second, "Pulling{app}", `Pulling image "shop:2"`},
	{3 * time.Second, "Pulled{app}", `Successfully pulled image "shop:2" in 1.9s (2s including waiting). Image size: 1234 bytes.`},
	{3 * time.Second, "Created{app}", "Container created"}, {4 * time.Second, "Started{app}", "Container started"},
}

// recordOf returns the record of an object, a reason and settings.
func recordOf(at time.Duration, fields []string, message string) Record {
	chain := strings.Split(fields[0], "<")
	r := Record{At: at, Settings: map[string]string{"resolution": "complete", "count": "1"}}
	r.Kind, r.Name, _ = strings.Cut(chain[0], "/")
	r.Owners, r.Message = ownersOf(r.Kind, r.Name, chain[1:]), strings.ReplaceAll(message, "POD", r.Name)
	r.Reason, r.Container, _ = strings.Cut(strings.TrimSuffix(fields[1], "}"), "{")
	r.Reason, r.Warning = strings.CutPrefix(r.Reason, "!")
	r.Settings["top"] = r.Kind + "/" + r.Name
	if len(r.Owners) > 0 {
		r.Settings["top"] = topOf(r.Owners[len(r.Owners)-1])
	}
	for _, field := range fields[2:] {
		if key, value, ok := strings.Cut(field, "="); ok {
			r.Settings[key] = value
		} else {
			r.Settings["count"], r.Settings["since"], _ = strings.Cut(strings.TrimPrefix(field, "x"), "/")
		}
	}
	r.Message = strings.ReplaceAll(r.Message, "NODE", cmp.Or(r.Settings["node"], "worker-1"))
	return r
}

// Logs returns the record of a story that begins at a time.
func (r Record) Logs(epoch time.Time) plog.Logs {
	set := r.Settings
	uid := cmp.Or(set["uid"], "uid-"+r.Name+set["hash"])
	topKind, topName, _ := strings.Cut(set["top"], "/")
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	putAll(rl.Resource().Attributes(), map[string]string{
		"k8s.cluster.uid": "cluster", "k8s.namespace.name": cmp.Or(set["inside"], set["namespace"], "shop"), "k8s.object.kind": r.Kind,
		"k8s.object.name": r.Name, "k8s.object.uid": uid, "k8s.object.api_version": versionOf(r.Kind), "k8s.workload.api_version": versionOf(topKind),
		"k8s.workload.kind": topKind, "k8s.workload.name": topName, "k8s.workload.uid": cmp.Or(set["topuid"], "uid-"+topName),
		"k8s.pod.label.controller-revision-hash": set["hash"], "k8s.node.name": set["node"], "k8s.owner.uid": set["owner"],
		"k8s.container.name": r.Container[strings.LastIndex(r.Container, ":")+1:],
	})
	if r.Kind == "Node" && set["inside"] == "" {
		rl.Resource().Attributes().Remove("k8s.namespace.name")
	}
	if len(r.Owners) > 0 {
		owners := rl.Resource().Attributes().PutEmptySlice("k8s.owner.chain")
		for _, owner := range r.Owners {
			owners.AppendEmpty().SetStr(owner)
		}
	}
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("k8s.event")
	at := r.At
	if set["time"] != "" {
		at = Time(set["time"])
	}
	record.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(at)))
	record.SetSeverityText(map[bool]string{true: "Warning", false: "Normal"}[r.Warning])
	record.Body().SetStr(r.Message)
	count, since := int64(0), ""
	_, _ = fmt.Sscan(set["count"], &count)
	record.Attributes().PutInt("k8s.event.count", count)
	if fresh := int64(0); set["new"] != "" {
		_, _ = fmt.Sscan(set["new"], &fresh)
		record.Attributes().PutInt("k8s.event.occurrences", fresh)
	}
	if set["since"] != "" {
		since = epoch.Add(Time(set["since"])).Format(time.RFC3339Nano)
	}
	putDetails(record.Attributes(), set, epoch)
	event := cmp.Or(set["event"], fmt.Sprintf("%s.%s.%s.%s", uid, r.Reason, r.Container, r.Message))
	putAll(record.Attributes(), map[string]string{
		"k8s.event.uid": event, "log.record.uid": fmt.Sprintf("%s-%d", event, count), "k8s.event.reason": r.Reason,
		"k8s.event.type": record.SeverityText(), "k8s.event.start_time": since, "k8s.event.related.name": set["related"], "k8s.event.action": set["action"],
		"k8s.event.reporting_controller": cmp.Or(set["reporter"], map[string]string{"Scheduled": "default-scheduler"}[r.Reason]),
		"k8s.owner.resolution":           set["resolution"], "k8s.object.fieldpath": fieldOf(r.Container),
	})
	return logs
}

// putDetails writes what the receiver read.
func putDetails(to pcommon.Map, set map[string]string, epoch time.Time) {
	at := func(text string) string { return epoch.Add(Time(text)).Format(time.RFC3339) }
	if end := strings.Split(set["ended"], "/"); len(end) == 4 {
		putAll(to, map[string]string{"k8s.container.status.last_terminated_reason": end[0], "k8s.container.last_terminated.finished_at": at(end[3])})
		for i, name := range []string{"process.exit.code", "k8s.container.memory.limit"} {
			value, _ := strconv.ParseInt(end[i+1], 10, 64)
			to.PutInt(name, value)
		}
	}
	if set["changes"] != "" {
		list := to.PutEmptySlice("k8s.rollout.changes")
		for change := range strings.SplitSeq(strings.ReplaceAll(set["changes"], "_", " "), ";") {
			list.AppendEmpty().SetStr(change)
		}
	}
	if change := strings.Split(set["configmap"], "/"); len(change) == 4 {
		to.PutEmptySlice("k8s.config_map.changes").AppendEmpty().SetStr("configmap " + change[0] + " " + change[1] + " at " + at(change[2]) + " by " + change[3])
	}
	putAll(to, map[string]string{"k8s.workload.deployed_by": set["tool"], "k8s.workload.changed_by": set["by"]})
}

func putAll(to pcommon.Map, all map[string]string) {
	for name, value := range all {
		if value != "" {
			to.PutStr(name, value)
		}
	}
}

// ownersOf returns the owners of an object: without owners of its own, those of a pod of a
// Deployment.
func ownersOf(kind, name string, own []string) (chain []string) {
	if len(own) > 0 || kind != "Pod" && kind != "ReplicaSet" {
		return slices.DeleteFunc(own, func(owner string) bool { return owner == "" })
	}
	for _, owner := range []string{"replicaset.apps/", "deployment.apps/"}[map[string]int{"Pod": 0, "ReplicaSet": 1}[kind]:] {
		name = name[:strings.LastIndex(name, "-")]
		chain = append(chain, owner+name)
	}
	return chain
}

// groups are those of kinds, other than the core group.
var groups = map[string]string{
	"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
	"HorizontalPodAutoscaler": "autoscaling/v2", "Kustomization": "kustomize.toolkit.fluxcd.io/v1", "VirtualMachine": "kubevirt.io/v1",
	"VirtualMachineInstance": "kubevirt.io/v1", "HelmRelease": "helm.toolkit.fluxcd.io/v2", "Application": "argoproj.io/v1alpha1",
	"GitRepository": "source.toolkit.fluxcd.io/v1", "Rollout": "argoproj.io/v1alpha1",
}

func versionOf(kind string) string { return cmp.Or(groups[kind], "v1") }

// topOf returns KIND/NAME of the last owner, which has the form of kubectl.
func topOf(owner string) string {
	kind, name, _ := strings.Cut(owner, "/")
	kind, _, _ = strings.Cut(kind, ".")
	for known := range groups {
		if strings.EqualFold(known, kind) {
			return known + "/" + name
		}
	}
	return strings.ToUpper(kind[:1]) + kind[1:] + "/" + name
}

func fieldOf(container string) string {
	kind, name, ok := strings.Cut(container, ":")
	switch {
	case container == "":
		return ""
	case !ok:
		return "spec.containers{" + container + "}"
	case kind == "init":
		return "spec.initContainers{" + name + "}"
	}
	return "spec.ephemeralContainers{" + name + "}"
}
