// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// knowledge is when a process, or one of its terms, found the owners of an object last.
type knowledge map[knows]time.Time

type knows struct {
	process *process
	object  *object
}

// checkOwners compares the owners in the records with those of the objects.
func (t *truth) checkOwners() {
	e, known, stale := t.env, knowledge{}, t.env.plan.CacheTTL
	if e.plan.hasAPIFaults() {
		stale = time.Hour // What cannot be refreshed is used as it was.
	}
	for _, r := range e.records() {
		o := t.subject(r)
		if o == nil {
			continue
		}
		chain, want := o.chain(e.plan.MaxDepth)
		if problem := wrongOwners(r, chain, stale); problem != "" {
			e.violate(ownersRight, t.eventOf(r), "%s of %s: %s", r.uid, o.name, problem)
		}
		got := r.resolution()
		if e.plan.NoOwners || got == want {
			known[knows{r.process, o}] = r.observed()
			continue
		}
		if got == "not_found" && want != got && t.isWrong(chain, r) {
			e.violate(ownersRight, t.eventOf(r), "%s of %s: everything exists, but the resolution is %s", r.uid, o.name, got)
		}
		if (allAliveAt(chain, r.at) || e.isCached(known[knows{r.process, o}], r.at)) && !t.mayMiss(chain, r) {
			e.violate(ownersComplete, t.eventOf(r), "%s of %s has resolution %s, not %s",
				r.uid, o.name, got, want)
		}
	}
}

// isWrong reports whether not_found cannot be the truth: all of the chain existed all the time.
// That a request fails does not mean that its object is gone.
func (t *truth) isWrong(chain []*object, r *record) bool {
	if t.env.plan.has(KindMissing, BackupRestored, ClusterNew) {
		return false
	}
	for _, o := range chain {
		// A failure may be remembered for a minute.
		if !o.existedFrom(r.observed().Add(-lookBack), r.at) {
			return false
		}
	}
	return true
}

// isCached reports whether a process still has what it resolved (zero: never) in its cache.
func (e *environment) isCached(resolved, now time.Time) bool {
	return !resolved.IsZero() && now.Sub(resolved) < e.plan.CacheTTL &&
		e.plan.CacheSize > len(e.plan.Producers)*10
}

// mayMiss reports whether a fault may have kept the process from finding one of the owners.
func (t *truth) mayMiss(chain []*object, r *record) bool {
	if t.env.epochAt(r.at) > 0 {
		return true // A backup, or another cluster, may lack the objects.
	}
	if t.env.plan.QPS > 0 && t.env.plan.CacheSize < 100 {
		return true // Each event may have to be resolved from scratch, and the rate may not permit this.
	}
	if died := r.process.died; !died.IsZero() && !r.at.Before(died) {
		return true // The process was killed while it waited for the owners.
	}
	if t.env.exceedsRate(r.at) {
		return true
	}
	return t.env.disturbed(r.observed().Add(-lookBack), r.at, func(f *Fault) bool {
		// Without lists, each object is a request, and with a limit of their rate, some come too
		// late.
		isMissed := f.Verb == "" || t.env.plan.QPS > 0
		return f.Kind.isOfAPI() && isMissed && f.failsOne(chain) &&
			f.concerns(r.process.replica.index)
	})
}

// exceedsRate reports whether more pods were created before a time than kube_api_qps permits requests: each
// new pod needs two of them, unless a list is worth it (seed 520).
func (e *environment) exceedsRate(at time.Time) bool {
	const longest = 4 * time.Second // Twice lookup_timeout: the events before may have used the burst.
	created := 0
	for _, a := range e.apps {
		for _, pod := range a.existing() {
			if pod.existedFrom(at, at) && !pod.existedFrom(at.Add(-longest), at) {
				created++
			}
		}
	}
	return e.plan.QPS > 0 && 2*created > e.plan.QPS*int(longest/time.Second)
}

// failsOne reports whether the fault makes lookups of one of the objects' kinds fail.
func (f *Fault) failsOne(chain []*object) bool {
	return slices.ContainsFunc(chain, func(o *object) bool {
		return o.resource.Resource == f.Resource || f.Resource == "" || f.Resource == ofDiscovery
	})
}

// wrongOwners returns what in a record is not the involved object's, or "".
func wrongOwners(r *record, chain []*object, stale time.Duration) string {
	if problem := wrongChain(r, chain); problem != "" {
		return problem
	}
	resolution := r.resolution()
	complete := resolution == "complete"
	if problem := wrongWorkload(r, chain, complete); problem != "" {
		return problem
	}
	labels := []string{""}
	if i := slices.IndexFunc(chain, func(o *object) bool { return o.label != "" }); i >= 0 {
		labels = chain[i].manifests(r.observed(), stale)
	}
	got := text(r.resource, "tilt.manifest")
	for i := range labels {
		labels[i] = attributeOf(labels[i])
	}
	if !slices.Contains(labels, got) && (complete || got != "") {
		return fmt.Sprintf("tilt.manifest is %q, not %q", got, labels)
	}
	return ""
}

// wrongWorkload returns how the workload differs from the end of the chain, or from the object that
// the receiver may not read, or "".
func wrongWorkload(r *record, chain []*object, complete bool) string {
	want, end := "", len(chain)-1
	if names, ok := r.resource.Get("k8s.owner.chain"); !complete && ok {
		end = min(end, names.Slice().Len())
	} else if !complete {
		end = 0
	}
	if complete || r.resolution() == "forbidden" {
		want = attributeOf(chain[end].kind) + " " + attributeOf(chain[end].name)
	}
	got := strings.TrimSpace(text(r.resource, "k8s.workload.kind") + " " + text(r.resource, "k8s.workload.name"))
	if got != want {
		return fmt.Sprintf("the workload is %q, not %q, with resolution %q", got, want, r.resolution())
	}
	return ""
}

// wrongChain returns how the record's chain differs from the object's owners, or "" if it has the
// first of them.
func wrongChain(r *record, chain []*object) string {
	got, ok := r.resource.Get("k8s.owner.chain")
	if !ok {
		return ""
	}
	var names []string
	for _, o := range chain[1:] {
		names = append(names, attributeOf(qualifiedName(o)))
	}
	for i, name := range got.Slice().All() {
		if i >= len(names) || names[i] != name.Str() {
			return fmt.Sprintf("the chain is %v, not %v", got.AsString(), names)
		}
	}
	return ""
}

// qualifiedName is kind.group/name as kubectl writes it.
func qualifiedName(o *object) string {
	kind := schema.GroupResource{Group: o.resource.Group, Resource: o.kind}
	return strings.ToLower(kind.String()) + "/" + o.name
}
