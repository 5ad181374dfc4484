// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// perform does what a fault does at its moment; faults that last are asked for where they act.
func (e *environment) perform(f *Fault) {
	var backup *apiserver.Backup
	if f.Kind == BackupRestored {
		time.Sleep(time.Until(e.began.Add(f.From - f.Delay)))
		backup = e.server.Backup()
	}
	time.Sleep(time.Until(e.began.Add(f.From)))
	switch f.Kind {
	case Killed:
		e.restart(f, func(p *process) { p.killAt(f) })
		return
	case Restarted:
		e.restart(f, (*process).stop)
		return
	}
	e.story.note("", "fault: %+v", *f)
	e.begin(f, backup)
	if f.To > f.From && f.To < forever {
		time.Sleep(f.To - f.From)
		e.story.note("", "over: %s", f.Kind)
		if f.Kind == KindMissing {
			e.server.AddKind(rollouts)
			e.createAgain(rollouts.Kind)
		}
	}
}

// begin acts on the API server and on the connections as the fault does when it begins.
func (e *environment) begin(f *Fault, backup *apiserver.Backup) {
	switch f.Kind {
	case APIDown, ConnectionsCut:
		e.onConnections(f, (*process).cut)
	case Compaction:
		e.server.Compact()
	case BackupRestored:
		e.addRestore(restore{
			version: backup.Version(), reached: e.server.Version(), events: backup.Events(),
		})
		e.server.Restore(backup)
		e.onConnections(f, (*process).cut)
	case ConnectionsDie:
		e.onConnections(f, (*process).killConnections)
	case KindMissing:
		rollout := schema.GroupResource{Group: rollouts.Group, Resource: rollouts.Resource}
		e.server.RemoveKind(rollout)
	case ClusterNew: // A process notices at its start that another cluster answers.
		ran := e.killAll()
		e.addRestore(restore{isNew: true, reached: e.server.Version()})
		e.server.Replace(newClusterUID)
		for _, r := range ran {
			r.start()
		}
	}
}

// killAll kills all processes, and returns where they ran.
func (e *environment) killAll() (ran []*replica) {
	for _, r := range e.replicas {
		if p := r.running(); p != nil {
			p.die("before another cluster takes the address")
			ran = append(ran, r)
		}
	}
	return ran
}

// createAgain creates the objects that went with their kind.
func (e *environment) createAgain(kind string) {
	e.eachObject(func(o *object) {
		if o.kind == kind {
			o.exists = false
			o.create(e.server)
		}
	})
}

func (e *environment) onConnections(f *Fault, act func(*process)) {
	for _, r := range e.replicas {
		if p := r.running(); p != nil && f.concerns(r.index) {
			act(p)
		}
	}
}

// killAt kills the process at the seam that the fault names, or after a while if it does not get
// there.
func (p *process) killAt(f *Fault) {
	if f.Seam != AnyTime {
		p.arm(f)
		for wait := 0; wait < 100 && !p.isDead(); wait++ {
			time.Sleep(100 * time.Millisecond)
		}
	}
	p.die("at some moment")
}

// restart ends the process of the replica that the fault names, and starts the next.
func (e *environment) restart(f *Fault, end func(*process)) {
	r := e.target(f)
	p := r.running()
	if p == nil {
		return
	}
	end(p)
	e.deleteApps(f.Deletes)
	time.Sleep(f.To - f.From)
	r.start()
}

// deleteApps deletes one app in n with its pods and everything that owns them; 0: none.
func (e *environment) deleteApps(n int) {
	for i, a := range e.apps {
		if n == 0 || !chance(draw(e.plan.Seed, "deleted app", i), n) {
			continue
		}
		e.story.note("", "%s is deleted", a.name)
		for _, o := range slices.Concat(a.existing(), a.objects) {
			o.delete(e.server)
		}
	}
}

// target returns the replica that a fault names; the first if no process leads.
func (e *environment) target(f *Fault) *replica {
	if f.Replica != leader {
		return e.replicas[f.Replica]
	}
	holder := e.leaseHolder()
	for _, r := range e.replicas {
		if p := r.running(); p != nil && p.name == holder {
			return r
		}
	}
	return e.replicas[0]
}

// leaseHolder returns the name of the process that holds the lease; empty if none does.
func (e *environment) leaseHolder() string {
	found, err := e.server.Get(leases, leaseNamespace, leaseName)
	if err != nil {
		return ""
	}
	return *cmp.Or(found.(*coordinationv1.Lease).Spec.HolderIdentity, new(string))
}

// fault returns the plan's first fault of the kind that acts now on the replica, or nil.
func (e *environment) fault(replica int, kind FaultKind) *Fault {
	now := time.Since(e.began)
	for i := range e.plan.Faults {
		if f := &e.plan.Faults[i]; f.Kind == kind && f.actsAt(now) && f.concerns(replica) {
			return f
		}
	}
	return nil
}

// decide is what a request meets at the API server.
func (e *environment) decide(request apiserver.Request) (answer apiserver.Answer) {
	p := e.process(request.Client)
	if p == nil || p.isDead() {
		return apiserver.Answer{Status: http.StatusServiceUnavailable}
	}
	now := time.Since(e.began)
	p.requested(request, now)
	if request.Resource == events {
		p.checkLeads("asks for events")
	}
	seam := AtConnection
	if request.Resource == leases {
		seam = AtElection
	}
	if p.reaches(seam) {
		if !p.kill.Acted {
			p.die("at an " + string(seam) + ", before it acted")
			return apiserver.Answer{Status: http.StatusServiceUnavailable}
		}
		go p.die("at an " + string(seam) + ", after it acted")
		return apiserver.Answer{LoseAnswer: true}
	}
	answer.Delay = e.plan.Latency
	for i := range e.plan.Faults {
		f := &e.plan.Faults[i]
		if f.actsAt(now) && f.concerns(p.replica.index) && f.hits(e.plan.Seed, request) {
			f.answer(e.plan.Seed, request, &answer)
		}
	}
	return answer
}

// isOfProgress reports whether a request is about the ConfigMap with the leader's progress.
func isOfProgress(request apiserver.Request) bool {
	return request.Resource == configMaps && request.Namespace == leaseNamespace
}

// ofDiscovery stands for a resource in faults that concern the documents of discovery.
const ofDiscovery = "discovery"

// hits reports whether a request is one of those that the fault is about.
func (f *Fault) hits(seed uint64, request apiserver.Request) bool {
	names := func(selected, value string) bool { return selected == "" || selected == value }
	resource := request.Resource.Resource
	if request.Verb == "discover" {
		resource = ofDiscovery
	}
	if f.Kind == DetailsFail && !request.JSON {
		return false
	}
	if !names(f.Resource, resource) || !names(f.Verb, request.Verb) ||
		!names(f.Namespace, request.Namespace) {
		return false
	}
	actor := request.Client + request.Verb + request.Resource.Resource + string(f.Kind)
	return f.OneIn <= 1 || chance(draw(seed, actor, request.Number), f.OneIn)
}

// answer is what the fault makes of an answer.
func (f *Fault) answer(seed uint64, request apiserver.Request, answer *apiserver.Answer) {
	switch f.Kind {
	case APIRefuses:
		answer.Status = f.Status
		if f.Status == http.StatusTooManyRequests {
			answer.RetryAfter = time.Second
		}
	case DetailsFail:
		answer.Status = cmp.Or(f.Status, answer.Status) // A slow answer to what another fault refuses is a refusal.
		answer.Hang = answer.Hang || f.Status == 0 && f.Delay == 0
		answer.Delay += f.Delay
		if f.Status == http.StatusTooManyRequests {
			answer.RetryAfter = time.Second
		}
	case APIHangs:
		answer.Hang = true
	case APISlow:
		answer.Delay += f.Delay
	case AnswersLost:
		answer.LoseAnswer = true
	case WatchBreaks:
		if request.Verb == "watch" {
			answer.CutAfter = 1 + draw(seed, request.Client+"cut", request.Number).IntN(6)
		}
	case ListNeverEnds:
		answer.SameToken = request.Resource.Resource == "events" && !request.Single
	case LeaseForbidden:
		if request.Resource == leases {
			answer.Status = http.StatusForbidden
		}
	case ProgressForbidden:
		if isOfProgress(request) {
			answer.Status = http.StatusForbidden
		}
	}
}

// disturbed reports whether a fault that the condition selects may act between the two moments.
func (e *environment) disturbed(begin, end time.Time, condition func(*Fault) bool) bool {
	for i := range e.plan.Faults {
		f := &e.plan.Faults[i]
		if f.covers(e.sinceStart(begin), e.sinceStart(end)) && condition(f) {
			return true
		}
	}
	return false
}

func (e *environment) sinceStart(t time.Time) time.Duration { return t.Sub(e.began) }
