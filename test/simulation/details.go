// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// What a record says of an end, and of changes. The contract: "they belong to the run or revision that the Event is
// about: if the object shows another one, they are absent".
const (
	endReason   = "k8s.container.status.last_terminated_reason"
	changesKey  = "k8s.rollout.changes"
	changedBy   = "k8s.workload.changed_by"
	changedAt   = "k8s.workload.changed_at"
	deployedBy  = "k8s.workload.deployed_by"
	restarts    = "k8s.container.restart_count"
	memoryLimit = "k8s.container.memory.limit"
	endSignal   = "k8s.container.last_terminated.signal"
	exitCode    = "process.exit.code"
	endStarted  = "k8s.container.last_terminated.started_at"
	endFinished = "k8s.container.last_terminated.finished_at"

	mayHaveEnd, mayHaveChanges = "an end", "changes" // of records whose event calls for them
)

// checkDetails compares what records say of ends and changes with what happened.
func (e *environment) checkDetails() {
	e.said = map[string]int{}
	isForbidden := e.plan.NoDetails || slices.ContainsFunc(e.plan.Faults, func(f Fault) bool { return f.Kind == DetailsFail && f.From == 0 && f.To == forever })
	for _, r := range e.records() {
		attributes := r.log.Attributes()
		if strings.Contains(fmt.Sprint(attributes.AsRaw(), r.resource.AsRaw(), r.log.Body().AsString()), secret) {
			e.violate(detailsSecret, "", "%s has a value: %v", r.uid, attributes.AsRaw())
		}
		may, about := e.allowed[r.uid], text(attributes, "k8s.event.name")
		if isForbidden {
			may = allowed{}
		}
		if e.plan.has(BackupRestored, ClusterNew) {
			continue // The objects, and the events, are of two histories.
		}
		if problem := wrongEnd(attributes, may.end); problem != "" {
			e.violate(detailsRight, text(r.resource, "k8s.namespace.name")+"/"+about, "%s: %s", r.uid, problem)
		}
		if problem := wrongChanges(attributes, may); problem != "" {
			e.violate(detailsRight, text(r.resource, "k8s.namespace.name")+"/"+about, "%s: %s", r.uid, problem)
		}
		if may.end != nil {
			e.said[mayHaveEnd]++
		}
		if len(may.changes) > 0 {
			e.said[mayHaveChanges]++
		}
		for _, key := range []string{endReason, changesKey, changedBy} {
			if _, says := attributes.Get(key); says {
				e.said[key]++
			}
		}
	}
}

// wrongEnd returns what a record says of an end that is not so, or "".
func wrongEnd(attributes pcommon.Map, end *endOfRun) string {
	want := map[string][]string{}
	if end != nil {
		signal := ""
		if end.state.ExitCode > 128 {
			signal = fmt.Sprint(end.state.ExitCode - 128)
		}
		want = map[string][]string{
			endReason: {end.state.Reason}, exitCode: {fmt.Sprint(end.state.ExitCode)}, endSignal: {signal},
			restarts: {fmt.Sprint(end.run), fmt.Sprint(end.run + 1)}, memoryLimit: {fmt.Sprint(end.memory)},
			endStarted: {written(end.state.StartedAt.Time)}, endFinished: {written(end.state.FinishedAt.Time)},
		}
	}
	return wrongAttributes(attributes, want, []string{endReason, exitCode, endSignal, restarts, memoryLimit, endStarted, endFinished})
}

func written(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// wrongAttributes returns the first of the keys whose value is none of those that are wanted; it may be absent.
func wrongAttributes(attributes pcommon.Map, want map[string][]string, keys []string) string {
	for _, key := range keys {
		if got, says := attributes.Get(key); says && !slices.Contains(want[key], got.AsString()) {
			return fmt.Sprintf("%s is %s, not one of %v", key, got.AsString(), want[key])
		}
	}
	return ""
}

// wrongChanges returns what a record says of changes that is not so, or "".
func wrongChanges(attributes pcommon.Map, may allowed) string {
	want := map[string][]string{changedBy: may.changers, changesKey: nil}
	if len(may.changes) > 0 {
		want[changedAt], want[deployedBy] = []string{text(attributes, changedAt)}, []string{"helm/" + may.release}
	}
	for _, r := range may.changes {
		if sentences := r.sentences(); sentences != nil {
			list := pcommon.NewValueSlice()
			for _, sentence := range sentences {
				list.Slice().AppendEmpty().SetStr(sentence)
			}
			want[changesKey] = append(want[changesKey], list.AsString())
		}
	}
	return wrongAttributes(attributes, want, []string{changesKey, changedBy, changedAt, deployedBy})
}

// readsDetails checks that a process reads an object for details once in two seconds. Callers must hold p.mu.
func (p *process) readsDetails(request apiserver.Request) {
	e, object, now := p.replica.env, request, time.Now()
	if e.plan.NoDetails {
		e.violate(detailsOnce, "", "%s reads %s %s, although details are disabled", p.name, object.Resource, object.Name)
	}
	if request.Verb == "list" || request.Resource == deployments {
		return // For each new ReplicaSet, the others are listed, and their Deployment is read.
	}
	object.Number = 0
	last, known := p.detailReads[object]
	p.detailReads[object] = now
	// The HTTP client repeats what was throttled, and what a connection lost. The first read after failures, however
	// long they are over, is one in the background.
	fails := func(f *Fault) bool { return f.Kind == DetailsFail || f.Kind.isOfAPI() }
	if known && now.Sub(last) < 2*time.Second && !e.disturbed(e.began, now, fails) {
		e.violate(detailsOnce, "", "%s reads %s %s/%s again after %v", p.name, object.Resource, object.Namespace, object.Name, now.Sub(last))
	}
}

// attributes returns what each record has, apart from why it has no details, and from when it was observed.
func (e *environment) attributes() (all []string) {
	if len(e.plan.Producers) > 0 || len(e.plan.Detailed) == 0 {
		return nil // Only tests of details compare them.
	}
	for _, r := range e.records() {
		attributes := r.log.Attributes().AsRaw()
		delete(attributes, "k8s.details.resolution")
		all = append(all, fmt.Sprint(r.log.Body().AsString(), attributes, r.resource.AsRaw()))
	}
	slices.Sort(all)
	return all
}
