// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
	// chunkBytes is the size of a part of a snapshot.
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
	journal *journal.Journal // Only the saver uses it after Load.
	saver   saver

	mu      sync.Mutex        // guards the following
	changed map[string][]byte // by key, what is to be appended; a nil value is an entry that is gone
	// snapshot has all entries, and is written before what has changed since; nil: none is due.
	snapshot [][]byte
	// wantsSnapshot is set when the next Note is to make a snapshot.
	wantsSnapshot bool
	cluster       string    // UID; empty: it is not known
	saved         time.Time // when the last write began; the start if there was none
}

// NewCheckpoint returns a checkpoint in storage. It reads nothing yet.
func NewCheckpoint(client storage.Client, observer Observer, logger *zap.Logger) *Checkpoint {
	c := &Checkpoint{client: client, observer: observer, logger: logger, changed: map[string][]byte{}}
	c.saver = saver{every: checkpointEvery, write: c.write}
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
	if cluster != "" && cluster != c.cluster {
		c.cluster, c.changed[clusterKey] = cluster, []byte(cluster)
	}
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
	c.ledger.Track() // What Settle changes is to be noted, too.
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
	c.ledger.Track()
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

// Note implements Progress.
func (c *Checkpoint) Note() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wantsSnapshot {
		c.wantsSnapshot = false
		c.snapshotLocked()
	}
	for key, value := range c.ledger.Changed() {
		c.changed[key] = value
	}
	if len(c.changed) > 0 || c.snapshot != nil {
		c.observer.Unsaved(c.saved)
		c.signal()
	}
}

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

func (c *Checkpoint) snapshotLocked() {
	clear(c.changed)
	chunk := appendEntry(nil, clusterKey, []byte(c.cluster))
	c.snapshot = [][]byte{}
	for key, value := range c.ledger.All() {
		if chunk = appendEntry(chunk, key, value); len(chunk) >= chunkBytes {
			c.snapshot, chunk = append(c.snapshot, chunk), nil
		}
	}
	if len(chunk) > 0 { // Storage may return an empty value as if there was none.
		c.snapshot = append(c.snapshot, chunk)
	}
}

// End implements Progress.
func (c *Checkpoint) End(ctx context.Context) { c.saver.end(ctx) }

// write writes what waits. If it cannot, this waits on, below what has come in the meantime.
func (c *Checkpoint) write(ctx context.Context) error {
	snapshot, changed := c.take()
	began := time.Now()
	late := time.AfterFunc(slowWrite, func() {
		c.observer.Failed(storagePart, "slow",
			"Writing the checkpoint takes long; waiting. Events are still delivered, but a crash repeats more of them", errSlowWrite)
	})
	err := c.put(ctx, snapshot, changed)
	late.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.putBackLocked(snapshot, changed)
		c.observer.NotSaved()
		c.observer.Failed(storagePart, "unavailable",
			"Cannot write the checkpoint; retrying. Events are still delivered, but a crash repeats more of them", err)
		return err
	}
	c.wantsSnapshot, c.saved = c.wantsSnapshot || c.journal.WantsSnapshot(), began
	if c.observer.Saved(); len(c.changed) > 0 {
		c.observer.Unsaved(began)
	}
	c.observer.Works(storagePart, "The checkpoint is written again")
	return nil
}

func (c *Checkpoint) take() (snapshot [][]byte, changed map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	snapshot, changed = c.snapshot, c.changed
	c.snapshot, c.changed = nil, map[string][]byte{}
	return snapshot, changed
}

func (c *Checkpoint) put(ctx context.Context, snapshot [][]byte, changed map[string][]byte) error {
	if snapshot != nil {
		if err := c.journal.Snapshot(ctx, snapshot); err != nil {
			return err
		}
	}
	if len(changed) == 0 {
		return nil
	}
	var entry []byte
	for key, value := range changed {
		entry = appendEntry(entry, key, value)
	}
	return c.journal.Append(ctx, entry)
}

func (c *Checkpoint) putBackLocked(snapshot [][]byte, changed map[string][]byte) {
	if c.snapshot != nil {
		return // It has all of this.
	}
	c.snapshot = snapshot
	for key, value := range changed {
		if _, isNewer := c.changed[key]; !isNewer {
			c.changed[key] = value
		}
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
