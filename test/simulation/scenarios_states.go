// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ofStates are environments for rare states of the receiver that random ones do not reach.
var ofStates = []requirement{
	{
		name:    "another cluster at the address, and storage cannot be written at the start",
		reaches: "a checkpoint is set aside while a write is not acknowledged",
		plan: plain(storageAlone, fault(PipelineRejects, 50, 85), killReplica(0, 60, 70), fault(ClusterNew, 65, 65),
			fault(StorageUnwritable, 66, 100)).with(lasting(5 * time.Minute)),
	}, {
		name:    "another cluster at the address does not answer which one it is before the process is restarted",
		reaches: "a session ends before the cluster says which one it is after a restore",
		plan: plain(storageAlone, fault(ClusterNew, 60, 60), ofResource(fault(APIRefuses, 60, 90), "namespaces", http.StatusInternalServerError),
			restart(75, 80)).with(long).with(fromBeginning),
	}, {
		name:    "storage can be read and not written when a process starts",
		reaches: "the storage can be read and not written at a start",
		plan:    plain(storageAlone, killReplica(0, 60, 70), fault(StorageUnwritable, 65, 80)),
	}, {
		name:    "two processes start at the same time with storage that answers slowly",
		reaches: "two sessions claim the storage at the same time",
		plan: plain(storageAlone, killReplica(0, 50, 60), slowStorage(58, 80),
			Fault{Kind: Replaced, From: 60500 * time.Millisecond, To: 100 * time.Second}),
	}, {
		name:    "each start ends before it has delivered the outbox",
		reaches: "an outbox is delivered one record at a time",
		plan: plain(storageAlone, fault(PipelineRejects, 50, 170), killReplica(0, 60, 63), killReplica(0, 80, 83),
			killReplica(0, 100, 103), killReplica(0, 120, 123), killReplica(0, 140, 143)).with(lasting(5 * time.Minute)),
	}, {
		name: "storage cannot be written, and the leader loses its lease",
		plan: plain(both, fault(StorageUnwritable, 55, 120), fault(LeaseForbidden, 60, 100)),
	}, {
		name:    "the process is killed while it writes a snapshot",
		reaches: "a process ended within a snapshot",
		plan: plain(storageAlone, killReplica(0, 42, 43), killReplica(0, 50, 51), killReplica(0, 58, 59), killReplica(0, 66, 67)).
			with(func(p *Plan) { p.Existing = 1900 }),
	}, {
		name:    "the leader loses its lease between the requests of a batch",
		reaches: "a term ends between the requests of a batch",
		plan:    manyPods(plain(both, fault(PipelineSlow, 55, 100).slowBy(4*time.Second), fault(LeaseForbidden, 60, 90)).with(large)),
	}, {
		name:    "dedup_interval becomes shorter while windows are open",
		reaches: "a restored window ends early because the interval is shorter",
		plan: plain(storageAlone, killReplica(0, 60, 61)).with(func(p *Plan) { p.Dedup = 40 * time.Second }).
			with(reconfigured(func(c *Configured) { c.Dedup = 5 * time.Second })),
	}, {
		name:    "the cluster says which one it is, and storage cannot be written",
		reaches: "a series goes on under another cluster",
		plan: plain(storageAlone, ofResource(fault(APIRefuses, 0, 100), "namespaces", http.StatusForbidden),
			fault(StorageUnwritable, 90, 150)).with(lasting(4 * time.Minute)),
	}, {
		name:    "one pipeline drops a request, and another one accepts a part of it",
		reaches: "a pipeline drops a part and another one wants the rest again",
		plan:    manyPods(partOfSecond().with(dense)),
	}, {
		name:    "nothing happens for a minute after the pipeline dropped everything for a minute",
		reaches: "nothing is delivered for a minute after a drop",
		plan: plain(storageAlone, fault(PipelinePermanent, 40, 130)).with(lasting(5 * time.Minute)).
			with(func(p *Plan) { p.Producers[0].Writes = 56 }),
	}, {
		name:    "history is compacted between two pages of a list",
		reaches: "a list expires between two pages",
		plan: plain(storageAlone, ofResource(fault(APISlow, 60, 140), "events", 0).slowBy(14*time.Second), killReplica(0, 62, 64)).
			with(func(p *Plan) { p.Existing, p.OldServer, p.CompactAfter = 1200, true, 5*time.Second }),
	}, {
		name:    "the pipeline rejects while a list has more bytes than the queue",
		reaches: "a stall ends a streamed list",
		plan: plain(storageAlone, killReplica(0, 50, 100), fault(PipelineRejects, 95, 160)).with(compacted).
			with(lasting(5 * time.Minute)),
		scenario: Scenario{Act: func(e *environment) {
			time.Sleep(30 * time.Second)
			for i := range 120 {
				e.writeByHand(fmt.Sprint("large-", i), func(ev *corev1.Event) { ev.Message = strings.Repeat("x", 60<<10) })
			}
		}},
	}, {
		name: "one namespace is forbidden and then another one, each when all connections are cut",
		plan: plain(storageAlone, forbidden(namespace(0), 60, 70), forbidden(namespace(1), 110, 120)).with(twoNamespaces),
		scenario: Scenario{Act: func(e *environment) {
			time.Sleep(61 * time.Second)
			e.server.BreakConnections("")
			time.Sleep(50 * time.Second)
			e.server.BreakConnections("")
		}},
	}, {
		name: "etcd is restored from a backup, with two namespaces",
		plan: plain(storageAlone, backup(60, 30*time.Second)).with(long).with(twoNamespaces),
	}, {
		name:    "events that wait at the gate are in the backup that etcd is restored from",
		reaches: "events wait at the gate over a restore",
		plan:    plain(electorAlone, fault(PipelineRejects, 20, 120).of(0), backup(60, 25*time.Second)).with(long),
	}, {
		name:    "a new leader cannot read events",
		reaches: "a new leader does not learn the newest version",
		plan:    plain(electorAlone, ofResource(fault(APIRefuses, 60, 130), "events", http.StatusServiceUnavailable), killLeader(62, 140)),
	}, {
		name: "etcd is restored from a backup before a standby has listed",
		plan: plain(electorAlone, ofResource(fault(APIRefuses, 58, 75), "events", http.StatusServiceUnavailable),
			killReplica(1, 60, 62), backup(66, 30*time.Second)).with(long),
	}, {
		name:    "the leader may not publish its position, and loses its lease",
		reaches: "a standby may not publish what it has delivered",
		plan:    plain(electorAlone, fault(LeaseForbidden, 60, 110), onlyUpdates(fault(PositionForbidden, 55, 150))),
	}, {
		name: "the leader loses its lease before it has published a position after a restore",
		plan: plain(electorAlone, backup(60, 30*time.Second), ofResource(fault(APIRefuses, 58, 120), configMaps.Resource, http.StatusServiceUnavailable),
			fault(LeaseForbidden, 62, 100)).with(long),
	}, {
		name: "a leader is offline while etcd is restored from a backup",
		plan: plain(electorAlone, leaderOffline(60, 150), backup(100, 60*time.Second)).with(long),
	}, {
		name:    "the elector leads before the receiver starts, and later ends the term of another component for long",
		reaches: "an open term goes on while another process holds the lease",
		plan: plain(electorAlone, mayNotRenew(60, 100).of(0)).with(func(p *Plan) {
			p.SlowStart, p.SlowStop = 2*time.Second, 25*time.Second
		}),
	}, {
		name:    "the storage cannot be read at the start, and the process ends while it cannot prove that it leads",
		reaches: "a term ends before its first write",
		plan: plain(both, fault(StorageUnreadable, 0, 40).of(0), mayOnlyRenew(10, 100).of(0), restart(60, 65)).
			with(func(p *Plan) { p.SlowStart = 2 * time.Second }).with(lasting(5 * time.Minute)),
	}, {
		name:    "another cluster at the address rejects the credentials while the process starts",
		reaches: "another cluster at the address answers late",
		plan: plain(storageAlone, killReplica(0, 60, 70), fault(ClusterNew, 65, 65),
			ofResource(fault(APIRefuses, 60, 80), "namespaces", http.StatusUnauthorized)).with(long),
	}, {
		name:    "two replicas notice at the same time that etcd was restored, and requests for ConfigMaps are slow",
		reaches: "another process writes the position at the same time",
		plan: plain(electorAlone, backup(60, 30*time.Second),
			ofResource(fault(APISlow, 61, 90), configMaps.Resource, 0).slowBy(5*time.Second)).with(long),
	}, {
		name:    "1,000 events about an object with many annotations wait for the start of the process",
		reaches: "records do not fit their batch",
		plan:    manyWait(),
	}, {
		name:    "the process is killed while it delivers a batch that not all records fit",
		reaches: "records that did not fit their batch are restored",
		plan:    manyWait(killReplica(0, 55, 60)),
	},
}

// ofResource lets a fault concern requests for one resource.
func ofResource(f Fault, resource string, status int) Fault {
	f.Resource, f.Status = resource, status
	return f
}

func mayNotRenew(from, to int) Fault {
	f := fault(LeaseForbidden, from, to)
	f.Verb = "update"
	return f
}

// mayOnlyRenew lets an elector go on that leads: it reads the lease only if it cannot renew it.
func mayOnlyRenew(from, to int) Fault {
	f := fault(LeaseForbidden, from, to)
	f.Verb = "get"
	return f
}

// forbidden lets the API server refuse the events of a namespace.
func forbidden(namespace string, from, to int) Fault {
	f := ofResource(fault(APIRefuses, from, to), "events", http.StatusForbidden)
	f.Namespace = namespace
	return f
}

// partOfSecond is a plan with two exporters: the first one drops, and the second one accepts a part.
func partOfSecond() Plan {
	second := halfOf(fault(PipelinePartial, 60, 70))
	second.Exporter = 1
	p := plain(neither, fault(PipelinePermanent, 60, 70), second)
	p.Exporters = 2
	return p
}

// manyWait is a plan in which 1,000 events with many tags are written while no process runs. The
// next process takes 500 of them together while it delivers the first ones.
func manyWait(faults ...Fault) Plan {
	faults = append(faults, killReplica(0, 39, 50), fault(PipelineSlow, 50, 70).slowBy(2*time.Second))
	p := plain(storageAlone, faults...).with(odd(OddObjects, manyAnnotations)).with(often)
	p.Producers[len(p.Producers)-1].Writes = 1000
	return p
}
