// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// requirement is an environment in which every promise must hold.
type requirement struct {
	name     string
	reaches  string // a rare state of the receiver that one of its seeds must reach; empty: any
	plan     Plan
	scenario Scenario
}

// rare are environments that plans seldom have, in the order of the contract.
var rare = []requirement{
	{
		name: "the leader lags for ten minutes and is killed",
		plan: plain(electorAlone, fault(PipelineRejects, 40, 640).of(0), killLeader(630, 700)).
			with(lasting(13 * time.Minute)),
	}, {
		name: "the leader lags for ten minutes, history is compacted, and it is killed",
		plan: plain(electorAlone, fault(PipelineRejects, 40, 640).of(0), killLeader(630, 700)).
			with(lasting(13 * time.Minute)).with(compacted),
	}, {
		name: "a lagging leader delivers everything and is killed",
		plan: manyPods(plain(electorAlone, fault(PipelineRejects, 40, 340).of(0),
			killLeader(350, 380)).with(lasting(8 * time.Minute))),
	}, {
		name: "no replica for three minutes",
		plan: plain(electorAlone, killReplica(0, 60, 240), killReplica(1, 60, 240)).
			with(lasting(6 * time.Minute)),
	}, {
		name: "no replica for three minutes, and history is compacted",
		plan: plain(electorAlone, killReplica(0, 60, 240), killReplica(1, 60, 240)).
			with(lasting(6 * time.Minute)).with(compacted),
	}, {
		name: "all replicas are restarted in an orderly way",
		plan: plain(electorAlone, restart(60, 90), restart(60, 95).of(1)),
	}, {
		name: "the only replica leads again",
		plan: plain(electorAlone, leaderOffline(70, 120)).with(func(p *Plan) { p.Replicas = 1 }),
	}, {
		name:     "ConfigMaps are forbidden, and the leader is killed",
		plan:     plain(electorAlone, fault(PositionForbidden, 60, 130), killLeader(80, 100)),
		scenario: Scenario{Act: reportsForbiddenPosition},
	}, {
		name:     "the position may be read, but not written",
		plan:     plain(electorAlone, onlyUpdates(fault(PositionForbidden, 0, int(forever/time.Second)))),
		scenario: Scenario{Act: reportsForbiddenPosition},
	}, {
		name: "ConfigMaps are forbidden for two minutes",
		plan: plain(electorAlone, fault(PositionForbidden, 30, 150), killLeader(100, 130),
			killLeader(170, 180)).with(lasting(4 * time.Minute)),
	}, {
		name: "requests for ConfigMaps hang, and the leader is killed",
		plan: plain(electorAlone, ofConfigMaps(fault(APIHangs, 40, 150)), killLeader(100, 130)),
	}, {
		name: "answers to writes of the position are lost",
		plan: plain(electorAlone, ofConfigMaps(halfOf(fault(AnswersLost, 20, 150))), killLeader(100, 130)),
	}, {
		name: "the leader stops in an orderly way within dedup_interval",
		plan: manyPods(plain(electorAlone, restart(80, 100).of(leader))).with(dedup),
	}, {
		name: "a namespace is watched again later",
		plan: plain(storageAlone, restart(60, 62), restart(120, 122)).with(startAtEnd).
			with(twoNamespaces).with(reconfigured(oneNamespace, bothNamespaces)),
	}, {
		name: "a namespace is watched later",
		plan: plain(storageAlone, restart(90, 92)).with(startAtEnd).with(twoNamespaces).
			with(reconfigured(bothNamespaces)).with(func(p *Plan) { oneNamespace(&p.Configured) }),
	}, {
		name: "a field selector is widened",
		plan: plain(storageAlone, restart(90, 92)).with(startAtEnd).with(func(p *Plan) {
			normal := p.Producers[0]
			normal.Type, normal.Reason = "Normal", "Pulling"
			p.Producers = append(p.Producers, normal)
			p.Later = []Configured{p.Configured}
			p.Types = []string{"Warning"}
		}),
	}, {
		name:     "counts are reached again after etcd was restored from a backup",
		plan:     plain(storageAlone, backup(60, 15*time.Second)).with(noProducers),
		scenario: Scenario{Act: reachAgain, Check: checkReachedAgain},
	}, {
		name: "etcd is restored from a backup while the process is down",
		plan: plain(storageAlone, backup(65, 30*time.Second), killReplica(0, 60, 70)).with(long),
	}, {
		name: "etcd is restored from a backup, without storage and elector",
		plan: plain(neither, backup(60, 30*time.Second)).with(long),
	}, {
		name: "etcd is restored from a backup, with an elector",
		plan: plain(electorAlone, backup(60, 30*time.Second)).with(long),
	}, {
		name: "another cluster at the address, with an elector",
		plan: plain(electorAlone, fault(ClusterNew, 60, 60)).with(long),
	},
}

// lasting lets the first producer write for that long, and the run last as long.
func lasting(d time.Duration) func(*Plan) {
	return func(p *Plan) {
		p.Active = d
		for i := range p.Producers {
			p.Producers[i].Writes = int((d - 30*time.Second) / p.Producers[i].Gap)
		}
	}
}

// fromBeginning lets records be all that was offered: else, what a first list shows is noted, too.
func fromBeginning(p *Plan) { p.FromBeginning = true }

func compacted(p *Plan) { p.CompactAfter = 20 * time.Second }

// twoNamespaces gives a plan a second namespace with an app, whose pod has the same events.
func twoNamespaces(p *Plan) {
	p.Namespaces, p.Watched = 2, []string{namespace(0), namespace(1)}
	p.Apps = append(slices.Clone(p.Apps), AppPlan{Kind: "deployment", Namespace: 1, LabelAt: 1})
	second := p.Producers[0]
	second.App = 1
	p.Producers = append(slices.Clone(p.Producers), second)
}

// reconfigured lets the configuration change from process to process.
func reconfigured(changes ...func(*Configured)) func(*Plan) {
	return func(p *Plan) {
		last := p.Configured
		for _, change := range changes {
			change(&last)
			p.Later = append(p.Later, last)
		}
	}
}

func oneNamespace(c *Configured) { c.Watched = []string{namespace(0)} }

func bothNamespaces(c *Configured) { c.Watched = []string{namespace(0), namespace(1)} }

func ofConfigMaps(f Fault) Fault {
	f.Resource = configMaps.Resource
	return f
}

func (f Fault) slowBy(delay time.Duration) Fault {
	f.Delay = delay
	return f
}

func onlyUpdates(f Fault) Fault {
	f.Verb = "update"
	return f
}

// reportsForbiddenPosition checks that the status of the leader is an error. The contract: an API server that "refuses a permission never stops the
// Collector. Instead, the component's status reports a recoverable error".
func reportsForbiddenPosition(e *environment) {
	time.Sleep(90 * time.Second)
	if !slices.ContainsFunc(e.allProcesses(), func(p *process) bool { return p.failing(0) > 0 }) {
		e.violate(neverSilent, "", "the leader may not note its progress, and its status is no error")
	}
}

const counted = "counted"

// reachAgain raises the count of an event to 8. The backup has it with count 5. Then it goes on
// from there.
func reachAgain(e *environment) {
	for _, s := range []struct {
		at    time.Duration
		count int32
	}{{30, 1}, {40, 5}, {50, 8}, {100, 6}, {110, 7}, {150, 9}} {
		time.Sleep(time.Until(e.began.Add(s.at * time.Second)))
		found, err := e.server.Get(events, namespace(0), counted)
		if err != nil {
			e.writeByHand(counted, func(ev *corev1.Event) { ev.Count = s.count })
			continue
		}
		next := found.(*corev1.Event).DeepCopy()
		next.Count = s.count
		_, _ = e.server.Update(events, next)
	}
}

// checkReachedAgain checks what was counted. The contract: "The listed counts are then the new
// baseline."
func checkReachedAgain(e *environment) {
	var got []string
	for _, r := range records(e.exporters[0].all()) {
		got = append(got, fmt.Sprintf("%d of %d", r.occurrences, r.count))
	}
	want := []string{"1 of 1", "4 of 5", "3 of 8", "1 of 6", "1 of 7", "2 of 9"}
	if !slices.Equal(got, want) {
		e.violate(nothingLost, "", "the records have %q, not %q", got, want)
	}
}
