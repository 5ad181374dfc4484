// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Deadline is how long a storage may take for one call. One that takes longer has failed, as far as
// the caller is concerned; the call may still arrive.
const Deadline = 5 * time.Second

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
}

// attempt is one call that writes.
type attempt struct {
	done chan struct{}
	err  error // once done is closed
}

// Loaded is a checkpoint that was loaded.
type Loaded struct {
	State  json.RawMessage
	Outbox [][]byte // the requests that may not have been delivered
	// Starts is how often a session began with this outbox before.
	Starts int
}

// New returns a store that has loaded nothing.
func New(client storage.Client) *Store {
	return &Store{client: client, journal: journal{acknowledged: newHead(1)}}
}

// Load reads the present checkpoint, before any other call: it passes each entry to restore, an older value possibly before
// a newer one and nil for an entry that is gone. Nil without an error means that there is none. An
// error that is ErrCorrupt means that what is stored cannot be used, and that the caller must drop
// what was restored; other errors are the storage's.
func (s *Store) Load(ctx context.Context, restore func(Key, []byte) error) (*Loaded, error) {
	s.journal.endSnapshot()
	s.journal = journal{acknowledged: newHead(1)}
	term, err := s.term(ctx)
	if errors.Is(err, ErrCorrupt) {
		// No term that was ever used may be used again.
		s.journal.acknowledged.Term = uint64(time.Now().Unix())
	}
	if err != nil || term == 0 {
		return nil, err
	}
	stored, term, err := s.lastHead(ctx, term)
	if err != nil {
		return nil, err
	}
	// A write after this one must not overwrite anything, whatever becomes of this term's head.
	s.journal = journal{acknowledged: newHead(term + 1), named: term}
	h, err := decodeHead(stored)
	if err != nil {
		return nil, err
	}
	loaded, err := s.read(ctx, h, restore)
	if err != nil {
		return nil, err
	}
	h.abandonSnapshot()
	s.journal.acknowledged = h
	return loaded, nil
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
		request, err := unseal(stored)
		loaded.Outbox = append(loaded.Outbox, request)
		return err
	})
}

// each reads the values of the spans.
func (s *Store) each(ctx context.Context, spans []span, do func(stored []byte) error) error {
	for _, span := range spans {
		for number := span.From; number < span.To; number++ {
			stored, err := s.get(ctx, span.key(number))
			if err == nil {
				err = do(stored)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", span.key(number), err)
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

// lastHead returns the head of the last term that follows the named one: each is followed by the next
// term of the same leader, or by the first one of the next leader.
func (s *Store) lastHead(ctx context.Context, named uint64) (stored []byte, term uint64, err error) {
	term = named
	if stored, err = s.get(ctx, headKey(term)); err != nil {
		return nil, 0, err
	}
	for {
		following := []uint64{nextLeader(term), term + 1}
		found := false
		for _, next := range following {
			head, err := s.get(ctx, headKey(next))
			if err != nil {
				return nil, 0, err
			}
			if head != nil {
				stored, term, found = head, next, true
				break
			}
		}
		if !found {
			return stored, term, nil
		}
	}
}

// nextLeader returns the first term of the leader after the one of a term.
func nextLeader(term uint64) uint64 { return (term/termsOfLeader + 1) * termsOfLeader }

func encodeTerm(term uint64) []byte { return seal(strconv.AppendUint(nil, term, 10)) }

func newHead(term uint64) head {
	return head{Version: version, Term: term, Next: map[string]uint64{}}
}

// BeginTerm gives the writes from here on a number of their own, above that of the loaded
// checkpoint. Writes of an earlier leader that arrive late then reach keys that nobody reads.
func (s *Store) BeginTerm() {
	s.journal.acknowledged.Term = nextLeader(s.journal.acknowledged.Term)
}

// SetAside keeps the checkpoint that was loaded, or that could not be read, and lets the next write
// begin another. It returns the key of the head that is kept. A write that was not acknowledged may
// still arrive, in a term that is not used any more.
func (s *Store) SetAside() string {
	old := s.journal
	old.endSnapshot()
	next := max(old.acknowledged.Term, old.named) + 1
	s.pending, s.attempt, s.tries = nil, nil, 0
	s.journal = journal{acknowledged: newHead(next), named: old.named, setAside: &old.named}
	return headKey(old.named)
}

// Save writes the content. With an error, it is not known whether the write has arrived: the content
// is then saved by Settle, and Save must not be called before Settle has returned nil.
func (s *Store) Save(ctx context.Context, c Content) error {
	if s.pending != nil {
		return ErrNotAcknowledged
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
			return fmt.Errorf("%w: no answer within %v", ErrNotAcknowledged, Deadline)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNotAcknowledged, ctx.Err())
		}
		// A lost answer is common enough to look at the storage at once.
		if err := s.end(); err != nil && tries > 0 {
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
	a, pending, repeated := &attempt{done: make(chan struct{})}, s.pending, s.tries > 0
	s.attempt = a
	go func() {
		defer close(a.done)
		ctx, cancel := context.WithTimeout(context.Background(), Deadline)
		defer cancel()
		a.err = s.write(ctx, pending, repeated)
	}()
}

// write writes what is pending. A write that is repeated may have arrived. Of one that names its
// term, the head may have arrived without the name; it is written again.
func (s *Store) write(ctx context.Context, pending *write, repeated bool) error {
	if repeated {
		stored, err := s.client.Get(ctx, headKey(pending.head.Term))
		if err != nil {
			return err
		}
		if bytes.Equal(stored, pending.encoded) && !pending.names {
			return nil
		}
	}
	return s.client.Batch(ctx, pending.operations...)
}

// end takes the result of an attempt that has ended.
func (s *Store) end() error {
	err := s.attempt.err
	s.attempt = nil
	s.tries++
	if err != nil {
		return err
	}
	s.journal.acknowledge(s.pending, s.tries > 1)
	s.pending, s.tries = nil, 0
	return nil
}

// get reads a value, within Deadline.
func (s *Store) get(ctx context.Context, key string) ([]byte, error) {
	type answer struct {
		value []byte
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		value, err := s.client.Get(ctx, key)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the storage does not answer: %w", ctx.Err())
	}
}

// Close ends the use of the store, and leaves the storage open. A write that is under way may still
// arrive.
func (s *Store) Close() { s.journal.endSnapshot() }
