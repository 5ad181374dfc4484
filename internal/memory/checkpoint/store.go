// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/s2"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// Deadline is how long a storage may take for one call. One that takes longer has failed, as far as
// the caller is concerned; the call may still arrive.
const Deadline = 5 * time.Second

// perOperation is what each operation of a write adds to its deadline.
const perOperation = 10 * time.Millisecond

// closeWait is how long Close waits for a write that is under way.
const closeWait = time.Second

// ErrNotAcknowledged is returned while it is not known whether the last write has arrived.
var ErrNotAcknowledged = errors.New("the storage has not acknowledged a checkpoint")

// Store has the checkpoints of one receiver. It is not safe for concurrent use. Its calls end with
// their context or after Deadline, even if the storage's do not.
type Store struct {
	client  storage.Client
	journal journal
	// pending is a write that was not acknowledged; nil: none. No other write begins before it is.
	pending *write
	attempt *attempt // to write pending; nil: none is under way
	tries   int      // attempts to write pending that have ended
	claim   claim
	// isElected is whether an elector decides who may write, and not the claim.
	isElected bool
}

// attempt is one call that writes.
type attempt struct {
	done chan struct{} // closed when it has ended; the rest is then known
	err  error
	// found is whether the storage has what an earlier attempt set.
	found bool
	// isNamed is whether the storage names the write's term as the present one.
	isNamed bool
	// claimed is the claim that the storage has. If claims is set, the attempt then replaced it.
	claimed []byte
	claims  bool
}

// Loaded is a checkpoint that was loaded.
type Loaded struct {
	State  json.RawMessage
	Outbox [][]byte // the requests that may not have been delivered
	// Starts is how often a session began with this outbox before.
	Starts int
}

// New returns a store that has loaded nothing. One that loads later from the same storage takes it
// over.
func New(client storage.Client) *Store {
	return &Store{client: client, journal: newJournal(nextSession(0)), claim: newClaim(0)}
}

// NewElected is like New for a process that writes only while an elector says that it leads: no
// other store takes the storage over. After a pause, a leader that was deposed may load.
func NewElected(client storage.Client) *Store {
	s := New(client)
	s.isElected = true
	return s
}

// Load reads the present checkpoint, before any other call: it passes each entry to restore, an
// older value possibly before a newer one and nil for an entry that is gone. An error of restore
// costs only that entry. Nil without an error means that there is no checkpoint. An error that is ErrCorrupt means that what is stored cannot be used,
// and that the caller must drop what was restored and call SetAside; other errors are the
// storage's.
func (s *Store) Load(ctx context.Context, restore func(Key, []byte) error) (*Loaded, error) {
	s.journal.endSnapshot()
	s.journal = newJournal(nextSession(0))
	if err := s.makeClaim(ctx); err != nil {
		return nil, err
	}
	term, stored, err := s.present(ctx)
	if errors.Is(err, ErrCorrupt) {
		// No term that was ever used may be used again.
		s.journal.acknowledged.Term = uint64(time.Now().Unix())
	}
	if err != nil || term == 0 {
		return nil, err
	}
	// The writes from here on are of a term of their own. So they overwrite nothing, and a late
	// write of an earlier session overwrites nothing of theirs.
	s.journal.named, s.journal.acknowledged.Term = term, nextSession(term)
	h, err := decodeHead(stored)
	if err != nil {
		return nil, err
	}
	loaded, err := s.read(ctx, h, restore)
	if err != nil {
		return nil, err
	}
	h.abandonSnapshot()
	h.Term = s.journal.acknowledged.Term
	s.journal.acknowledged = h
	return loaded, nil
}

// present returns the present term and its head; 0 means that there is no checkpoint.
func (s *Store) present(ctx context.Context) (term uint64, stored []byte, err error) {
	named, err := s.term(ctx)
	if err != nil || named == 0 {
		return 0, nil, err
	}
	stored, term, err = s.lastHead(ctx, named)
	return term, stored, err
}

func (s *Store) read(ctx context.Context, h head, restore func(Key, []byte) error) (*Loaded, error) {
	for _, spans := range [][]span{h.Snapshot, h.Journal, h.Since} {
		err := s.each(ctx, spans, func(stored []byte) error { return decodeChunk(stored, restore) })
		if err != nil {
			return nil, err
		}
	}
	loaded := &Loaded{State: h.State, Starts: h.Starts}
	return loaded, s.each(ctx, h.Outbox, func(stored []byte) error {
		request, err := decodeRequest(stored)
		loaded.Outbox = append(loaded.Outbox, request)
		return err
	})
}

func decodeRequest(stored []byte) ([]byte, error) {
	body, err := unseal(stored)
	if err != nil {
		return nil, err
	}
	request, err := s2.Decode(nil, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return request, nil
}

// readsAtOnce is how many keys one call of the storage reads. Each call costs a round trip, or a
// transaction.
const readsAtOnce = 64

// each reads the values of the spans.
func (s *Store) each(ctx context.Context, spans []span, do func(stored []byte) error) error {
	for _, span := range spans {
		for from := span.From; from < span.To; from += readsAtOnce {
			var reads []*storage.Operation
			for number := from; number < min(from+readsAtOnce, span.To); number++ {
				reads = append(reads, storage.GetOperation(span.key(number)))
			}
			if err := s.call(ctx, reads); err != nil {
				return err
			}
			for _, read := range reads {
				if err := do(read.Value); err != nil {
					return fmt.Errorf("%s: %w", read.Key, err)
				}
			}
		}
	}
	return nil
}

// term returns the number of the present term; 0 means that there is no checkpoint.
func (s *Store) term(ctx context.Context) (uint64, error) {
	stored, err := s.get(ctx, termKey)
	if err != nil || stored == nil {
		return 0, err
	}
	return decodeTerm(stored)
}

func decodeTerm(stored []byte) (uint64, error) {
	body, err := unseal(stored)
	if err != nil {
		return 0, err
	}
	term, err := strconv.ParseUint(string(body), 10, 64)
	if err != nil || term == 0 {
		return 0, fmt.Errorf("%w: %q is not a term", ErrCorrupt, body)
	}
	return term, nil
}

// lastHead returns the head of the last term that follows the named one: each is followed by the
// next term of the same session, or by the first one of the next session.
func (s *Store) lastHead(ctx context.Context, named uint64) (stored []byte, term uint64, err error) {
	term = named
	if stored, err = s.get(ctx, headKey(term)); err != nil {
		return nil, 0, err
	}
	for {
		following := []uint64{nextSession(term), term + 1}
		found := false
		for _, next := range following {
			head, err := s.get(ctx, headKey(next))
			if err != nil {
				return nil, 0, err
			}
			if head != nil {
				reached.State("the storage names an earlier term than the present one")
				stored, term, found = head, next, true
				break
			}
		}
		if !found {
			return stored, term, nil
		}
	}
}

// nextSession returns the first term of the session after the one of a term.
func nextSession(term uint64) uint64 { return (term/termsOfSession + 1) * termsOfSession }

func encodeTerm(term uint64) []byte { return seal(strconv.AppendUint(nil, term, 10)) }

func newHead(term uint64) head {
	return head{Version: version, Term: term, Next: map[string]uint64{}}
}

// SetAside keeps the checkpoint that was loaded, or that could not be read, and lets the next write
// begin another. It returns the key of the head that is kept. A write that was not acknowledged may
// still arrive, in a term that is not used any more.
func (s *Store) SetAside() string {
	old := s.journal
	old.endSnapshot()
	next := old.acknowledged.Term
	if s.pending != nil {
		reached.State("a checkpoint is set aside while a write is not acknowledged")
	}
	if next == old.named || s.pending != nil {
		next++
	}
	s.pending, s.attempt, s.tries = nil, nil, 0
	s.journal = newJournal(next)
	s.journal.named, s.journal.setAside = old.named, &old.named
	return headKey(old.named)
}

// Save writes the content. With an error, it is not known whether the write has arrived: the
// content is then saved by Settle, and Save must not be called before Settle has returned nil.
func (s *Store) Save(ctx context.Context, c Content) error {
	if s.pending != nil {
		return ErrNotAcknowledged
	}
	if s.claim.isLost {
		return ErrTakenOver
	}
	s.pending = s.journal.write(c)
	return s.Settle(ctx)
}

// IsSettled reports whether all writes were acknowledged.
func (s *Store) IsSettled() bool { return s.pending == nil }

// Settle repeats the write that was not acknowledged, if there is one, unless the storage turns out
// to have it. It waits for the storage until Deadline; Poll does not wait.
func (s *Store) Settle(ctx context.Context) error {
	deadline := time.NewTimer(Deadline)
	defer deadline.Stop()
	for tries := 0; s.pending != nil; tries++ {
		s.begin()
		select {
		case <-s.attempt.done:
		case <-deadline.C:
			reached.State("a write takes longer than its caller waits")
			return fmt.Errorf("%w: no answer within %v", ErrNotAcknowledged, Deadline)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNotAcknowledged, ctx.Err())
		}
		// A lost answer is common enough to look at the storage at once.
		err := s.end()
		if errors.Is(err, ErrTakenOver) {
			return err
		}
		if err != nil && tries > 0 {
			return fmt.Errorf("%w: %w", ErrNotAcknowledged, err)
		}
	}
	return nil
}

// Poll looks for the end of an attempt that is under way, and otherwise begins one. The error is
// that of the last attempt, or ErrNotAcknowledged while one is under way.
func (s *Store) Poll() error {
	if s.pending == nil {
		return nil
	}
	if s.attempt == nil {
		s.begin()
		return ErrNotAcknowledged
	}
	select {
	case <-s.attempt.done:
		return s.end()
	default:
		return ErrNotAcknowledged
	}
}

// Attempt is closed when the attempt that is under way has ended; nil while there is none.
func (s *Store) Attempt() <-chan struct{} {
	if s.attempt == nil {
		return nil
	}
	return s.attempt.done
}

// begin begins an attempt to write pending, unless one is under way.
func (s *Store) begin() {
	if s.attempt != nil {
		return
	}
	a, pending, repeated := &attempt{done: make(chan struct{}), claims: !s.claim.isStored}, s.pending, s.tries > 0
	s.attempt = a
	own := s.claim.number
	go func() {
		defer close(a.done)
		// A write with many operations may take longer; Settle does not wait for it.
		ctx, cancel := context.WithTimeout(context.Background(), Deadline+time.Duration(len(pending.operations))*perOperation)
		defer cancel()
		a.err = s.write(ctx, a, pending, repeated, own)
	}()
}

// write writes what is pending. A write that is repeated may have arrived. One that begins a term
// could replace another session's head, so it looks before whether the storage is still this one's.
func (s *Store) write(ctx context.Context, a *attempt, pending *write, repeated bool, own uint64) (err error) {
	term, claimed := storage.GetOperation(termKey), storage.GetOperation(claimKey)
	if repeated || pending.names {
		a.found, err = s.has(ctx, pending, claimed)
		if err != nil {
			return err
		}
		if a.claimed = claimed.Value; a.found || s.yieldsTo(claimed.Value, own) {
			a.claims = false
			return nil
		}
	}
	last := []*storage.Operation{term, claimed}
	if a.claims {
		last = append(last, storage.SetOperation(claimKey, encodeTerm(own)))
	}
	err = s.client.Batch(ctx, slices.Concat(pending.operations, last)...)
	a.isNamed = err == nil && bytes.Equal(term.Value, encodeTerm(pending.head.Term))
	a.claimed = claimed.Value
	return err
}

// has reports whether the storage has all that a write sets. Some storages go on after an operation
// of a batch has failed, so that the head alone proves nothing.
func (s *Store) has(ctx context.Context, w *write, claimed *storage.Operation) (bool, error) {
	var sets, reads []*storage.Operation
	for _, o := range w.operations {
		if o.Type == storage.Set {
			sets, reads = append(sets, o), append(reads, storage.GetOperation(o.Key))
		}
	}
	err := s.client.Batch(ctx, append(slices.Clip(reads), claimed)...)
	arrived := func(set, read *storage.Operation) bool { return bytes.Equal(set.Value, read.Value) }
	hasAll := slices.EqualFunc(sets, reads, arrived)
	if err == nil && !hasAll && arrived(sets[0], reads[0]) {
		reached.State("a write has arrived in part")
	}
	return hasAll, err
}

// end takes the result of an attempt that has ended.
func (s *Store) end() error {
	a := s.attempt
	s.attempt = nil
	s.tries++
	if a.err != nil {
		return a.err
	}
	if s.look(a); s.claim.isLost {
		s.pending, s.tries = nil, 0
		return ErrTakenOver
	}
	if a.found {
		reached.State("a write whose answer was lost had arrived")
	} else if s.tries > 1 {
		reached.State("a write is repeated and arrives")
	}
	s.journal.acknowledge(s.pending, s.tries > 1, a.found)
	s.journal.renames = !a.isNamed
	if s.journal.renames && !a.found {
		reached.State("a late write has named another term")
	}
	s.pending, s.tries = nil, 0
	return nil
}

// get reads a value, within Deadline.
func (s *Store) get(ctx context.Context, key string) ([]byte, error) {
	read := storage.GetOperation(key)
	if err := s.call(ctx, []*storage.Operation{read}); err != nil {
		return nil, err // The storage may still be writing to read.
	}
	return read.Value, nil
}

// call is a call of the storage, within Deadline. After an error, no value may be looked at.
func (s *Store) call(ctx context.Context, operations []*storage.Operation) error {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := ctx.Err() // Callers may have left, and closed the storage, before this starts.
		if err == nil {
			err = s.client.Batch(ctx, operations...)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the storage does not answer: %w", ctx.Err())
	}
}

// Close ends the use of the store, and leaves the storage open. It waits for a write that is under
// way, for at most closeWait. After that, the write may still arrive.
func (s *Store) Close() {
	s.journal.endSnapshot()
	if s.attempt == nil {
		return
	}
	late := time.NewTimer(closeWait)
	defer late.Stop()
	select {
	case <-s.attempt.done:
	case <-late.C:
		reached.State("a session ends while a write is under way")
	}
}
