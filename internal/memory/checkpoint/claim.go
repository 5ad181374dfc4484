// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// ErrTakenOver is returned once a later session has claimed the storage. This one writes and
// deletes nothing from then on.
var ErrTakenOver = errors.New("another process has taken over this storage: run one replica with the strategy Recreate, " +
	"or configure k8s_leader_elector, or give each process a storage of its own")

// errContended is returned if two sessions claim the storage at the same time.
var errContended = errors.New("another process claimed the storage at the same time")

// claim says which session may write. A session claims the storage before it reads the checkpoint,
// and each write ends with a look at the claim: at most one write of an earlier session arrives
// after that. This write deletes only what the head before it does not name. So whichever of both
// heads the later session reads, its checkpoint is complete.
type claim struct {
	number   uint64
	isStored bool // The storage has it, as far as this session knows.
	isLost   bool // A later session has claimed the storage.
	// isGone is whether the storage has deleted it, which only a storage does whose keys expire.
	isGone bool
}

// newClaim returns a claim that the storage does not have yet. An earlier one may arrive late; the
// time tells it from a later one.
func newClaim(before uint64) claim {
	return claim{number: max(before+1, uint64(time.Now().UnixNano()))}
}

// makeClaim claims the storage. If the storage can be read but not written, the first write does.
func (s *Store) makeClaim(ctx context.Context) error {
	stored, err := s.get(ctx, claimKey)
	if err != nil {
		return err
	}
	before, _ := decodeTerm(stored)
	s.claim = newClaim(before)
	overwritten := storage.GetOperation(claimKey)
	err = s.call(ctx, []*storage.Operation{overwritten, storage.SetOperation(claimKey, encodeTerm(s.claim.number))})
	if err == nil && !s.isElected && !bytes.Equal(overwritten.Value, stored) {
		reached.State("two sessions claim the storage at the same time")
		return errContended
	}
	if err != nil {
		reached.State("the storage can be read and not written at a start")
	}
	s.claim.isStored = err == nil
	return nil
}

// yieldsTo reports whether what is stored is the claim of a later session, which may write instead.
func (s *Store) yieldsTo(stored []byte, own uint64) bool {
	last, _ := decodeTerm(stored) // 0: it is no claim.
	return last > own && !s.isElected
}

// look takes what an acknowledged write found as the claim. The next write replaces one that is
// earlier, or gone.
func (s *Store) look(a *attempt) {
	c := &s.claim
	c.isLost = s.yieldsTo(a.claimed, c.number)
	c.isGone = c.isStored && a.claimed == nil
	c.isStored = a.claims || bytes.Equal(a.claimed, encodeTerm(c.number))
}

// HasLostKeys reports whether the storage had lost a key at the last write.
func (s *Store) HasLostKeys() bool { return s.claim.isGone }
