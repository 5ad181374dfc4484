// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// restore is a moment at which the API server's versions went back. The contract:
//
//   - etcd restored from a backup: the receiver "keeps the counts, forgets the versions, and lists".
//     The listed counts are then the new baseline.
//   - another cluster: its progress "is set aside with a message, and the start is a first start".
//
// With an elector, "records around a restore may be missing or repeated".
type restore struct {
	at      time.Time
	isNew   bool            // another cluster
	version int64           // of the backup: what was written later is lost
	reached int64           // the version of the newest write before
	events  []*corev1.Event // in the backup

	listed map[string]time.Time // the first complete list since, by stream
}

func (e *environment) addRestore(r restore) {
	r.at = time.Now()
	r.listed = map[string]time.Time{}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restores = append(e.restores, &r)
}

// lastRestore returns the last restore so far, or nil.
func (e *environment) lastRestore() *restore {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.restores); n > 0 {
		return e.restores[n-1]
	}
	return nil
}

// restoredInList notes a list, and returns how often the versions have gone back.
func (e *environment) restoredInList(stream string, now time.Time, complete bool) (epoch int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	epoch = len(e.restores)
	if epoch > 0 && complete && e.restores[epoch-1].listed[stream].IsZero() {
		e.restores[epoch-1].listed[stream] = now
	}
	return epoch
}

// epochAt returns how often the versions had gone back at a time.
func (e *environment) epochAt(t time.Time) (epoch int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.restores {
		if !r.at.After(t) {
			epoch++
		}
	}
	return epoch
}

// mayHaveGoneBack reports whether etcd may have been restored from a backup between two records: the
// contract lets "the listed counts [be] the new baseline". The first may be of the lost history and
// have waited for a batch.
func (e *environment) mayHaveGoneBack(first, second time.Time) bool {
	return e.epochAt(first.Add(-lookBack)) < e.epochAt(second)
}

// noticed is when the receiver has listed the restored, or new, cluster at the latest. Until then,
// what is written may only be in a list.
func (e *environment) noticed(r *restore) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	latest := r.at.Add(lookBack)
	for _, at := range r.listed {
		if at = at.Add(promptly); at.After(latest) {
			latest = at
		}
	}
	return latest
}

// calmFrom returns when no fault that delays records has an effect any more that has one at the time, or
// that begins while one of them has. The effect lasts longer than the fault.
func (e *environment) calmFrom(t time.Time, longer time.Duration) time.Time {
	for again := true; again; {
		again = false
		for i := range e.plan.Faults {
			f := &e.plan.Faults[i]
			begin, end := e.began.Add(f.From-promptly), e.began.Add(f.To+longer)
			if f.delaysRecords() && !begin.After(t) && end.After(t) {
				t, again = end, true
			}
		}
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isLost reports whether the receiver may never have seen a write that a restore undid: it was written
// just before, or a fault kept the receiver from it.
func (e *environment) isLost(w apiserver.Write) bool {
	r := e.undoes(w)
	delays := func(f *Fault) bool { return f.delaysRecords() && !f.is(BackupRestored, ClusterNew) }
	return r != nil && (w.At.After(r.at.Add(-promptly)) || e.disturbed(w.At.Add(-lookBack), r.at, delays))
}

// mayBeHeld reports whether a window may have held a write, in a list or not, when a process was killed, and
// the restore undid it before the next process could list it.
func (e *environment) mayBeHeld(w apiserver.Write) bool {
	r := e.undoes(w)
	return r != nil && e.plan.Dedup > 0 && e.isKilled(w.At, r.at)
}

// undoes is the restore that undid a write, or nil.
func (e *environment) undoes(w apiserver.Write) *restore {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.Epoch >= len(e.restores) || w.Version <= e.restores[w.Epoch].version {
		return nil
	}
	return e.restores[w.Epoch]
}

// isKilled reports whether a process is killed between two moments.
func (e *environment) isKilled(begin, end time.Time) bool {
	return slices.ContainsFunc(e.allProcesses(), func(p *process) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.stopped.IsZero() && !p.died.Before(begin) && !p.died.After(end)
	})
}

// restore goes back. An observer that counts all it may lists at once; one that counts the least
// lists as late as it may.
func (o *observer) restore(r *restore, epoch int) {
	o.finishList()
	isFirst := o.begins > epoch // The observer's first list is of the restored, or new, cluster.
	if isFirst {
		clear(o.counts)
	}
	if isFirst || r.isNew {
		clear(o.memory)
	}
	o.pending = &list{
		at: r.at, until: o.env.noticed(r), isFirst: isFirst || r.isNew,
		events: map[types.NamespacedName]*corev1.Event{},
	}
	if o.least && !isFirst {
		o.pending.reached = r.reached
	}
	for _, ev := range r.events {
		if o.env.plan.wants(ev) {
			o.pending.events[nameOf(ev)] = ev
		}
	}
	if !o.least || isFirst {
		o.finishList()
	}
}

// list is what a list after a restore will show.
type list struct {
	at, until time.Time // it may come between the two
	reached   int64     // up to this version, the receiver may not see what is new; 0: it sees all
	isFirst   bool      // start_at decides what it is
	events    map[types.NamespacedName]*corev1.Event
}

// see takes part in what the list shows.
func (l *list) see(w apiserver.Write) {
	if name := nameOf(w.Event); w.Type == watch.Deleted {
		delete(l.events, name)
	} else {
		l.events[name] = w.Event
	}
}

// finishList counts what a list after a restore shows above the remembered counts, and makes the
// listed counts the new baseline.
func (o *observer) finishList() {
	l := o.pending
	if l == nil {
		return
	}
	o.pending = nil
	for name, known := range o.memory {
		if l.events[name] == nil && known.deleted.IsZero() {
			known.deleted = l.at
		}
	}
	for name, ev := range l.events {
		if version, _ := strconv.ParseInt(ev.ResourceVersion, 10, 64); version <= l.reached {
			// The versions may have passed what the receiver knew when it looks. Then nothing shows the
			// restore, and the receiver watches from there.
			o.memory[name] = o.memory[name].with(ev)
			continue
		}
		n := o.memory[name].newIn(ev)
		if counts := !l.isFirst || o.env.plan.FromBeginning; counts && n > 0 {
			o.count(name, step{l.until, ev.UID, countOf(ev), n})
		}
		o.memory[name] = (*remembered)(nil).with(ev)
	}
}

// isRestoredAtStart reports whether the versions went back between the beginning of a first list and
// the first list that ended. What the receiver remembers of the first one counts then: the contract
// keeps counts over a restore.
func (e *environment) isRestoredAtStart() bool {
	p := e.firstObserver()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lists {
		if l.begun.epoch < l.complete.epoch {
			return true
		}
	}
	return false
}

// isDecided reports whether the contract says how much may be counted: "with an elector, records around
// a restore may be missing or repeated".
func (e *environment) isDecided() bool {
	r := e.lastRestore()
	return r == nil || !e.plan.Elector
}
