// SPDX-License-Identifier: Apache-2.0

// Package journal keeps a growing state in a storage extension: a snapshot in several chunks, and
// the entries that were appended since. It knows nothing of what is in them.
//
// The key `head` names the generation. All other keys contain it. A new snapshot has a new
// generation, and is complete before the head names it: a crash at any time leaves one that can be
// read. The receiver's checkpoint and the connector kube_incidents use it.
//
// A write that failed may have been applied, or may be applied later. So no key but the head ever
// gets two values: a snapshot that is repeated takes another generation, an entry is repeated as it
// is, and a process appends only to a snapshot of its own. The journal assumes only that a head whose
// write failed is not applied after a later head.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// ErrCorrupt reports that the stored state cannot be read.
var ErrCorrupt = errors.New("the stored state cannot be read")

// format is the version of the stored format. It must be raised when a caller's entries change, too: an
// older program then sets the journal aside instead of reading something else.
const format = 1

type head struct {
	Format     int   `json:"format"`
	Generation int64 `json:"generation"`
	Chunks     int   `json:"chunks"`
	// Something may be stored of generations from Oldest to Newest. Version 0.1.0 does not write them.
	Oldest int64 `json:"oldest"`
	Newest int64 `json:"newest"`
}

// Journal is a snapshot and the entries after it. Its methods must not be called concurrently.
type Journal struct {
	client       storage.Client
	head         head
	removed      int64  // nothing is left of generations after head.Oldest up to this one, but for that of the head
	takesEntries bool   // the snapshot is of this process, and the storage has its head
	unanswered   []byte // the last entry, if its write failed
	next         int    // the index of the next entry, after the chunks and the entries before it
	size         int    // of the entries, in bytes
	snapshotSize int
}

// Open reads the stored state, and calls add with each chunk of the snapshot, and then with each entry
// in its order.
func Open(ctx context.Context, client storage.Client, add func([]byte) error) (*Journal, error) {
	j := &Journal{client: client}
	stored, err := client.Get(ctx, "head")
	if err != nil {
		return nil, err
	}
	if len(stored) == 0 {
		j.head.Format = format
		return j, nil
	}
	if err := json.Unmarshal(stored, &j.head); err != nil {
		return nil, fmt.Errorf("%w: the key head: %w", ErrCorrupt, err)
	}
	if j.head.Format != format {
		return nil, fmt.Errorf("%w: the format is %d, but this version reads %d", ErrCorrupt, j.head.Format, format)
	}
	if j.head.Newest < j.head.Generation {
		j.head.Oldest, j.head.Newest = j.head.Generation-1, j.head.Generation
	}
	return j, j.read(ctx, add)
}

func (j *Journal) read(ctx context.Context, add func([]byte) error) error {
	for ; ; j.next++ {
		value, err := j.client.Get(ctx, keyOf(j.head.Generation, j.next))
		switch isMissing := err == nil && len(value) == 0; { // Some storage has an empty value for a missing key.
		case isMissing && j.next >= j.head.Chunks:
			return nil
		case isMissing:
			err = fmt.Errorf("%w: it is missing", ErrCorrupt)
		case err == nil:
			err = add(value)
		}
		if err != nil {
			return fmt.Errorf("part %d of the stored state: %w", j.next, err)
		}
	}
}

// keyOf returns the key of a chunk or an entry. In a generation, the entries follow the chunks.
func keyOf(generation int64, index int) string {
	return strconv.FormatInt(generation, 10) + "/" + strconv.Itoa(index)
}

// Append stores an entry. It must not be empty. After an error, callers must call Retry or Snapshot
// until one of them succeeds.
func (j *Journal) Append(ctx context.Context, entry []byte) error {
	if err := j.Retry(ctx); err != nil {
		return err
	}
	j.unanswered = entry
	return j.Retry(ctx)
}

// Retry stores the entry that Append could not store. It changes nothing in the entry: if the first
// write is applied late, it has the same value.
func (j *Journal) Retry(ctx context.Context) error {
	if len(j.unanswered) == 0 {
		return nil
	}
	if !j.takesEntries {
		return errors.New("an entry can only follow a snapshot of the same process")
	}
	if err := j.client.Set(ctx, keyOf(j.head.Generation, j.next), j.unanswered); err != nil {
		return err
	}
	j.next++
	j.size += len(j.unanswered)
	j.unanswered = nil
	return nil
}

// IsNew reports whether nothing was stored.
func (j *Journal) IsNew() bool { return j.next == 0 }

// minSize is the number of bytes of entries from which a snapshot is worth its cost. Reading that
// many takes a fraction of a second.
const minSize = 4 << 20

// WantsSnapshot reports whether entries must wait for a snapshot, or take more than the last one: a
// new one costs, in proportion, no more than the entries did.
func (j *Journal) WantsSnapshot() bool {
	return !j.takesEntries || j.size > max(minSize, j.snapshotSize)
}

// Snapshot replaces everything by the chunks. None of them may be empty.
func (j *Journal) Snapshot(ctx context.Context, chunks iter.Seq[[]byte]) error {
	// Once this head is stored, it does not matter whether the one before was. Before that, nothing may
	// be removed.
	j.head.Newest++
	if err := j.writeHead(ctx); err != nil {
		return err
	}
	if err := j.removeOthers(ctx); err != nil {
		return err
	}
	next, size := j.head, 0
	next.Generation, next.Chunks = next.Newest, 0
	for chunk := range chunks {
		if err := j.client.Set(ctx, keyOf(next.Generation, next.Chunks), chunk); err != nil {
			return err
		}
		next.Chunks++
		size += len(chunk)
	}
	j.head, j.unanswered, j.next, j.size, j.snapshotSize = next, nil, next.Chunks, 0, size
	err := j.writeHead(ctx)
	if j.takesEntries = err == nil; err != nil {
		return err
	}
	_ = j.removeOthers(ctx) // What a full disk does not delete stays until the next snapshot.
	return nil
}

func (j *Journal) writeHead(ctx context.Context) error {
	encoded, err := json.Marshal(j.head)
	if err != nil {
		return err
	}
	return j.client.Set(ctx, "head", encoded)
}

// removeOthers deletes all generations but the one that the head names. It does not look again for what
// it has removed: storage that takes no snapshot for days has had thousands of generations, and each
// attempt has a time limit. The newest generation is written next.
func (j *Journal) removeOthers(ctx context.Context) error {
	for generation := j.head.Oldest; generation <= j.head.Newest; generation++ {
		if generation == j.head.Generation || generation > j.head.Oldest && generation <= j.removed {
			continue
		}
		if err := j.remove(ctx, generation); err != nil {
			return err
		}
		j.removed = max(j.removed, min(generation, j.head.Newest-1))
	}
	j.head.Oldest = j.head.Generation
	return nil
}

// SetAside starts a journal from scratch, and leaves what is stored where it is. The key that it
// returns has the head that it had.
func SetAside(ctx context.Context, client storage.Client) (j *Journal, key string, err error) {
	stored, err := client.Get(ctx, "head")
	if err != nil {
		return nil, "", err
	}
	generation := time.Now().UnixNano() // If the head cannot be read, nothing is known of the others.
	key = "set_aside/" + strconv.FormatInt(generation, 10)
	j = &Journal{client: client, head: head{Format: format, Generation: generation, Oldest: generation, Newest: generation}}
	encoded, err := json.Marshal(j.head)
	if err != nil {
		return nil, "", err
	}
	return j, key, client.Batch(ctx, storage.SetOperation(key, stored), storage.SetOperation("head", encoded))
}

// maxOps bounds the deletions of one request.
const maxOps = 1000

// remove deletes a generation. It deletes the last key first: if it is interrupted, the next attempt
// finds those that are left.
func (j *Journal) remove(ctx context.Context, generation int64) error {
	var ops []*storage.Operation
	for {
		key := keyOf(generation, len(ops))
		value, err := j.client.Get(ctx, key)
		if err != nil {
			return err
		}
		if len(value) == 0 {
			break
		}
		ops = append(ops, storage.DeleteOperation(key))
	}
	slices.Reverse(ops)
	for some := range slices.Chunk(ops, maxOps) {
		if err := j.client.Batch(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}
