// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// replica is one of several Collectors: a place in which processes run one after the other.
type replica struct {
	env   *environment
	index int

	mu      sync.Mutex // guards current and count
	current *process   // nil: none runs
	count   int
}

// running returns the process that runs, or nil.
func (r *replica) running() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// process is a Collector with the receiver, from its start to its end. After its death nothing of it
// reaches the environment any more.
type process struct {
	replica  *replica
	number   int // of the replica's processes, from 1
	name     string
	started  time.Time
	receiver []component.Component
	elector  *elector          // nil: none
	storage  *storageExtension // nil: none
	hosts    []*host           // one for each pipeline's instance of the receiver
	dead     atomic.Bool
	ending   atomic.Bool   // its shutdown has begun
	launched chan struct{} // closed when it has started, or failed to
	ended    chan struct{} // closed when what is left of it has ended

	mu          sync.Mutex   // guards what follows
	connections []*clientEnd // in the order in which they were opened: that of a map differs
	kill        *Fault       // that is armed; nil: none
	calls       int          // at the seam of kill
	died        time.Time
	offeredAt   time.Time        // when it offered records last; zero: it never did
	stopped     time.Time        // when its orderly end began; zero: it had none
	observes    time.Time        // when its first list began; zero: it has not listed
	lists       map[string]lists // by the stream's namespace
	held        map[string]int   // bytes of events read and not yet offered, by log.record.uid
	terms       []term
	notes       []note
	dealtWith   map[string]settledRecord        // by log.record.uid
	requests    map[int]requests                // by the minute
	most, size  int                             // bytes: the most ever in held, and now
	mostEvents  int                             // ever in held
	detailReads map[apiserver.Request]time.Time // the last of each object for details
}

// failing returns how many of the receiver's instances report an error now, or did a moment ago.
func (p *process) failing(lately time.Duration) (n int) {
	for _, h := range p.hosts {
		if h.failing(lately) {
			n++
		}
	}
	return n
}

// term is a time for which a process leads, as its elector reports it.
type term struct {
	began, ended time.Time // ended is zero as long as it lasts
	orderly      bool      // the process ended it by its shutdown
}

// leads notes that a term of leading begins or ends.
func (p *process) leads(leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if leads {
		p.terms = append(p.terms, term{began: now})
		return
	}
	p.endTerm(now, p.ending.Load() && !p.isDead())
}

// settledRecord is a record that every exporter accepted or rejected permanently.
type settledRecord struct {
	observed time.Time
	term     int       // the number of the process's term
	at       time.Time // when it was settled
}

// endTerm ends a term that lasts. A process that died led until then.
func (p *process) endTerm(at time.Time, orderly bool) {
	if n := len(p.terms); n > 0 && p.terms[n-1].ended.IsZero() {
		if p.isDead() && !p.died.IsZero() {
			at = p.died
		}
		p.terms[n-1].ended, p.terms[n-1].orderly = at, orderly
	}
}

// allTerms returns the terms of the process so far.
func (p *process) allTerms() []term {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isDead() && !p.died.IsZero() {
		p.endTerm(p.died, false)
	}
	return slices.Clone(p.terms)
}

// termAt returns when the term began in which the process is at a time, or was last; zero: it has
// not led until then.
func (p *process) termAt(t time.Time) (began time.Time) {
	for _, term := range p.allTerms() {
		if !term.began.After(t) {
			began = term.began.Truncate(time.Millisecond)
		}
	}
	return began
}

// startedBefore returns when the session began in which the process is at a time.
func (p *process) startedBefore(t time.Time) time.Time {
	if !p.replica.env.plan.Elector {
		return p.started
	}
	return p.termAt(t)
}

// lists are a stream's first listings.
type lists struct {
	begun, complete listing
	// relisted is when it listed other than at the version that the leader had noted, or listed
	// again: what is new in such a list may be several states of an event at once.
	relisted time.Time
}

// listing is a version of a list. The API server's versions may go back: epoch counts how often.
type listing struct {
	epoch   int
	version int64
}

// note adds a line to the story, unless the process is dead and only its remains act.
func (p *process) note(format string, args ...any) {
	if !p.isDead() {
		p.replica.env.story.note(p.name, format, args...)
	}
}

func (p *process) isDead() bool { return p.dead.Load() }

func (p *process) connected(c *clientEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections = append(p.connections, c)
}

func (p *process) disconnected(c *clientEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections = slices.DeleteFunc(p.connections, func(open *clientEnd) bool { return open == c })
}

// cut breaks all connections of the process.
func (p *process) cut() {
	p.mu.Lock()
	open := slices.Clone(p.connections)
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close()
	}
}

// killConnections lets the open connections die without a sign.
func (p *process) killConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.connections {
		c.dead.Store(true)
	}
}

// arm lets the process be killed at a seam.
func (p *process) arm(f *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill, p.calls = f, 0
}

// reaches counts a call at a seam, and reports whether it is the one to be killed at.
func (p *process) reaches(seam Seam) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kill == nil || p.kill.Seam != seam {
		return false
	}
	p.calls++
	return p.calls == p.kill.Nth+1
}

// hit returns the fault of the kind that a call meets, or nil.
func (p *process) hit(kind FaultKind, actor string, number, exporter int) *Fault {
	f := p.replica.env.fault(p.replica.index, kind)
	if f == nil || kind.isOfPipelines() && f.Exporter != exporter {
		return nil
	}
	r := draw(p.replica.env.plan.Seed, p.name+actor+string(kind), number)
	if f.OneIn > 1 && !chance(r, f.OneIn) {
		return nil
	}
	return f
}

// listed notes the versions of the process's first lists.
func (p *process) listed(list apiserver.List) {
	hasProgress := p.replica.env.hasNoted()
	p.mu.Lock()
	defer p.mu.Unlock()
	stream, complete, now := list.Namespace, list.Complete, time.Now()
	at := listing{p.replica.env.restoredInList(stream, now, complete), list.Version}
	if p.observes.IsZero() {
		p.observes = time.Now()
	}
	l := p.lists[stream]
	if l.relisted.IsZero() && !list.Exact && (l.complete.version > 0 || hasProgress) {
		l.relisted = now
	}
	if l.begun.version == 0 {
		l.begun = at
	}
	// One that follows may be needed because the end of the first was lost with its connection.
	lost := p.replica.env.disturbed(p.observes, p.observes.Add(time.Second), func(f *Fault) bool {
		return f.is(Stalled, ConnectionsDie)
	})
	again := at.epoch == l.begun.epoch && (lost || time.Since(p.observes) < time.Minute)
	if complete && (l.complete.version == 0 || again) {
		l.complete = at
	}
	p.lists[stream] = l
}

// hasNoted reports whether a process has noted progress.
func (e *environment) hasNoted() bool {
	return slices.ContainsFunc(e.allProcesses(), func(p *process) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.notes) > 0
	})
}

// requests counts what a process asked for within a minute.
type requests struct {
	events           int // lists and watches
	versions         int // lists of a single event, which ask for the store's version
	progressRequests int // reads and writes of the leader's progress
}

// requested counts a request.
func (p *process) requested(request apiserver.Request, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	minute := int(now / time.Minute)
	n := p.requests[minute]
	switch {
	case request.Resource == events && request.Single:
		n.versions++
	case request.Resource == events:
		n.events++
	case isOfProgress(request):
		n.progressRequests++
	}
	p.requests[minute] = n
	if request.JSON {
		p.readsDetails(request)
	}
}

// sent notes that the API server sent the process an event.
func (p *process) sent(ev *corev1.Event, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid := recordUID(ev)
	size -= cutAway(ev)
	p.size += size - p.held[uid]
	p.held[uid] = size
	p.most, p.mostEvents = max(p.most, p.size), max(p.mostEvents, len(p.held))
}

// release notes that a record is no longer only in the process's memory.
func (p *process) release(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size -= p.held[uid]
	delete(p.held, uid)
}

func recordUID(ev *corev1.Event) string { return fmt.Sprintf("%s-%d", ev.UID, event.Count(ev)) }

// counter numbers calls.
type counter struct{ n atomic.Int64 }

func (c *counter) next() int { return int(c.n.Add(1)) }
