// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"
)

// Configured is what the user configured, apart from storage and the elector.
type Configured struct {
	Dedup          time.Duration
	FromBeginning  bool
	Watched        []string // namespaces; empty: the whole cluster
	Types          []string // event_types
	IncludeReasons []string
	ExcludeReasons []string
	ExcludeSpaces  []string // exclude_namespaces
	Collection     time.Duration
	NoOwners       bool
	NoDetails      bool
	MaxDepth       int
	CacheSize      int
	CacheTTL       time.Duration
	MaxSeries      int
	SeriesTTL      time.Duration
	NoZero         bool // no initial_zero
	QPS            int  // kube_api_qps
	Retry          RetryPlan
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
