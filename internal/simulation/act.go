// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/simulation/apiserver"
)

// perform does what a fault does at its moment; faults that last are asked for where they act.
func (e *environment) perform(f *Fault) {
	if f.Kind == BackupRestored {
		time.Sleep(time.Until(e.began.Add(f.From - f.Delay)))
		e.backup = e.server.Backup()
	}
	time.Sleep(time.Until(e.began.Add(f.From)))
	switch f.Kind {
	case Killed:
		e.kill(f)
		return
	case Restarted:
		e.restart(f)
		return
	}
	e.story.tell("", "fault: %v", *f)
	switch f.Kind {
	case APIDown, ConnectionsCut:
		e.cut(f)
	case Compaction:
		e.server.Compact()
	case BackupRestored:
		e.server.Restore(e.backup)
		e.restored = time.Now()
		e.cut(f)
	case ConnectionsDie:
		for _, r := range e.replicas {
			if p := r.running(); p != nil {
				p.killConnections()
			}
		}
	case KindMissing:
		e.server.RemoveKind(kindsByName["Rollout"].resource)
	case ClusterNew:
		e.server.Replace("cluster-2")
		e.restored = time.Now()
		e.cut(f)
	}
	if f.To > f.From {
		time.Sleep(f.To - f.From)
		e.story.tell("", "over: %s", f.Kind)
		if f.Kind == KindMissing {
			e.server.AddKind(rollouts)
			e.createAgain(rollouts.Kind)
		}
	}
}

// createAgain creates the objects that went with their kind.
func (e *environment) createAgain(kind string) {
	for _, a := range e.apps {
		for _, o := range a.objects {
			if o.kind == kind {
				o.exists = false
				o.create(e.server)
			}
		}
	}
}

func (e *environment) cut(f *Fault) {
	for _, r := range e.replicas {
		if p := r.running(); p != nil && f.concerns(r.index) {
			p.cut()
		}
	}
}

// kill kills the replica's process at the seam that the fault names, or after a while if it does not
// get there, and starts the next.
func (e *environment) kill(f *Fault) {
	r := e.target(f)
	p := r.running()
	if p == nil {
		return
	}
	if f.Seam == AnyTime {
		p.die("at some moment")
	} else {
		p.arm(f)
		for wait := 0; wait < 100 && !p.isDead(); wait++ {
			time.Sleep(100 * time.Millisecond)
		}
		p.die("at some moment")
	}
	time.Sleep(f.To - f.From)
	if r.running() == nil {
		r.start()
	}
}

func (e *environment) restart(f *Fault) {
	r := e.target(f)
	p := r.running()
	if p == nil {
		return
	}
	p.stop()
	time.Sleep(f.To - f.From)
	if r.running() == nil {
		r.start()
	}
}

// target returns the replica that a fault names; the first if nobody leads.
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
		if f := &e.plan.Faults[i]; f.Kind == kind && f.From <= now && now < f.To && f.concerns(replica) {
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
	switch request.Resource {
	case events:
		p.requested(now)
	case leases:
	default:
		p.lookups.Add(1)
	}
	if p.reaches(AtConnection) {
		if !p.kill.Acted {
			p.die("at a request, before it acted")
			return apiserver.Answer{Status: http.StatusServiceUnavailable}
		}
		go p.die("at a request, after it acted")
		return apiserver.Answer{LoseAnswer: true}
	}
	for i := range e.plan.Faults {
		if f := &e.plan.Faults[i]; f.From <= now && now < f.To && f.concerns(p.replica.index) && f.hits(e.plan.Seed, request) {
			f.answer(e.plan.Seed, request, &answer)
		}
	}
	return answer
}

// hits reports whether a request is one of those that the fault is about.
func (f *Fault) hits(seed uint64, request apiserver.Request) bool {
	if f.Resource != "" && f.Resource != request.Resource.Resource || f.Verb != "" && f.Verb != request.Verb ||
		f.Namespace != "" && f.Namespace != request.Namespace {
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
	case NoEndBookmark:
		answer.NoEndBookmark = request.Streaming && request.Resource.Resource == "events"
	case LeaseForbidden:
		if request.Resource.Resource == "leases" {
			answer.Status = http.StatusForbidden
		}
	}
}
