// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// marked names the defects of the receiver that are known and not fixed. Their scenarios must fail
// as long as they are listed here, and random plans leave out what shows them, so that they find
// others. Whoever fixes one removes its mark.
var marked = "abcdefghijklmnopqrst"

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
				table += fmt.Sprintf("| %s | %s: %s | %s |\n", d.mark, s.plan.Mode, s.name, s.breaks.Name)
			}
		}
	}
	return table
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
		Seed: 1, Mode: m, Replicas: 1, Collection: 10 * time.Second, Namespaces: 1, EventTTL: time.Hour, CompactAfter: 5 * time.Minute,
		Lease:    LeaseTimes{15 * time.Second, 10 * time.Second, time.Second},
		MaxDepth: 10, CacheSize: 100_000, CacheTTL: 10 * time.Minute, MaxSeries: 10_000, SeriesTTL: time.Hour, QPS: 50,
		Apps:      []AppPlan{{Kind: "deployment", LabelAt: 1}},
		Producers: []ProducerPlan{{Style: OldRecorder, Start: firstWrite, Gap: 2 * time.Second, Writes: 80, Reason: "BackOff", Type: "Warning"}},
		Exporters: 1, Faults: faults, Active: 3 * time.Minute,
	}
	if m.Elector {
		p.Replicas = 2
	}
	return p
}

// with changes a plan.
func (p Plan) with(change func(*Plan)) Plan {
	change(&p)
	return p
}

func fault(kind FaultKind, from, to int) Fault {
	return Fault{Kind: kind, From: time.Duration(from) * time.Second, To: time.Duration(to) * time.Second, Replica: everyone}
}

func killLeader(from, to int) Fault {
	f := fault(Killed, from, to)
	f.Replica = leader
	return f
}

func killReplica(replica, from, to int) Fault {
	f := fault(Killed, from, to)
	f.Replica = replica
	return f
}

// isLag reports whether a fault lets a leader lag.
func isLag(f Fault) bool { return f.Kind.isOfPipelines() || f.Kind == StorageSlow }

// reachesLeases reports whether a fault may keep a leader from being elected.
func reachesLeases(f Fault) bool {
	return f.Kind == LeaseForbidden || f.Kind.isOfAPI() && (f.Resource == "" || f.Resource == "leases")
}

// alone reports whether replicas elect their leader and share nothing.
func (p *Plan) alone() bool { return p.Mode == Mode{Elector: true} }

// manyApps is a plan with an app of the kind in each of n namespaces, each with one event at once.
func manyApps(kind string, n int) Plan {
	p := plain(Mode{})
	p.Namespaces = n
	for i := range n {
		p.Apps = append(p.Apps, AppPlan{Kind: kind, Namespace: i, LabelAt: 1})
		p.Producers = append(p.Producers, ProducerPlan{Style: Kubelet, App: i + 1, Start: 30 * time.Second, Gap: time.Second, Writes: 1, Reason: "Failed", Type: "Warning"})
	}
	return p
}

var electorAlone, storageAlone, both = Mode{Elector: true}, Mode{Storage: true}, Mode{Storage: true, Elector: true}

// defects are those that were found from outside, in the order of their letters.
var defects = []defect{
	{"a", func(p *Plan) {
		if p.alone() {
			p.drop(isLag)
		}
	}, []defectScenario{{
		"the pipeline rejects data for a minute, then the leader dies",
		plain(electorAlone, fault(PipelineRejects, 40, 110), killLeader(100, 130)), Scenario{}, nothingLost,
	}}},
	{"b", func(p *Plan) {
		if p.alone() {
			p.drop(reachesLeases)
			p.Lease.Retry = time.Second
		}
	}, []defectScenario{{
		"no leader can be elected for a minute",
		plain(electorAlone, fault(LeaseForbidden, 40, 120)), Scenario{}, nothingLost,
	}, {
		"an election takes longer than the lease and 5 s",
		plain(electorAlone, killLeader(60, 100)).with(func(p *Plan) { p.Lease = LeaseTimes{40 * time.Second, 30 * time.Second, 12 * time.Second} }),
		Scenario{}, nothingLost,
	}}},
	{"c", func(p *Plan) {
		p.drop(func(f Fault) bool { return f.Kind == StorageAnswerLost })
	}, []defectScenario{{
		"the answer to a save that merges is lost",
		manyPods(plain(storageAlone, oneIn(2, fault(StorageAnswerLost, 40, 100)))), Scenario{}, neverSilent,
	}}},
	{"d", func(p *Plan) {
		p.drop(func(f Fault) bool { return f.Kind == StorageTorn })
	}, []defectScenario{{
		"storage applies writes in part, and the process is killed",
		manyPods(plain(storageAlone, oneIn(2, fault(StorageTorn, 40, 75)), killReplica(0, 70, 80))), Scenario{}, nothingLost,
	}}},
	{"e", func(p *Plan) {
		if p.Elector || p.has(Killed, Restarted) {
			p.drop(func(f Fault) bool { return f.Kind == StorageUnreadable })
		}
	}, []defectScenario{{
		"storage cannot be read for 4 s at a start",
		plain(storageAlone, killReplica(0, 60, 80), fault(StorageUnreadable, 70, 84)), Scenario{}, nothingLost,
	}}},
	{"f", func(p *Plan) {
		if p.Exporters > 1 {
			p.drop(func(f Fault) bool { return f.Kind == PipelinePermanent || f.Kind == PipelinePartial })
		}
	}, []defectScenario{{
		"one exporter returns a permanent error, the other a retryable one",
		plain(storageAlone, fault(PipelinePermanent, 60, 70), secondExporter(fault(PipelineRejects, 60, 70))).with(twoExporters), Scenario{}, nothingLost,
	}, {
		"one exporter rejects a part, the other everything",
		manyPods(plain(storageAlone, fault(PipelinePartial, 60, 70), secondExporter(fault(PipelineRejects, 60, 70))).with(twoExporters).with(dense)),
		Scenario{}, nothingLost,
	}}},
	{"g", func(p *Plan) {
		p.drop(func(f Fault) bool { return f.Kind == BackupRestored || f.Kind == ClusterNew })
	}, []defectScenario{{
		"etcd is restored from a backup",
		plain(storageAlone, backup(60, 30*time.Second)).with(long), Scenario{}, nothingLost,
	}, {
		"another cluster at the address",
		plain(storageAlone, fault(ClusterNew, 60, 60)).with(long), Scenario{}, nothingLost,
	}}},
	{"h", func(p *Plan) { p.cutNamespaces(20) }, []defectScenario{{
		"400 namespaces, cold, default settings", manyApps("deployment", 400), Scenario{}, ownersComplete,
	}}},
	{"i", nil, []defectScenario{{
		"16 requests of one kind hang",
		manyApps("rollout", 40).with(func(p *Plan) {
			hang := fault(APIHangs, 20, 150)
			hang.Resource = "rollouts"
			p.Faults = []Fault{hang}
			p.Producers[0].Style, p.Producers[0].Start = Kubelet, 32*time.Second
		}), Scenario{}, ownersComplete,
	}}},
	{"j", func(p *Plan) { p.replaceApps("invented") }, []defectScenario{{
		"events refer to objects of invented API groups",
		manyApps("invented", 300).with(func(p *Plan) { p.Producers[0].Start = 31 * time.Second }), Scenario{}, ownersComplete,
	}}},
	{"k", func(p *Plan) { p.replaceApps("static") }, []defectScenario{{
		"a kubelet's event of a static pod", manyApps("static", 1), Scenario{}, ownersComplete,
	}}},
	{"l", func(p *Plan) {
		if p.alone() {
			p.Dedup = 0
		}
	}, []defectScenario{{
		"dedup_interval and a failover",
		manyPods(plain(electorAlone, killReplica(1, 30, 33), killLeader(80, 100)).with(func(p *Plan) { p.Dedup = 13 * time.Second })),
		Scenario{}, duplicates,
	}}},
	{"m", nil, []defectScenario{{
		"a filter that is widened counts the past",
		plain(storageAlone, restart(90, 92)).with(startAtEnd), Scenario{
			Settings: func(process int) map[string]any {
				if process == 1 {
					return map[string]any{"exclude_reasons": []string{"BackOff"}}
				}
				return nil
			},
			Check: func(e *environment) { e.checkNothingBefore(90 * time.Second) },
		}, nothingInvented,
	}, {
		"invalid UTF-8 in a reason", plain(Mode{}), Scenario{Act: func(e *environment) {
			time.Sleep(30 * time.Second)
			for _, reason := range []string{"bad\xff", "bad\xfe"} {
				e.writeByHand("invalid-"+fmt.Sprintf("%x", reason), func(ev *corev1.Event) { ev.Reason = reason })
			}
		}}, monotonic,
	}, {
		"reasons of 1 MiB while the pipeline rejects", plain(storageAlone, fault(PipelineRejects, 25, 60)), Scenario{Act: func(e *environment) {
			time.Sleep(30 * time.Second)
			for i := range 40 {
				e.writeByHand(fmt.Sprint("large-", i), func(ev *corev1.Event) { ev.Reason = strings.Repeat("x", 1<<20) })
			}
		}}, boundedMemory,
	}}},
	{"n", func(p *Plan) {
		p.drop(func(f Fault) bool { return f.Kind == NoEndBookmark })
	}, []defectScenario{{
		"a streaming list without an end bookmark",
		plain(storageAlone, fault(NoEndBookmark, 0, 3600)).with(func(p *Plan) {
			p.Active = time.Hour
			p.Producers = []ProducerPlan{{Style: HandMade, Start: 30 * time.Second, Gap: 10 * time.Second, Writes: 100, Reason: "ByHand", Type: "Normal"}}
		}), Scenario{}, neverSilent,
	}}},
	{"o", nil, []defectScenario{deletionsCutShort()}},
	{"p", func(p *Plan) {
		p.drop(func(f Fault) bool { return f.Kind == StorageLate })
	}, []defectScenario{{
		"a write of a deposed leader arrives late",
		manyPods(plain(both, oneIn(2, lateWrite(58, 64)), leaderOffline(60, 90), killReplica(0, 103, 106), killReplica(1, 103, 106)).with(seldom)),
		Scenario{}, inFlightOnly,
	}}},
	{"q", func(p *Plan) {
		if p.has(Killed) || p.Elector {
			p.drop(func(f Fault) bool { return f.Kind == StorageUnwritable })
		}
	}, []defectScenario{{
		"storage cannot be written and the process is killed",
		plain(storageAlone, fault(StorageUnwritable, 40, 120), killReplica(0, 90, 100), fault(APIDown, 92, 116)), Scenario{}, monotonic,
	}}},
	{"r", nil, []defectScenario{{
		"an event goes on while the process that delivered it is dead",
		plain(storageAlone, Fault{Kind: Killed, From: 60 * time.Second, To: 80 * time.Second, Seam: AtPipeline, Acted: true}), Scenario{}, sameBytes,
	}}},
	{"s", func(p *Plan) {
		for i := range p.Faults {
			if f := &p.Faults[i]; f.Kind.isOfPipelines() {
				f.To = min(f.To, f.From+30*time.Second)
			}
		}
	}, []defectScenario{{
		"the pipeline rejects data for three minutes",
		plain(storageAlone, fault(PipelineRejects, 40, 220)), Scenario{}, neverSilent,
	}}},
	{"t", func(p *Plan) {
		if p.alone() {
			p.spaceKills()
		}
	}, []defectScenario{{
		"all replicas are restarted, without storage",
		plain(electorAlone, killReplica(0, 60, 70), killReplica(1, 60, 70)), Scenario{}, nothingLost,
	}}},

	// These were found by random environments, and are fixed.
	{"u", nil, []defectScenario{{
		"a deposed leader reports the streams of its last term as failing",
		plain(both, leaderOffline(60, 120)), Scenario{}, neverSilent,
	}}},
	{"v", nil, []defectScenario{{
		"etcd has compacted the value that the next change replaces",
		plain(storageAlone, fault(APIDown, 60, 70)).with(func(p *Plan) { p.Producers = nil }), Scenario{Act: compactedValue}, neverSilent,
	}}},
	{"w", nil, []defectScenario{{
		"the watch cache still has the pod that bore the name before",
		manyApps("replaced", 1).with(func(p *Plan) {
			p.CacheLag = 2 * time.Second
			before := p.Producers[1]
			after, another := before, before
			after.Start, after.Pod = 40*time.Second, 1
			another.Start, another.App, another.Pod = 40*time.Second, 0, 1 // With two that are unknown, pods are listed.
			p.Producers = []ProducerPlan{before, after, another}
		}), Scenario{}, ownersComplete,
	}}},
	{"x", nil, []defectScenario{{
		"a series expires before its last value was emitted",
		plain(storageAlone, killReplica(0, 115, 175)).with(func(p *Plan) {
			p.SeriesTTL, p.Collection, p.Producers[0].Writes = 40*time.Second, 30*time.Second, 53
		}), Scenario{}, metricIsSum,
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

func twoExporters(p *Plan) { p.Exporters = 2 }

func startAtEnd(p *Plan) { p.FromBeginning = false }

// seldom lets each pod have an event every ten seconds or so, until no save replaces a late one.
func seldom(p *Plan) { p.Producers[0].Gap, p.Producers[0].Writes = 10*time.Second, 8 }

// dense lets all pods have events all the time, for a while.
func dense(p *Plan) {
	p.Producers[0].Start, p.Producers[0].Gap, p.Producers[0].Writes = 58*time.Second, 50*time.Millisecond, 160
}

// long lets the producers write long after a restore, and far more before it, so that the versions
// of what was watched are not reached again.
func long(p *Plan) {
	p.Active, p.Producers[0].Writes = 5*time.Minute, 140
	p.Producers = append(p.Producers, ProducerPlan{Style: HandMade, Start: 40 * time.Second, Gap: 10 * time.Millisecond, Writes: 800, Reason: "Storm", Type: "Normal"})
}

func oneIn(n int, f Fault) Fault {
	f.OneIn = n
	return f
}

// backup restores a backup of that age.
func backup(at int, age time.Duration) Fault {
	f := fault(BackupRestored, at, at)
	f.Delay = age
	return f
}

func secondExporter(f Fault) Fault {
	f.Exporter = 1
	return f
}

func restart(from, to int) Fault {
	f := fault(Restarted, from, to)
	f.Replica = 0
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

func lateWrite(from, to int) Fault {
	f := fault(StorageLate, from, to)
	f.Delay = 40 * time.Second
	return f
}

func leaderOffline(from, to int) Fault {
	f := fault(APIDown, from, to)
	f.Replica = 0 // It is started first, and leads.
	return f
}

// cutNamespaces makes the cluster smaller.
func (p *Plan) cutNamespaces(most int) {
	if p.Namespaces <= most {
		return
	}
	p.Namespaces, p.Apps = most, p.Apps[:min(most, len(p.Apps))]
	p.Producers = slices.DeleteFunc(p.Producers, func(pp ProducerPlan) bool { return pp.App >= len(p.Apps) })
}

// replaceApps makes Deployments of the apps of a kind.
func (p *Plan) replaceApps(kind string) {
	for i := range p.Apps {
		if p.Apps[i].Kind == kind {
			p.Apps[i].Kind = "deployment"
		}
	}
}

// spaceKills keeps a process down until another one leads, and lets a process that has begun to
// follow do so for a minute before the next one ends.
func (p *Plan) spaceKills() {
	var last time.Duration
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Kind == Killed || f.Kind == Restarted {
			f.To = max(f.To, f.From+45*time.Second)
			p.Active = max(p.Active, f.To)
		}
	}
	p.drop(func(f Fault) bool {
		if f.Kind != Killed && f.Kind != Restarted {
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
	ev := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: pod.apiVersion, Kind: pod.kind, Namespace: pod.namespace, Name: pod.name, UID: pod.uid},
		Reason:         "ByHand", Type: "Normal", Message: "written by hand", Source: corev1.EventSource{Component: "by-hand"},
	}
	change(ev)
	if _, err := e.server.Create(events, ev); err != nil {
		e.violate(nothingInvented, "", "the scenario cannot write: %v", err)
	}
}

// checkNothingBefore checks that no record counts what happened before the moment.
func (e *environment) checkNothingBefore(moment time.Duration) {
	for _, r := range records(e.exporters[0].all()) {
		if r.occurrences > 20 {
			e.violate(nothingInvented, "", "a record counts %d occurrences at once, most of them before %v", r.occurrences, moment)
		}
	}
}

// deletionsCutShort lets the connection end in the middle of many deletions at one resource version.
// A day later, when their counts are forgotten, the same names are used again.
func deletionsCutShort() defectScenario {
	const n = 30
	name := func(i int) string { return fmt.Sprint("reused-", i) }
	write := func(e *environment, count int32, suffix string) {
		for i := range n {
			e.writeByHand(name(i), func(ev *corev1.Event) { ev.Count, ev.UID = count, types.UID(fmt.Sprint("uid-", i, suffix)) })
		}
	}
	plan := plain(Mode{Storage: true}, fault(WatchBreaks, 225, 400))
	plan.Producers, plan.Collection = nil, time.Hour
	return defectScenario{"the connection ends among deletions at one version", plan, Scenario{Act: func(e *environment) {
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
	}}, nothingLost}
}
