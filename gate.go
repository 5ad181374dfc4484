// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
)

const (
	// refreshFor is how long a new leader tries to read the position. What it does not know then is
	// delivered again.
	refreshFor = 10 * time.Second
	// lookAgain is how often a standby looks whether what waits can still be reached.
	lookAgain = 10 * time.Second
	// checkVersionsFor is how long it waits for the answer: it may be elected meanwhile.
	checkVersionsFor = 2 * time.Second
	// retryPosition is the pause between two requests.
	retryPosition = time.Second
	// flushFor is how long the end of a term waits for its position to be published.
	flushFor = 3 * time.Second
)

// standbyGate is open while this process leads. While it is closed, batches wait at it until the
// leader's position has reached them.
type standbyGate struct {
	leadership *leadership
	positions  *election.Positions
	memory     *memory.Memory
	queue      *queue.Inbox
	logger     *zap.Logger

	// elections is closed when who leads has changed since pass last looked at it.
	elections <-chan struct{}
	waiting   []observation.Observation // not yet reached
	// stranded waits, too, but its versions are of a history that the cluster has lost, so that no
	// position reaches them.
	stranded []observation.Observation
	// highest returns the highest version that the cluster is known to have, now asks the cluster for
	// its newest one, and checkVersions asks it whether its versions have gone back.
	highest       func() uint64
	now           func(context.Context) (uint64, error)
	checkVersions func(context.Context)
	// from is the position at the beginning of the term. This process may still be behind it.
	from  election.Position
	term  term
	leave func() // ends the term; nil: the gate is closed
	// ended is called at the end of each term.
	ended func()
	// lowered is whether the leader's first position replaces a void one.
	lowered bool
}

func (g *standbyGate) changed() <-chan struct{} { return g.elections }

// pass implements gate.
func (g *standbyGate) pass(stop, work context.Context, observations []observation.Observation) ([]observation.Observation, term, bool) {
	g.elections = g.leadership.change()
	if g.leave != nil && !g.leadership.leads() {
		g.close(work)
	}
	if g.leave != nil && len(g.waiting) == 0 {
		g.term.first = false
		return withoutReached(observations, g.from), g.term, true
	}
	g.waiting = append(g.waiting, observations...)
	for g.leave == nil {
		g.elections = g.leadership.change()
		changes := g.positions.Changed()
		g.dropReached()
		if g.open(stop, work) {
			break
		}
		if len(g.waiting) == 0 {
			return nil, term{}, false
		}
		look := time.NewTimer(lookAgain)
		select {
		case <-changes:
		case <-g.elections:
		case <-look.C:
			// The streams have no connection, and so do not notice it, while the queue is stalled.
			g.checkVersions(stop)
		case <-stop.Done():
			look.Stop()
			return nil, term{}, false
		}
		look.Stop()
	}
	g.dropReached()
	waiting := slices.Concat(g.stranded, g.waiting)
	g.waiting, g.stranded = nil, nil
	return waiting, g.term, true
}

// dropReached drops what the leader is known to have delivered.
func (g *standbyGate) dropReached() {
	if len(g.waiting) == 0 {
		return
	}
	g.waiting = withoutReached(g.waiting, g.positions.Latest().Position)
	highest := g.highest()
	g.waiting = slices.DeleteFunc(g.waiting, func(o observation.Observation) bool {
		isStranded := event.ResourceVersion(o.Event) > highest
		if isStranded {
			g.stranded = append(g.stranded, o)
		}
		return isStranded
	})
}

// withoutReached returns the observations that the position has not reached.
func withoutReached(observations []observation.Observation, p election.Position) []observation.Observation {
	return slices.DeleteFunc(observations, func(o observation.Observation) bool {
		return p.Reached(o.Event.Namespace, event.ResourceVersion(o.Event))
	})
}

// open begins a term if this process leads.
func (g *standbyGate) open(stop, work context.Context) bool {
	ctx, ended, ok := g.leadership.begin()
	if !ok {
		return false
	}
	termStop, cancelStop := either(stop, ctx)
	termWork, cancelWork := either(work, ctx)
	g.term = term{stop: termStop, work: termWork, first: true}
	g.leave = func() {
		cancelStop()
		cancelWork()
		ended()
	}
	g.positions.Lead()
	g.refresh(termStop)
	g.from = g.positions.Latest().Position
	g.voidFuture(termStop)
	g.queue.SetGate(false)
	return true
}

// refresh reads the last leader's position once more. A position is a fact about deliveries: if the
// read fails, an older one is as true.
func (g *standbyGate) refresh(stop context.Context) {
	ctx, cancel := context.WithTimeout(stop, refreshFor)
	defer cancel()
	for {
		err := g.positions.Refresh(ctx)
		if err == nil || isLasting(err) || !sleep(ctx, retryPosition) {
			return
		}
	}
}

// voidFuture replaces a position above the newest version of the cluster. A leader that has not
// noticed a restore yet may have published it since.
func (g *standbyGate) voidFuture(stop context.Context) {
	ctx, cancel := context.WithTimeout(stop, checkVersionsFor)
	defer cancel()
	if now, err := g.now(ctx); err == nil && g.from.Above(now) {
		g.wentBack(now)
	}
}

// isLasting reports whether somebody has to act before the position can be read.
func isLasting(err error) bool {
	var forbidden *election.PermissionError
	var unreadable *election.DataError
	return errors.As(err, &forbidden) || errors.As(err, &unreadable)
}

func (g *standbyGate) takeBack(observations []observation.Observation) {
	g.waiting = append(observations, g.waiting...)
}

// delivered implements gate.
func (g *standbyGate) delivered(versions func() map[string]uint64) {
	position := election.Position{Streams: versions()}
	if len(position.Streams) == 0 {
		return // No stream has been listed.
	}
	if g.lowered {
		g.lowered = false
		g.positions.Replace(position)
		return
	}
	g.positions.Advance(position)
}

// wentBack implements gate. What was published is above what the cluster has now, and means nothing.
func (g *standbyGate) wentBack(now uint64) {
	g.lowered, g.from = true, election.Position{}
	g.positions.Void(now)
}

// close ends the term, publishes how far it came, and keeps what the windows hold: the next leader
// may not deliver it.
func (g *standbyGate) close(work context.Context) {
	if g.leave == nil {
		return
	}
	g.queue.SetGate(true)
	g.ended()
	ctx, cancel := context.WithTimeout(work, flushFor)
	defer cancel()
	if err := g.positions.Flush(ctx); err != nil {
		g.logger.Warn("Cannot publish the position at the end of the term; the next leader repeats more", zap.Error(err))
	}
	g.positions.Follow()
	g.takeBack(g.memory.TakeBack())
	g.leave()
	g.term, g.leave = term{}, nil
}
