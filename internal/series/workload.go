// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// workload is the object that occurrences count under.
type workload struct {
	apiVersion, kind, name, uid string
	// place bounds the names of workloads that may live once. It is zero if the name is not bounded.
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
func workloadOf(o *observation.Observation, namespace string, now time.Time) workload {
	end := o.Chain.End()
	switch {
	case end == nil && o.Chain.Objects[0].GroupKind() == semconv.Pod,
		end != nil && end.GroupKind() == semconv.Pod:
		return workload{apiVersion: "v1", kind: "Pod"}
	case end == nil:
		return workload{}
	}
	w := workload{apiVersion: end.APIVersion, kind: end.Kind, name: end.Name, uid: string(end.UID)}
	if end.GenerateName != "" && strings.HasPrefix(end.Name, end.GenerateName) {
		w.name, w.uid = strings.TrimSuffix(end.GenerateName, "-"), ""
	}
	if o.Chain.Resolution == resolver.ResolutionForbidden && !end.Found() || mayLiveOnce(end, now) {
		w.place = place{namespace, end.GroupKind()}
	}
	return w
}

// mayLiveOnce reports whether the name may be that of a single run, which never comes back. A custom
// resource may be a run or stay for years. It stays, such as an Application, if it is older than a day.
func mayLiveOnce(o *resolver.Object, now time.Time) bool {
	kind := o.GroupKind()
	_, stays := semconv.Of(kind)
	return (!stays || kind == semconv.Job) && now.Sub(time.Unix(o.Created, 0)) < 24*time.Hour
}

// maxWorkloadNames limits the names of the workloads of one kind in one namespace that may live once,
// or that are known only by reference: anybody who may write Events can make those up.
const maxWorkloadNames = 100

// workloadNames has, for each place, the names that series have, and how many series have each.
type workloadNames map[place]map[string]int

// admit removes the name of a workload only if its kind has enough names there. It reports whether
// it did.
func (n workloadNames) admit(w *workload) (removed bool) {
	names := n[w.place]
	if names[w.name] > 0 || len(names) < maxWorkloadNames {
		return false
	}
	w.name, w.uid, w.place = "", "", place{}
	return true
}

// begin notes that a series with the workload begins.
func (n workloadNames) begin(w workload) {
	if w.place == (place{}) {
		return
	}
	if n[w.place] == nil {
		n[w.place] = map[string]int{}
	}
	n[w.place][w.name]++
}

// end notes that such a series has ended.
func (n workloadNames) end(w workload) {
	if w.place == (place{}) {
		return
	}
	names := n[w.place]
	if names[w.name]--; names[w.name] <= 0 {
		delete(names, w.name)
	}
	if len(names) == 0 {
		delete(n, w.place)
	}
}
