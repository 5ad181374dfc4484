// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

const (
	// refreshFor is how long a new leader tries to read the position. What it does not know then is
	// delivered again.
	refreshFor = 10 * time.Second
	// lookAgain is how often a standby asks whether the cluster's versions have gone back. If so, the
	// leader's position never reaches the events that wait.
	lookAgain = 10 * time.Second
	// askVersionsFor is how long it waits for the answer: it may be elected in the meantime.
	askVersionsFor = 2 * time.Second
	// flushFor is how long the end of a term waits for its position to be published.
	flushFor = 3 * time.Second
)

// GateSettings are the settings of a Gate. Callers must set all of them. Its functions are called by
// the goroutine that calls the Gate.
type GateSettings struct {
	Leadership *Leadership
	Positions  *Positions
	Logger     *zap.Logger
	// SetClosed is called when the gate opens or closes.
	SetClosed func(closed bool)
	// Withheld ends the dedup windows, and returns what they hold, which is not delivered.
	Withheld func() []observation.Observation
	// Ended is called at the end of each term, while it is certain that no other process leads.
	Ended func()
	// Restores returns how often the resource versions of the cluster are known to have gone back,
	// Newest asks the cluster for its newest one, and CheckVersions asks whether they have gone back.
	Restores      func() int
	Newest        func(context.Context) (uint64, error)
	CheckVersions func(context.Context)
}

// Gate is open while this process leads. While it is closed, batches wait at it until the leader's
// position has reached them. Its methods must not be called concurrently.
type Gate struct {
	settings GateSettings

	// elections is closed when who leads has changed since Pass last looked at it.
	elections <-chan struct{}
	waiting   []observation.Observation // not yet reached
	// stranded waits, too, but its versions are of a history that the cluster has lost. The new
	// history may reach the same versions, but not with these events.
	stranded []observation.Observation
	// from is the position at the beginning of the term. This process may still be behind it.
	from  Position
	term  Term
	leave func() // ends the term; nil: the gate is closed
	// lowered reports whether the leader's first position replaces a void one.
	lowered bool
}

// NewGate returns a closed gate.
func NewGate(settings GateSettings) *Gate {
	settings.SetClosed(true)
	return &Gate{settings: settings, elections: settings.Leadership.Changed()}
}

// Changed returns a channel that is closed when a term begins or ends.
func (g *Gate) Changed() <-chan struct{} { return g.elections }

// Pass returns the observations that are to be delivered, with the term to deliver them in. It waits
// while another process leads. ok is false if nothing is to be delivered: the leader has delivered all
// of it, or stop has ended.
func (g *Gate) Pass(stop, work context.Context, observations []observation.Observation) ([]observation.Observation, Term, bool) {
	g.elections = g.settings.Leadership.Changed()
	if g.leave != nil && !g.settings.Leadership.Leads() {
		g.Close(work)
	}
	if g.leave != nil && len(g.waiting) == 0 {
		g.term.First = false
		return withoutReached(observations, g.from), g.term, true
	}
	g.waiting = append(g.waiting, observations...)
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for g.leave == nil {
		g.elections = g.settings.Leadership.Changed()
		changes := g.settings.Positions.Changed()
		g.dropReached()
		if g.open(stop, work) {
			break
		}
		if len(g.waiting) == 0 {
			return nil, Term{}, false
		}
		select {
		case <-changes:
		case <-g.elections:
		case <-look.C:
			// The streams have no connection, and so do not notice it, while the queue is stalled.
			ctx, cancel := context.WithTimeout(stop, askVersionsFor)
			g.settings.CheckVersions(ctx)
			cancel()
		case <-stop.Done():
			return nil, Term{}, false
		}
	}
	g.dropReached()
	waiting := slices.Concat(g.stranded, g.waiting)
	g.waiting, g.stranded = nil, nil
	return waiting, g.term, true
}

// dropReached drops what the leader is known to have delivered.
func (g *Gate) dropReached() {
	if len(g.waiting) == 0 {
		return
	}
	g.waiting = withoutReached(g.waiting, g.settings.Positions.Latest().Position)
	restores := g.settings.Restores()
	g.waiting = slices.DeleteFunc(g.waiting, func(o observation.Observation) bool {
		isStranded := o.Restores < restores
		if isStranded {
			g.stranded = append(g.stranded, o)
		}
		return isStranded
	})
}

// withoutReached returns the observations that the position has not reached.
func withoutReached(observations []observation.Observation, p Position) []observation.Observation {
	return slices.DeleteFunc(observations, func(o observation.Observation) bool {
		return p.Reached(o.Event.Namespace, event.ResourceVersion(o.Event))
	})
}

// open begins a term if this process leads.
func (g *Gate) open(stop, work context.Context) bool {
	term, end, ok := g.settings.Leadership.Begin(stop, work)
	if !ok {
		return false
	}
	g.term, g.leave = term, end
	g.settings.Positions.Lead()
	g.refresh(term.Stop)
	g.from = g.settings.Positions.Latest().Position
	g.voidFuture(term.Stop)
	g.settings.SetClosed(false)
	return true
}

// refresh reads the last leader's position once more. A position is a fact about deliveries: if the
// read fails, an older one is as true.
func (g *Gate) refresh(stop context.Context) {
	ctx, cancel := context.WithTimeout(stop, refreshFor)
	defer cancel()
	g.settings.Positions.Await(ctx)
}

// voidFuture replaces a position above the newest version of the cluster. A leader that has not
// noticed a restore yet may have published it since.
func (g *Gate) voidFuture(stop context.Context) {
	ctx, cancel := context.WithTimeout(stop, askVersionsFor)
	defer cancel()
	if now, err := g.settings.Newest(ctx); err == nil && g.from.Above(now) {
		g.settings.CheckVersions(ctx) // The streams of this process may not have noticed it either.
		g.WentBack(now)
	}
}

// TakeBack keeps what could not be delivered until the term ended.
func (g *Gate) TakeBack(observations []observation.Observation) {
	g.waiting = append(observations, g.waiting...)
}

// Delivered notes that all is delivered up to these versions, by stream.
func (g *Gate) Delivered(versions func() map[string]uint64) {
	position := Position{Streams: versions()}
	if len(position.Streams) == 0 {
		return // No stream has been listed.
	}
	if g.lowered {
		g.lowered = false
		g.settings.Positions.Replace(position)
		return
	}
	g.settings.Positions.Advance(position)
}

// WentBack notes that the cluster's resource versions have gone back to now. What was published is above
// what the cluster has now, and means nothing.
func (g *Gate) WentBack(now uint64) {
	g.lowered, g.from = true, Position{}
	g.settings.Positions.Void(now)
}

// Close ends the term, publishes how far it came, and keeps what the windows hold: the next leader
// may not deliver it.
func (g *Gate) Close(work context.Context) {
	if g.leave == nil {
		return
	}
	g.settings.SetClosed(true)
	g.settings.Ended()
	ctx, cancel := context.WithTimeout(work, flushFor)
	defer cancel()
	if err := g.settings.Positions.Flush(ctx); err != nil {
		g.settings.Logger.Warn("Cannot publish the position at the end of the term; the next leader repeats more", zap.Error(err))
	}
	g.settings.Positions.Follow()
	g.TakeBack(g.settings.Withheld())
	g.leave()
	g.term, g.leave = Term{}, nil
}

// Open is the gate of a session that lasts no longer than this process may deliver: it is always open.
type Open struct {
	Ended func() // called at the end
}

// Pass returns all observations.
func (Open) Pass(stop, work context.Context, all []observation.Observation) ([]observation.Observation, Term, bool) {
	return all, Term{Stop: stop, Work: work}, true
}

// Changed returns nil: the gate never closes.
func (Open) Changed() <-chan struct{} { return nil }

// TakeBack does nothing: what was not delivered is in the outbox, or nobody delivers it.
func (Open) TakeBack([]observation.Observation) {}

// Delivered does nothing: there is no position.
func (Open) Delivered(func() map[string]uint64) {}

// WentBack does nothing.
func (Open) WentBack(uint64) {}

// Close calls Ended.
func (o Open) Close(context.Context) { o.Ended() }
