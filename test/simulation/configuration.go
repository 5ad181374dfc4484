// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"time"
)

// Configured is what the user configured of a process, apart from its storage and its elector.
type Configured struct {
	Dedup          time.Duration
	FromBeginning  bool
	Watched        []string // namespaces; empty: the whole cluster
	Types          []string // event_types
	IncludeReasons []string
	ExcludeReasons []string
	ExcludeSpaces  []string // exclude_namespaces
	IncludeKinds   []string // of the core group: kindOf
	ExcludeKinds   []string // likewise
	Collection     time.Duration
	NoOwners       bool
	TagsFrom       []string // what extract takes tags from: namespace, node, event
	MaxDepth       int
	CacheSize      int
	CacheTTL       time.Duration
	MaxSeries      int
	SeriesTTL      time.Duration
	NoZero         bool     // no initial_zero
	Without        []string // attributes of points that are switched off
	QPS            int      // kube_api_qps
	Retry          RetryPlan
}

// configured returns the configuration of a replica's process. Processes count from 1.
func (p *Plan) configured(process int) *Configured {
	if process <= 1 || len(p.Later) == 0 {
		return &p.Configured
	}
	return &p.Later[min(process-2, len(p.Later)-1)]
}

func (p *process) configured() *Configured { return p.replica.env.plan.configured(p.number) }

// allConfigured returns the configurations that any process may have.
func (p *Plan) allConfigured() []*Configured {
	all := []*Configured{&p.Configured}
	for i := range p.Later {
		all = append(all, &p.Later[i])
	}
	return all
}

// any reports whether a configuration that any process may have meets the condition.
func (p *Plan) any(condition func(*Configured) bool) bool {
	return slices.ContainsFunc(p.allConfigured(), condition)
}

// longestDedup returns the longest dedup_interval of any process: a window may outlive the process
// that opened it.
func (p *Plan) longestDedup() (longest time.Duration) {
	for _, c := range p.allConfigured() {
		longest = max(longest, c.Dedup)
	}
	return longest
}

// addFilters configures what the receiver leaves out.
func (c *Configured) addFilters(r *rand.Rand, namespaces int) {
	if chance(r, 5) && namespaces > 1 {
		c.Watched = []string{namespace(0), namespace(1)}
	}
	c.Types = oneOf(r, nil, nil, nil, []string{"Warning"}, []string{"Warning", "Normal"})
	if chance(r, 5) {
		c.ExcludeReasons = []string{"Pull*", "Created"}
	}
	if chance(r, 8) {
		c.IncludeReasons = []string{"BackOff", "F*", "Storm", "?reated"}
	}
	if chance(r, 6) && c.Watched == nil {
		c.ExcludeSpaces = []string{namespace(0), "team-[3-9]*"}
	}
}

// setting is a part of the configuration that changes from process to process.
type setting struct {
	change func(r *rand.Rand, c *Configured)
	// keep takes the setting over from another configuration.
	keep func(to, from *Configured)
}

// settingsOfOutput change what records and points have, and when they come, but not which events
// count.
var settingsOfOutput = []setting{
	{
		func(r *rand.Rand, c *Configured) {
			c.Dedup = oneOf(r, 0, 0, between(r, 3*time.Second, 40*time.Second), time.Minute)
		},
		func(to, from *Configured) { to.Dedup = from.Dedup },
	}, {
		func(r *rand.Rand, c *Configured) {
			c.TagsFrom = nil
			for _, from := range []string{fromNamespace, fromNode, fromEvent} {
				if chance(r, 2) {
					c.TagsFrom = append(c.TagsFrom, from)
				}
			}
		},
		func(to, from *Configured) { to.TagsFrom = from.TagsFrom },
	}, {
		func(r *rand.Rand, c *Configured) { c.MaxSeries = oneOf(r, 10_000, 3, 1) },
		func(to, from *Configured) { to.MaxSeries = from.MaxSeries },
	}, {
		func(r *rand.Rand, c *Configured) {
			c.Without = oneOf(r, nil, []string{"k8s.event.reason"}, []string{"k8s.workload.name"}, []string{"k8s.object.kind", "k8s.event.type"})
		},
		func(to, from *Configured) { to.Without = from.Without },
	}, {
		func(_ *rand.Rand, c *Configured) { c.NoZero = !c.NoZero },
		func(to, from *Configured) { to.NoZero = from.NoZero },
	}, {
		func(r *rand.Rand, c *Configured) { c.Collection = between(r, time.Second, 30*time.Second) },
		func(to, from *Configured) { to.Collection = from.Collection },
	}, {
		func(r *rand.Rand, c *Configured) { c.Retry = randomRetry(r) },
		func(to, from *Configured) { to.Retry = from.Retry },
	},
}

// ofStreams is how many of settingsOfFilters also decide what the streams bring.
const ofStreams = 2

// settingsOfFilters change which events count.
var settingsOfFilters = []setting{
	{
		func(r *rand.Rand, c *Configured) {
			c.Watched = oneOf(r, nil, nil, []string{namespace(0)}, []string{namespace(0), namespace(1)},
				[]string{namespace(1), namespace(2)}, []string{namespace(2), "default", namespace(0)})
			if c.Watched != nil {
				c.ExcludeSpaces = nil // A namespace may not be both.
			}
		},
		func(to, from *Configured) { to.Watched, to.ExcludeSpaces = from.Watched, from.ExcludeSpaces },
	}, {
		func(r *rand.Rand, c *Configured) {
			c.Types = oneOf(r, nil, []string{"Warning"}, []string{"Normal"}, []string{"Warning", "Normal"})
		},
		func(to, from *Configured) { to.Types = from.Types },
	}, {
		func(r *rand.Rand, c *Configured) {
			c.IncludeReasons = oneOf(r, nil, nil, []string{"BackOff", "F*", "Storm", "?reated"})
			c.ExcludeReasons = oneOf(r, nil, nil, []string{"Pull*", "Created"})
		},
		func(to, from *Configured) {
			to.IncludeReasons, to.ExcludeReasons = from.IncludeReasons, from.ExcludeReasons
		},
	}, {
		func(r *rand.Rand, c *Configured) {
			c.IncludeKinds, c.ExcludeKinds = oneOf(r, nil, nil, []string{"pod"}), oneOf(r, nil, nil, []string{"pod"}, []string{"node"})
			if c.IncludeKinds != nil {
				c.ExcludeKinds = nil
			}
		},
		func(to, from *Configured) { to.IncludeKinds, to.ExcludeKinds = from.IncludeKinds, from.ExcludeKinds },
	}, {
		func(r *rand.Rand, c *Configured) {
			if c.Watched == nil {
				c.ExcludeSpaces = oneOf(r, nil, []string{namespace(0), "team-[3-9]*"}, []string{"team-*"})
			}
		},
		func(to, from *Configured) { to.Watched, to.ExcludeSpaces = from.Watched, from.ExcludeSpaces },
	},
}

// addChanges lets processes that start later have another configuration, in one plan in three of
// those in which a process continues what another one began, and in few others.
func (p *Plan) addChanges() {
	r := draw(p.Seed, "configuration", 0)
	oneIn := 3
	if p.Mode == neither {
		oneIn = 10
	}
	if p.Namespaces > fewNamespaces || !chance(r, oneIn) {
		return
	}
	possible, changes := settingsOfOutput, 1+r.IntN(3)
	// The position of a leader is of its own filters: the contract does not say what follows if the
	// replicas have different ones. Without storage and elector, only the last process counts.
	if p.Storage && !chance(r, 3) {
		possible, changes = slices.Concat(settingsOfFilters, settingsOfFilters[:ofStreams], settingsOfOutput), 2+r.IntN(2)
		p.calmDown(r)
	}
	next := p.Configured
	for i := range changes {
		if i > 0 && chance(r, 2) { // What was left out meanwhile must not count.
			for _, s := range settingsOfFilters {
				s.keep(&next, &p.Configured)
			}
		}
		for range 1 + r.IntN(3) {
			oneOf(r, possible...).change(r, &next)
		}
		p.Later = append(p.Later, next)
		p.Faults = append(p.Faults, p.restarts(r))
	}
	if p.filtersChange() {
		// In another cluster, or one that went back, the contract does not say what an earlier
		// filter covered. What is only listed must still be there.
		p.drop(func(f Fault) bool { return f.is(BackupRestored, ClusterNew) })
		p.EventTTL = time.Hour
	}
}

// calmDown lets most plans be such that each filter's events are exactly known: nothing delays them,
// and the first list counts nothing.
func (p *Plan) calmDown(r *rand.Rand) {
	if chance(r, 3) {
		return
	}
	p.FromBeginning = false
	p.drop(func(f Fault) bool { return f.delaysRecords() && !f.is(Killed, Restarted) })
}

// restarts ends a process, so that the next one starts.
func (p *Plan) restarts(r *rand.Rand) Fault {
	f := Fault{Kind: oneOf(r, Restarted, Restarted, Killed), Replica: r.IntN(p.Replicas), From: between(r, calm, p.Active)}
	if p.Elector && chance(r, 2) {
		f.Replica = leader
	}
	f.To = f.From + between(r, 100*time.Millisecond, 10*time.Second)
	return f
}

// filtersChange reports whether the processes have different filters.
func (p *Plan) filtersChange() bool {
	return p.any(func(c *Configured) bool {
		return slices.ContainsFunc(settingsOfFilters, func(s setting) bool {
			same := *c
			s.keep(&same, &p.Configured)
			return !reflect.DeepEqual(same, *c)
		})
	})
}
