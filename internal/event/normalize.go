// SPDX-License-Identifier: Apache-2.0

package event

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Normalize changes an event in place. It drops managedFields, which nobody reads, and makes the
// strings that the receiver uses valid UTF-8. OTLP requires this, and protobuf from the API server
// does not guarantee it. A sequence of invalid bytes becomes one U+FFFD.
func Normalize(ev *corev1.Event) {
	ev.ManagedFields = nil
	for _, s := range [...]*string{
		&ev.Name, &ev.Namespace, (*string)(&ev.UID), &ev.ResourceVersion,
		&ev.Reason, &ev.Type, &ev.Message, &ev.Action,
		&ev.ReportingController, &ev.ReportingInstance,
		&ev.Source.Component, &ev.Source.Host,
	} {
		*s = valid(*s)
	}
	normalizeReference(&ev.InvolvedObject)
	if ev.Related != nil {
		normalizeReference(ev.Related)
	}
	ev.Labels = validMap(ev.Labels)
	ev.Annotations = validMap(ev.Annotations)
}

func normalizeReference(o *corev1.ObjectReference) {
	o.APIVersion = valid(o.APIVersion)
	o.Kind = valid(o.Kind)
	o.Namespace = valid(o.Namespace)
	o.Name = valid(o.Name)
	o.UID = types.UID(valid(string(o.UID)))
	o.ResourceVersion = valid(o.ResourceVersion)
	o.FieldPath = valid(o.FieldPath)
}

func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// validMap returns the map itself if it is valid. If two keys become the same, the greater of the
// original keys wins, so that the same event always gives the same map.
func validMap(m map[string]string) map[string]string {
	invalid := false
	for k, v := range m {
		invalid = invalid || !utf8.ValidString(k) || !utf8.ValidString(v)
	}
	if !invalid {
		return m
	}
	out := make(map[string]string, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out[valid(k)] = valid(m[k])
	}
	return out
}
