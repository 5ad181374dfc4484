// SPDX-License-Identifier: Apache-2.0

package simulation

import "slices"

// Shrink takes out of a plan what is not needed to break the promise: faults, producers, existing
// events, exporters. It returns the outcome of the smallest plan that broke it.
func Shrink(run func(Plan) *Outcome, broken *Outcome) *Outcome {
	promise := broken.Violations[0].Promise
	smallest := broken
	try := func(change func(*Plan)) bool {
		plan := smallest.Plan
		plan.Faults, plan.Producers = slices.Clone(plan.Faults), slices.Clone(plan.Producers)
		change(&plan)
		outcome := run(plan)
		breaks := outcome.breaks(promise)
		if breaks {
			smallest = outcome
		}
		return breaks
	}
	try(func(p *Plan) { p.Existing, p.Crowd = 0, 0 })
	try(func(p *Plan) { p.Exporters = min(1, p.Exporters) })
	try(func(p *Plan) { p.MutatesData = false })
	try(func(p *Plan) { p.Dedup = 0 })
	shrinkConfigurations(func() *Plan { return &smallest.Plan }, try)
	shrinkTopology(try)
	for i := len(smallest.Plan.Faults) - 1; i >= 0; i-- {
		try(func(p *Plan) { p.Faults = slices.Delete(p.Faults, i, i+1) })
	}
	// Producers keep their numbers, which decide what they do. Most of a thousand are not needed,
	// so that many are silenced at once.
	all := len(smallest.Plan.Producers)
	for size := all; size > 0; size /= 2 {
		for first := 0; first < all; first += size {
			end := min(first+size, all)
			if writeSomething(smallest.Plan.Producers[first:end]) {
				try(func(p *Plan) { silence(p.Producers[first:end]) })
			}
		}
	}
	for i := range all {
		if smallest.Plan.Producers[i].Odd != NoOddity {
			try(func(p *Plan) { p.Producers[i].Odd = NoOddity })
		}
		halve := func(p *Plan) { p.Producers[i].Writes /= 2 }
		for smallest.Plan.Producers[i].Writes > 1 && try(halve) {
		}
	}
	return smallest
}

func silence(producers []ProducerPlan) {
	for i := range producers {
		producers[i].Writes = 0
	}
}

func writeSomething(producers []ProducerPlan) bool {
	return slices.ContainsFunc(producers, func(p ProducerPlan) bool { return p.Writes > 0 })
}

// breaks reports whether the outcome has a violation of the promise, and puts that first.
func (o *Outcome) breaks(promise *Promise) bool {
	at := o.violation(promise)
	if at > 0 {
		o.Violations[0], o.Violations[at] = o.Violations[at], o.Violations[0]
	}
	return at >= 0
}

// violation returns the index of the first violation of the promise, or -1.
func (o *Outcome) violation(promise *Promise) int {
	return slices.IndexFunc(o.Violations, func(v Violation) bool { return v.Promise == promise })
}
