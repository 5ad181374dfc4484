// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"slices"
	"time"
)

// mostOfOneKind is how many faults a plan has at most that has only a few kinds of them.
const mostOfOneKind = 9

// swarm leaves features out of one plan in three, each with a chance of one half. What is left meets
// more often: in a plan with everything, one feature hides what another one does wrong.
func (p *Plan) swarm() {
	r := draw(p.Seed, "swarm", 0)
	if !chance(r, 3) {
		return
	}
	p.Few = true
	for _, leaveOut := range []func(){
		func() { p.Dedup = 0 },
		func() { p.Watched, p.Types, p.ExcludeSpaces = nil, nil, nil },
		func() { p.IncludeReasons, p.ExcludeReasons = nil, nil },
		func() { p.QPS = -1 },
		func() { p.NoOwners = true },
		func() { p.CacheLag, p.Latency = 0, 0 },
		func() { p.MaxSeries, p.SeriesTTL = 10_000, time.Hour },
		func() { p.CacheSize, p.CacheTTL, p.MaxDepth = 100_000, 10*time.Minute, 10 },
		func() { p.MutatesData, p.Exporters = false, 1 },
		func() { p.Existing, p.LastWrites = 0, false },
	} {
		if chance(r, 2) {
			leaveOut()
		}
	}
}

// few returns some of the kinds of faults, if the plan has only a few.
func (p *Plan) few(kinds []FaultKind) []FaultKind {
	if !p.Few {
		return kinds
	}
	r := draw(p.Seed, "kinds of faults", 0)
	chosen := []FaultKind{oneOf(r, kinds...), oneOf(r, kinds...), oneOf(r, kinds...)}
	return slices.DeleteFunc(kinds, func(k FaultKind) bool { return !slices.Contains(chosen, k) })
}

// howMany returns how many faults the plan has.
func (p *Plan) howMany(r *rand.Rand) int {
	n := r.IntN(6)
	if p.Few {
		return draw(p.Seed, "number of faults", 0).IntN(mostOfOneKind + 1)
	}
	return n
}
