// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
)

// schema is the version of the attributes of problems and changes.
const schema = 1

// maxNames bounds a list of names.
const maxNames = 20

// recordOfProblem returns the record of news of a problem.
func recordOfProblem(u *problem.Update, at *incident.At, now time.Time, version string) plog.Logs {
	when, severity := now, plog.SeverityNumberWarn
	switch u.State {
	case problem.Opened:
		when = u.Onset
	case problem.Ended:
		when, severity = u.Over, plog.SeverityNumberInfo
	}
	resource := at.Resource(u.Key)
	if u.Workloads > 1 {
		resource = ofCluster(resource)
	}
	logs, r := newRecord("k8s.problem", resource, u.Key, u.Workloads > 1, version)
	r.SetTimestamp(pcommon.NewTimestampFromTime(when))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	r.SetSeverityNumber(severity)
	r.SetSeverityText(severity.String())
	body := u.Sentence
	if u.State == problem.Ended {
		body = "over after " + incident.InWords(max(0, u.Over.Sub(u.Onset))) + ": " + body
	}
	r.Body().SetStr(body)
	attributes := r.Attributes()
	attributes.PutInt("k8s.problem.schema", schema)
	attributes.PutStr("k8s.problem.id", u.ID)
	attributes.PutStr("k8s.problem.state", u.State)
	attributes.PutStr("k8s.problem.class", u.Class)
	attributes.PutStr("k8s.problem.onset", u.Onset.UTC().Format(time.RFC3339))
	end := now
	if u.State == problem.Ended {
		end = u.Over
		attributes.PutStr("k8s.problem.end_reason", u.Because)
	}
	attributes.PutInt("k8s.problem.duration", int64(max(0, end.Sub(u.Onset)).Seconds()))
	attributes.PutInt("k8s.problem.previous", int64(len(u.Previous)))
	attributes.PutInt("k8s.problem.workloads", int64(u.Workloads))
	attributes.PutInt("k8s.problem.pods", int64(u.Pods))
	putShown(attributes, u.Shown)
	uid := u.ID + "-" + u.State
	if u.State != problem.Opened {
		uid += "-" + shortHash(u.Sentence+u.Over.String())
	}
	attributes.PutStr("log.record.uid", uid)
	return logs
}

// putShown writes what the model shows; nil: nothing any more.
func putShown(to pcommon.Map, p *incident.Problem) {
	if p == nil {
		return
	}
	to.PutInt("k8s.problem.nodes", int64(p.NodeCount))
	to.PutStr("k8s.problem.message", p.Message)
	putList(to, "k8s.problem.scope", p.Scope)
	putList(to, "k8s.problem.pod.names", p.Pods)
	putList(to, "k8s.problem.node.names", p.Nodes)
	var names, causes, records []string
	for _, m := range p.Members {
		names = append(names, strings.TrimPrefix(m.Key.Namespace+"/"+m.Key.Top.String(), "/"))
	}
	putList(to, "k8s.problem.workload.names", slices.Compact(names))
	for _, c := range p.Causes {
		causes, records = append(causes, c.Text), append(records, c.Records...)
	}
	putList(to, "k8s.problem.causes", causes)
	putList(to, "k8s.problem.cause_records", records)
	putList(to, "k8s.problem.records", p.Records)
}

// recordOfChange returns the record of something that happened, or is over.
func recordOfChange(n *problem.News, at *incident.At, now time.Time, version string) plog.Logs {
	logs, r := newRecord("k8s.change", at.Resource(n.Key), n.Key, false, version)
	when, text := n.At, n.Text
	attributes := r.Attributes()
	if n.State == problem.Over {
		when, text = now, text+": over"
		if !n.Until.IsZero() {
			when = n.Until
		}
		if n.Outcome != "" {
			text = n.Text + ": " + n.Outcome
			attributes.PutStr("k8s.change.outcome", n.Outcome)
		}
	}
	r.SetTimestamp(pcommon.NewTimestampFromTime(when))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	r.SetSeverityNumber(plog.SeverityNumberInfo)
	r.SetSeverityText(plog.SeverityNumberInfo.String())
	r.Body().SetStr(text)
	attributes.PutInt("k8s.change.schema", schema)
	attributes.PutStr("k8s.change.id", n.ID)
	attributes.PutStr("k8s.change.kind", n.Kind)
	attributes.PutStr("k8s.change.state", n.State)
	attributes.PutStr("k8s.change.object", n.Object)
	putList(attributes, "k8s.change.records", n.Records)
	attributes.PutStr("log.record.uid", n.ID+"-"+n.State)
	return logs
}

// newRecord returns a record with the resource of a workload. If that is not known, it has the parts of the key; a problem
// of several workloads is the cluster's.
func newRecord(event string, resource map[string]string, key incident.Key, isShared bool, version string) (plog.Logs, plog.LogRecord) {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.SetSchemaUrl("https://opentelemetry.io/schemas/1.43.0")
	for _, name := range slices.Sorted(maps.Keys(resource)) {
		rl.Resource().Attributes().PutStr(name, resource[name])
	}
	if len(resource) == 0 && !isShared {
		rl.Resource().Attributes().PutStr("k8s.namespace.name", key.Namespace)
		rl.Resource().Attributes().PutStr("k8s.workload.kind", key.Top.Kind)
		rl.Resource().Attributes().PutStr("k8s.workload.name", key.Top.Name)
	}
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(metadata.ScopeName)
	sl.Scope().SetVersion(version)
	r := sl.LogRecords().AppendEmpty()
	r.SetEventName(event)
	return logs, r
}

// ofCluster leaves the attributes of the cluster.
func ofCluster(resource map[string]string) map[string]string {
	left := map[string]string{}
	for name, value := range resource {
		if strings.HasPrefix(name, "k8s.cluster.") {
			left[name] = value
		}
	}
	return left
}

func putList(to pcommon.Map, name string, all []string) {
	if len(all) == 0 {
		return
	}
	list := to.PutEmptySlice(name)
	for _, one := range all[:min(maxNames, len(all))] {
		list.AppendEmpty().SetStr(one)
	}
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
