// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// workload is the object that occurrences count under.
type workload struct {
	apiVersion, kind, name, uid string
	// place bounds the names of workloads that are known only by reference. It is zero if the
	// object was read, or has no name here.
	place place
}

// place is a kind of object in a namespace; empty: that of cluster-scoped involved objects.
type place struct {
	namespace string
	kind      schema.GroupKind
}

// workloadOf names the workload so that the number of series grows with workloads, and not with
// objects that live once. A pod that nothing owns counts under its kind alone. An object with a
// generated name, such as a PipelineRun, counts under what the name begins with.
func workloadOf(o *observation.Observation, namespace string) workload {
	end := o.Chain.End()
	switch {
	case end == nil && o.Chain.Objects[0].GroupKind() == semconv.Pod,
		end != nil && end.GroupKind() == semconv.Pod:
		return workload{apiVersion: "v1", kind: "Pod"}
	case end == nil:
		return workload{}
	}
	w := workload{apiVersion: end.APIVersion, kind: end.Kind, name: end.Name, uid: string(end.UID)}
	switch {
	case o.Chain.Resolution == resolver.ResolutionForbidden:
		w.place = place{namespace, end.GroupKind()}
	case end.GenerateName != "" && strings.HasPrefix(end.Name, end.GenerateName):
		w.name, w.uid = strings.TrimSuffix(end.GenerateName, "-"), ""
	}
	return w
}

// maxReferences limits the names of the workloads of one kind in one namespace that are known only
// by reference. The receiver cannot know whether these names were generated, and anybody who may
// write Events can make them up.
const maxReferences = 100

// references has, for each place, the names that series have, and how many series have each.
type references map[place]map[string]int

// admit removes the name of a workload that is known by reference only if its kind has enough names
// there. It reports whether it did.
func (r references) admit(w *workload) (removed bool) {
	names := r[w.place]
	if w.place == (place{}) || names[w.name] > 0 || len(names) < maxReferences {
		return false
	}
	w.name, w.uid, w.place = "", "", place{}
	return true
}

// begin notes that a series with the workload begins.
func (r references) begin(w workload) {
	if w.place == (place{}) {
		return
	}
	if r[w.place] == nil {
		r[w.place] = map[string]int{}
	}
	r[w.place][w.name]++
}

// end notes that such a series has ended.
func (r references) end(w workload) {
	if w.place == (place{}) {
		return
	}
	names := r[w.place]
	if names[w.name]--; names[w.name] <= 0 {
		delete(names, w.name)
	}
	if len(names) == 0 {
		delete(r, w.place)
	}
}
