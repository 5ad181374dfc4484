// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
)

// unfaithful says what a record has that none of the states has; it is empty if one has all of it.
func (a *account) unfaithful(r *record, states []*corev1.Event) (problem string) {
	for _, ev := range states {
		if problem = difference(r, ev); problem == "" {
			break
		}
	}
	observed, created := r.log.ObservedTimestamp().AsTime(), states[0].CreationTimestamp.Time
	// A window of dedup_interval may hold occurrences of an earlier object of the name.
	if problem == "" && text(r.resource, "k8s.cluster.uid") == "" && !a.env.plan.has(lookupFaults...) {
		return "it does not name the cluster"
	}
	if problem == "" && (observed.After(r.at) || observed.Before(created) && a.env.plan.Dedup == 0) {
		return fmt.Sprintf("it was observed at %v, before its creation at %v or after it was delivered", observed, created)
	}
	return problem
}

func difference(r *record, ev *corev1.Event) string {
	attributes := r.log.Attributes()
	container, node := "", ""
	if ev.InvolvedObject.FieldPath == fieldPath {
		container = fieldPathContainer
	}
	if ev.Source.Component == "kubelet" && ev.InvolvedObject.Kind == "Pod" {
		node = ev.Source.Host
	}
	for _, field := range []struct{ name, got, want string }{
		{"the body", r.log.Body().AsString(), ev.Message},
		{"the reason", text(attributes, "k8s.event.reason"), ev.Reason},
		{"the type", r.log.SeverityText(), ev.Type},
		{"the name", text(attributes, "k8s.event.name"), ev.Name},
		{"the action", text(attributes, "k8s.event.action"), ev.Action},
		{"the severity", r.log.SeverityNumber().String(), severities[ev.Type].String()},
		{"the event name", r.log.EventName(), "k8s.event"},
		{"the container", text(r.resource, "k8s.container.name"), container},
		{"the node", cmp.Or(node, text(r.resource, "k8s.node.name")), text(r.resource, "k8s.node.name")},
		{"the involved kind", text(r.resource, "k8s.object.kind"), ev.InvolvedObject.Kind},
		{"the involved name", text(r.resource, "k8s.object.name"), ev.InvolvedObject.Name},
		{"the involved namespace", text(r.resource, "k8s.namespace.name"), ev.InvolvedObject.Namespace},
		{"the involved UID", text(r.resource, "k8s.object.uid"), string(ev.InvolvedObject.UID)},
		{"the field path", text(attributes, "k8s.object.fieldpath"), ev.InvolvedObject.FieldPath},
		{"the controller", text(attributes, "k8s.event.reporting_controller"), cmp.Or(ev.ReportingController, ev.Source.Component)},
		{"the instance", text(attributes, "k8s.event.reporting_instance"), cmp.Or(ev.ReportingInstance, ev.Source.Host)},
		{"the cluster", cmp.Or(text(r.resource, "k8s.cluster.uid"), clusterUID), clusterUID},
		{"the start", text(attributes, "k8s.event.start_time"), oldest(ev).UTC().Format(time.RFC3339Nano)},
		{"the time", r.log.Timestamp().AsTime().Format(time.RFC3339Nano), newest(ev).UTC().Format(time.RFC3339Nano)},
	} {
		if field.got != strings.ToValidUTF8(field.want, "\uFFFD") {
			return fmt.Sprintf("%s is %.80q, not %.80q", field.name, field.got, field.want)
		}
	}
	return ""
}

var severities = map[string]plog.SeverityNumber{"Normal": plog.SeverityNumberInfo, "Warning": plog.SeverityNumberWarn}
