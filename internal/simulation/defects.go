// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// marked names the defects of the receiver that are known and not fixed. Their scenarios must fail
// as long as they are listed here, and random plans leave out what shows them, so that they find
// others. A fix of a defect removes its mark.
var marked = "hijk"

func isMarked(mark string) bool { return strings.Contains(marked, mark) }

// exempt reports whether a check leaves out what a marked defect breaks.
func (e *environment) exempt(mark string) bool { return isMarked(mark) && !e.scenario.strict }

// defect is a defect that a review found.
type defect struct {
	mark      string
	avoid     func(*Plan) // takes out of a random plan what shows it; nil: nothing does
	scenarios []defectScenario
}

// defectScenario is an environment that shows the defect.
type defectScenario struct {
	name     string
	plan     Plan
	scenario Scenario
	breaks   *Promise
}

// KnownDefects is a Markdown table of the marked defects.
func KnownDefects() string {
	table := "| | Environment | Promise that breaks |\n|---|---|---|\n"
	for _, d := range defects {
		for _, s := range d.scenarios {
			if isMarked(d.mark) {
				row := "| %s | %s: %s | %s |\n"
				table += fmt.Sprintf(row, d.mark, s.plan.Mode, s.name, s.breaks.Name)
			}
		}
	}
	return table
}

// without takes the faults of the kinds out of a plan.
func without(kinds ...FaultKind) func(*Plan) {
	return func(p *Plan) { p.drop(func(f Fault) bool { return f.is(kinds...) }) }
}

func avoidMarkedDefects(p *Plan) {
	for _, d := range defects {
		if d.avoid != nil && isMarked(d.mark) {
			d.avoid(p)
		}
	}
}

// plain is a plan of three minutes with one Deployment, whose pod has an event every two seconds.
func plain(m Mode, faults ...Fault) Plan {
	p := Plan{
		Seed: 1, Mode: m, Replicas: 1, Collection: 10 * time.Second, Namespaces: 1,
		EventTTL: time.Hour, CompactAfter: 5 * time.Minute, Lease: leaseTimes(15, 10, 1),
		MaxDepth: 10, CacheSize: 100_000, CacheTTL: 10 * time.Minute, MaxSeries: 10_000,
		SeriesTTL: time.Hour, QPS: 50, Apps: []AppPlan{{Kind: "deployment", LabelAt: 1}},
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

// isLag reports whether a fault lets a leader lag.
func isLag(f Fault) bool { return f.Kind.isOfPipelines() || f.Kind == StorageSlow }

// reachesLeases reports whether a fault may keep every replica from being elected.
func reachesLeases(f Fault) bool {
	all := f.Resource == "" || f.Resource == "leases"
	return f.Kind == LeaseForbidden || f.Kind.isOfAPI() && all && f.Replica == everyone
}

// alone reports whether replicas elect their leader and share nothing.
func (p *Plan) alone() bool { return p.Mode == electorAlone }

// manyApps is a plan with an app of the kind in each of n namespaces, each with one event at once.
func manyApps(kind string, n int) Plan {
	p := plain(neither)
	p.Namespaces = n
	for i := range n {
		p.Apps = append(p.Apps, AppPlan{Kind: kind, Namespace: i, LabelAt: 1})
		one := writes(Kubelet, "Failed", 30*time.Second, time.Second, 1)
		one.App = i + 1
		p.Producers = append(p.Producers, one)
	}
	return p
}

// defects are those that were found from outside, in the order of their letters.
var defects = []defect{
	{"a", func(p *Plan) {
		if p.alone() {
			p.drop(isLag)
		}
	}, []defectScenario{{
		name: "the pipeline rejects data for a minute, then the leader dies", breaks: nothingLost,
		plan: plain(electorAlone, fault(PipelineRejects, 40, 110), killLeader(100, 130)),
	}}},
	{"b", func(p *Plan) {
		if p.alone() {
			killed := p.has(Killed, Restarted)
			p.drop(func(f Fault) bool {
				// Another leads while one cannot, if it is there.
				return reachesLeases(f) || killed && f.Kind.isOfAPI() && f.Replica != everyone
			})
			p.Lease.Retry = time.Second
		}
	}, []defectScenario{{
		name: "no leader can be elected for a minute", breaks: nothingLost,
		plan: plain(electorAlone, fault(LeaseForbidden, 40, 120)),
	}, {
		name: "an election takes longer than the lease and 5 s", breaks: nothingLost,
		plan: plain(electorAlone, killLeader(60, 100)).with(slowElections),
	}}},
	{"c", without(StorageAnswerLost), []defectScenario{{
		name: "the answer to a save that merges is lost", breaks: neverSilent,
		plan: manyPods(plain(storageAlone, halfOf(fault(StorageAnswerLost, 40, 100)))),
	}}},
	{"d", withoutTornWrites, []defectScenario{{
		name: "storage applies writes in part, and the process is killed", breaks: nothingLost,
		plan: manyPods(plain(storageAlone, halfOf(fault(StorageTorn, 40, 75)),
			killReplica(0, 70, 80))),
	}}},
	{"e", func(p *Plan) {
		if p.Elector || p.has(Killed, Restarted) {
			without(StorageUnreadable)(p)
		}
	}, []defectScenario{{
		name: "storage cannot be read for 4 s at a start", breaks: nothingLost,
		plan: plain(storageAlone, killReplica(0, 60, 80), fault(StorageUnreadable, 70, 84)),
	}}},
	{"f", func(p *Plan) {
		if p.Exporters > 1 {
			without(PipelinePermanent, PipelinePartial)(p)
		}
	}, []defectScenario{{
		name: "one exporter returns a permanent error, the other a retryable one",
		plan: rejectsSecond(PipelinePermanent), breaks: nothingLost,
	}, {
		name: "one exporter rejects a part, the other everything", breaks: nothingLost,
		plan: manyPods(rejectsSecond(PipelinePartial).with(dense)),
	}}},
	{"g", without(BackupRestored, ClusterNew), []defectScenario{{
		name: "etcd is restored from a backup", breaks: nothingLost,
		plan: plain(storageAlone, backup(60, 30*time.Second)).with(long),
	}, {
		name: "another cluster at the address", breaks: nothingLost,
		plan: plain(storageAlone, fault(ClusterNew, 60, 60)).with(long),
	}}},
	{"h", func(p *Plan) { p.cutNamespaces(20) }, []defectScenario{{
		name: "400 namespaces, cold, default settings", breaks: ownersComplete,
		plan: manyApps("deployment", 400),
	}}},
	{"i", nil, []defectScenario{{
		name: "16 requests of one kind hang", breaks: ownersComplete,
		plan: manyApps("rollout", 40).with(func(p *Plan) {
			hang := fault(APIHangs, 20, 150)
			hang.Resource = "rollouts"
			p.Faults = []Fault{hang}
			p.Producers[0].Style, p.Producers[0].Start = Kubelet, 32*time.Second
		}),
	}}},
	{"j", func(p *Plan) { p.replaceApps("invented") }, []defectScenario{{
		name: "events refer to objects of invented API groups", breaks: ownersComplete,
		plan: manyApps("invented", 300).with(laterFirst),
	}}},
	{"k", func(p *Plan) { p.replaceApps("static") }, []defectScenario{{
		name: "a kubelet's event of a static pod", breaks: ownersComplete,
		plan: manyApps("static", 1),
	}}},
	{"l", func(p *Plan) {
		if p.alone() {
			p.Dedup = 0
		}
	}, []defectScenario{{
		name: "dedup_interval and a failover", breaks: duplicates,
		plan: manyPods(plain(electorAlone, killReplica(1, 30, 33),
			killLeader(80, 100))).with(dedup),
	}}},
	{"m", nil, []defectScenario{{
		name: "a filter that is widened counts the past", breaks: nothingInvented,
		plan: plain(storageAlone, restart(90, 92)).with(startAtEnd), scenario: Scenario{
			Settings: func(process int) map[string]any {
				if process == 1 {
					return map[string]any{"exclude_reasons": []string{"BackOff"}}
				}
				return nil
			},
			Covers: func(process int, ev *corev1.Event) bool {
				return process != 1 || ev.Reason != "BackOff"
			},
			Check: func(e *environment) { e.checkNothingBefore(90 * time.Second) },
		},
	}, {
		name: "invalid UTF-8 in a reason", breaks: monotonic,
		plan: plain(neither), scenario: Scenario{Act: func(e *environment) {
			time.Sleep(30 * time.Second)
			for _, reason := range []string{"bad\xff", "bad\xfe"} {
				name := fmt.Sprintf("invalid-%x", reason)
				e.writeByHand(name, func(ev *corev1.Event) { ev.Reason = reason })
			}
		}},
	}, {
		name: "reasons of 1 MiB while the pipeline rejects", breaks: boundedMemory,
		plan: plain(storageAlone, fault(PipelineRejects, 25, 60)),
		scenario: Scenario{Act: func(e *environment) {
			time.Sleep(30 * time.Second)
			enlarge := func(ev *corev1.Event) { ev.Reason = strings.Repeat("x", 1<<20) }
			for i := range 40 {
				e.writeByHand(fmt.Sprint("large-", i), enlarge)
			}
		}},
	}}},
	{"n", without(NoEndBookmark), []defectScenario{{
		name: "a streaming list without an end bookmark", breaks: neverSilent,
		plan: plain(storageAlone, fault(NoEndBookmark, 0, 3600)).with(func(p *Plan) {
			p.Active = time.Hour
			p.Producers[0] = writes(HandMade, "ByHand", 30*time.Second, 10*time.Second, 100)
			p.Producers[0].Type = "Normal"
		}),
	}}},
	{"o", nil, []defectScenario{deletionsCutShort()}},
	{"p", without(StorageLate), []defectScenario{{
		name: "a write of a deposed leader arrives late", breaks: inFlightOnly,
		plan: manyPods(plain(both, halfOf(lateWrite(58, 64)), leaderOffline(60, 90),
			killReplica(0, 103, 106), killReplica(1, 103, 106)).with(seldom)),
	}}},
	{"q", func(p *Plan) {
		if p.has(Killed, Restarted) || p.Elector {
			without(StorageUnwritable)(p)
		}
	}, []defectScenario{{
		name: "storage cannot be written and the process is killed", breaks: monotonic,
		plan: plain(storageAlone, fault(StorageUnwritable, 40, 120), killReplica(0, 90, 100),
			fault(APIDown, 92, 116)),
	}}},
	{"r", nil, []defectScenario{{
		name: "an event goes on while the process that delivered it is dead", breaks: sameBytes,
		plan: plain(storageAlone, Fault{
			Kind: Killed, From: time.Minute, To: 80 * time.Second, Seam: AtPipeline, Acted: true,
		}),
	}}},
	{"s", func(p *Plan) {
		for i := range p.Faults {
			if f := &p.Faults[i]; f.Kind.isOfPipelines() {
				f.To = min(f.To, f.From+30*time.Second)
			}
		}
	}, []defectScenario{{
		name: "the pipeline rejects data for three minutes", breaks: neverSilent,
		plan: plain(storageAlone, fault(PipelineRejects, 40, 220)),
	}}},
	{"t", func(p *Plan) {
		if p.alone() {
			p.spaceKills()
		}
	}, []defectScenario{{
		name: "all replicas are restarted, without storage", breaks: nothingLost,
		plan: plain(electorAlone, killReplica(0, 60, 70), killReplica(1, 60, 70)),
	}}},

	// These were found by random environments, and are fixed.
	{"u", nil, []defectScenario{{
		name: "a deposed leader reports the streams of its last term as failing",
		plan: plain(both, leaderOffline(60, 120)), breaks: neverSilent,
	}, {
		name: "a deposed leader reports the storage of its last term as failing", breaks: neverSilent,
		plan: plain(both, slowStorage(55, 130), leaderOffline(60, 120)),
	}}},
	{"y", nil, []defectScenario{{
		name: "an exporter accepts a part of a batch, and then rejects the rest for a while",
		plan: manyPods(plain(neither, halfOf(fault(PipelinePartial, 40, 70)),
			halfOf(fault(PipelineRejects, 40, 70))).with(dense)), breaks: offeredOnce,
	}}},
	{"v", nil, []defectScenario{{
		name: "etcd has compacted the value that the next change replaces", breaks: neverSilent,
		plan:     plain(storageAlone, fault(APIDown, 60, 70)).with(noProducers),
		scenario: Scenario{Act: compactedValue},
	}}},
	{"w", nil, []defectScenario{{
		name: "the watch cache still has the pod that bore the name before", breaks: ownersComplete,
		plan: manyApps("replaced", 1).with(func(p *Plan) {
			p.CacheLag = 2 * time.Second
			before := p.Producers[1]
			after, another := before, before
			after.Start, after.Pod = 40*time.Second, 1
			// With two that are unknown, pods are listed.
			another.Start, another.App, another.Pod = 40*time.Second, 0, 1
			p.Producers = []ProducerPlan{before, after, another}
		}),
	}}},
	{"x", nil, []defectScenario{{
		name: "a series expires before its last value was emitted", breaks: metricIsSum,
		plan: plain(storageAlone, killReplica(0, 115, 175)).with(func(p *Plan) {
			p.SeriesTTL, p.Collection, p.Producers[0].Writes = 40*time.Second, 30*time.Second, 53
		}),
	}}},
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

func dedup(p *Plan) { p.Dedup = 13 * time.Second }

func laterFirst(p *Plan) { p.Producers[0].Start = 31 * time.Second }

func noProducers(p *Plan) { p.Producers = nil }

func slowElections(p *Plan) { p.Lease = leaseTimes(40, 30, 12) }

func startAtEnd(p *Plan) { p.FromBeginning = false }

func slowStorage(from, to int) Fault {
	f := fault(StorageSlow, from, to)
	f.Delay = 3 * time.Second
	return f
}

// seldom lets each pod have an event every ten seconds or so, until no save replaces a late one.
func seldom(p *Plan) { p.Producers[0].Gap, p.Producers[0].Writes = 10*time.Second, 8 }

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

// manyPods gives a plan nine more pods with events of their own.
func manyPods(p Plan) Plan {
	for i := range 9 {
		more := p.Producers[0]
		more.Pod = i + 1
		p.Producers = append(slices.Clone(p.Producers), more)
	}
	return p
}

func lateWrite(from, to int) Fault {
	f := fault(StorageLate, from, to)
	f.Delay = 40 * time.Second
	return f
}

// leaderOffline cuts off the first replica, which is started first and leads.
func leaderOffline(from, to int) Fault { return fault(APIDown, from, to).of(0) }

// cutNamespaces makes the cluster smaller.
func (p *Plan) cutNamespaces(most int) {
	if p.Namespaces <= most {
		return
	}
	p.Namespaces, p.Apps = most, p.Apps[:min(most, len(p.Apps))]
	outside := func(pp ProducerPlan) bool { return pp.App >= len(p.Apps) }
	p.Producers = slices.DeleteFunc(p.Producers, outside)
}

// replaceApps makes Deployments of the apps of a kind.
func (p *Plan) replaceApps(kind string) {
	for i := range p.Apps {
		if p.Apps[i].Kind == kind {
			p.Apps[i].Kind = "deployment"
		}
	}
}

// withoutTornWrites leaves storage that applies every write whole or not at all.
func withoutTornWrites(p *Plan) {
	without(StorageTorn)(p)
	for i := range p.Faults {
		p.Faults[i].Torn = false
	}
}

// spaceKills keeps a process down until another one leads, and lets a process that has begun to
// follow do so for a minute before the next one ends.
func (p *Plan) spaceKills() {
	var last time.Duration
	for i := range p.Faults {
		if f := &p.Faults[i]; f.is(Killed, Restarted) {
			f.To = max(f.To, f.From+45*time.Second)
			p.Active = max(p.Active, f.To)
		}
	}
	p.drop(func(f Fault) bool {
		if !f.is(Killed, Restarted) {
			return false
		}
		if last > 0 && f.From < last+time.Minute {
			return true
		}
		last = f.To
		return false
	})
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
func deletionsCutShort() defectScenario {
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
	return defectScenario{
		name: "the connection ends among deletions at one version", breaks: nothingLost,
		plan: plan, scenario: Scenario{Act: act},
	}
}
