// SPDX-License-Identifier: Apache-2.0

package position

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// refreshFor is how long a new leader tries to read the position. What it does not know then is
	// delivered again.
	refreshFor = 10 * time.Second
	// checkVersionsEvery is how often a standby asks whether the cluster's versions have gone back.
	// If so, the leader's position never reaches the events that wait.
	checkVersionsEvery = 10 * time.Second
	// askVersionsFor is how long it waits for the answer: it may be elected in the meantime.
	askVersionsFor = 2 * time.Second
	// flushFor is how long the end of a term waits for its position to be published.
	flushFor = 3 * time.Second
)

// History is a time in which the resource versions of the cluster only grow.
type History interface {
	// Context returns a context that ends with the history.
	Context() context.Context
	// End ends the history: another process has noticed that the versions have gone back.
	End()
	// Highest returns the highest resource version that the cluster is known to have.
	Highest() uint64
	// CheckVersions asks the cluster whether its versions have gone back, also below a version that
	// another process knows. If so, it ends the history.
	CheckVersions(ctx context.Context, known uint64) (wentBack bool, err error)
}

// Gate is open while this process leads. While it is closed, batches wait at it until the leader's
// position has reached them. Its methods must not be called concurrently.
type Gate struct {
	leadership *leadership.Leadership
	positions  *Positions
	logger     *zap.Logger

	// elections is closed when who leads has changed since the gate last looked at it.
	elections <-chan struct{}
	waiting   []observation.Observation // not yet reached
	history   uint64                    // of what waits, and of what is delivered
	// from is the position at the beginning of the term. This process may still be behind it.
	from  Position
	term  leadership.Term
	leave func() // ends the term; nil: the gate is closed
}

// NewGate returns a closed gate.
func NewGate(l *leadership.Leadership, p *Positions, logger *zap.Logger) *Gate {
	return &Gate{leadership: l, positions: p, logger: logger, elections: l.Changed(), history: p.History()}
}

// Changed returns a channel that is closed when a term begins or ends.
func (g *Gate) Changed() <-chan struct{} { return g.elections }

// HasEnded reports whether the term has ended. Callers must then call End before Pass.
func (g *Gate) HasEnded() bool {
	g.elections = g.leadership.Changed()
	return g.leave != nil && !g.leadership.Leads()
}

// Pass returns the observations that are to be delivered, with the term to deliver them in, whose
// contexts end with stop and drain. It waits while another process leads. ok is false if nothing is to
// be delivered: the leader has delivered all of it, or the history has ended, whose context also ends
// with stop. What has not been reached then stays at the gate.
func (g *Gate) Pass(stop, drain context.Context, history History, observations []observation.Observation) (
	rest []observation.Observation, t leadership.Term, ok bool,
) {
	if g.leave != nil && len(g.waiting) == 0 {
		if g.positions.IsBehind() {
			reached.State("another process has noticed a restore, and this one leads")
			history.End() // Nobody else delivers what this one has read by then.
		}
		return withoutReached(observations, g.from), g.pass(), true
	}
	g.waiting = append(g.waiting, observations...)
	check := time.NewTicker(checkVersionsEvery)
	defer check.Stop()
	for {
		g.elections = g.leadership.Changed()
		changes := g.positions.Changed()
		isOpen := g.leave != nil || g.open(stop, drain, history)
		if g.positions.IsBehind() {
			reached.State("another process has noticed a restore")
			history.End()
			return nil, leadership.Term{}, false
		}
		g.waiting = withoutReached(g.waiting, g.positions.Latest().Position)
		if isOpen {
			rest, g.waiting = g.waiting, nil
			return rest, g.pass(), true
		}
		if len(g.waiting) == 0 {
			return nil, leadership.Term{}, false
		}
		select {
		case <-changes:
		case <-g.elections:
		case <-check.C:
			reached.State("events wait for the position for ten seconds")
			// The streams have no connection, and so do not notice it, while the queue is stalled.
			_, _ = checkVersions(history.Context(), history, 0) // If this fails, the next one may succeed.
		case <-history.Context().Done():
			reached.State("a standby ends while events wait at its gate")
			return nil, leadership.Term{}, false
		}
	}
}

// pass returns the term in which a batch passes.
func (g *Gate) pass() leadership.Term {
	t := g.term
	g.term.Begins = false
	return t
}

// withoutReached returns the observations that the position has not reached.
func withoutReached(observations []observation.Observation, p Position) []observation.Observation {
	return slices.DeleteFunc(observations, func(o observation.Observation) bool {
		return p.Reached(o.Event.Namespace, event.ResourceVersion(o.Event))
	})
}

// open begins a term if this process leads. It reads the last leader's position once more. A position
// is a fact about deliveries: if the read fails, an older one is as true.
func (g *Gate) open(stop, drain context.Context, history History) bool {
	term, end, ok := g.leadership.Begin(stop, drain)
	if !ok {
		return false
	}
	g.term, g.leave = term, end
	g.positions.Lead()
	ctx, cancel := context.WithTimeout(term.Stop, refreshFor)
	defer cancel()
	g.positions.Await(ctx)
	seen := history.Highest() // CheckVersions raises it.
	wentBack, err := awaitVersion(term.Stop, history, g.positions.Latest().Highest())
	if wentBack {
		reached.State("the position is above the newest version of the cluster")
		g.positions.EndHistory()
	}
	if g.from = g.positions.Latest().Position; err != nil {
		reached.State("a new leader does not learn the newest version")
		g.from.lowerTo(seen) // Above it, the position could drop what nobody has delivered.
	}
	return true
}

// awaitVersion reports whether the cluster's versions have gone back below that of a position. A
// leader that has not noticed a restore yet may have published it since.
func awaitVersion(stop context.Context, history History, version uint64) (wentBack bool, err error) {
	ctx, cancel := context.WithTimeout(stop, refreshFor)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, retry, true, func(ctx context.Context) (answered bool, err error) {
		wentBack, err = checkVersions(ctx, history, version)
		return err == nil, nil
	})
	return wentBack, err
}

func checkVersions(ctx context.Context, history History, known uint64) (wentBack bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askVersionsFor)
	defer cancel()
	return history.CheckVersions(ctx, known)
}

// Delivered notes what came of what passed. If nothing is left undelivered, all is delivered up to
// the versions that upTo returns, by stream. Otherwise, the term has ended, and the gate keeps the
// rest.
func (g *Gate) Delivered(undelivered []observation.Observation, upTo func() map[string]uint64) {
	if len(undelivered) > 0 {
		g.takeBack(undelivered)
		return
	}
	g.positions.Advance(Position{History: g.history, Streams: upTo()})
}

func (g *Gate) takeBack(observations []observation.Observation) {
	reached.State("a standby keeps what it could not deliver as the leader")
	g.waiting = append(observations, g.waiting...)
}

// EndHistory begins another history: the cluster's resource versions have gone back. It returns what
// waited. Nobody can know whether the leader has delivered it: if the cluster still has it, a list
// shows it again.
func (g *Gate) EndHistory() (waiting []observation.Observation) {
	if len(g.waiting) > 0 {
		reached.State("events wait at the gate over a restore")
	}
	g.positions.EndHistory()
	waiting, g.waiting = g.waiting, nil
	g.from, g.history = g.positions.Latest().Position, g.positions.History()
	return waiting
}

// Publish begins to publish how far the term came, and returns what waits for it.
func (g *Gate) Publish() (wait func()) {
	var published sync.WaitGroup
	if g.leave != nil {
		published.Go(g.publish)
	}
	return published.Wait
}

// End ends the term. It keeps what the dedup windows held: the next leader may not deliver it.
func (g *Gate) End(held []observation.Observation) {
	if len(held) > 0 {
		reached.State("a term ends while windows hold events")
		g.takeBack(held)
	}
	if g.leave == nil {
		return
	}
	g.positions.Follow()
	g.leave()
	g.term, g.leave = leadership.Term{}, nil
}

// publish publishes how far the term came. The position is a fact about deliveries: it may be
// published as long as callers wait for it.
func (g *Gate) publish() {
	ctx, cancel := context.WithTimeout(context.Background(), flushFor)
	defer cancel()
	if err := g.positions.Flush(ctx); err != nil {
		reached.State("the last position of a term is not published")
		g.logger.Warn("Cannot publish the position at the end of the term; the next leader repeats more", zap.Error(err))
	}
}

// Open is the gate of a session that lasts no longer than this process may deliver: it is always
// open.
type Open struct{}

// HasEnded returns false.
func (Open) HasEnded() bool { return false }

// Pass returns all observations.
func (Open) Pass(stop, drain context.Context, _ History, all []observation.Observation) ([]observation.Observation, leadership.Term, bool) {
	return all, leadership.Term{Stop: stop, Drain: drain}, true
}

// Changed returns nil: the gate never closes.
func (Open) Changed() <-chan struct{} { return nil }

// Delivered does nothing: there is no position, and what was not delivered is in the outbox, or
// nobody delivers it.
func (Open) Delivered([]observation.Observation, func() map[string]uint64) {}

// EndHistory returns nil: nothing waits.
func (Open) EndHistory() []observation.Observation { return nil }

// Publish does nothing: there is no position.
func (Open) Publish() (wait func()) { return func() {} }

// End does nothing: what the windows hold is delivered or saved.
func (Open) End([]observation.Observation) {}
