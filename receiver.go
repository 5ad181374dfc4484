// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/kubeevents/kubeeventsreceiver/internal/cluster"
	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/filter"
	"github.com/kubeevents/kubeeventsreceiver/internal/inbox"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/lease"
	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/offer"
	"github.com/kubeevents/kubeeventsreceiver/internal/repeat"
	"github.com/kubeevents/kubeeventsreceiver/internal/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

const (
	// batchChanges bounds a batch, and with it what is in memory at once: as much again may wait for the next.
	batchChanges = 1000
	// savedBatchWait is how long a batch waits for more with a storage, which costs as much for a batch as for many changes.
	// Without, a batch is what the streams had at hand.
	savedBatchWait = 100 * time.Millisecond
	// mostBatchWait is how long it waits while owner look-ups strain the API server: what is unknown is then asked for in
	// few lists instead of in many requests.
	mostBatchWait = 1300 * time.Millisecond
)

// eventsReceiver watches events and emits them as logs and as a metric. One serves both pipelines of a configuration.
type eventsReceiver struct {
	config   *Config
	settings receiver.Settings
	logs     consumer.Logs    // nil: in no logs pipeline
	metrics  consumer.Metrics // nil: in no metrics pipeline

	life      lifecycle
	status    *status
	telemetry *telemetry

	inbox      *inbox.Inbox
	bursts     *kubeclient.Bursts
	filter     filter.Filter
	extractor  *extract.Extractor
	leadership *leadership  // nil: nobody else emits
	lease      *lease.Lease // nil: it is not known which lease the leader is elected by
	cluster    *cluster.Identity
	resolver   *resolver.Resolver // nil: owners are not looked up
	converter  logrecord.Converter
	tally      *tally.Tally

	// What follows belongs to the loop alone.
	batch   []watch.Change
	ledger  *ledger.Ledger
	streams map[string]streamState // by namespace
	windows *repeat.Windows
	offers  *offer.Offers
	saving  *saving // nil: nothing is saved
	duty    duty
	standby standby
	// elections is closed when who leads has changed since it was last looked at; nil where nobody is elected.
	elections <-chan struct{}
	refused   bool // whether the pipeline rejected the last batch that it was offered
	// When the log had the last rejection, and how many there were since.
	refusalLogged time.Time
	refusals      int
}

// run is the receiver: take, account, resolve, convert, deliver, commit, a batch at a time, until stop ends. What was
// taken by then is still delivered, as long as work allows. A batch that is not delivered is not committed; with a storage,
// it is announced there before. While another process leads, what is accounted for is followed and not emitted.
func (r *eventsReceiver) run(stop, work context.Context) {
	r.windows.Resolve(func(held []observation.Observation) { r.resolve(work, held) })
	r.watchElections()
	defer r.leaveDuty()
	for more := true; more; {
		r.awaitRoom(stop)
		var changes []watch.Change
		changes, more = r.take(stop)
		observations := r.account(changes)
		if !r.onDuty(stop, work) {
			r.follow(observations)
			continue
		}
		r.resolve(r.duty.work, observations)
		records, counted := r.due(observations, more)
		r.announce(r.duty.stop, r.duty.work, records)
		if !r.deliver(r.duty.stop, r.duty.work, records) {
			if !r.handOver(stop, records) {
				return
			}
			continue
		}
		r.commit(r.duty.work, counted)
	}
	if r.unsaved() && r.mayEmit() {
		// What is delivered is worth remembering, also if it took longer than work was allowed to.
		r.save(context.WithoutCancel(work), time.Now())
	}
}

// due are the records to deliver now, and the observations that count with them.
func (r *eventsReceiver) due(observations []observation.Observation, more bool) (records, counted []observation.Observation) {
	now := time.Now()
	records, counted = r.inherit(now)
	records = append(records, r.windows.Admit(observations, now)...)
	if !more {
		records = append(records, r.windows.Flush()...)
	}
	if len(counted) == 0 {
		return records, observations
	}
	return records, append(counted, observations...)
}

// take waits for a change and gathers what comes with it. It returns without any when something else is due, and more is
// false once stop has ended and nothing that was read from the API server is left.
func (r *eventsReceiver) take(stop context.Context) (changes []watch.Change, more bool) {
	r.letBatchGo()
	wake := r.wakeTimer()
	defer wake.Stop()

	select {
	case <-r.inbox.Signal():
		more = r.gather(stop)
	case <-wake.C:
		more = true
	case <-r.elections:
		more = true
	case <-stop.Done():
	}
	r.batch = r.inbox.Take(r.batch)
	if !more {
		r.drain()
	}
	return r.batch, more
}

// letBatchGo forgets the last batch, which is dealt with.
func (r *eventsReceiver) letBatchGo() {
	r.telemetry.dealtWith(r.batch)
	clear(r.batch)
	r.batch = r.batch[:0]
}

// wakeTimer ends when a window of dedup_interval does, or when a checkpoint is due.
func (r *eventsReceiver) wakeTimer() *time.Timer {
	due := time.Now().Add(time.Hour)
	if end, open := r.windows.NextEnd(); open {
		due = end
	}
	if r.unsaved() {
		save := time.Now().Add(savedBatchWait)
		if r.saving.again.After(save) {
			save = r.saving.again
		}
		if save.Before(due) {
			due = save
		}
	}
	return time.NewTimer(time.Until(due))
}

// gather waits until a bound, the time, or stop ends the batch, which it tells by returning false. The end of a listing
// ends a batch too: that the listing is complete is committed before anything that came after it has to be delivered.
func (r *eventsReceiver) gather(stop context.Context) bool {
	wait := r.batchTime()
	if wait == 0 {
		return true
	}
	full := time.NewTimer(wait)
	defer full.Stop()
	for !r.inbox.Full() {
		select {
		case <-r.inbox.Signal():
		case <-full.C:
			return true
		case <-stop.Done():
			return false
		}
	}
	return true
}

// batchTime is how long a batch may gather.
func (r *eventsReceiver) batchTime() (wait time.Duration) {
	if r.saving != nil {
		wait = savedBatchWait
	}
	if r.resolver != nil {
		wait = max(wait, min(r.resolver.Strain(), mostBatchWait))
	}
	return wait
}

// drain takes what the streams had handed over when they were stopped.
func (r *eventsReceiver) drain() {
	for taken := -1; taken != len(r.batch); {
		taken = len(r.batch)
		r.batch = r.inbox.Take(r.batch)
	}
}

// account tells the ledger what changed and keeps what brought new occurrences.
func (r *eventsReceiver) account(changes []watch.Change) []observation.Observation {
	observations := make([]observation.Observation, 0, len(changes))
	var received, filtered int64
	for _, change := range changes {
		if change.Event != nil {
			received++
			if !r.filter.Wants(change.Event) {
				filtered++
				continue
			}
		}
		if occurrences := r.accountFor(change); occurrences > 0 {
			observations = r.offers.Split(observations, observation.Observation{
				Event: change.Event, Occurrences: occurrences, SeenAt: change.SeenAt,
			})
		}
	}
	r.telemetry.accounted(received, filtered)
	return observations
}

// accountFor is the number of new occurrences in one change.
func (r *eventsReceiver) accountFor(change watch.Change) int64 {
	switch change.Kind {
	case watch.ListBegan:
		r.ledger.BeginList(change.Namespace)
	case watch.ListEnded:
		r.ledger.EndList(change.Namespace, change.SeenAt)
		r.offers.WithdrawAll(change.Namespace)
		s := r.streams[change.Namespace]
		s.Listed = true
		r.streams[change.Namespace] = s
	case watch.Deleted:
		r.ledger.Delete(change.Namespace, change.Event, change.SeenAt)
		r.offers.Withdraw(change.Event)
	case watch.Listed:
		if r.config.StartAt == StartAtEnd && !r.streams[change.Namespace].Listed {
			return r.ledger.Remember(change.Namespace, change.Event)
		}
		return r.ledger.Observe(change.Namespace, change.Event)
	case watch.Changed:
		if r.offers.Precedes(change.Event) {
			return 0
		}
		return r.ledger.Observe(change.Namespace, change.Event)
	}
	return 0
}

// resolve adds to each observation who owns its involved object. Each distinct object is asked for once.
func (r *eventsReceiver) resolve(ctx context.Context, observations []observation.Observation) {
	if len(observations) == 0 {
		return
	}
	references := make([]resolver.Reference, 0, len(observations))
	place := make(map[resolver.Reference]int, len(observations))
	places := make([]int, len(observations))
	for i := range observations {
		ref := event.Involved(observations[i].Event)
		at, ok := place[ref]
		if !ok {
			at = len(references)
			place[ref] = at
			references = append(references, ref)
		}
		places[i] = at
	}
	chains := r.chains(ctx, references)
	tags := make([][]extract.Tag, len(chains))
	for i, chain := range chains {
		tags[i] = r.extractor.Tags(chain.Objects)
	}
	for i := range observations {
		at := places[i]
		observations[i].Chain, observations[i].Tags = chains[at], tags[at]
	}
	r.telemetry.resolved(observations)
}

// chains looks the owners up. Where that is switched off, a chain holds just what the event says.
func (r *eventsReceiver) chains(ctx context.Context, references []resolver.Reference) []resolver.Chain {
	if r.resolver != nil {
		return r.resolver.Resolve(ctx, references)
	}
	chains := make([]resolver.Chain, len(references))
	for i, ref := range references {
		chains[i].Objects = []*resolver.Object{ref.Object()}
	}
	return chains
}

// commit remembers what was delivered: the occurrences in the metric's sums, the place to resume from, and with a storage
// all of it in a checkpoint. What the ledger knows of it, it has known since account.
func (r *eventsReceiver) commit(ctx context.Context, observations []observation.Observation) {
	now := time.Now()
	if r.metrics != nil {
		r.tally.Add(observations, now)
	}
	r.moveTo(r.batch)
	r.ledger.Forget(now)
	r.saveIfDue(ctx, now)
}

// emitMetrics offers the sums to the metrics pipeline. What is refused is not offered again: the next point carries it.
func (r *eventsReceiver) emitMetrics(ctx context.Context) {
	if !r.mayEmit() {
		return
	}
	now := time.Now()
	r.tally.Expire(now)
	metrics := r.tally.Metrics(tally.Scope{Name: metadata.ScopeName, Version: r.settings.BuildInfo.Version}, r.cluster.UID(), now)
	points := metrics.DataPointCount()
	if points == 0 {
		return
	}
	ctx = r.telemetry.report.StartMetricsOp(ctx)
	err := r.metrics.ConsumeMetrics(ctx, metrics)
	if err == nil {
		r.tally.Emitted()
	}
	r.telemetry.report.EndMetricsOp(ctx, metadata.Type.String(), points, err)
}
