// SPDX-License-Identifier: Apache-2.0

package position

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// interval is how often a standby reads the position, and a leader publishes one that advanced.
	interval = 2 * time.Second
	// retry is the pause between two reads of one that waits for the position.
	retry = time.Second
	// confirmInterval is how often a leader that has nothing to publish looks whether the stored
	// position is still there.
	confirmInterval = 30 * time.Second
	// maxPause is the longest pause after requests that the API server forbids.
	maxPause = 30 * time.Second
)

// Observer reports problems with the stored position, such as in the component's status. Its methods
// are called after requests, also several times in a row with the same result.
type Observer interface {
	// PositionFailed gets a *PermissionError, a *DataError, or the error of a request that failed
	// and was already repeated.
	PositionFailed(err error)
	// PositionWorks is called after each request that succeeded.
	PositionWorks()
}

// Latest is what is known about deliveries. The Position contains what this process has delivered,
// in every State.
type Latest struct {
	Position
	State State
}

// Positions keeps the position of this process and the stored one in step. Its methods may be
// called concurrently. Only Run, Refresh and Flush wait for requests; one of them makes requests at
// a time.
type Positions struct {
	store    *Store
	observer Observer
	turn     chan struct{} // holds an element while requests are made

	// The turn guards the following: whether this process may publish.
	mayPublish State     // the state in which a standby has tried it with success; Unknown: in none
	triedAt    time.Time // when a standby tried it last
	denied     error     // the last answer, if a permission is missing

	// mu guards the following. It is not held during requests.
	mu      sync.Mutex
	leading bool
	cluster string // the UID of this cluster; empty while it is not known
	// history is that of the versions of this process. Positions of an earlier one are void.
	history uint64
	stored  Position // as of the last request that succeeded
	state   State    // of stored
	// latest is the latest history of a position that was stored.
	latest uint64
	// storedAt is when stored was read or written.
	storedAt time.Time
	changed  chan struct{} // see Changed

	// advanced is what this process has delivered.
	advanced map[string]uint64
	// revision counts the changes of advanced that are to be published; published is the last one
	// that was.
	revision, published uint64

	failures  int // requests in a row that failed
	forbidden int // requests in a row that were forbidden
	skip      int // intervals in which Run makes no request
}

// NewPositions returns the positions of a process that does not lead. It makes no request.
func NewPositions(store *Store, observer Observer) *Positions {
	return &Positions{
		store:    store,
		observer: observer,
		turn:     make(chan struct{}, 1),
		changed:  make(chan struct{}),
		advanced: map[string]uint64{},
	}
}

// Run keeps the stored position and this process in step until the context ends: it reads the
// position while this process follows, and publishes what has advanced. A standby also publishes
// what could not be published before the end of its term: it was delivered, and that etcd was restored.
func (p *Positions) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if !p.skips() {
			_ = p.run(ctx, p.due) // The observer reports it.
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Latest returns what is known about deliveries. The caller may keep and change the result.
func (p *Positions) Latest() Latest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latestLocked()
}

// Changed returns a channel that is closed when Latest or IsBehind changes next, other than by Advance:
// nobody waits for what this process delivers itself. To miss no change, callers must call Changed
// before these.
func (p *Positions) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Refresh reads the stored position now. If this fails, Latest keeps what was known before.
func (p *Positions) Refresh(ctx context.Context) error {
	return p.run(ctx, func() action { return p.read })
}

// Await reads the stored position, until this succeeds or somebody has to act before it can be
// read. It reports false if the context ends before.
func (p *Positions) Await(ctx context.Context) bool {
	return wait.PollUntilContextCancel(ctx, retry, true, func(ctx context.Context) (bool, error) {
		err := p.Refresh(ctx)
		return err == nil || isLasting(err), nil
	}) == nil
}

// isLasting reports whether somebody has to act before the position can be read.
func isLasting(err error) bool {
	var forbidden *PermissionError
	var unreadable *DataError
	return errors.As(err, &forbidden) || errors.As(err, &unreadable)
}

// Flush publishes now what has advanced and was not published yet.
func (p *Positions) Flush(ctx context.Context) error {
	return p.run(ctx, func() action {
		if p.dirty() {
			return p.publish
		}
		return nil
	})
}

// Lead begins a term. Callers must call Refresh next, so that the term begins with what the last
// leader published at the end.
func (p *Positions) Lead() {
	p.change(func() {
		p.leading = true
		p.forbidden, p.skip = 0, 0 // Other permissions count now.
	})
}

// Follow ends the term. Callers should call Flush before.
func (p *Positions) Follow() {
	p.change(func() {
		p.leading = false
		p.forbidden, p.skip = 0, 0
	})
}

// SetCluster sets the UID of this cluster as soon as it is known. A position of another cluster is
// void, as if it were missing.
func (p *Positions) SetCluster(uid string) {
	p.change(func() {
		p.cluster = uid
		if p.stored.foreign(uid) && len(p.advanced) > 0 {
			p.revision++
		}
	})
}

// Begin begins with the position that was read last, in its history. It forgets what this process
// has delivered before: that was another cluster.
func (p *Positions) Begin() Position {
	p.change(func() {
		p.forgetLocked()
		p.history, p.latest = 0, 0
		if !p.stored.foreign(p.cluster) {
			p.history, p.latest = p.stored.History, p.stored.History
		}
	})
	return p.Latest().Position
}

// History returns the number of the history of which this process has versions.
func (p *Positions) History() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.history
}

// EndHistory notes that the cluster's resource versions have gone back, or that another process has
// noticed it: see IsBehind. Positions of before are void, also what this process has delivered. Two
// processes that notice the same restores give the new history the same number: that after the
// latest history that was published, however often the versions have gone back since.
func (p *Positions) EndHistory() {
	p.change(func() {
		p.forgetLocked()
		if p.latest > p.history {
			p.history = p.latest
		} else if p.latest == p.history {
			p.history++
		}
	})
}

// IsBehind reports whether another process has published a position of a later history: it has noticed
// that etcd was restored, and this process has not. Callers must then call EndHistory.
func (p *Positions) IsBehind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest > p.history
}

// Advance raises the position to what this process has delivered. Run publishes it. Lower versions
// and those of another history change nothing. The position's Cluster is not used; see SetCluster.
func (p *Positions) Advance(position Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if position.History != p.history || !raise(p.advanced, position.Streams) {
		return
	}
	if p.isComparableLocked() && !above(position.Streams, p.stored.Streams) {
		return // The others know this already.
	}
	p.revision++
}

// action reads or publishes the position.
type action func(context.Context) error

// run runs the action that choose returns, unless it is nil, and reports its result.
func (p *Positions) run(ctx context.Context, choose func() action) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	do := choose()
	if do == nil {
		return nil
	}
	err := do(ctx)
	if ctx.Err() == nil {
		p.report(err)
	}
	return err
}

// due returns what Run has to do now; nil means nothing.
func (p *Positions) due() action {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.published < p.revision || p.isAheadLocked():
		return p.publish
	case !p.leading || p.state == Unknown:
		return p.read
	case len(p.advanced) > 0 && time.Since(p.storedAt) >= confirmInterval:
		return p.publish // It writes nothing that is there.
	default:
		return nil
	}
}

func (p *Positions) dirty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published < p.revision
}

func (p *Positions) read(ctx context.Context) error {
	object, stored, state, err := p.store.read(ctx)
	if err != nil {
		return err
	}
	p.change(func() { p.storeLocked(stored, state) })
	if !p.isLeading() && p.mayPublish != state && time.Since(p.triedAt) >= maxPause {
		p.tryToPublish(ctx, object, state)
	}
	return nil
}

// tryToPublish notes whether a standby may publish the position: a missing permission is to be
// reported before this process leads. A request that fails in another way says nothing about it.
func (p *Positions) tryToPublish(ctx context.Context, object *corev1.ConfigMap, state State) {
	p.triedAt = time.Now()
	err := p.store.try(ctx, object, state == Known)
	var forbidden *PermissionError
	switch {
	case err == nil:
		p.mayPublish, p.denied = state, nil
	case errors.As(err, &forbidden):
		reached.State("a standby learns that it may not publish the position")
		p.mayPublish, p.denied = Unknown, err // So it tries again, whatever state comes next.
	}
}

func (p *Positions) isLeading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leading
}

func (p *Positions) publish(ctx context.Context) error {
	var revision uint64
	stored, state, err := p.store.update(ctx, func(current Position) Position {
		p.mu.Lock()
		defer p.mu.Unlock()
		revision = p.revision
		// The position keeps streams that this process does not watch: in a rollout, another one may.
		return p.ownLocked().Merge(current).startingAfter(current)
	})
	p.change(func() {
		if state != Unknown {
			p.storeLocked(stored, state)
		}
		var forbidden *PermissionError
		switch {
		case err == nil:
			p.published = max(p.published, revision)
			p.denied = nil
		case errors.As(err, &forbidden) && forbidden.Verb != "get":
			p.mayPublish = Unknown
			if !p.leading {
				reached.State("a standby may not publish what it has delivered")
				p.forgetLocked() // Only the leader needs this permission. A standby must go on reading.
			}
		}
	})
	return err
}

// storeLocked notes what is stored.
func (p *Positions) storeLocked(stored Position, state State) {
	p.stored, p.state, p.storedAt = stored, state, time.Now()
	if stored.foreign(p.cluster) {
		reached.State("the position is of another cluster")
		return
	}
	if stored.History < p.history {
		reached.State("a restore is noticed that nobody has published")
	}
	p.latest = max(p.latest, stored.History)
}

// ownLocked is what this process has delivered.
func (p *Positions) ownLocked() Position {
	return Position{Cluster: p.cluster, History: p.history, Streams: p.advanced}
}

// isAheadLocked reports whether this process has noticed a restore that nobody has published. Without
// connections, such as while its pipeline rejects everything, a leader does not ask. When it does, the
// versions may have grown above those that it knows. So the process that notices it, such as a standby,
// publishes the number of its history.
func (p *Positions) isAheadLocked() bool {
	return p.state == Known && !p.stored.foreign(p.cluster) && p.stored.History < p.history
}

// isComparableLocked reports whether the stored position is of this cluster and history.
func (p *Positions) isComparableLocked() bool {
	return !p.stored.foreign(p.cluster) && p.stored.History == p.history
}

func (p *Positions) latestLocked() Latest {
	stored, state := p.stored, p.state
	if state == Known && !p.isComparableLocked() {
		stored, state = Position{}, Missing
	}
	if state == Missing && len(p.advanced) > 0 {
		state = Known // This process has led.
	}
	return Latest{p.ownLocked().Merge(stored), state}
}

// forgetLocked leaves nothing to publish.
func (p *Positions) forgetLocked() {
	clear(p.advanced)
	p.published = p.revision
}

// change changes the fields that mu guards, and announces it if this changes Latest or IsBehind.
func (p *Positions) change(fields func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.latestLocked()
	fields()
	after, isBehind := p.latestLocked(), p.latest > p.history
	if after.State != before.State || !after.equal(before.Position) || isBehind {
		p.announceLocked()
	}
}

func (p *Positions) announceLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// report passes the result of a request to the observer. A standby that may not publish reads on, and
// reports this.
func (p *Positions) report(err error) {
	if err == nil {
		p.mu.Lock()
		p.failures, p.forbidden, p.skip = 0, 0, 0
		p.mu.Unlock()
		if p.denied != nil {
			p.observer.PositionFailed(p.denied)
		} else {
			p.observer.PositionWorks()
		}
		return
	}
	var forbidden *PermissionError
	isForbidden, lasting := errors.As(err, &forbidden), isLasting(err)
	p.mu.Lock()
	p.failures++
	if isForbidden {
		// The pauses are 2, 4, 8, 16, and then 30 seconds.
		p.skip = min(1<<p.forbidden, int(maxPause/interval)) - 1
		p.forbidden = min(p.forbidden+1, 4)
	}
	// A single request may fail when an API server restarts.
	failed := lasting || p.failures > 1
	p.mu.Unlock()
	if failed {
		p.observer.PositionFailed(err)
	}
}

// skips reports whether Run makes no request in this interval.
func (p *Positions) skips() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.skip == 0 {
		return false
	}
	p.skip--
	return true
}

// above reports whether a version is higher than that of the same stream in other.
func above(streams, other map[string]uint64) bool {
	for stream, version := range streams {
		if version > other[stream] {
			return true
		}
	}
	return false
}
