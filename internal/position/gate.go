// SPDX-License-Identifier: Apache-2.0

package position

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// GateSettings are the settings of a Gate. Callers must set all of them. Its functions are called
// by the goroutine that calls the Gate.
type GateSettings struct {
	Leadership *leadership.Leadership
	Positions  *Positions
	Logger     *zap.Logger
	// Highest returns the highest resource version that the cluster is known to have.
	Highest func() uint64
	// Restores returns how often the resource versions of the cluster are known to have gone back,
	// Newest asks the cluster for its newest one, and CheckVersions asks whether they have gone
	// back.
	Restores      func() int
	Newest        func(context.Context) (uint64, error)
	CheckVersions func(context.Context)
}

// Gate is open while this process leads. While it is closed, batches wait at it until the leader's
// position has reached them. Its methods must not be called concurrently.
type Gate struct {
	settings GateSettings

	// elections is closed when who leads has changed since the gate last looked at it.
	elections <-chan struct{}
	waiting   []observation.Observation // not yet reached
	// stranded waits, too, but its versions are of a history that the cluster has lost. The new
	// history may reach the same versions, but not with these events.
	stranded []observation.Observation
	// from is the position at the beginning of the term. This process may still be behind it.
	from  Position
	term  leadership.Term
	leave func() // ends the term; nil: the gate is closed
	// lowered reports whether the leader's first position replaces a void one.
	lowered bool
}

// NewGate returns a closed gate.
func NewGate(settings GateSettings) *Gate {
	return &Gate{settings: settings, elections: settings.Leadership.Changed()}
}

// Changed returns a channel that is closed when a term begins or ends.
func (g *Gate) Changed() <-chan struct{} { return g.elections }

// HasEnded reports whether the term has ended. Callers must then call End before Pass.
func (g *Gate) HasEnded() bool {
	g.elections = g.settings.Leadership.Changed()
	return g.leave != nil && !g.settings.Leadership.Leads()
}

// Pass returns the observations that are to be delivered, with the term to deliver them in. It
// waits while another process leads. ok is false if nothing is to be delivered: the leader has
// delivered all of it, or stop has ended. listed has the events of listings that came with the
// observations, each with how often the resource versions had gone back when it was listed.
func (g *Gate) Pass(stop, drain context.Context, observations []observation.Observation, listed iter.Seq2[*corev1.Event, int]) (
	rest []observation.Observation, t leadership.Term, ok bool,
) {
	g.confirm(listed)
	if g.leave != nil && len(g.waiting) == 0 {
		g.term.Begins = false
		return g.withoutReached(observations, g.from), g.term, true
	}
	g.waiting = append(g.waiting, observations...)
	check := time.NewTicker(checkVersionsEvery)
	defer check.Stop()
	for g.leave == nil {
		g.elections = g.settings.Leadership.Changed()
		changes := g.settings.Positions.Changed()
		g.dropReached()
		if g.open(stop, drain) {
			break
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
			g.checkVersions(stop)
		case <-stop.Done():
			reached.State("a standby ends while events wait at its gate")
			return nil, leadership.Term{}, false
		}
	}
	g.dropReached()
	waiting := slices.Concat(g.stranded, g.waiting)
	if len(g.stranded) > 0 {
		reached.State("a new leader delivers events of a lost history")
		// What was confirmed came before some of what is lost.
		slices.SortStableFunc(waiting, func(a, b observation.Observation) int { return a.Compare(&b) })
	}
	g.waiting, g.stranded = nil, nil
	return waiting, g.term, true
}

// dropReached drops what the leader is known to have delivered.
func (g *Gate) dropReached() {
	if len(g.waiting) == 0 {
		return
	}
	restores := g.settings.Restores()
	g.waiting = slices.DeleteFunc(g.waiting, func(o observation.Observation) bool {
		isStranded := o.Restores < restores
		if isStranded {
			reached.State("events wait at the gate over a restore")
			g.stranded = append(g.stranded, o)
		}
		return isStranded
	})
	g.waiting = g.withoutReached(g.waiting, g.settings.Positions.Latest().Position)
}

// confirm takes what waits back from the lost history if the cluster lists it after the restore, at
// the same resource version: a position can reach it.
func (g *Gate) confirm(listed iter.Seq2[*corev1.Event, int]) {
	if len(g.stranded) == 0 {
		return
	}
	type state struct {
		name    types.NamespacedName
		uid     types.UID
		version string
	}
	stateOf := func(ev *corev1.Event) state { return state{event.Name(ev), ev.UID, ev.ResourceVersion} }
	restoresOf := map[state]int{}
	for ev, restores := range listed {
		restoresOf[stateOf(ev)] = restores
	}
	g.stranded = slices.DeleteFunc(g.stranded, func(o observation.Observation) bool {
		restores, ok := restoresOf[stateOf(o.Event)]
		if ok {
			reached.State("an event of a lost history is listed again")
			o.Restores = restores
			g.waiting = append(g.waiting, o)
		}
		return ok
	})
}

// withoutReached returns the observations that the position has not reached. It reaches none of a
// history that the cluster has lost.
func (g *Gate) withoutReached(observations []observation.Observation, p Position) []observation.Observation {
	restores := g.settings.Restores()
	return slices.DeleteFunc(observations, func(o observation.Observation) bool {
		return o.Restores == restores && p.Reached(o.Event.Namespace, event.ResourceVersion(o.Event))
	})
}

// open begins a term if this process leads.
func (g *Gate) open(stop, drain context.Context) bool {
	term, end, ok := g.settings.Leadership.Begin(stop, drain)
	if !ok {
		return false
	}
	g.term, g.leave = term, end
	g.settings.Positions.Lead()
	g.refresh(term.Stop)
	g.from = g.settings.Positions.Latest().Position
	g.voidFuture(term.Stop)
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
// noticed a restore yet may have published it since. If the cluster does not return its newest
// version, a position above what this process has seen is void, too: it could drop what nobody has
// delivered.
func (g *Gate) voidFuture(stop context.Context) {
	now, err := g.newest(stop)
	if err != nil {
		reached.State("a new leader does not learn the newest version")
		now = g.settings.Highest()
	}
	if g.from.Above(now) {
		reached.State("the position is above the newest version of the cluster")
		// The streams of this process may not have noticed it either.
		g.checkVersions(stop)
		g.voidAbove(now)
	}
}

func (g *Gate) checkVersions(stop context.Context) {
	ctx, cancel := context.WithTimeout(stop, askVersionsFor)
	defer cancel()
	g.settings.CheckVersions(ctx)
}

// newest returns the newest version of the cluster. It retries for a while.
func (g *Gate) newest(stop context.Context) (now uint64, err error) {
	ctx, cancel := context.WithTimeout(stop, refreshFor)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, retry, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, askVersionsFor)
		defer cancel()
		now, err = g.settings.Newest(ctx)
		return err == nil, nil
	})
	return now, err
}

// Delivered notes what came of what passed. If nothing is left undelivered, all is delivered up to
// the versions that upTo returns, by stream. Otherwise, the term has ended, and the gate keeps the
// rest.
func (g *Gate) Delivered(undelivered []observation.Observation, upTo func() map[string]uint64) {
	if len(undelivered) > 0 {
		g.takeBack(undelivered)
		return
	}
	g.advance(upTo())
}

func (g *Gate) takeBack(observations []observation.Observation) {
	reached.State("a standby keeps what it could not deliver as the leader")
	g.waiting = append(observations, g.waiting...)
}

// advance notes that all is delivered up to these versions. It leaves out streams that have not
// noticed a restore yet: the cluster does not have their versions any more.
func (g *Gate) advance(versions map[string]uint64) {
	highest := g.settings.Highest()
	maps.DeleteFunc(versions, func(_ string, version uint64) bool { return version > highest })
	position := Position{Streams: versions}
	if len(versions) == 0 {
		return // No stream has been listed.
	}
	if g.lowered {
		reached.State("a leader replaces a void position")
		g.lowered = false
		g.settings.Positions.Replace(position)
		return
	}
	g.settings.Positions.Advance(position)
}

// WentBack notes that the cluster's resource versions have gone back. A position that was published
// since is not above the highest version.
func (g *Gate) WentBack() { g.voidAbove(g.settings.Highest()) }

// voidAbove notes that what was published is above what the cluster has now, and means nothing.
func (g *Gate) voidAbove(now uint64) {
	g.lowered, g.from = true, Position{}
	g.settings.Positions.Void(now)
}

// End ends the term, and publishes how far it came. At the same time, it calls meanwhile: neither
// waits for the other one, which may hang. It keeps what the dedup windows hold: the next leader may
// not deliver it. held ends the windows.
func (g *Gate) End(meanwhile func(), held func() []observation.Observation) {
	if g.leave == nil {
		meanwhile()
		return
	}
	var published sync.WaitGroup
	published.Go(g.publish)
	meanwhile()
	published.Wait()
	g.settings.Positions.Follow()
	if held := held(); len(held) > 0 {
		reached.State("a term ends while windows hold events")
		g.takeBack(held)
	}
	g.leave()
	g.term, g.leave = leadership.Term{}, nil
}

// publish publishes how far the term came. The position is a fact about deliveries: it may be
// published as long as callers wait for it.
func (g *Gate) publish() {
	ctx, cancel := context.WithTimeout(context.Background(), flushFor)
	defer cancel()
	if err := g.settings.Positions.Flush(ctx); err != nil {
		reached.State("the last position of a term is not published")
		g.settings.Logger.Warn("Cannot publish the position at the end of the term; the next leader repeats more", zap.Error(err))
	}
}

// Open is the gate of a session that lasts no longer than this process may deliver: it is always
// open.
type Open struct{}

// HasEnded returns false.
func (Open) HasEnded() bool { return false }

// Pass returns all observations.
func (Open) Pass(stop, drain context.Context, all []observation.Observation, _ iter.Seq2[*corev1.Event, int]) (
	[]observation.Observation, leadership.Term, bool,
) {
	return all, leadership.Term{Stop: stop, Drain: drain}, true
}

// Changed returns nil: the gate never closes.
func (Open) Changed() <-chan struct{} { return nil }

// Delivered does nothing: there is no position, and what was not delivered is in the outbox, or
// nobody delivers it.
func (Open) Delivered([]observation.Observation, func() map[string]uint64) {}

// WentBack does nothing: there is no position.
func (Open) WentBack() {}

// End only calls meanwhile: what the windows hold is delivered or saved.
func (Open) End(meanwhile func(), _ func() []observation.Observation) { meanwhile() }
