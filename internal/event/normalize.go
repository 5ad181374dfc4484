// SPDX-License-Identifier: Apache-2.0

package event

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/text"
)

// Normalize changes an event in place, before anything keeps it. It drops metadata that nobody
// reads, and bounds the strings that the receiver uses: the core API limits neither their length
// nor, in protobuf, their bytes. OTLP requires valid UTF-8. Keep does the same for labels and
// annotations.
func Normalize(ev *corev1.Event) {
	for _, s := range [...]*string{
		&ev.Name, &ev.Namespace, (*string)(&ev.UID), &ev.ResourceVersion,
		&ev.Reason, &ev.Type, &ev.Action,
		&ev.ReportingController, &ev.ReportingInstance,
		&ev.Source.Component, &ev.Source.Host,
	} {
		*s = text.Value(*s)
	}
	ev.Message = text.Cut(ev.Message, text.MaxBody)
	normalizeReference(&ev.InvolvedObject)
	if ev.Related != nil {
		normalizeReference(ev.Related)
	}
	ev.ObjectMeta = metav1.ObjectMeta{
		Namespace: ev.Namespace, Name: ev.Name, UID: ev.UID, ResourceVersion: ev.ResourceVersion,
		CreationTimestamp: ev.CreationTimestamp, Labels: ev.Labels, Annotations: ev.Annotations,
	}
}

func normalizeReference(o *corev1.ObjectReference) {
	for _, s := range [...]*string{
		&o.APIVersion, &o.Kind, &o.Namespace, &o.Name, (*string)(&o.UID), &o.ResourceVersion, &o.FieldPath,
	} {
		*s = text.Value(*s)
	}
}

func isTraceparent(key string) bool { return key == Traceparent }

// Keep keeps only some of the labels and annotations of an event, and its trace context, and bounds
// them.
func Keep(ev *corev1.Event, label, annotation func(key string) bool) {
	if len(ev.Labels)+len(ev.Annotations) == 0 {
		return
	}
	keys := text.Keys{Label: label, Annotation: func(key string) bool { return isTraceparent(key) || annotation(key) }, First: isTraceparent}
	ev.Labels, ev.Annotations = keys.Entries(ev.Labels, ev.Annotations)
}

// Traceparent is the annotation of Events that names a trace, in the form of the header of the same
// name (https://www.w3.org/TR/trace-context).
const Traceparent = "traceparent"
