// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

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

func killLeader(from, to int) Fault { return fault(Killed, from, to).of(leader) }

func killReplica(replica, from, to int) Fault { return fault(Killed, from, to).of(replica) }

// alone reports whether replicas elect their leader and share nothing.
func (p *Plan) alone() bool { return p.Mode == electorAlone }

// regressions are environments in which reviews or random environments once found a defect.
var regressions = []requirement{
	{
		name: "the pipeline rejects data for a minute, then the leader dies",
		plan: plain(electorAlone, fault(PipelineRejects, 40, 110), killLeader(100, 130)),
	}, {
		name: "no leader can be elected for a minute",
		plan: plain(electorAlone, fault(LeaseForbidden, 40, 120)),
	}, {
		name: "the leader loses its lease while the pipeline of the first of two receivers hangs",
		plan: plain(electorAlone).with(twoReceivers(1)),
	}, {
		name: "the leader loses its lease while the pipeline of the second of two receivers hangs",
		plan: plain(electorAlone).with(twoReceivers(2)),
	}, {
		name: "an election takes longer than the lease and 5 s",
		plan: plain(electorAlone, killLeader(60, 100)).with(slowElections),
	}, {
		name: "storage cannot be read for 4 s at a start",
		plan: plain(storageAlone, killReplica(0, 60, 80), fault(StorageUnreadable, 70, 84)),
	}, {
		name: "one exporter returns a permanent error, the other a retryable one",
		plan: rejectsSecond(PipelinePermanent),
	}, {
		name: "one exporter rejects a part, the other everything",
		plan: manyPods(rejectsSecond(PipelinePartial).with(dense)),
	}, {
		name: "another cluster at the address, with storage",
		plan: plain(storageAlone, fault(ClusterNew, 60, 60)).with(long),
	}, {
		name: "dedup_interval and a failover",
		plan: manyPods(plain(electorAlone, killReplica(1, 30, 33), killLeader(80, 100))).with(dedup),
	}, {
		name: "a filter that is widened counts the past",
		plan: plain(storageAlone, restart(90, 92)).with(startAtEnd).
			with(reconfigured(func(c *Configured) { c.ExcludeReasons = nil })).
			with(func(p *Plan) { p.ExcludeReasons = []string{"BackOff"} }),
		scenario: Scenario{Check: func(e *environment) { e.checkNothingBefore(90 * time.Second) }},
	}, {
		name: "a rule for tags of events is added, and the pods are gone that records know",
		plan: plain(storageAlone, deletes(restart(60, 62))).
			with(reconfigured(func(c *Configured) { c.TagsFrom = []string{fromEvent} })),
	}, {
		name: "reasons of 1 MiB while the pipeline rejects",
		plan: plain(storageAlone, fault(PipelineRejects, 25, 60)),
		scenario: Scenario{Act: func(e *environment) {
			time.Sleep(30 * time.Second)
			enlarge := func(ev *corev1.Event) { ev.Reason = strings.Repeat("x", 1<<20) }
			for i := range 40 {
				e.writeByHand(fmt.Sprint("large-", i), enlarge)
			}
		}},
	}, {
		name: "a list whose token repeats",
		plan: plain(storageAlone, fault(ListNeverEnds, 0, 60)).with(fromBeginning),
	}, deletionsCutShort(), {
		name: "storage cannot be written and the process is killed",
		plan: plain(storageAlone, fault(StorageUnwritable, 40, 120), killReplica(0, 90, 100),
			fault(APIDown, 92, 116)),
	}, {
		name: "an event goes on while the process that delivered it is dead",
		plan: plain(storageAlone, Fault{
			Kind: Killed, From: time.Minute, To: 80 * time.Second, Seam: AtPipeline, Acted: true,
		}),
	}, {
		name:     "etcd has compacted the value that the next change replaces",
		plan:     plain(storageAlone, fault(APIDown, 60, 70)).with(noProducers),
		scenario: Scenario{Act: compactedValue},
	}, {
		name: "a series expires before its last value was emitted",
		plan: plain(storageAlone, killReplica(0, 115, 175)).with(func(p *Plan) {
			p.SeriesTTL, p.Collection, p.Producers[0].Writes = 40*time.Second, 30*time.Second, 53
		}),
	}, {
		name: "another cluster at the address does not answer at once which one it is",
		plan: plain(neither, fault(ClusterNew, 60, 60), ofResource(fault(APIRefuses, 60, 75), "namespaces", http.StatusInternalServerError)).
			with(long).with(fromBeginning),
	},
}

// compactedValue lets a stream resume from just below a compaction.
func compactedValue(e *environment) {
	time.Sleep(30 * time.Second)
	e.writeByHand("event", func(*corev1.Event) {})
	time.Sleep(32 * time.Second)
	change := func(count int32) {
		if found, err := e.server.Get(events, namespace(0), "event"); err == nil {
			next := found.(*corev1.Event).DeepCopy()
			next.Count = count
			_, _ = e.server.Update(events, next)
		}
	}
	change(2)
	e.server.Compact()
	change(3)
}

// rejectsSecond is a plan with two exporters: the second rejects while the first has the fault.
func rejectsSecond(first FaultKind) Plan {
	second := fault(PipelineRejects, 60, 70)
	second.Exporter = 1
	p := plain(storageAlone, fault(first, 60, 70), second)
	p.Exporters = 2
	return p
}

// twoReceivers lets the leader lose its lease while the pipeline of one of its receivers hangs.
func twoReceivers(hangs int) func(*Plan) {
	return func(p *Plan) {
		p.TwoReceivers, p.Faults = true, p.losesLease(hangs, time.Minute, 100*time.Second)
	}
}

func dedup(p *Plan) { p.Dedup = 13 * time.Second }

func noProducers(p *Plan) { p.Producers = nil }

func slowElections(p *Plan) { p.Lease = leaseTimes(40, 30, 12) }

func startAtEnd(p *Plan) { p.FromBeginning = false }

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

func halfOf(f Fault) Fault {
	f.OneIn = 2
	return f
}

// backup restores a backup of that age.
func backup(at int, age time.Duration) Fault {
	f := fault(BackupRestored, at, at)
	f.Delay = age
	return f
}

func restart(from, to int) Fault { return fault(Restarted, from, to).of(0) }

// deletes lets all workloads be deleted while the process is down.
func deletes(f Fault) Fault {
	f.Deletes = 1
	return f
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

// leaderOffline cuts off the first replica, which is started first and leads.
func leaderOffline(from, to int) Fault { return fault(APIDown, from, to).of(0) }

// writeByHand creates an event of its own about the first app's pod.
func (e *environment) writeByHand(name string, change func(*corev1.Event)) {
	pod := e.apps[0].subject(0)
	pod.create(e.server)
	e.writeAbout(pod, name, change)
}

// writeAbout creates an event about an object.
func (e *environment) writeAbout(o *object, name string, change func(*corev1.Event)) {
	ev := o.event(name)
	ev.Reason, ev.Type, ev.Message = "ByHand", "Normal", "written by hand"
	ev.Source.Component = "by-hand"
	change(ev)
	if _, err := e.server.Create(events, ev); err != nil {
		e.violate(nothingInvented, "", "the scenario cannot write: %v", err)
	}
}

// checkNothingBefore checks that no record counts what happened before the moment.
func (e *environment) checkNothingBefore(moment time.Duration) {
	before := map[string]int64{} // occurrences by the event's name
	for _, w := range e.server.History() {
		if w.At.Sub(e.began) < moment {
			before[nameOf(w.Event).String()] = countOf(w.Event)
		}
	}
	t := newTruth(e)
	for _, r := range records(e.exporters[0].all()) {
		if name := t.eventOf(r); r.count-r.occurrences < before[name] {
			e.violate(nothingInvented, name, "a record counts %d of %d occurrences, but %d were before %v",
				r.occurrences, r.count, before[name], moment)
		}
	}
}

// deletionsCutShort lets the connection end amid many deletions at one resource version.
// A day later, when their counts are forgotten, the same names are used again.
func deletionsCutShort() requirement {
	const n = 30
	name := func(i int) string { return fmt.Sprint("reused-", i) }
	write := func(e *environment, count int32, suffix string) {
		for i := range n {
			uid := types.UID(fmt.Sprint("uid-", i, suffix))
			e.writeByHand(name(i), func(ev *corev1.Event) { ev.Count, ev.UID = count, uid })
		}
	}
	plan := plain(storageAlone, fault(WatchBreaks, 225, 400))
	plan.Producers, plan.Collection, plan.SeriesTTL = nil, time.Hour, 48*time.Hour
	act := func(e *environment) {
		time.Sleep(210 * time.Second)
		write(e, 5, "-first")
		time.Sleep(20 * time.Second)
		e.server.BreakConnections("")
		time.Sleep(time.Minute)
		names := make([]string, n)
		for i := range n {
			names[i] = name(i)
		}
		_ = e.server.Delete(events, namespace(0), names...)
		time.Sleep(25 * time.Hour)
		write(e, 6, "-second")
	}
	return requirement{
		name: "the connection ends among deletions at one version",
		plan: plan, scenario: Scenario{Act: act},
	}
}
