// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/multierr"
	"k8s.io/apimachinery/pkg/types"
)

// record is one log record as an exporter got it.
type record struct {
	began    time.Time // when its delivery began
	at       time.Time
	process  *process
	resource pcommon.Map
	log      plog.LogRecord

	uid                string // log.record.uid
	eventUID           types.UID
	count, occurrences int64
}

// records returns the records of deliveries, in their order.
func records(deliveries []delivery) (all []*record) {
	for i := range deliveries {
		d := &deliveries[i]
		each(d.logs, func(resource pcommon.Map, log plog.LogRecord) {
			r := &record{began: d.began, at: d.at, process: d.process, resource: resource, log: log}
			attributes := log.Attributes()
			r.uid, r.eventUID = uidOf(log), types.UID(text(attributes, "k8s.event.uid"))
			r.count = number(attributes, "k8s.event.count")
			r.occurrences = number(attributes, "k8s.event.occurrences")
			all = append(all, r)
		})
	}
	return all
}

// records returns the records of the first exporter, if there is one.
func (e *environment) records() []*record {
	if len(e.exporters) == 0 {
		return nil
	}
	return records(e.exporters[0].all())
}

func uidOf(log plog.LogRecord) string { return text(log.Attributes(), "log.record.uid") }

func (r *record) observed() time.Time { return r.log.ObservedTimestamp().AsTime() }

// resolution is what the record reports about its owners.
func (r *record) resolution() string { return text(r.log.Attributes(), "k8s.owner.resolution") }

func each(logs plog.Logs, do func(resource pcommon.Map, log plog.LogRecord)) {
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, log := range sl.LogRecords().All() {
				do(rl.Resource().Attributes(), log)
			}
		}
	}
}

func text(attributes pcommon.Map, key string) string {
	if value, ok := attributes.Get(key); ok {
		return value.AsString()
	}
	return ""
}

func number(attributes pcommon.Map, key string) int64 {
	if value, ok := attributes.Get(key); ok {
		return value.Int()
	}
	return 0
}

// offered notes that a process offers records to its pipelines: from then on, they are not only in
// its memory, and it has to be the leader.
// It returns by log.record.uid when the record was observed.
func (p *process) offered(logs plog.Logs) (observed map[string]time.Time) {
	p.checkLeads("emits records")
	env := p.replica.env
	observed = map[string]time.Time{}
	each(logs, func(_ pcommon.Map, log plog.LogRecord) { observed[uidOf(log)] = log.ObservedTimestamp().AsTime() })
	p.checkOffered(observed)
	p.mu.Lock()
	p.offeredAt = time.Now()
	p.mu.Unlock()
	env.mu.Lock()
	for uid := range observed {
		env.offered[uid] = true
	}
	processes := env.processes
	env.mu.Unlock()
	for _, other := range processes {
		for uid := range observed {
			other.release(uid)
		}
	}
	return observed
}

// lastOffered returns when the process offered records last; zero: it never did.
func (p *process) lastOffered() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offeredAt
}

// settled notes what the pipelines answered. What none of them may still accept must not be offered
// again by the same process.
func (p *process) settled(observed map[string]time.Time, err error) {
	for _, leaf := range multierr.Errors(err) {
		// What is cut by the end of the term, or of the process, is not dropped.
		givesUp := p.replica.env.plan.Retry.Disabled && !errors.Is(leaf, context.Canceled)
		if !givesUp && !consumererror.IsPermanent(leaf) {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, at := range observed {
		p.dealtWith[uid] = settledRecord{observed: at, term: len(p.terms), at: time.Now()}
	}
}

// checkOffered checks that none of the records was dealt with before.
func (p *process) checkOffered(observed map[string]time.Time) {
	env := p.replica.env
	if again := p.offeredAgain(observed); again != "" {
		env.violate(offeredOnce, "", "%s offers %s again", p.name, again)
	}
}

// offeredAgain returns the UID of a record that was already accepted or dropped, or "". After etcd was
// restored from a backup, an event may reach the same count for a second time.
func (p *process) offeredAgain(observed map[string]time.Time) string {
	env := p.replica.env
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, at := range observed {
		settled, known := p.dealtWith[uid]
		switch {
		case !known || env.mayHaveGoneBack(settled.observed, at) || p.isDead():
		case settled.term < len(p.terms): // A term begins with what was noted.
		default:
			return uid
		}
	}
	return ""
}
