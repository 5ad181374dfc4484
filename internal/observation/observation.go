// SPDX-License-Identifier: Apache-2.0

// Package observation has the plain value that goes from accounting to conversion: a state of an
// event, its new occurrences, and the owners of the involved object.
package observation

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Foreign means that the event is about an object that its namespace does not speak for.
const Foreign resolver.Resolution = "foreign"

// Observation is one state of an event with new occurrences. It does not change after its owners
// and details are known.
type Observation struct {
	Event       *corev1.Event
	Occurrences int64     // new in this observation, above 0
	SeenAt      time.Time // when the receiver first saw it
	// Chain always holds the involved object, and its owners as far as they are known. Its
	// Resolution is empty if owners are not looked up. If it is Foreign, the object has nothing but
	// the namespace in which the event is stored.
	Chain resolver.Chain
	// Tags are the labels and annotations extracted for it.
	Tags extract.Tags
	// Details are what the Event does not say; nil: it does not call for any.
	Details *Details
}
