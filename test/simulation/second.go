// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// addSecond gives each Collector a second receiver with another ID, which shares the elector and
// nothing else. It has the environment of the first one, with other settings, other exporters and
// storage of its own, and must keep all promises alone.
func (e *environment) addSecond() {
	e.second = &environment{
		plan: e.plan.ofSecond(), hosts: e.hosts, began: e.began, server: e.server,
		listener: e.listener, story: e.story, apps: e.apps, outside: e.outside,
	}
	e.second.addReplicas()
	for i, r := range e.replicas {
		r.second = e.second.replicas[i]
	}
}

// addReceivers gives each Collector of one plan in six two receivers. The elector calls the stop
// functions of both one after the other: in half of the environments with an elector, the leader
// loses its lease while the pipeline of one of them hangs.
func (p *Plan) addReceivers() {
	r := draw(p.Seed, "receivers", 0)
	if p.Namespaces > fewNamespaces || !chance(r, 6) {
		return
	}
	p.TwoReceivers = true
	if !p.Elector || chance(r, 2) {
		return
	}
	from := between(r, calm, p.Active)
	p.Faults = append(p.Faults, p.losesLease(1+r.IntN(2), from, from+between(r, 20*time.Second, time.Minute))...)
}

// losesLease lets the first replica lose its lease while a pipeline of one of its receivers hangs.
func (p *Plan) losesLease(receiver int, from, to time.Duration) []Fault {
	return []Fault{
		{Kind: PipelineHangs, Receiver: receiver, From: from, To: to, Deaf: true},
		{Kind: LeaseForbidden, From: from, To: to},
	}
}

// all returns the environment, and that of the Collectors' second receivers.
func (e *environment) all() []*environment {
	if e.second == nil {
		return []*environment{e}
	}
	return []*environment{e, e.second}
}

// allViolations returns what both receivers broke.
func (e *environment) allViolations() (all []Violation) {
	all = e.violations
	if e.second != nil {
		for _, v := range e.second.violations {
			v.Text = "second receiver: " + v.Text
			all = append(all, v)
		}
	}
	return all
}

// ofSecond returns the plan as the second receiver has it.
func (p Plan) ofSecond() Plan {
	r := draw(p.Seed, "second receiver", 0)
	p.TwoReceivers, p.Later = false, nil
	p.Storage = chance(r, 2) && !p.Elector
	p.Dedup = oneOf(r, 0, 0, between(r, 3*time.Second, 40*time.Second))
	p.FromBeginning = chance(r, 2)
	p.Signals = oneOf(r, BothSignals, BothSignals, OnlyLogs)
	p.Exporters = max(1, p.Exporters)
	p.MaxSeries = oneOf(r, 10_000, 3)
	p.Watched, p.Types, p.ExcludeSpaces, p.IncludeReasons, p.ExcludeReasons = nil, nil, nil, nil, nil
	p.addFilters(r, p.Namespaces)
	return p
}
