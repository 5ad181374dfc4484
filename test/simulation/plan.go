// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// calm is how long no fault begins: what exists at the first start is then known exactly.
	calm = 20 * time.Second
	// firstWrite is when producers begin to write, so that every replica has listed before.
	firstWrite = 8 * time.Second
	// settling is how long a run goes on after its last fault and its last write. Every back-off of
	// the receiver and every memory of a failed lookup ends within it.
	settling = 100 * time.Second

	// Most environments have few namespaces. The others have more, each with a workload of its own.
	fewNamespaces, mostNamespaces = 20, 1000
)

// Mode is what decides which promises the contract makes.
type Mode struct{ Storage, Elector bool }

var (
	neither      = Mode{}
	storageAlone = Mode{Storage: true}
	electorAlone = Mode{Elector: true}
)

// Plan is one environment and what happens in it. It is a function of its seed, and can be cut down
// without changing what is left.
type Plan struct {
	Seed uint64
	Few  bool // features (see swarm)
	Mode
	Replicas int // 1 without an elector

	Configured
	Lease LeaseTimes

	// The cluster.
	Namespaces   int
	EventTTL     time.Duration
	CompactAfter time.Duration
	CacheLag     time.Duration
	Latency      time.Duration // of each request
	OldServer    bool          // v2beta1 of aggregated discovery, as Kubernetes 1.28
	Apps         []AppPlan
	Relabel      time.Duration // when the labels of the apps' owners change; 0: never
	Producers    []ProducerPlan
	Detailed     []DetailedPlan
	Existing     int  // events that exist before the first start
	LastWrites   bool // producers write once more just before the end

	// The pipelines.
	Exporters   int
	MutatesData bool // exporters destroy what they get

	Topology

	Faults []Fault
	Active time.Duration // until the last fault ends and the last event is written
}

// LeaseTimes are the elector's lease_duration, renew_deadline and retry_period.
type LeaseTimes struct{ Duration, Renew, Retry time.Duration }

// leaseTimes takes seconds.
func leaseTimes(duration, renew, retry time.Duration) LeaseTimes {
	return LeaseTimes{duration * time.Second, renew * time.Second, retry * time.Second}
}

// NewPlan makes the plan of a seed.
func NewPlan(seed uint64) Plan {
	r := draw(seed, "plan", 0)
	p := Plan{
		Seed:     seed,
		Mode:     oneOf(r, neither, storageAlone, electorAlone, electorAlone),
		Replicas: 1,
		Configured: Configured{
			Dedup:      oneOf(r, 0, 0, between(r, 3*time.Second, 40*time.Second)),
			Collection: oneOf(r, between(r, time.Second, 5*time.Second), between(r, 5*time.Second, 30*time.Second)),
			NoOwners:   chance(r, 12),
			MaxDepth:   oneOf(r, 10, 10, 10, 2),
			CacheSize:  oneOf(r, 100_000, 100_000, 4),
			CacheTTL:   oneOf(r, 10*time.Minute, 10*time.Minute, 20*time.Second),
			MaxSeries:  oneOf(r, 10_000, 10_000, 10_000, 3),
			SeriesTTL:  oneOf(r, time.Hour, time.Hour, time.Hour, 40*time.Second),
			NoZero:     chance(draw(seed, "zero", 0), 4),
			QPS:        oneOf(r, 50, -1),
		},
		Lease:        oneOf(r, leaseTimes(15, 10, 1), leaseTimes(15, 10, 2)),
		Namespaces:   1 + r.IntN(fewNamespaces),
		EventTTL:     oneOf(r, time.Hour, 20*time.Minute, 10*time.Minute),
		CompactAfter: oneOf(r, 5*time.Minute, time.Minute, 20*time.Second),
		CacheLag:     oneOf(r, 0, 0, 2*time.Second),
		Latency:      oneOf(r, 0, 0, 2*time.Millisecond),
		OldServer:    chance(r, 4),
		Existing:     oneOf(r, 0, 0, r.IntN(40), 600),
		Exporters:    oneOf(r, 1, 1, 2, 3),
		MutatesData:  chance(r, 4),
		Active:       between(r, 45*time.Second, 3*time.Minute),
	}
	p.varyRarely(r)
	p.swarm()
	p.addApps()
	p.addProducers()
	p.addFaults(p.howMany(r))
	p.addFailovers()
	p.addTopology()
	p.decide()
	p.addHostile()
	p.addForeign()
	if chance(r, 6) {
		p.expireEvents()
	}
	if chance(r, 2) && !p.has(gaps...) {
		p.Producers[0].Style = oneOf(r, Recreating, Relabeler)
		p.Producers[0].Edits = true
	}
	p.addDetailed()
	return p
}

// varyRarely draws what most plans leave as it is.
func (p *Plan) varyRarely(r *rand.Rand) {
	p.FromBeginning = chance(r, 2)
	if chance(r, 50) {
		p.Namespaces = between(r, fewNamespaces+1, mostNamespaces+1)
		// With a limit of the client, the necessary requests take longer than an event waits.
		p.QPS = -1
	}
	if p.Elector {
		p.Replicas = 2 + r.IntN(2)
	}
	p.LastWrites = chance(r, 3)
	if chance(r, 5) {
		p.Relabel = between(r, calm, p.Active)
	}
	p.addFilters(r, p.Namespaces)
	if chance(r, 100) && !p.Elector {
		p.Active = between(r, 26*time.Hour, 30*time.Hour)
		p.Collection, p.EventTTL = 10*time.Minute, time.Hour
	}
}

// gaps are the faults that may let a receiver miss the states between two lists. The contract does
// not decide what it then counts of an event that has a lower count, or that was created again.
var gaps = []FaultKind{
	APIDown, APIRefuses, APIHangs, AnswersLost, WatchBreaks, Compaction, ConnectionsCut,
	ConnectionsDie, Stalled, ListNeverEnds, BackupRestored, ClusterNew, LeaseForbidden, Killed,
	Restarted, PipelineRejects, PipelineHangs, PipelineSlow, StorageSlow,
}

// expireEvents lets events expire within the run. No fault may then keep the receiver from them for
// more than a moment.
func (p *Plan) expireEvents() {
	p.EventTTL = 70 * time.Second
	p.drop(func(f Fault) bool {
		switch f.Kind {
		case Compaction, ConnectionsCut, WatchBreaks, MetricsRejected, MetricsHangs, StorageUnwritable:
			return false
		case Killed, Restarted:
			return p.Elector
		}
		return true
	})
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Kind != MetricsHangs {
			f.To = min(f.To, f.From+2*time.Second)
		}
	}
}

func namespace(i int) string { return fmt.Sprintf("team-%d", i) }

// addFaults adds n faults, each a function of the seed and its number.
func (p *Plan) addFaults(n int) {
	for i := range n {
		r := draw(p.Seed, "fault", i)
		f := Fault{Replica: everyone, From: between(r, calm, p.Active)}
		f.Kind = oneOf(r, p.possibleFaults()...)
		if chance(r, 4) && (f.Kind.isOfPipelines() || f.is(WatchBreaks, ConnectionsCut)) {
			f.From = oneOf(r, 0, between(r, 0, calm)) // What exists at the first start is known still.
		}
		f.To = f.From + oneOf(r, between(r, time.Second, 5*time.Second),
			between(r, time.Second, 20*time.Second), between(r, 20*time.Second, 80*time.Second))
		if chance(r, 12) {
			f.To = f.From + between(r, 2*time.Minute, 4*time.Minute)
		}
		p.detail(r, &f)
		p.Faults = append(p.Faults, f)
		if f.Kind == PipelinePartial && chance(r, 2) { // What is left may be rejected as a whole.
			f.Kind, f.OneIn = PipelineRejects, 2
			p.Faults = append(p.Faults, f)
		}
		if f.Kind == WatchBreaks && chance(r, 2) { // Lists are cut, too.
			at := between(r, f.From, f.To)
			p.Faults = append(p.Faults, Fault{Kind: Compaction, From: at, To: at, Replica: everyone})
		}
	}
	p.lastUntilFaultsEnd()
}

func (p *Plan) lastUntilFaultsEnd() {
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.From - b.From) })
	for _, f := range p.Faults {
		if f.To < forever {
			p.Active = max(p.Active, f.To)
		}
	}
}

// addFailovers lets a leader lag and then die, and lets all replicas be down for a while.
func (p *Plan) addFailovers() {
	r := draw(p.Seed, "failovers", 0)
	if p.Elector && chance(r, 5) {
		from := between(r, calm, 2*time.Minute)
		lasts := oneOf(r, between(r, 5*time.Second, 40*time.Second),
			between(r, time.Minute, 6*time.Minute))
		lag := Fault{
			Kind: oneOf(r, PipelineRejects, PipelineRejects, PipelineHangs, PipelineSlow),
			From: from, To: from + lasts,
			Replica: oneOf(r, everyone, 0, 0), Exporter: r.IntN(p.Exporters),
		}
		if lag.Kind == PipelineSlow {
			lag.Delay = between(r, time.Second, 20*time.Second)
		}
		dies := from + between(r, time.Second, lasts+4*time.Second)
		p.Faults = append(p.Faults, lag, Fault{
			Kind: oneOf(r, Killed, Killed, Restarted), Replica: leader,
			From: dies, To: dies + between(r, time.Second, time.Minute),
		})
		p.EventTTL = time.Hour // What is not delivered has to be there still.
	}
	if chance(r, 6) {
		from := between(r, calm, max(p.Active, calm+time.Minute))
		down := oneOf(r, between(r, time.Second, 20*time.Second),
			between(r, 20*time.Second, 4*time.Minute))
		kind := oneOf(r, Killed, Killed, Restarted)
		for i := range p.Replicas {
			dies := from + between(r, 0, 5*time.Second)
			p.Faults = append(p.Faults, Fault{
				Kind: kind, Replica: i, From: dies, To: dies + down + between(r, 0, 5*time.Second),
			})
		}
		p.EventTTL = time.Hour
	}
	p.lastUntilFaultsEnd()
}

// decide takes out of a plan what the contract does not decide.
func (p *Plan) decide() {
	restored := false
	p.drop(func(f Fault) bool { // Which cluster is it, if its backup returns after a new one came?
		again := restored && f.is(BackupRestored, ClusterNew)
		restored = restored || f.is(BackupRestored, ClusterNew)
		return again
	})
}

// possibleFaults lists the more frequent ones more than once.
func (p *Plan) possibleFaults() []FaultKind {
	possible := []FaultKind{
		APIDown, APIRefuses, APIRefuses, APIRefuses, KindMissing, KindMissing, APIHangs, APISlow, AnswersLost,
		WatchBreaks, Compaction, Compaction, ConnectionsCut, ConnectionsCut, Stalled, SlowNetwork,
		ListNeverEnds, BackupRestored, ClusterNew, PipelineRejects, PipelineRejects,
		PipelinePermanent, PipelinePartial, PipelineHangs, PipelineSlow, MetricsRejected,
		Killed, Killed, Killed, Killed, Restarted, Restarted,
	}
	if p.Storage {
		possible = append(possible, StorageUnreadable, StorageUnwritable, StorageSlow,
			StorageAnswerLost, Killed, Killed)
	}
	if p.Elector {
		possible = append(possible, LeaseForbidden, ProgressForbidden, ProgressForbidden)
	} else if chance(draw(p.Seed, "dies", 0), 20) {
		possible = append(possible, ConnectionsDie)
	}
	return p.few(possible)
}

// detail sets what a fault of its kind needs.
func (p *Plan) detail(r *rand.Rand, f *Fault) {
	f.OneIn = oneOf(r, 1, 2, 5)
	switch f.Kind {
	case APIRefuses:
		p.refuse(r, f)
	case ConnectionsDie:
		f.To = f.From + 11*time.Minute // when the server would have ended every watch
		p.Active, p.EventTTL = max(p.Active, f.From+12*time.Minute), time.Hour
	case LeaseForbidden:
		f.Verb = oneOf(r, "", "update") // A role may allow to read it.
	case ProgressForbidden:
		f.Verb, f.OneIn = oneOf(r, "", "", "get", "update", "create"), 1
		// While the progress cannot be read, a new leader emits nothing. If it was never noted, the next
		// leader starts for the first time.
		if chance(r, 2) && f.Verb == "update" {
			f.From, f.To = noted, forever
		}
	case KindMissing:
		f.Resource = "rollouts"
	case APIHangs:
		f.Resource = oneOf(r, p.resources("events", "pods", "replicasets", "deployments", "rollouts",
			"namespaces", "nodes", ofDiscovery)...)
	case APISlow:
		f.Resource = oneOf(r, p.resources("", "events", "pods", "replicasets", "deployments", ofDiscovery)...)
		f.Delay = between(r, 20*time.Millisecond, 4*time.Second)
	case AnswersLost:
		f.Resource = oneOf(r, p.resources("", "events", "leases", "pods")...)
	case SlowNetwork:
		f.Delay = between(r, 100*time.Microsecond, 5*time.Millisecond) // for each KiB
	case BackupRestored:
		f.To, f.Delay = f.From, between(r, time.Second, f.From)
	case Compaction, ConnectionsCut, ClusterNew:
		f.To = f.From
	case StorageSlow, PipelineSlow:
		f.Delay = between(r, 10*time.Millisecond, 5*time.Second)
	case Killed:
		f.Seam = oneOf(r, AnyTime, AtStorage, AtStorage, AtPipeline, AtPipeline, AtConnection)
		f.Nth, f.Acted = r.IntN(4), chance(r, 2)
		if p.Elector && chance(r, 6) {
			f.Seam = AtElection
		}
		f.To = f.From + between(r, 500*time.Millisecond, 25*time.Second)
	case Restarted:
		f.To = f.From + between(r, 100*time.Millisecond, 20*time.Second)
	}
	if f.is(Killed, Restarted) && chance(r, 3) {
		f.Deletes = oneOf(r, 1, 2)
	}
	p.aim(r, f)
}

// resources adds the resource of the leader's progress, where replicas need it.
func (p *Plan) resources(all ...string) []string {
	if p.Elector {
		return append(all, "configmaps", "configmaps")
	}
	return all
}

func (p *Plan) refuse(r *rand.Rand, f *Fault) {
	f.Resource = oneOf(r, p.resources("", "events", "events", "pods", "replicasets", "deployments",
		"rollouts", "namespaces", "nodes", ofDiscovery)...)
	f.Status = oneOf(r, 401, 403, 429, 500, 503, 504)
	isOfOwners := !slices.Contains([]string{"", "events", "configmaps", ofDiscovery}, f.Resource)
	if chance(r, 3) && isOfOwners { // Single reads are allowed.
		f.Status, f.Verb = 403, oneOf(r, "list", "watch")
	}
	if chance(r, 2) && f.Status == 403 && len(p.Watched) > 0 {
		f.Namespace = p.Watched[0]
	}
}

// aim chooses whom a fault concerns.
func (p *Plan) aim(r *rand.Rand, f *Fault) {
	switch f.Kind {
	case Killed, Restarted:
		f.Replica, f.OneIn = r.IntN(p.Replicas), 1
		if p.Elector && chance(r, 2) {
			f.Replica = leader
		}
	case APIDown, APIRefuses, ConnectionsCut, Stalled, SlowNetwork, AnswersLost:
		if chance(r, 2) {
			f.Replica = r.IntN(p.Replicas)
		}
	}
	if f.Kind.isOfPipelines() {
		f.Exporter = r.IntN(p.Exporters)
		if p.Elector && chance(r, 3) {
			f.Replica = r.IntN(p.Replicas)
		}
	}
	if f.is(APIDown, APIHangs, KindMissing, Compaction, ConnectionsCut, Stalled, ListNeverEnds,
		BackupRestored, ClusterNew, LeaseForbidden, StorageUnreadable) {
		f.OneIn = 1
	}
}

// drop takes out the faults that the function selects.
func (p *Plan) drop(which func(Fault) bool) { p.Faults = slices.DeleteFunc(p.Faults, which) }

// has reports whether the plan has a fault of one of the kinds.
func (p *Plan) has(kinds ...FaultKind) bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.is(kinds...) })
}
