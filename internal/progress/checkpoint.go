// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/journal"
	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
)

const (
	// checkpointEvery is the least time between two writes to storage. With the write itself, progress
	// is noted within a second.
	checkpointEvery = 800 * time.Millisecond
	// maxPause is the longest pause after a write to storage that failed.
	maxPause = 30 * time.Second
	// chunkBytes is the size of a part of a snapshot, and what waits for a write at most.
	chunkBytes = 1 << 20
	// clusterKey is the key of the entry that has the cluster's UID.
	clusterKey = "c"
	// storagePart is the part of the receiver that the status names if storage does not work.
	storagePart = "storage"
)

// slowWrite is the time that a write may take before the status reports it, because storage may
// ignore the context.
const slowWrite = Slow + time.Second

var (
	errSlowRead  = fmt.Errorf("the storage has not returned the checkpoint for %v: check the storage extension and its backend", Slow)
	errSlowWrite = fmt.Errorf("the storage has not written the checkpoint for %v: check the storage extension and its backend", slowWrite)
)

// Checkpoint notes progress in a storage extension: a journal of the entries of the ledger that have
// changed, with a snapshot of all of them now and then.
type Checkpoint struct {
	client   storage.Client
	observer Observer
	logger   *zap.Logger

	ledger  *ledger.Ledger
	listed  int              // how many streams had been listed at the last Note
	cluster string           // UID; empty: it is not known
	journal *journal.Journal // Only the saver uses it after Load.
	saver   saver

	mu sync.Mutex // guards the following; nothing but Note holds it for long
	// snapshot has all entries as they were at a Note, and is to be written; nil: none is due.
	snapshot iter.Seq2[string, []byte]
	changed  []byte // the entries that have changed since the last write or snapshot, the oldest first
	// wantsSnapshot is set when the next Note is to make a snapshot.
	wantsSnapshot bool
	saved         time.Time // when the last write began; the start if there was none
}

// NewCheckpoint returns a checkpoint in storage. It reads nothing yet.
func NewCheckpoint(client storage.Client, observer Observer, logger *zap.Logger) *Checkpoint {
	c := &Checkpoint{client: client, observer: observer, logger: logger, wantsSnapshot: true}
	c.saver = saver{every: checkpointEvery, most: maxPause, write: c.write}
	return c
}

// Load implements Progress.
func (c *Checkpoint) Load(ctx context.Context, cluster string, fresh func() *ledger.Ledger, _ func()) *ledger.Ledger {
	late := time.AfterFunc(Slow, func() {
		c.observer.Failed(storagePart, "slow", "Reading the checkpoint takes long; waiting. The receiver emits nothing until then", errSlowRead)
	})
	defer late.Stop()
	for ; ctx.Err() == nil; Pause(ctx, RetryRead) {
		c.ledger = fresh()
		err := c.read(ctx, cluster, fresh)
		late.Stop()
		if err == nil {
			c.observer.Works(storagePart, "The storage can be read again")
			c.begin(cluster)
			return c.ledger
		}
		if ctx.Err() == nil {
			c.observer.Failed(storagePart, "unreadable", "Cannot read the checkpoint; retrying. The receiver emits nothing until then", err)
		}
	}
	return nil
}

// begin starts to note what changes.
func (c *Checkpoint) begin(cluster string) {
	c.cluster = cmp.Or(cluster, c.cluster)
	c.ledger.Track()
	c.saved, c.listed = time.Now(), c.ledger.Listed()
	c.saver.start()
	if !c.journal.IsNew() {
		c.Note() // It may watch less than the last process, also if no event comes.
	}
}

// read reads the checkpoint once. What is of another cluster, or cannot be used, is set aside.
func (c *Checkpoint) read(ctx context.Context, cluster string, fresh func() *ledger.Ledger) (err error) {
	unreadable, example := 0, error(nil)
	c.cluster = ""
	c.journal, err = journal.Open(ctx, c.client, func(written []byte) error {
		if n, err := c.restore(written); n > 0 {
			unreadable, example = unreadable+n, err
		}
		return nil
	})
	switch {
	case errors.Is(err, journal.ErrCorrupt):
		return c.setAside(ctx, fresh, "The checkpoint in the storage cannot be used", zap.Error(err))
	case err != nil:
		return err
	case c.cluster != "" && cluster != "" && c.cluster != cluster:
		return c.setAside(ctx, fresh, "The checkpoint is of another cluster",
			zap.String("checkpoint_cluster", c.cluster), zap.String("cluster", cluster))
	}
	if unreadable > 0 {
		c.logger.Error("A part of the checkpoint cannot be read; continuing without it", zap.Int("entries", unreadable), zap.Error(example))
	}
	c.ledger.Settle(time.Now())
	if c.journal.IsNew() {
		c.logger.Info("No checkpoint in the storage: this is a first start; start_at decides whether existing events are emitted")
	} else {
		c.logger.Info("Resuming from the checkpoint", zap.Int("events_remembered", c.ledger.Len()))
	}
	return nil
}

// setAside leaves the stored state where it is, and starts from scratch.
func (c *Checkpoint) setAside(ctx context.Context, fresh func() *ledger.Ledger, why string, fields ...zap.Field) (err error) {
	var key string
	if c.journal, key, err = journal.SetAside(ctx, c.client); err != nil {
		return err
	}
	c.ledger, c.cluster = fresh(), ""
	c.logger.Error(why+"; it is set aside, and the receiver starts from scratch: start_at decides whether existing events are emitted",
		append(fields, zap.String("set_aside", key))...)
	return nil
}

// restore restores what one write has. It returns how many entries cannot be read, and why one of them
// cannot.
func (c *Checkpoint) restore(written []byte) (unreadable int, example error) {
	for len(written) > 0 {
		key, value, rest, err := cutEntry(written)
		if err != nil {
			return unreadable + 1, err
		}
		written = rest
		if key == clusterKey {
			c.cluster = string(value)
		} else if err := c.ledger.Restore(key, value); err != nil {
			unreadable, example = unreadable+1, err
		}
	}
	return unreadable, example
}

// Note implements Progress. While nothing can be written, a snapshot replaces what has changed as soon as
// this has the size of a chunk.
func (c *Checkpoint) Note() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, value := range c.ledger.Changed() {
		c.changed = appendEntry(c.changed, key, value)
	}
	if c.wantsSnapshot || len(c.changed) > chunkBytes {
		c.snapshot, c.changed, c.wantsSnapshot = c.ledger.All(), nil, false
	}
	if c.isUnsavedLocked() {
		c.observer.Unsaved(c.saved)
		c.signal()
	}
}

func (c *Checkpoint) isUnsavedLocked() bool { return c.snapshot != nil || len(c.changed) > 0 }

// signal lets the saver write, and at once if a stream was listed for the first time: a first start that
// is not noted would be followed by another first start, and what happens between them is lost.
func (c *Checkpoint) signal() {
	before := c.listed
	if c.listed = c.ledger.Listed(); c.listed > before {
		c.saver.signalAtOnce()
		return
	}
	c.saver.signal()
}

// End implements Progress.
func (c *Checkpoint) End(ctx context.Context) { c.saver.end(ctx) }

// write writes what waits. If it cannot, this waits on.
func (c *Checkpoint) write(ctx context.Context) error {
	began := time.Now()
	late := time.AfterFunc(slowWrite, func() {
		c.observer.Failed(storagePart, "slow",
			"Writing the checkpoint takes long; waiting. Events are still delivered, but a crash repeats more of them", errSlowWrite)
	})
	err := c.put(ctx)
	late.Stop()
	if err != nil {
		c.observer.NotSaved()
		c.observer.Failed(storagePart, "unavailable",
			"Cannot write the checkpoint; retrying. Events are still delivered, but a crash repeats more of them", err)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantsSnapshot, c.saved = c.journal.WantsSnapshot(), began
	if c.observer.Saved(); c.isUnsavedLocked() {
		c.observer.Unsaved(began)
	}
	c.observer.Works(storagePart, "The checkpoint is written again")
	return nil
}

// put writes the snapshot that is due, or the entry that could not be written before, and then what has
// changed since.
func (c *Checkpoint) put(ctx context.Context) (err error) {
	if snapshot := c.takeSnapshot(); snapshot == nil {
		err = c.journal.Retry(ctx)
	} else if err = c.journal.Snapshot(ctx, c.chunksOf(snapshot)); err != nil {
		c.putBack(snapshot)
	}
	if err != nil {
		return err
	}
	return c.journal.Append(ctx, c.takeChanged())
}

func (c *Checkpoint) takeSnapshot() (snapshot iter.Seq2[string, []byte]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	snapshot, c.snapshot = c.snapshot, nil
	return snapshot
}

// putBack puts a snapshot back, unless there is a newer one: what has changed follows that one.
func (c *Checkpoint) putBack(snapshot iter.Seq2[string, []byte]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot == nil {
		c.snapshot = snapshot
	}
}

// takeChanged returns what has changed since the last write; nothing if it follows a snapshot that is not
// written yet.
func (c *Checkpoint) takeChanged() (changed []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot == nil {
		changed, c.changed = c.changed, nil
	}
	return changed
}

// chunksOf encodes a snapshot. Each chunk is encoded when the one before is written: a full disk has
// room for none.
func (c *Checkpoint) chunksOf(snapshot iter.Seq2[string, []byte]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		chunk := appendEntry(nil, clusterKey, []byte(c.cluster))
		for key, value := range snapshot {
			if len(chunk) >= chunkBytes {
				if !yield(chunk) {
					return
				}
				chunk = nil
			}
			chunk = appendEntry(chunk, key, value)
		}
		yield(chunk)
	}
}

// appendEntry appends an entry: the lengths of its key and its value, each with its bytes. The length of
// a value counts from 1; 0 is an entry that is gone.
func appendEntry(to []byte, key string, value []byte) []byte {
	to = append(binary.AppendUvarint(to, uint64(len(key))), key...)
	if value == nil {
		return binary.AppendUvarint(to, 0)
	}
	return append(binary.AppendUvarint(to, uint64(len(value))+1), value...)
}

var errCutShort = errors.New("an entry is cut short")

// cutEntry returns the first entry of what was written, and the rest.
func cutEntry(written []byte) (key string, value, rest []byte, err error) {
	length, n := binary.Uvarint(written)
	if n <= 0 || length > uint64(len(written)-n) {
		return "", nil, nil, errCutShort
	}
	key, written = string(written[n:n+int(length)]), written[n+int(length):]
	length, n = binary.Uvarint(written)
	if n <= 0 || length > uint64(len(written)-n)+1 {
		return "", nil, nil, errCutShort
	}
	written = written[n:]
	if length == 0 {
		return key, nil, written, nil
	}
	return key, written[:length-1], written[length-1:], nil
}
