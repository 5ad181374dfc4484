// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// roomInterval is how often a standby that is full looks whether time has made room.
const roomInterval = 200 * time.Millisecond

// duty is the term in which this process emits: the receiver's whole life, unless a leader is elected.
type duty struct {
	stop, work context.Context
	leave      func() // tells the elector that the term's work has ended; nil: there is no term
	fresh      bool   // what the last leader may not have emitted is still to be emitted
}

// followsOthers says whether this process goes on while another leads, without emitting. With a storage it does not: there
// each term begins with the checkpoint that the last leader left.
func (r *eventsReceiver) followsOthers() bool { return r.leadership != nil && r.saving == nil }

// onDuty says whether this process emits now, and begins and ends the terms in which it does.
func (r *eventsReceiver) onDuty(stop, work context.Context) bool {
	if !r.followsOthers() {
		r.duty = duty{stop: stop, work: work}
		return true
	}
	r.watchElections()
	if r.duty.leave != nil && !r.leadership.leads() {
		r.leaveDuty()
	}
	if r.duty.leave == nil {
		r.enterDuty(stop, work)
	}
	return r.duty.leave != nil
}

func (r *eventsReceiver) enterDuty(stop, work context.Context) {
	term, ended, ok := r.leadership.begin()
	if !ok {
		return
	}
	dutyStop, cancelStop := either(stop, term)
	dutyWork, cancelWork := either(work, term)
	r.duty = duty{stop: dutyStop, work: dutyWork, fresh: true, leave: func() {
		cancelStop()
		cancelWork()
		ended()
	}}
}

func (r *eventsReceiver) leaveDuty() {
	if r.duty.leave != nil {
		r.duty.leave()
		r.status.forget(logsPipeline)
	}
	r.duty = duty{}
}

// either is a context that ends when one of the two does.
func either(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// follow keeps what the leader should be emitting now, in case it cannot any more.
func (r *eventsReceiver) follow(observations []observation.Observation) {
	now := time.Now()
	r.standby.hold(r.windows.Admit(observations, now), now)
	r.moveTo(r.batch)
	r.ledger.Forget(now)
}

// awaitRoom waits while a standby holds as much as it may. Nothing is read meanwhile: the API server keeps what comes.
func (r *eventsReceiver) awaitRoom(stop context.Context) {
	for r.standby.full(time.Now()) && stop.Err() == nil && !r.leadership.leads() {
		room := time.NewTimer(roomInterval)
		select {
		case <-room.C:
		case <-r.elections:
			r.watchElections()
		case <-stop.Done():
		}
		room.Stop()
	}
}

// handOver keeps records that could not be delivered because the term ended, for the case that it begins again at once. It
// returns false if the receiver stops.
func (r *eventsReceiver) handOver(stop context.Context, records []observation.Observation) bool {
	if !r.followsOthers() || stop.Err() != nil {
		return false
	}
	r.standby.hold(records, time.Now())
	return true
}

// inherit returns, once in a term, the records that the last leader may not have emitted. The metric starts anew with
// them; what the windows of dedup_interval hold counts too, as it is recorded later.
func (r *eventsReceiver) inherit(now time.Time) (records, counted []observation.Observation) {
	if !r.duty.fresh {
		return nil, nil
	}
	r.duty.fresh = false
	records = r.standby.release(now)
	resolve := func(held []observation.Observation) { r.resolve(r.duty.work, held) }
	resolve(records)
	r.tally.Reset(now)
	r.settings.Logger.Info("Leading: emitting what the last leader may not have", zap.Int("records", len(records)))
	return records, append(slices.Clone(records), r.windows.Resolve(resolve)...)
}

// mayEmit says whether this process is certain to be the one that emits.
func (r *eventsReceiver) mayEmit() bool {
	return r.leadership == nil || r.leadership.leads() && r.leadership.certainIn(time.Now()) == 0
}

// awaitCertainty waits, after a pause of this process, until it is certain that it still leads. It returns false if it
// does not, or if stop ends.
func (r *eventsReceiver) awaitCertainty(stop context.Context) bool {
	if r.leadership == nil {
		return true
	}
	for {
		doubt := r.leadership.certainIn(time.Now())
		if doubt == 0 {
			return r.leadership.leads()
		}
		if !sleep(stop, doubt) {
			return false
		}
	}
}

// watchElections lets the loop wake at the next change of leadership. It comes before a look at who leads, so that no
// change falls between the two.
func (r *eventsReceiver) watchElections() {
	if r.leadership != nil {
		r.elections = r.leadership.change()
	}
}
