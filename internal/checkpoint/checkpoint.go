// SPDX-License-Identifier: Apache-2.0

// Package checkpoint saves what is remembered through the Collector's storage API: only the entries that changed, with a
// small state beside them, in one transaction.
//
// The storage API has no listing, so entries are not stored one by one. Those that changed since the last checkpoint are
// written as a run; a head, rewritten each time, names the runs. Runs are merged as in a log-structured merge tree: eight
// of about one size become one, so that an entry is rewritten a few times and not at each checkpoint, and all of them
// become one when the runs hold far more entries than live. What a checkpoint costs so follows what changed.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	headKey     = "head"
	noteKey     = "note"
	setAsideKey = "set-aside"

	// fanIn is how many runs of one size become one.
	fanIn = 8
	// chunkBytes is how large a stored value with several entries may be. Storages keep values in pages, of 4 KiB in
	// file_storage, and write a page anew with each change in it: what is small must not lie beside what is large.
	chunkBytes = 1800
	// slack is how many entries the runs may hold beyond twice the live ones before all are merged.
	slack = 4096
)

// ErrDamaged is returned for a checkpoint that is not whole, or that another version of this program wrote.
var ErrDamaged = errors.New("the checkpoint is damaged")

// Key names an entry. The first byte tells kinds of entries apart.
type Key [17]byte

// Store is the place of one receiver's checkpoints. It is not safe for concurrent use.
type Store struct {
	client storage.Client
	head   head
}

// Source is what a checkpoint is taken of.
type Source interface {
	// Value is the present value of an entry; nil means that there is none any more.
	Value(Key) []byte
	// Len is how many entries there are.
	Len() int
}

// New makes a store without a checkpoint.
func New(client storage.Client) *Store {
	return &Store{client: client}
}

// Load reads the last checkpoint. It hands each entry to restore, an older value possibly before a newer one and nil for
// an entry that is gone, and returns the state; found is false if there is no checkpoint. An error that is ErrDamaged
// says that what is stored cannot be used, and that what was restored has to be thrown away; other errors are the
// storage's.
func (s *Store) Load(ctx context.Context, restore func(Key, []byte) error) (state []byte, found bool, err error) {
	s.head = head{}
	stored, err := s.client.Get(ctx, headKey)
	if err != nil || stored == nil {
		return nil, false, err
	}
	last, err := decodeHead(stored)
	if err != nil {
		return nil, false, err
	}
	for _, r := range last.runs {
		if err := s.each(ctx, r, restore); err != nil {
			return nil, false, err
		}
	}
	s.head = last
	return last.state, true, nil
}

// each reads the entries of a run.
func (s *Store) each(ctx context.Context, r run, do func(Key, []byte) error) error {
	for chunk := range r.chunks() {
		stored, err := s.client.Get(ctx, r.key(chunk))
		if err != nil {
			return err
		}
		if err := decodeChunk(stored, do); err != nil {
			return fmt.Errorf("%s: %w", r.key(chunk), err)
		}
	}
	return nil
}

// Note writes what is about to be done, beside the last checkpoint. It stands until the next Note or Save.
func (s *Store) Note(ctx context.Context, note []byte) error {
	return s.client.Set(ctx, noteKey, seal(append([]byte{version}, note...)))
}

// LoadNote reads the note; nil means that there is none. Errors are as Load's.
func (s *Store) LoadNote(ctx context.Context) ([]byte, error) {
	stored, err := s.client.Get(ctx, noteKey)
	if err != nil || stored == nil {
		return nil, err
	}
	return unseal(stored)
}

// SetAside keeps the head of a damaged checkpoint under another name, for whoever wants to look at it, and lets the next
// Save begin anew.
func (s *Store) SetAside(ctx context.Context) error {
	damaged, err := s.client.Get(ctx, headKey)
	if err != nil {
		return err
	}
	s.head = head{}
	return s.client.Batch(ctx, storage.SetOperation(setAsideKey, damaged), storage.DeleteOperation(headKey), storage.DeleteOperation(noteKey))
}

// Save writes the state and the present values of the changed entries and removes the note, all or nothing. After an
// error the last checkpoint stands, and the same changes belong into the next.
func (s *Store) Save(ctx context.Context, state []byte, changed []Key, from Source) error {
	next := s.head.clone()
	next.state = state
	var writes transaction
	if len(changed) > 0 {
		writes.add(&next, changed, from, false)
	}
	if err := s.merge(ctx, &next, &writes, from); err != nil {
		return err
	}
	operations := append(writes.operations(), storage.SetOperation(headKey, next.encode()), storage.DeleteOperation(noteKey))
	if err := s.client.Batch(ctx, operations...); err != nil {
		return err
	}
	s.head = next
	return nil
}

// merge brings the runs back into shape after one was added.
func (s *Store) merge(ctx context.Context, next *head, writes *transaction, from Source) error {
	if next.entries() > 2*from.Len()+slack {
		return s.mergeRuns(ctx, next, writes, from, next.runs)
	}
	for size := range sizes {
		runs := next.ofSize(size)
		if len(runs) < fanIn {
			continue
		}
		if err := s.mergeRuns(ctx, next, writes, from, runs); err != nil {
			return err
		}
	}
	return nil
}

// mergeRuns replaces runs by one that holds the present values. Entries that are gone are dropped only if no run is left
// that could bring them back.
func (s *Store) mergeRuns(ctx context.Context, next *head, writes *transaction, from Source, runs []run) error {
	seen := map[Key]struct{}{}
	all := len(runs) == len(next.runs)
	for _, r := range runs {
		if err := s.keysOf(ctx, r, writes, seen); err != nil {
			return err
		}
	}
	keys := make([]Key, 0, len(seen))
	for key := range seen {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int { return slices.Compare(a[:], b[:]) })
	for _, r := range slices.Clone(runs) {
		next.remove(r)
		writes.remove(r)
	}
	writes.add(next, keys, from, all)
	return nil
}

// keysOf collects the keys of a run, which may be one that this transaction writes.
func (s *Store) keysOf(ctx context.Context, r run, writes *transaction, seen map[Key]struct{}) error {
	if keys, ok := writes.keys[r.id]; ok {
		for _, key := range keys {
			seen[key] = struct{}{}
		}
		return nil
	}
	return s.each(ctx, r, func(key Key, _ []byte) error {
		seen[key] = struct{}{}
		return nil
	})
}

// Close releases the storage client.
func (s *Store) Close(ctx context.Context) error { return s.client.Close(ctx) }
