// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// firstVersion is the resource version of a listing. Events that are alive by then have lower ones,
// changes have higher ones, one after the other.
const firstVersion = 1_000_000_000

// Frame is a change to an event as it goes over the wire.
type Frame struct {
	namespace string
	encoded   [encodings][]byte
}

// Recorder makes frames. It numbers them, so a server is given the frames of one recorder, all of
// them and in their order.
type Recorder struct {
	frames int
}

// NewRecorder makes a recorder that has recorded nothing.
func NewRecorder() *Recorder { return &Recorder{} }

// Frame records a change. The event gets its resource version from it.
func (r *Recorder) Frame(change watch.EventType, ev *corev1.Event) Frame {
	r.frames++
	ev.TypeMeta = eventType
	ev.ResourceVersion = versionOf(r.frames)
	frame := Frame{namespace: ev.Namespace}
	for e := range encodings {
		frame.encoded[e] = e.frame(change, ev)
	}
	return frame
}

var eventType = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}

// versionOf is the resource version after n changes.
func versionOf(changes int) string { return strconv.Itoa(firstVersion + changes) }

// changesUntil is how many changes lie before a resource version.
func changesUntil(version string) int {
	n, _ := strconv.Atoi(version)
	return max(0, n-firstVersion)
}
