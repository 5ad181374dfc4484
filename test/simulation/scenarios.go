// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// requirement is an environment in which every promise must hold.
type requirement struct {
	name     string
	plan     Plan
	scenario Scenario
}

// scenarios are environments that once broke a promise, or that random ones seldom have and no unit
// test has.
var scenarios = []requirement{
	{
		name: "the leader loses its lease while its pipeline hangs and ignores the end of its context",
		plan: plain(electorAlone, deaf(fault(PipelineHangs, 60, 100).of(0)), fault(LeaseForbidden, 60, 100).of(0)),
	}, {
		name: "an election takes longer than the lease and 5 s",
		plan: plain(electorAlone, killLeader(60, 100)).with(func(p *Plan) { p.Lease = leaseTimes(40, 30, 12) }),
	}, {
		name: "the elector leads before the receiver starts, and later ends the term of another component for long",
		plan: plain(electorAlone, ofVerb("update", fault(LeaseForbidden, 60, 100).of(0))).with(func(p *Plan) {
			p.SlowStart, p.SlowStop = 2*time.Second, 25*time.Second
		}),
	}, {
		name:     "the progress may be read, but not written",
		plan:     plain(electorAlone, ofVerb("update", fault(ProgressForbidden, 0, int(forever/time.Second)))),
		scenario: reportsForbiddenProgress,
	}, {
		name: "storage cannot be read for 4 s at a start",
		plan: plain(storageAlone, killReplica(60, 80), fault(StorageUnreadable, 70, 84)),
	}, {
		name: "storage cannot be written and the process is killed",
		plan: plain(storageAlone, fault(StorageUnwritable, 40, 120), killReplica(90, 100), fault(APIDown, 92, 116)),
	}, {
		name: "one exporter returns a permanent error, the other a retryable one",
		plan: rejectsSecond(PipelinePermanent),
	}, {
		name: "one exporter rejects a part, the other everything",
		plan: manyPods(rejectsSecond(PipelinePartial).with(dense)),
	}, {
		name: "another cluster at the address does not answer at once which one it is",
		plan: plain(neither, fault(ClusterNew, 60, 60), ofResource(fault(APIRefuses, 60, 75), "namespaces", http.StatusInternalServerError)).
			with(long).with(fromBeginning),
	}, {
		name: "history is compacted between two pages of a list",
		plan: plain(storageAlone, ofResource(fault(APISlow, 60, 140), "events", 0).slowBy(14*time.Second), killReplica(62, 64)).
			with(func(p *Plan) { p.Existing, p.OldServer, p.CompactAfter = 4200, true, 5*time.Second }),
	}, {
		name: "the pipeline rejects while a list has more bytes than the queue",
		plan: plain(storageAlone, killReplica(50, 100), fault(PipelineRejects, 95, 160)).with(lasting(5 * time.Minute)).
			with(func(p *Plan) { p.CompactAfter = 20 * time.Second }),
		scenario: writesLarge(120, func(ev *corev1.Event) { ev.Message = strings.Repeat("x", 60<<10) }),
	}, {
		name:     "reasons of 1 MiB while the pipeline rejects",
		plan:     plain(storageAlone, fault(PipelineRejects, 25, 60)),
		scenario: writesLarge(40, func(ev *corev1.Event) { ev.Reason = strings.Repeat("x", 1<<20) }),
	},
}

// plain is a plan of three minutes with one Deployment, whose pod has an event every two seconds.
func plain(m Mode, faults ...Fault) Plan {
	p := Plan{
		Seed: 1, Mode: m, Replicas: 1, Namespaces: 1,
		EventTTL: time.Hour, CompactAfter: 5 * time.Minute, Lease: leaseTimes(15, 10, 1),
		Configured: Configured{
			Collection: 10 * time.Second, MaxDepth: 10, CacheSize: 100_000, CacheTTL: 10 * time.Minute,
			MaxSeries: 10_000, SeriesTTL: time.Hour, QPS: -1,
		},
		Apps:      []AppPlan{{Kind: "deployment", LabelAt: 1}},
		Producers: []ProducerPlan{writes(OldRecorder, "BackOff", firstWrite, 2*time.Second, 80)},
		Exporters: 1, Faults: faults, Active: 3 * time.Minute,
	}
	if m.Elector {
		p.Replicas = 2
	}
	return p
}

// writes is the plan of a producer of n warnings about the first app's first pod.
func writes(style Style, reason string, start, gap time.Duration, n int) ProducerPlan {
	return ProducerPlan{
		Style: style, Reason: reason, Type: "Warning", Start: start, Gap: gap, Writes: n,
	}
}

// with changes a plan.
func (p Plan) with(change func(*Plan)) Plan {
	change(&p)
	return p
}

func fault(kind FaultKind, from, to int) Fault {
	begin, end := time.Duration(from)*time.Second, time.Duration(to)*time.Second
	return Fault{Kind: kind, From: begin, To: end, Replica: everyone}
}

// of lets a fault concern one replica.
func (f Fault) of(replica int) Fault {
	f.Replica = replica
	return f
}

func (f Fault) slowBy(delay time.Duration) Fault {
	f.Delay = delay
	return f
}

func ofVerb(verb string, f Fault) Fault {
	f.Verb = verb
	return f
}

// ofResource lets a fault concern requests for one resource.
func ofResource(f Fault, resource string, status int) Fault {
	f.Resource, f.Status = resource, status
	return f
}

func killLeader(from, to int) Fault { return fault(Killed, from, to).of(leader) }

func killReplica(from, to int) Fault { return fault(Killed, from, to).of(0) }

// rejectsSecond is a plan with two exporters: the second rejects while the first has the fault.
func rejectsSecond(first FaultKind) Plan {
	second := fault(PipelineRejects, 60, 70)
	second.Exporter = 1
	p := plain(storageAlone, fault(first, 60, 70), second)
	p.Exporters = 2
	return p
}

// deaf lets a pipeline that hangs ignore the end of its context.
func deaf(f Fault) Fault {
	f.Deaf = true
	return f
}

// fromBeginning lets records be all that was offered: else, what a first list shows is noted, too.
func fromBeginning(p *Plan) { p.FromBeginning = true }

// lasting lets the first producer write for that long, and the run last as long.
func lasting(d time.Duration) func(*Plan) {
	return func(p *Plan) {
		p.Active = d
		for i := range p.Producers {
			p.Producers[i].Writes = int((d - 30*time.Second) / p.Producers[i].Gap)
		}
	}
}

// dense lets all pods have events all the time, for a while.
func dense(p *Plan) {
	first := &p.Producers[0]
	first.Start, first.Gap, first.Writes = 58*time.Second, 50*time.Millisecond, 160
}

// long lets the producers write long after a restore, and far more before it, so that the versions
// of what was watched are not reached again.
func long(p *Plan) {
	p.Active, p.Producers[0].Writes = 5*time.Minute, 140
	storm := writes(HandMade, "Storm", 40*time.Second, 10*time.Millisecond, 800)
	storm.Type = "Normal"
	p.Producers = append(p.Producers, storm)
}

// manyPods gives a plan nine more pods with events of their own.
func manyPods(p Plan) Plan {
	for i := range 9 {
		more := p.Producers[0]
		more.Pod = i + 1
		p.Producers = append(slices.Clone(p.Producers), more)
	}
	return p
}

// reportsForbiddenProgress checks that the status of the leader is an error. The contract: an API server that "refuses a permission never stops the
// Collector. Instead, the component's status reports a recoverable error".
func reportsForbiddenProgress(e *environment) {
	time.Sleep(90 * time.Second)
	if !slices.ContainsFunc(e.allProcesses(), func(p *process) bool { return p.failing(0) > 0 }) {
		e.violate(neverSilent, "", "the leader may not note its progress, and its status is no error")
	}
}

// writesLarge writes n events at once.
func writesLarge(n int, enlarge func(*corev1.Event)) func(*environment) {
	return func(e *environment) {
		time.Sleep(30 * time.Second)
		for i := range n {
			e.writeByHand(fmt.Sprint("large-", i), enlarge)
		}
	}
}

// writeByHand creates an event of its own about the first app's pod.
func (e *environment) writeByHand(name string, change func(*corev1.Event)) {
	pod := e.apps[0].subject(0)
	pod.create(e.server)
	ev := pod.event(name)
	ev.Reason, ev.Type, ev.Message = "ByHand", "Normal", "written by hand"
	ev.Source.Component = "by-hand"
	change(ev)
	if _, err := e.server.Create(events, ev); err != nil {
		e.violate(nothingInvented, "", "the scenario cannot write: %v", err)
	}
}
