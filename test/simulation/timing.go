// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// promptly is how long a record may take where nothing is wrong: lookup_timeout and the batch.
	promptly = 8 * time.Second
	// lookBack is how long a fault may act after its end: by back-off and remembered failures.
	lookBack = 75 * time.Second
	// overdue is how long something may stay undelivered before the status has to be an error.
	overdue = 90 * time.Second
)

// checkTimes checks the promises about time, where no fault is near.
func (a *account) checkTimes() {
	if a.env.plan.has(BackupRestored, ClusterNew) {
		return
	}
	from, _ := a.env.baselines()
	for name, want := range a.truth.groups.sum(a.env.ideal(from, true)) {
		a.checkInTime(name, want.steps)
		a.checkObserved(name, want.steps)
		a.checkInterval(name)
	}
}

// checkObserved checks that records have the time at which the oldest of their occurrences was
// seen.
func (a *account) checkObserved(name types.NamespacedName, steps []step) {
	if a.truth.groups.names[name] > 1 {
		return // A record sums the occurrences of several events.
	}
	for _, r := range a.byEvent[name] {
		oldest := slices.IndexFunc(steps, func(s step) bool {
			return s.uid == r.eventUID && s.count > r.count-r.occurrences
		})
		if oldest < 0 || r.process.startedBefore(r.at).After(steps[oldest].at) {
			continue
		}
		latest := steps[oldest].at.Add(promptly)
		if r.observed().After(latest) && !a.env.disturbed(steps[oldest].at.Add(-lookBack), latest, (*Fault).delaysRecords) {
			a.violate(faithful, name.String(), "%s was observed at %v, its oldest occurrence is of %v",
				r.uid, a.env.sinceStart(r.observed()), a.env.sinceStart(steps[oldest].at))
		}
	}
}

func (a *account) checkInTime(name types.NamespacedName, steps []step) {
	listed := a.env.firstObserver().started.Add(firstWrite / 2)
	for _, s := range steps {
		deadline := s.at.Add(promptly + a.env.plan.Dedup)
		if s.at.After(listed) && !a.hasBy(name, s, deadline) &&
			!a.env.disturbed(s.at.Add(-lookBack), deadline, (*Fault).delaysRecords) {
			a.violate(inTime, name.String(), "did not get count %d of %s in time", s.count, name)
		}
	}
}

func (a *account) checkInterval(name types.NamespacedName) {
	const lookup = 3 * time.Second // The first of two records may wait for its owners, and the second finds them in the cache.
	of := a.byEvent[name]
	if a.truth.groups.mixed[name] {
		return
	}
	for i := 1; i < len(of); i++ {
		begin, end := of[i-1].at, of[i].at
		gap, shutdown := end.Sub(begin), of[i].process.died.Sub(end) < promptly
		if gap < a.env.plan.Dedup-lookup && !shutdown &&
			!a.env.disturbed(begin.Add(-lookBack), end, (*Fault).delaysRecords) {
			a.violate(oneInInterval, name.String(), "got two records of %s within %v", name, gap)
		}
	}
}

// hasBy reports whether the exporter had the step's occurrences at the deadline.
func (a *account) hasBy(name types.NamespacedName, s step, deadline time.Time) bool {
	return slices.ContainsFunc(a.byEvent[name], func(r *record) bool {
		return !r.at.After(deadline) && (r.eventUID != s.uid && !r.at.Before(s.at) || r.count >= s.count)
	})
}

// checkSilence checks, during the run, that nothing is stuck while no status is an error.
func (e *environment) checkSilence() {
	all := e.allProcesses()
	switch {
	case len(e.plan.Faults) == 0, e.plan.Mode == neither && len(all) > 1:
		return
	case e.plan.has(ConnectionsDie, Stalled):
		return // Without HTTP/2's pings, a dead connection is noticed at the watch's timeout.
	case !e.isDecided():
		return // Records around a restore may be missing.
	case e.leaderIsNew():
		return // The contract: "If a pipeline has rejected data for more than a minute".
	case e.disturbed(time.Now().Add(-2*overdue), time.Now(), func(f *Fault) bool { return f.is(LeaseForbidden) }):
		return // Without the permission for the Lease, nobody leads: the elector logs it.
	case e.isBetweenLeaders():
		return // A standby does not see what kept the last leader from delivering.
	}
	alive := 0
	for _, p := range all {
		if p.isDead() {
			continue
		}
		alive++
		if p.failing(time.Minute+promptly) == len(p.hosts) || time.Since(p.started) < overdue {
			return
		}
	}
	if alive == 0 {
		return // There is nobody to report anything.
	}
	truth := newTruth(e)
	for _, x := range e.exporters {
		newAccount(e, truth, x).checkSilence()
	}
}

// leaderIsNew reports whether pipelines rejected data not long ago, and another process had begun
// to lead, or had died as the leader, since: its successor has to see for itself.
func (e *environment) leaderIsNew() bool {
	now := time.Now()
	ofPipelines := func(f *Fault) bool { return f.Kind.isOfPipelines() }
	if !e.disturbed(now.Add(-overdue), now, ofPipelines) {
		return false
	}
	return slices.ContainsFunc(e.allProcesses(), func(p *process) bool {
		return slices.ContainsFunc(p.allTerms(), func(t term) bool {
			return now.Sub(t.began) < overdue || !t.ended.IsZero() && now.Sub(t.ended) < overdue
		})
	})
}

// isBetweenLeaders reports whether nobody leads, because a leader has ended whose status was an error and
// its lease has not expired, or because electors do not reach the lease: only they log it.
func (e *environment) isBetweenLeaders() bool {
	now, all := time.Now(), e.allProcesses()
	if !e.plan.Elector || slices.ContainsFunc(all, func(p *process) bool { return p.leadsAt(now) }) {
		return false
	}
	// A standby asks after up to 2.2 retry periods, and has seen the last renewal as late.
	election := e.plan.Lease.Duration + 5*e.plan.Lease.Retry
	if e.disturbed(now.Add(-election), now, func(f *Fault) bool { return f.Kind.isOfAPI() }) {
		return true
	}
	return slices.ContainsFunc(all, func(p *process) bool {
		terms := p.allTerms()
		if len(terms) == 0 || !p.isDead() {
			return false
		}
		since := now.Sub(terms[len(terms)-1].ended)
		return since < election && p.failing(since+time.Second) == len(p.hosts)
	})
}

// checkSilence checks that the exporter lacks nothing that is overdue.
func (a *account) checkSilence() {
	if a.hasAcceptedLately() {
		return // The contract: "If a pipeline has rejected data for more than a minute".
	}
	from, _ := a.env.baselines()
	for name, want := range a.truth.groups.sum(a.env.ideal(from, true)) {
		for _, s := range want.steps {
			age := time.Since(a.env.arrived(s.at))
			if age > overdue+a.env.plan.Dedup && !a.hasBy(name, s, time.Now()) {
				a.violate(neverSilent, name.String(),
					"at %v lacks count %d of %s for %v, and the status is no error",
					time.Since(a.env.began), s.count, name, age)
				return
			}
		}
	}
}

// arrived returns when the pipelines had surely heard of what happened at a time: if they reject
// data, slow connections may have kept it from them before. The contract: "If a pipeline has rejected
// data for more than a minute".
func (e *environment) arrived(at time.Time) time.Time {
	now := time.Now()
	if !e.disturbed(at, now, func(f *Fault) bool { return f.Kind.isOfPipelines() }) {
		return at
	}
	for i := range e.plan.Faults {
		f := &e.plan.Faults[i]
		if until := e.began.Add(f.To); f.is(SlowNetwork) && f.covers(e.sinceStart(at), e.sinceStart(now)) && until.After(at) {
			at = until
		}
	}
	return at
}

// hasAcceptedLately reports whether the exporter accepted a record between two consecutive faults
// of pipelines.
func (a *account) hasAcceptedLately() bool {
	now := time.Now()
	ofPipelines := func(f *Fault) bool { return f.Kind.isOfPipelines() }
	return len(a.all) > 0 && now.Sub(a.all[len(a.all)-1].at) < overdue &&
		a.env.disturbed(now.Add(-overdue), now, ofPipelines)
}

// keepsFailing reports whether the status is an error, and not just until the next attempt.
func (e *environment) keepsFailing(p *process) bool {
	for waited := time.Duration(0); p.failing(0) > 0; waited += time.Second {
		if waited > promptly {
			return true
		}
		time.Sleep(time.Second)
	}
	return false
}

// checkRecovered checks that no status is an error any more when all has settled.
func (e *environment) checkRecovered() {
	for _, r := range e.replicas {
		if p := r.running(); p == nil {
			e.violate(neverSilent, "", "replica %d does not run", r.index)
		} else if e.keepsFailing(p) && e.fault(r.index, ProgressForbidden) == nil && !e.waitsForEvents(p) {
			e.violate(neverSilent, "", "the status of %s stays an error without reason", p.name)
		}
	}
}

// waitsForEvents reports whether all that was there was dropped during a fault of the pipelines, so that
// no delivery can show that it is over (seed 886).
func (e *environment) waitsForEvents(p *process) bool {
	over := e.began
	for i := range e.plan.Faults {
		if f := &e.plan.Faults[i]; f.Kind.isOfPipelines() {
			over = later(over, e.began.Add(f.To))
		}
	}
	isDropped := e.plan.Retry.givesUp() || e.plan.has(PipelinePermanent)
	return isDropped && p.lastOffered().Before(over)
}
