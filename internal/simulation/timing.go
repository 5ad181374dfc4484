// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"
)

const (
	// promptly is how long a record may take where nothing is wrong: lookup_timeout and the batch.
	promptly = 12 * time.Second
	// lookBack is how long a fault may have an effect after its end: back-off and remembered failures.
	lookBack = 75 * time.Second
)

// checkTimes checks the promises about time, where no fault is near.
func (a *account) checkTimes() {
	if a.env.plan.has(BackupRestored, ClusterNew) {
		return
	}
	from, _ := a.env.baselines()
	any := func(f *Fault) bool { return !f.keepsOwnersOnly() }
	for name, want := range a.env.ideal(from) {
		event := name.String()
		for _, s := range want.steps {
			late := s.at.Add(promptly + a.env.plan.Dedup)
			if s.at.Sub(a.env.firstObserver().started) > firstWrite/2 && !a.env.plan.disturbed(s.at.Sub(a.env.began)-lookBack, late.Sub(a.env.began), any) && !a.hasBy(event, s, late) {
				a.env.violate(inTime, event, "exporter %d did not get count %d of %s in time", a.exporter.number, s.count, name)
			}
		}
		of := a.byEvent[event]
		for i := 1; i < len(of) && a.env.plan.Dedup > 0; i++ {
			began, end := of[i-1].at.Sub(a.env.began), of[i].at.Sub(a.env.began)
			ending := of[i].process.died.Sub(of[i].at) < promptly
			if end-began < a.env.plan.Dedup-time.Second && !ending && !a.env.plan.disturbed(began-lookBack, end, any) {
				a.env.violate(oneInInterval, event, "exporter %d got two records of %s within %v", a.exporter.number, name, end-began)
			}
		}
	}
}

// hasBy reports whether the exporter had the step's occurrences by then.
func (a *account) hasBy(event string, s step, late time.Time) bool {
	return slices.ContainsFunc(a.byEvent[event], func(r *record) bool {
		return !r.at.After(late) && (r.eventUID != s.uid || r.count >= s.count)
	})
}

// overdue is how long something may stay undelivered before the status has to say so.
const overdue = 90 * time.Second

// checkSilence looks, while the run goes on, whether something is stuck and no status says so.
func (e *environment) checkSilence() {
	all := e.allProcesses()
	if e.plan.Mode == (Mode{}) && len(all) > 1 || len(e.plan.Faults) == 0 || e.plan.has(ConnectionsDie, Stalled) {
		return // Without HTTP/2's pings, a dead connection is noticed when the server should have ended the watch.
	}
	for _, p := range all {
		if !p.isDead() && (p.host.failedLately() || time.Since(p.started) < overdue) {
			return
		}
	}
	truth := newTruth(e)
	for _, x := range e.exporters {
		newAccount(e, truth, x).checkSilence()
	}
}

// checkSilence checks that the exporter lacks nothing that is overdue.
func (a *account) checkSilence() {
	from, _ := a.env.baselines()
	for name, want := range a.env.ideal(from) {
		for _, s := range want.steps {
			if time.Since(s.at) > overdue+a.env.plan.Dedup && !a.hasBy(name.String(), s, time.Now()) {
				a.env.violate(neverSilent, name.String(), "at %v, exporter %d lacks count %d of %s for %v, and the status is no error",
					time.Since(a.env.began), a.exporter.number, s.count, name, time.Since(s.at))
				return
			}
		}
	}
}

// checkRecovered checks, when all has settled, that no status is an error any more.
func (e *environment) checkRecovered() {
	for _, r := range e.replicas {
		if p := r.running(); p == nil {
			e.violate(neverSilent, "", "replica %d does not run", r.index)
		} else if p.host.failing() {
			e.violate(neverSilent, "", "the status of %s is an error, and nothing is wrong any more", p.name)
		}
	}
}
