// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// checkOwners compares what the records say of owners with what the objects are.
func (t *truth) checkOwners() {
	e := t.env
	complete := map[*process]map[*object]time.Time{}
	stale := e.plan.CacheTTL
	if e.plan.has(lookupFaults...) {
		stale = time.Hour // What cannot be refreshed is used as it was.
	}
	for _, r := range records(e.exporters[0].all()) {
		o := t.subjects[subjectOfRecord(r)]
		if o == nil {
			continue
		}
		event := t.names[r.eventUID].String()
		chain, want := o.chain(e.plan.MaxDepth)
		got := text(r.log.Attributes(), "k8s.owner.resolution")
		if problem := wrongOwners(r, chain, got, stale); problem != "" {
			e.violate(ownersRight, event, "%s of %s: %s", r.uid, o.name, problem)
		}
		if e.plan.NoOwners || got == want {
			if complete[r.process] == nil {
				complete[r.process] = map[*object]time.Time{}
			}
			complete[r.process][o] = r.log.ObservedTimestamp().AsTime()
			continue
		}
		known := !complete[r.process][o].IsZero() && r.at.Sub(complete[r.process][o]) < e.plan.CacheTTL && e.plan.CacheSize > len(e.plan.Producers)*10
		if (o.aliveAt(r.at) || known) && !t.failing(chain, r) {
			e.violate(ownersComplete, event, "%s of %s has resolution %s, not %s", r.uid, o.name, got, want)
		}
	}
}

// failing reports whether a fault may have kept one of the kinds from being found for the record.
func (t *truth) failing(chain []*object, r *record) bool {
	began := t.env.began
	return t.env.plan.disturbed(r.log.ObservedTimestamp().AsTime().Sub(began)-lookBack, r.at.Sub(began), func(f *Fault) bool {
		if f.Kind == BackupRestored || f.Kind == ClusterNew {
			return true
		}
		return f.Kind.isOfAPI() && f.Verb == "" && f.concerns(r.process.replica.index) && (f.Resource == "" || f.Kind == APIHangs && t.env.exempt("i") ||
			slices.ContainsFunc(chain, func(o *object) bool { return o.resource.Resource == f.Resource }))
	})
}

// wrongOwners says what in a record is not the involved object's.
func wrongOwners(r *record, chain []*object, resolution string, stale time.Duration) string {
	var names []string
	for _, o := range chain[1:] {
		names = append(names, qualifiedName(o))
	}
	if got, ok := r.resource.Get("k8s.owner.chain"); ok {
		for i, name := range got.Slice().All() {
			if i >= len(names) || names[i] != name.Str() {
				return fmt.Sprintf("the chain is %v, not %v", got.AsString(), names)
			}
		}
	}
	complete := resolution == "complete" || resolution == "ambiguous"
	if got := text(r.resource, "k8s.workload.name"); complete != (got != "") {
		return fmt.Sprintf("the workload is %q with resolution %q", got, resolution)
	}
	if problem := wrongRoles(r, chain, complete); problem != "" {
		return problem
	}
	labels := []string{""}
	for _, o := range chain {
		if o.label != "" {
			labels = o.labels(r.log.ObservedTimestamp().AsTime(), stale)
			break
		}
	}
	if got := text(r.resource, "tilt.manifest"); !slices.Contains(labels, got) && (complete || got != "") {
		return fmt.Sprintf("tilt.manifest is %q, not %q", got, labels)
	}
	return ""
}

// wrongRoles says which attribute of the owner, the workload, or a kind on the chain is not its.
func wrongRoles(r *record, chain []*object, complete bool) string {
	want := map[string]string{}
	if _, ok := r.resource.Get("k8s.owner.chain"); ok {
		owner := chain[1]
		want["k8s.owner.kind"], want["k8s.owner.name"], want["k8s.owner.uid"] = owner.kind, owner.name, string(owner.uid)
	}
	if complete {
		end := chain[len(chain)-1]
		want["k8s.workload.kind"], want["k8s.workload.name"], want["k8s.workload.uid"] = end.kind, end.name, string(end.uid)
		for _, o := range slices.Backward(chain) {
			if o.resource.Group != links.Group && o.resource.Group != rollouts.Group { // The conventions name no custom kind.
				want["k8s."+strings.ToLower(o.kind)+".name"] = o.name
			}
		}
	}
	for name, value := range want {
		if got := text(r.resource, name); got != value {
			return fmt.Sprintf("%s is %q, not %q", name, got, value)
		}
	}
	return ""
}

// qualifiedName is kind.group/name as kubectl writes it.
func qualifiedName(o *object) string {
	return strings.ToLower(schema.GroupResource{Group: o.resource.Group, Resource: o.kind}.String()) + "/" + o.name
}
