// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
)

// unfaithful returns what a record has that none of the states has, or "".
func (a *account) unfaithful(r *record, states []*corev1.Event) (problem string) {
	for _, ev := range states {
		if problem = difference(r, ev); problem == "" {
			break
		}
	}
	if problem = cmp.Or(problem, a.wrongCluster(r, states)); problem != "" {
		return problem
	}
	if text(r.resource, "k8s.cluster.uid") == "" && !a.env.plan.hasAPIFaults() {
		return "it does not name the cluster"
	}
	observed, created := r.observed(), states[0].CreationTimestamp.Time
	// A window of dedup_interval may hold occurrences of an earlier object of the name.
	tooEarly := observed.Before(created) && a.env.plan.Dedup == 0
	if tooEarly || observed.After(r.at) {
		return fmt.Sprintf("it was observed at %v, before its creation at %v or after its delivery",
			observed, created)
	}
	return ""
}

// wrongCluster returns how the record names another cluster than that of its event, or "".
func (a *account) wrongCluster(r *record, states []*corev1.Event) string {
	got, want := text(r.resource, "k8s.cluster.uid"), clusterUID
	if restored := a.env.lastRestore(); restored != nil && restored.isNew {
		created := states[0].CreationTimestamp.Time
		switch {
		case created.After(restored.at.Add(lookBack)):
			want = newClusterUID
		case created.After(restored.at.Add(-time.Second)): // Times have seconds.
			return "" // The contract does not say when a running process notices a new cluster.
		}
	}
	if got != "" && got != want {
		return fmt.Sprintf("the cluster is %q, not %q", got, want)
	}
	return ""
}

// field is what a record has, and what it should have.
type field struct{ name, got, want string }

// difference returns the first field of the record that is not the state's, or "".
func difference(r *record, ev *corev1.Event) string {
	for _, f := range slices.Concat(eventFields(r, ev), involvedFields(r, ev)) {
		if f.got != f.want {
			return fmt.Sprintf("%s is %.80q (%d bytes), not %.80q (%d)", f.name, f.got, len(f.got), f.want, len(f.want))
		}
	}
	return ""
}

var severities = map[string]plog.SeverityNumber{
	"Normal": plog.SeverityNumberInfo, "Warning": plog.SeverityNumberWarn,
}

func eventFields(r *record, ev *corev1.Event) []field {
	attribute := func(key string) string { return text(r.log.Attributes(), key) }
	controller := cmp.Or(ev.ReportingController, ev.Source.Component)
	instance := cmp.Or(ev.ReportingInstance, ev.Source.Host)
	written := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	return []field{
		{"the body", r.log.Body().AsString(), bodyOf(ev.Message)},
		{"the reason", attribute("k8s.event.reason"), attributeOf(ev.Reason)},
		{"the type", r.log.SeverityText(), attributeOf(ev.Type)},
		{"the name", attribute("k8s.event.name"), attributeOf(ev.Name)},
		{"the action", attribute("k8s.event.action"), attributeOf(ev.Action)},
		{"the severity", r.log.SeverityNumber().String(), severities[ev.Type].String()},
		{"the event name", r.log.EventName(), "k8s.event"},
		{"the controller", attribute("k8s.event.reporting_controller"), attributeOf(controller)},
		{"the instance", attribute("k8s.event.reporting_instance"), attributeOf(instance)},
		{"the start", attribute("k8s.event.start_time"), written(oldest(ev))},
		{"the time", written(timeOf(r.log.Timestamp())), written(newest(ev))},
	}
}

func involvedFields(r *record, ev *corev1.Event) []field {
	resource := func(key string) string { return text(r.resource, key) }
	involved := ev.InvolvedObject
	node, uid := resource("k8s.node.name"), resource("k8s.object.uid")
	isPod := involved.Kind == "Pod" && (involved.APIVersion == "" || involved.APIVersion == "v1")
	if cmp.Or(ev.ReportingController, ev.Source.Component) == "kubelet" && isPod {
		node = cmp.Or(ev.Source.Host, node)
	}
	stored, resolution, workload := "", r.resolution(), resource("k8s.workload.name")
	if isForeign(ev) {
		node, resolution, workload = "", "foreign", ""
	}
	if isForeign(ev) || involved.Namespace != ev.Namespace {
		stored = ev.Namespace
	}
	return []field{
		{"the event's namespace", text(r.log.Attributes(), "k8s.event.namespace"), stored},
		{"the resolution", r.resolution(), resolution},
		{"the workload", resource("k8s.workload.name"), workload},
		{"the container", resource("k8s.container.name"), attributeOf(containerOf(involved.FieldPath))},
		{"the node", resource("k8s.node.name"), attributeOf(node)},
		{"the involved kind", resource("k8s.object.kind"), attributeOf(involved.Kind)},
		{"the involved name", resource("k8s.object.name"), attributeOf(involved.Name)},
		{"the involved namespace", resource("k8s.namespace.name"), attributeOf(involved.Namespace)},
		{"the involved UID", uid, cmp.Or(string(involved.UID), uid)}, // The object that was found may have it.
		{"the field path", text(r.log.Attributes(), "k8s.object.fieldpath"), attributeOf(involved.FieldPath)},
	}
}

// containerOf returns the container that a field path names, or "".
func containerOf(path string) string {
	name, isContainer := strings.CutPrefix(path, "spec.containers{")
	name, isClosed := strings.CutSuffix(name, "}")
	if !isContainer || !isClosed {
		return ""
	}
	return name
}

// timeOf returns a time up to 2554. AsTime ends in 2262.
func timeOf(t pcommon.Timestamp) time.Time {
	return time.Unix(int64(t/1e9), int64(t%1e9))
}
