// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// reign is a time in which one process may decide what is new. It begins when the one before ends,
// and ends when the next one begins.
type reign struct {
	configured   *Configured
	began, ended time.Time // zero: always, and never
	// listed is when the process had surely listed what it watches; zero: it may never have.
	listed time.Time
}

// covers reports whether a write counts although the filters change from process to process. The
// contract: "If a filter is widened later, the receiver treats the events that only the wider
// filter matches as existing events: start_at decides, and it does not count what happened while
// the filter was narrow." So a write counts if the filters let it through that were configured when
// it came. Near the end of a process, and near faults that delay it, nobody knows which process saw
// it: it counts at least if all of them let it through, and at most if one of them does.
func (o *observer) covers(w apiserver.Write) bool {
	plan := &o.env.plan
	if !plan.any(func(c *Configured) bool { return !c.wants(w.Event) }) {
		return true
	}
	if !plan.Storage { // No process continues what one with other filters has begun.
		return o.env.firstObserver().configured().wants(w.Event)
	}
	begin, end := o.env.around(w.At, delaysLists) // That a process ends is not one of the faults: see reign.
	if plan.FromBeginning && !o.least && !o.isWatched(w.Event.Namespace, begin) {
		// What exists in a namespace that was never watched counts. Which events of it these are
		// depends on when it is listed.
		return true
	}
	if o.least {
		end = o.env.heldUntil(end)
	}
	all, one := true, false
	for _, r := range o.reigns {
		if (r.began.IsZero() || !r.began.After(end)) && (r.ended.IsZero() || !r.ended.Before(begin)) {
			wants := r.configured.wants(w.Event)
			all, one = all && wants, one || wants
		}
	}
	return all && one || one && !o.least
}

// heldUntil returns until when windows may hold what comes before a time. If a process is killed, the next
// one sees it again, with its own filters: nothing has noted it yet.
func (e *environment) heldUntil(t time.Time) time.Time {
	held := e.plan.longestDedup()
	if held == 0 {
		return t
	}
	t = t.Add(held)
	killed := time.Time{}
	for _, p := range e.allProcesses() { // In the order of their starts.
		if !killed.IsZero() && !killed.After(t) {
			t = later(t, p.started.Add(promptly+held))
		}
		p.mu.Lock()
		if killed = p.died; !p.stopped.IsZero() {
			killed = time.Time{}
		}
		p.mu.Unlock()
	}
	return t
}

// isWatched reports whether a namespace was surely watched by then.
func (o *observer) isWatched(namespace string, by time.Time) bool {
	return slices.ContainsFunc(o.reigns, func(r reign) bool {
		return !r.listed.IsZero() && r.listed.Before(by) && r.configured.watches(namespace)
	})
}

// reigns returns those of all processes of one storage.
func (e *environment) reigns() (all []reign) {
	for _, p := range e.allProcesses() {
		p.mu.Lock()
		began, ended := p.started, p.died
		p.mu.Unlock()
		all = append(all, e.newReign(p, began, ended))
	}
	slices.SortStableFunc(all, func(a, b reign) int { return a.began.Compare(b.began) })
	alone := slices.Clone(all)
	for i := range all {
		if i == 0 {
			all[i].began = time.Time{}
		} else {
			all[i].began = alone[i].beganAfter(alone[i-1], all[i-1])
		}
		if i == len(all)-1 {
			all[i].ended = time.Time{}
		} else if ended := all[i].ended; !ended.IsZero() {
			all[i].ended = later(ended, alone[i+1].began)
		}
	}
	return all
}

func (e *environment) newReign(p *process, began, ended time.Time) reign {
	r := reign{configured: p.configured(), began: began, ended: ended}
	if listed := began.Add(promptly); !r.isShort() && !e.disturbed(began.Add(-lookBack), listed, delaysLists) {
		r.listed = listed
	}
	return r
}

// isShort reports whether the process may have ended before it had decided anything.
func (r reign) isShort() bool { return !r.ended.IsZero() && r.ended.Sub(r.began) < promptly }

// beganAfter returns when a reign began: at the end of the one before, and at its beginning if that
// was short. whole is the one before with the time in which it may decide.
func (r reign) beganAfter(before, whole reign) time.Time {
	switch ended := before.ended; {
	case before.isShort():
		return whole.began
	case !ended.IsZero() && ended.Before(r.began):
		return ended
	}
	return r.began
}

// delaysLists reports whether the fault does more than end processes, and keep owners from being
// found.
func delaysLists(f *Fault) bool { return f.delaysRecords() && !f.is(Killed, Restarted) }

// around returns when what is written at a time may be dealt with, or listed: promptly, or when the
// faults are over that delay it.
func (e *environment) around(at time.Time, delays func(*Fault) bool) (begin, end time.Time) {
	begin, end = at.Add(-promptly), at.Add(promptly)
	for again := true; again; {
		again = false
		for i := range e.plan.Faults {
			f := &e.plan.Faults[i]
			from, to := e.began.Add(f.From).Add(-promptly), e.began.Add(f.To).Add(lookBack)
			if !delays(f) || from.After(end) || to.Before(begin) {
				continue
			}
			if from.Before(begin) {
				begin, again = from, true
			}
			if to.After(end) {
				end, again = to, true
			}
		}
	}
	return begin, end
}
