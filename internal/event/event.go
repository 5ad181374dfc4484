// SPDX-License-Identifier: Apache-2.0

// Package event reads a Kubernetes Event from any of the three kinds of producer: the recorder of
// client-go's tools/record (count, firstTimestamp, lastTimestamp, source), the recorder of
// tools/events (eventTime, series, reportingController, action), or a program that creates Events
// by hand.
//
// Every function is pure and safe for concurrent use.
package event

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Count returns the number of occurrences so far: max(1, count, series.count). The first write of a
// new-style event has neither (count 0, no series) and means one occurrence. Its first update has
// series.count = 2. A negative count counts as 1.
func Count(ev *corev1.Event) int64 {
	n := max(1, int64(ev.Count))
	if ev.Series != nil {
		n = max(n, int64(ev.Series.Count))
	}
	return n
}

// Name returns the identity of an event.
func Name(ev *corev1.Event) types.NamespacedName {
	return types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name}
}

// Digest returns a hash of an event's identity. Anyone may choose names, so it is a cryptographic
// one, and the length of the namespace keeps apart what a separator in a name would not.
func Digest(name types.NamespacedName) [sha256.Size]byte {
	text := binary.AppendUvarint(make([]byte, 0, usualName), uint64(len(name.Namespace)))
	return sha256.Sum256(append(append(text, name.Namespace...), name.Name...))
}

// usualName is the maximum size of a namespace and a name, with a byte for the length: Kubernetes
// allows 63 and 253 bytes.
const usualName = 1 + 63 + 253

// ResourceVersion returns the event's resource version as a number; see Version.
func ResourceVersion(ev *corev1.Event) uint64 { return Version(ev.ResourceVersion) }

// Version returns a resource version as a number. The API server guarantees decimal versions that
// can be compared as integers. Any other version cannot be compared, and is 0, as is the highest
// number, which has no successor.
func Version(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil || version == math.MaxUint64 {
		return 0
	}
	return version
}

// NewestOccurrence returns the time of the newest occurrence. It is the first of
// series.lastObservedTime, lastTimestamp, eventTime, firstTimestamp and creationTimestamp that is
// set and fits OTLP's nanoseconds. eventTime comes after lastTimestamp because it is the first
// occurrence and never changes. The zero time means that none is set.
func NewestOccurrence(ev *corev1.Event) time.Time {
	if ev.Series != nil && Representable(ev.Series.LastObservedTime.Time) {
		return ev.Series.LastObservedTime.Time
	}
	return firstRepresentable(ev.LastTimestamp.Time, ev.EventTime.Time, ev.FirstTimestamp.Time, ev.CreationTimestamp.Time)
}

// FirstOccurrence returns the time of the first occurrence: the first of firstTimestamp, eventTime
// and creationTimestamp under the same conditions. The creation is no later than the newest
// occurrence: a program that sets only lastTimestamp may write its Event later.
func FirstOccurrence(ev *corev1.Event) time.Time {
	if first := firstRepresentable(ev.FirstTimestamp.Time, ev.EventTime.Time); !first.IsZero() {
		return first
	}
	created, newest := firstRepresentable(ev.CreationTimestamp.Time), NewestOccurrence(ev)
	if newest.Before(created) {
		return newest
	}
	return created
}

func firstRepresentable(candidates ...time.Time) time.Time {
	for _, t := range candidates {
		if Representable(t) {
			return t
		}
	}
	return time.Time{}
}

// latest is the last full second that OTLP's unsigned 64-bit nanoseconds can hold, in the year
// 2554.
const latest = int64(math.MaxUint64/uint64(time.Second)) - 1

// Representable reports whether the receiver uses a time: it is set, and fits OTLP's nanoseconds.
func Representable(t time.Time) bool {
	return t.Unix() > 0 && t.Unix() <= latest
}

// UnixNano returns t in OTLP's unsigned nanoseconds, which end in 2554, while time.Time.UnixNano
// ends in 2262. The zero time is 0, OTLP's "unknown".
func UnixNano(t time.Time) uint64 {
	if !Representable(t) {
		return 0
	}
	return uint64(t.Unix())*uint64(time.Second) + uint64(t.Nanosecond())
}

// ReportingController returns the reporter: reportingController, else source.component. The old
// recorder sets only the latter for combined events, as do many programs. Empty means unknown.
func ReportingController(ev *corev1.Event) string {
	if ev.ReportingController != "" {
		return ev.ReportingController
	}
	return ev.Source.Component
}

// ReportingInstance returns the instance of the reporter: reportingInstance, else source.host.
// Empty means unknown.
func ReportingInstance(ev *corev1.Event) string {
	if ev.ReportingInstance != "" {
		return ev.ReportingInstance
	}
	return ev.Source.Host
}

// KubeletNode returns the node whose kubelet reports the event; empty if another program reports
// it. A kubelet reports as controller "kubelet" with its node's name as the instance.
func KubeletNode(ev *corev1.Event) string {
	if ReportingController(ev) != "kubelet" {
		return ""
	}
	if ev.Source.Host != "" {
		return ev.Source.Host
	}
	return ev.ReportingInstance
}

// Node returns the name of the event's Node (k8s.node.name); empty means that it has none. It is
// the first Node among the objects, the involved object and its owners. If there is none, it is the
// Node of the kubelet that reports an event about a pod; found is then nil.
func Node(ev *corev1.Event, objects []*resolver.Object) (name string, found *resolver.Object) {
	for _, o := range objects {
		if o.GroupKind() == semconv.Node {
			return o.Name, o
		}
	}
	if objects[0].GroupKind() != semconv.Pod {
		return "", nil
	}
	return KubeletNode(ev), nil
}

// ContainerName returns the container in the involved object's field path, in one of the forms
// spec.containers{NAME}, spec.initContainers{NAME} and spec.ephemeralContainers{NAME}. Empty means
// that the path names no container.
func ContainerName(ev *corev1.Event) string {
	list, rest, found := strings.Cut(ev.InvolvedObject.FieldPath, "{")
	if !found {
		return ""
	}
	switch list {
	case "spec.containers", "spec.initContainers", "spec.ephemeralContainers":
		name, closed := strings.CutSuffix(rest, "}")
		if closed {
			return name
		}
	}
	return ""
}

// Involved returns a reference to the involved object. Each field may be empty.
func Involved(ev *corev1.Event) resolver.Reference {
	return reference(&ev.InvolvedObject)
}

// IsForeign reports whether an event is about an object that the namespace where it is stored does not
// speak for. Anyone who may create events in a namespace writes any names into them, and the API server
// compares the two namespaces, but not the scope of the kind. object is the involved object, as far as
// it is known.
func IsForeign(ev *corev1.Event, object *resolver.Object) bool {
	kind := object.GroupKind()
	switch {
	case object.Namespace != "" && !semconv.IsClusterScoped(kind):
		return object.Namespace != ev.Namespace
	case kind == semconv.Namespace && object.Name == ev.Namespace:
		return false
	default:
		return !IsOfCluster(ev)
	}
}

// IsOfCluster reports whether an event is stored where those of cluster-scoped objects are: only in
// these namespaces, the API server accepts an involved object without a namespace.
func IsOfCluster(ev *corev1.Event) bool {
	return ev.Namespace == metav1.NamespaceDefault || ev.Namespace == metav1.NamespaceSystem
}

// Related returns a reference to the related object; nil means that the event has none.
func Related(ev *corev1.Event) *resolver.Reference {
	if ev.Related == nil || *ev.Related == (corev1.ObjectReference{}) {
		return nil
	}
	ref := reference(ev.Related)
	return &ref
}

func reference(o *corev1.ObjectReference) resolver.Reference {
	return resolver.Reference{
		APIVersion: o.APIVersion,
		Kind:       o.Kind,
		Namespace:  o.Namespace,
		Name:       o.Name,
		UID:        o.UID,
	}
}
