// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Producers write events in three ways. Each method here makes one event of a pod as one of them
// writes it first, with a name that is made of the time: no two events of a pod may have the same.
// Repeat is what it writes next.

// Scheduled is what the scheduler writes, through client-go's recorder of tools/events.
func (f *Fleet) Scheduled(pod int, at time.Time) *corev1.Event {
	ev := f.eventOf(pod, "Scheduled", at)
	ev.Message = fmt.Sprintf("Successfully assigned %s/%s to %s", ev.Namespace, ev.InvolvedObject.Name, node(pod))
	ev.Action = "Binding"
	ev.EventTime = metav1.NewMicroTime(at)
	ev.ReportingController, ev.ReportingInstance = "default-scheduler", "default-scheduler-control-plane-1"
	ev.ManagedFields = []metav1.ManagedFieldsEntry{managedBy("kube-scheduler", fieldsOfNewEvent, at)}
	return ev
}

// FailedScheduling is another of the scheduler's, one that it repeats.
func (f *Fleet) FailedScheduling(pod int, at time.Time) *corev1.Event {
	ev := f.Scheduled(pod, at)
	ev.Reason, ev.Type, ev.Action = "FailedScheduling", corev1.EventTypeWarning, "Scheduling"
	ev.Message = "0/12 nodes are available: 3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 9 Insufficient cpu. " +
		"preemption: 0/12 nodes are available: 12 Preemption is not helpful for scheduling."
	return ev
}

// Started is what a kubelet writes, through the recorder of tools/record.
func (f *Fleet) Started(pod int, at time.Time) *corev1.Event {
	return f.FromKubelet(pod, "Started", "Container started", at)
}

// BackOff is another of a kubelet's, one that it repeats.
func (f *Fleet) BackOff(pod int, at time.Time) *corev1.Event {
	ev := f.FromKubelet(pod, "BackOff", "", at)
	ev.Type = corev1.EventTypeWarning
	ev.Message = fmt.Sprintf("Back-off restarting failed container app in pod %s_%s(%s)", ev.InvolvedObject.Name, ev.Namespace, ev.InvolvedObject.UID)
	return ev
}

// Killing comes when a pod is deleted, and often when it is gone.
func (f *Fleet) Killing(pod int, at time.Time) *corev1.Event {
	return f.FromKubelet(pod, "Killing", "Stopping container app", at)
}

// HandMade is what a program writes that creates events by itself, with the fields that it happens
// to know.
func (f *Fleet) HandMade(pod int, at time.Time) *corev1.Event {
	ev := f.eventOf(pod, "Injected", at)
	ev.Name = fmt.Sprintf("mesh-%s-%x", ev.InvolvedObject.Name, at.UnixNano())
	ev.Message = "Sidecar proxy was injected"
	ev.InvolvedObject.UID, ev.InvolvedObject.FieldPath, ev.InvolvedObject.ResourceVersion = "", "", ""
	ev.Source = corev1.EventSource{Component: "mesh-injector"}
	ev.LastTimestamp = metav1.NewTime(at.Truncate(time.Second))
	return ev
}

// Repeat is the event when it has occurred n times more, as its recorder writes it.
func Repeat(ev *corev1.Event, times int32, at time.Time) *corev1.Event {
	next := ev.DeepCopy()
	switch {
	case next.Series != nil:
		next.Series.Count += times
		next.Series.LastObservedTime = metav1.NewMicroTime(at)
	case !next.EventTime.IsZero():
		next.Series = &corev1.EventSeries{Count: 1 + times, LastObservedTime: metav1.NewMicroTime(at)}
	default:
		next.Count = max(1, next.Count) + times
		next.LastTimestamp = metav1.NewTime(at.Truncate(time.Second))
	}
	return next
}

// FromKubelet is any other event of a kubelet.
func (f *Fleet) FromKubelet(pod int, reason, message string, at time.Time) *corev1.Event {
	ev := f.eventOf(pod, reason, at)
	ev.Message = message
	ev.Count = 1
	ev.FirstTimestamp = metav1.NewTime(at.Truncate(time.Second))
	ev.LastTimestamp = ev.FirstTimestamp
	ev.Source = corev1.EventSource{Component: "kubelet", Host: node(pod)}
	ev.ReportingController, ev.ReportingInstance = "kubelet", node(pod)
	ev.ManagedFields = []metav1.ManagedFieldsEntry{managedBy("kubelet", fieldsOfOldEvent, at)}
	return ev
}

// eventOf is what all events of a pod have in common. Its name is that of recorders: it ends with
// the time in nanoseconds.
func (f *Fleet) eventOf(pod int, reason string, at time.Time) *corev1.Event {
	namespace := f.namespace(f.deploymentOf(pod))
	name := fmt.Sprintf("%s.%x", f.podName(pod), at.UnixNano())
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: uidOf(at), CreationTimestamp: metav1.NewTime(at.Truncate(time.Second)),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: f.podName(pod), UID: uid(podKind, pod),
			ResourceVersion: "1000", FieldPath: "spec.containers{app}",
		},
		Reason: reason, Type: corev1.EventTypeNormal,
	}
}

// uidOf makes a UID of a time, as unique as the name that is made of it.
func uidOf(at time.Time) types.UID {
	n := uint64(at.UnixNano())
	return types.UID(fmt.Sprintf("%08x-%04x-4000-9000-%012x", uint32(n), uint16(n>>32), n&(1<<48-1)))
}

// node is the one that a pod runs on.
func node(pod int) string { return fmt.Sprintf("node-%03d", pod%12) }
