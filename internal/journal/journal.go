// SPDX-License-Identifier: Apache-2.0

// Package journal keeps a growing state in a storage extension: a snapshot in several chunks, and
// the entries that were appended since. It knows nothing of what is in them.
//
// The key `head` names the generation. All other keys contain it. A new snapshot has a new
// generation, and is complete before the head names it: a crash at any time leaves one that can be
// read. The receiver's checkpoint and the connector kube_rollouts use it.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// ErrCorrupt reports that the stored state cannot be read.
var ErrCorrupt = errors.New("the stored state cannot be read")

// format is the version of the stored format.
const format = 1

type head struct {
	Format     int   `json:"format"`
	Generation int64 `json:"generation"`
	Chunks     int   `json:"chunks"`
}

// Journal is a snapshot and the entries after it. Its methods must not be called concurrently.
type Journal struct {
	client       storage.Client
	head         head
	oldest       int64 // the lowest generation of which something may be stored
	isUncertain  bool  // the storage may have another head, because a write has failed
	next         int   // the index of the next entry, after the chunks and the entries before it
	size         int   // of the entries, in bytes
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
	if stored == nil {
		return j, nil
	}
	if err := json.Unmarshal(stored, &j.head); err != nil {
		return nil, fmt.Errorf("%w: the key head: %w", ErrCorrupt, err)
	}
	if j.head.Format != format {
		return nil, fmt.Errorf("%w: the format is %d, but this version reads %d", ErrCorrupt, j.head.Format, format)
	}
	if err := j.read(ctx, add); err != nil {
		return nil, err
	}
	j.oldest = max(0, j.head.Generation-1) // A crash can have left it.
	j.removeReplaced(ctx)
	return j, nil
}

func (j *Journal) read(ctx context.Context, add func([]byte) error) error {
	for ; ; j.next++ {
		value, err := j.client.Get(ctx, keyOf(j.head.Generation, j.next))
		isChunk := j.next < j.head.Chunks
		switch {
		case err == nil && value == nil && !isChunk:
			return nil
		case err == nil && value == nil:
			err = fmt.Errorf("%w: it is missing", ErrCorrupt)
		case err == nil:
			err = add(value)
		}
		if err != nil {
			return fmt.Errorf("part %d of the stored state: %w", j.next, err)
		}
		if isChunk {
			j.snapshotSize += len(value)
		} else {
			j.size += len(value)
		}
	}
}

// keyOf returns the key of a chunk or an entry. In a generation, the entries follow the chunks.
func keyOf(generation int64, index int) string {
	return strconv.FormatInt(generation, 10) + "/" + strconv.Itoa(index)
}

// Append stores an entry. After an error, the next entry takes its place.
func (j *Journal) Append(ctx context.Context, entry []byte) error {
	if j.isUncertain || j.next == 0 && j.head.Generation == 0 {
		// Without this head, a restart would not look for entries.
		current := j.head
		current.Format = format
		if err := j.writeHead(ctx, current); err != nil {
			return err
		}
	}
	if err := j.client.Set(ctx, keyOf(j.head.Generation, j.next), entry); err != nil {
		return err
	}
	j.next++
	j.size += len(entry)
	return nil
}

func (j *Journal) writeHead(ctx context.Context, h head) error {
	encoded, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := j.client.Set(ctx, "head", encoded); err != nil {
		j.isUncertain = true
		return err
	}
	j.head, j.isUncertain = h, false
	return nil
}

// IsNew reports whether nothing is stored.
func (j *Journal) IsNew() bool { return j.next == 0 }

// minSize is the number of bytes of entries from which a snapshot is worth its cost. Reading that
// many takes a fraction of a second.
const minSize = 4 << 20

// WantsSnapshot reports whether the entries take more than the snapshot: a new one costs, in
// proportion, no more than the entries did.
func (j *Journal) WantsSnapshot() bool { return j.size > max(minSize, j.snapshotSize) }

// Snapshot replaces everything by the chunks.
func (j *Journal) Snapshot(ctx context.Context, chunks [][]byte) error {
	next := head{Format: format, Generation: j.head.Generation + 1, Chunks: len(chunks)}
	if err := j.remove(ctx, next.Generation); err != nil { // A snapshot that failed can have left it.
		return err
	}
	total := 0
	for i, chunk := range chunks {
		if err := j.client.Set(ctx, keyOf(next.Generation, i), chunk); err != nil {
			return err
		}
		total += len(chunk)
	}
	if err := j.writeHead(ctx, next); err != nil {
		return err
	}
	j.next, j.size, j.snapshotSize = len(chunks), 0, total
	j.removeReplaced(ctx)
	return nil
}

// removeReplaced deletes the generations that snapshots have replaced. Nobody reads them: what cannot
// be deleted, such as from a full disk, stays until the next snapshot.
func (j *Journal) removeReplaced(ctx context.Context) {
	for ; j.oldest < j.head.Generation; j.oldest++ {
		if j.remove(ctx, j.oldest) != nil {
			return
		}
	}
}

// SetAside starts a journal from scratch, and leaves what is stored where it is. The key that it
// returns has the head that it had.
func SetAside(ctx context.Context, client storage.Client) (j *Journal, key string, err error) {
	stored, err := client.Get(ctx, "head")
	if err != nil {
		return nil, "", err
	}
	j = &Journal{client: client}
	_ = json.Unmarshal(stored, &j.head) // If it cannot be read, nothing is known of a generation.
	generation := j.head.Generation
	key = "set_aside/" + strconv.FormatInt(generation, 10)
	next := head{Format: format, Generation: generation + 2} // Open removes the one before it.
	encoded, err := json.Marshal(next)
	if err != nil {
		return nil, "", err
	}
	err = client.Batch(ctx, storage.SetOperation(key, stored), storage.SetOperation("head", encoded))
	j.head, j.oldest = next, next.Generation
	return j, key, err
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
		if value == nil {
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
