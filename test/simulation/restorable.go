// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
)

// restoredOneIn is which share of the writes to storage is restored. It takes longer than a write.
const restoredOneIn = 40

// checkRestorable restores what storage holds into an empty memory, after a write, or a part of it,
// has been applied. No entry may be refused, and each would be saved again as it was.
func (e *environment) checkRestorable() { unnoted(e.restoreStored) }

func (e *environment) restoreStored() {
	held := e.storage.clone()
	m := memory.New(memory.Config{
		Coverage:      memory.Coverage{Namespaces: e.plan.Watched},
		DedupInterval: e.plan.Dedup,
		Counts:        true,
		Tally:         tally.Config{MaxSeries: e.plan.MaxSeries, SeriesTTL: e.plan.SeriesTTL, InitialZero: true},
		Saved:         true,
		Objects:       math.MaxInt32, // The storage may still hold objects that the receiver has no room for any more.
	}, time.Now())
	last := map[checkpoint.Key][]byte{}
	loaded, err := checkpoint.New(held).Load(context.Background(), func(key checkpoint.Key, value []byte) error {
		last[key] = bytes.Clone(value)
		refused := m.Restore(key, value)
		if refused != nil {
			e.violate(restorable, "", "storage holds an entry %q that cannot be restored: %.300v", key[0], refused)
		}
		return refused
	})
	for key, value := range last {
		if err == nil && !bytes.Equal(m.Value(key), value) {
			e.violate(restorable, "", "storage holds %.300q, and %.300q is restored", value, m.Value(key))
		}
	}
	if err == nil && loaded != nil {
		err = m.Settle(loaded.State, time.Now())
	}
	if errors.Is(err, checkpoint.ErrCorrupt) && e.plan.Elector && e.haveTwoLed() {
		return // Leaders of two clusters write into one storage: each lease is in its cluster.
	}
	if err != nil {
		e.violate(restorable, "", "what storage holds cannot be restored: %.300v", err)
		return
	}
	if most := mostStoredFixed + mostStored*len(last); held.bytes() > most {
		e.violate(boundedBytes, "", "storage holds %d bytes for %d entries", held.bytes(), len(last))
	}
}

// clone returns the content as it is. It can only be read.
func (s *storageContent) clone() *snapshotClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &snapshotClient{storage.NewNopClient(), maps.Clone(s.values)}
}

// snapshotClient reads a storageContent as it was.
type snapshotClient struct {
	storage.Client
	values map[string][]byte
}

func (c *snapshotClient) Batch(_ context.Context, operations ...*storage.Operation) error {
	for _, op := range operations {
		op.Value = bytes.Clone(c.values[op.Key])
	}
	return nil
}

func (c *snapshotClient) bytes() (sum int) {
	for _, value := range c.values {
		sum += len(value)
	}
	return sum
}
