// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/journal"
)

// remote is storage of which writes fail: some of these are applied, some are not, and some are applied
// later, even when the process that made them has ended.
type remote struct {
	random *rand.Rand
	values map[string][]byte
	late   []*storage.Operation // in flight
	failed int                  // of ten writes
}

func (r *remote) Get(_ context.Context, key string) ([]byte, error) { return r.values[key], nil }

func (r *remote) Set(ctx context.Context, key string, value []byte) error {
	return r.Batch(ctx, storage.SetOperation(key, value))
}

func (r *remote) Delete(ctx context.Context, key string) error {
	return r.Batch(ctx, storage.DeleteOperation(key))
}

func (*remote) Close(context.Context) error { return nil }

// Batch applies operations. Those of one request may fail in the middle.
func (r *remote) Batch(_ context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		r.arrive()
		isFailed := r.random.IntN(10) < r.failed
		switch outcome := r.random.IntN(3); {
		case !isFailed || outcome == 0:
			r.apply(op)
		case outcome == 1:
			r.late = append(r.late, op)
		}
		if isFailed {
			return errCrash
		}
	}
	return nil
}

// arrive applies some of what is in flight, in any order.
func (r *remote) arrive() {
	for len(r.late) > 0 && r.random.IntN(4) == 0 {
		i := r.random.IntN(len(r.late))
		op := r.late[i]
		r.late = append(r.late[:i:i], r.late[i+1:]...)
		r.apply(op)
	}
}

// apply applies a write. A head that is in flight is lost, as the journal assumes.
func (r *remote) apply(op *storage.Operation) {
	if op.Type == storage.Delete {
		delete(r.values, op.Key)
		return
	}
	r.values[op.Key] = op.Value
	if op.Key == "head" {
		r.late = slices.DeleteFunc(r.late, func(other *storage.Operation) bool { return other.Key == "head" })
	}
}

// writer is a process that keeps numbers in a journal: each entry has those that have changed.
type writer struct {
	*remote
	t       *testing.T
	seed    uint64
	journal *journal.Journal
	state   map[string]int
	changed map[string]int
	wants   bool // a snapshot must succeed before anything is appended

	all   []map[string]int // the states that any process tried to store
	least int              // the index of the newest one that is surely stored
}

// restart reads the state. It must be one that was stored, and none from before the last one that surely was.
func (w *writer) restart() {
	w.state, w.changed, w.wants = map[string]int{}, map[string]int{}, true
	var err error
	w.journal, err = journal.Open(context.Background(), w.remote, func(value []byte) error { return json.Unmarshal(value, &w.state) })
	require.NoError(w.t, err, "seed %d", w.seed)
	for i := w.least; i < len(w.all); i++ {
		if maps.Equal(w.all[i], w.state) {
			w.least = i // The process relies on it.
			return
		}
	}
	require.Failf(w.t, "a state that was never stored, or is lost", "seed %d: %v is none of %v", w.seed, w.state, w.all[w.least:])
}

// change changes some numbers.
func (w *writer) change() {
	for range 1 + w.random.IntN(3) {
		key := strconv.Itoa(w.random.IntN(5))
		w.state[key]++
		w.changed[key] = w.state[key]
	}
}

// save stores the state as the checkpoint does.
func (w *writer) save() {
	tries := len(w.all)
	w.all = append(w.all, maps.Clone(w.state))
	if w.wants || w.random.IntN(10) == 0 {
		w.changed = map[string]int{}
		w.wants = w.journal.Snapshot(context.Background(), func(yield func([]byte) bool) {
			for key, value := range w.state {
				if !yield(fmt.Appendf(nil, `{%q:%d}`, key, value)) {
					return
				}
			}
		}) != nil
		if !w.wants {
			w.least = tries
		}
		return
	}
	if w.journal.Retry(context.Background()) != nil {
		return
	}
	entry, err := json.Marshal(w.changed)
	require.NoError(w.t, err)
	w.changed = map[string]int{}
	if w.journal.Append(context.Background(), entry) == nil {
		w.least = tries
	}
}

// TestWhatWasStoredIsReadWhateverFails: whichever writes fail, are applied all the same, or are applied later, and
// whenever a process is killed, the next one reads a whole state, and nothing that was stored is lost.
func TestWhatWasStoredIsReadWhateverFails(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := &remote{random: random, values: map[string][]byte{}, failed: random.IntN(6)}
		w := &writer{remote: r, t: t, seed: seed, all: []map[string]int{{}}}
		w.restart()
		for range 60 {
			if random.IntN(12) == 0 {
				w.restart()
			}
			w.change()
			w.save()
		}
		w.restart()
	}
}
