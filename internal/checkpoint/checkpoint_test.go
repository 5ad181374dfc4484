// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// memory is a storage client that keeps everything in memory, as transactions.
type memory struct {
	values map[string][]byte
	fail   error
	bytes  int // written so far
}

func newMemory() *memory { return &memory{values: map[string][]byte{}} }

func (m *memory) Get(_ context.Context, key string) ([]byte, error) { return m.values[key], m.fail }

func (m *memory) Set(ctx context.Context, key string, value []byte) error {
	return m.Batch(ctx, storage.SetOperation(key, value))
}

func (m *memory) Delete(ctx context.Context, key string) error {
	return m.Batch(ctx, storage.DeleteOperation(key))
}

func (m *memory) Batch(_ context.Context, operations ...*storage.Operation) error {
	if m.fail != nil {
		return m.fail
	}
	for _, op := range operations {
		switch op.Type {
		case storage.Set:
			m.values[op.Key] = bytes.Clone(op.Value)
			m.bytes += len(op.Value)
		case storage.Delete:
			delete(m.values, op.Key)
		case storage.Get:
			op.Value = m.values[op.Key]
		}
	}
	return nil
}

func (m *memory) Close(context.Context) error { return nil }

// entries are what a checkpoint is taken of.
type entries map[Key][]byte

func (e entries) Value(key Key) []byte { return e[key] }
func (e entries) Len() int             { return len(e) }

func key(n int) (k Key) {
	binary.BigEndian.PutUint64(k[1:], uint64(n))
	return k
}

func value(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// load reads what a new process would find.
func load(t *testing.T, client storage.Client) (entries, string) {
	t.Helper()
	restored := entries{}
	state, found, err := New(client).Load(t.Context(), func(k Key, v []byte) error {
		if v == nil {
			delete(restored, k)
		} else {
			restored[k] = bytes.Clone(v)
		}
		return nil
	})
	require.NoError(t, err)
	require.True(t, found)
	return restored, string(state)
}

func TestNothingIsThereAtTheFirstStart(t *testing.T) {
	_, found, err := New(newMemory()).Load(t.Context(), nil)
	require.NoError(t, err)
	assert.False(t, found)
}

func TestWhatWasSavedIsLoaded(t *testing.T) {
	client, present := newMemory(), entries{key(1): value(1), key(2): value(2)}
	s := New(client)
	require.NoError(t, s.Save(t.Context(), []byte("one"), []Key{key(1), key(2)}, present))
	delete(present, key(1))
	present[key(2)], present[key(3)] = value(20), value(3)
	require.NoError(t, s.Save(t.Context(), []byte("two"), []Key{key(1), key(2), key(3)}, present))
	restored, state := load(t, client)
	assert.Equal(t, present, restored)
	assert.Equal(t, "two", state)
}

func TestRandomHistoriesComeBackWhole(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 3))
		client, present := newMemory(), entries{}
		s := New(client)
		for round := range 300 {
			changed := map[Key]struct{}{}
			for range random.IntN(40) {
				k := key(random.IntN(500))
				changed[k] = struct{}{}
				if random.IntN(3) == 0 {
					delete(present, k)
				} else {
					present[k] = value(round)
				}
			}
			keys := make([]Key, 0, len(changed))
			for k := range changed {
				keys = append(keys, k)
			}
			if random.IntN(10) == 0 {
				client.fail = storage.ErrStorageFull
				require.ErrorIs(t, s.Save(t.Context(), nil, keys, present), storage.ErrStorageFull)
				client.fail = nil
			}
			require.NoError(t, s.Save(t.Context(), nil, keys, present))
			if random.IntN(20) == 0 {
				restored, _ := load(t, client)
				require.Equal(t, present, restored, "seed %d, round %d", seed, round)
				s = New(client)
				_, _, err := s.Load(t.Context(), func(Key, []byte) error { return nil })
				require.NoError(t, err)
			}
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	client, present := newMemory(), entries{}
	s := New(client)
	for round := range 2000 {
		present[key(round%50)] = value(round)
		require.NoError(t, s.Save(t.Context(), nil, []Key{key(round % 50)}, present))
	}
	assert.Less(t, len(client.values), 60, "runs are merged, and what they replace is deleted")
	referred := map[string]bool{headKey: true}
	for _, r := range s.head.runs {
		for chunk := range r.chunks() {
			referred[r.key(chunk)] = true
		}
	}
	for name := range maps.Keys(client.values) {
		assert.True(t, referred[name], name)
	}
}

func TestACheckpointCostsWhatChangedNotWhatLives(t *testing.T) {
	written := func(live int) int {
		client, present := newMemory(), entries{}
		s := New(client)
		var all []Key
		for i := range live {
			present[key(i)] = value(i)
			all = append(all, key(i))
		}
		require.NoError(t, s.Save(t.Context(), nil, all, present))
		client.bytes = 0
		for round := range 500 {
			var changed []Key
			for i := range 20 {
				k := key((round*20 + i) % live)
				present[k] = value(round)
				changed = append(changed, k)
			}
			require.NoError(t, s.Save(t.Context(), nil, changed, present))
		}
		return client.bytes
	}
	small, large := written(20_000), written(200_000)
	assert.Less(t, large, 2*small, "ten times the entries must not cost ten times as much")
}

func TestDamage(t *testing.T) {
	damages := map[string]func(*memory){
		"the head is cut short":          func(m *memory) { m.values[headKey] = m.values[headKey][:3] },
		"the head has a flipped bit":     func(m *memory) { m.values[headKey][4] ^= 1 },
		"the head is of another version": func(m *memory) { m.values[headKey][0] = version + 1 },
		"a run is missing":               func(m *memory) { delete(m.values, "run/0/0") },
		"a run is cut short":             func(m *memory) { m.values["run/0/0"] = m.values["run/0/0"][:10] },
		"a run has a flipped bit":        func(m *memory) { m.values["run/0/0"][9] ^= 1 },
		"the head is empty":              func(m *memory) { m.values[headKey] = []byte{} },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			client, present := newMemory(), entries{key(1): value(1)}
			require.NoError(t, New(client).Save(t.Context(), []byte("state"), []Key{key(1)}, present))
			damage(client)
			s := New(client)
			_, found, err := s.Load(t.Context(), func(Key, []byte) error { return nil })
			require.ErrorIs(t, err, ErrDamaged)
			assert.False(t, found)

			require.NoError(t, s.SetAside(t.Context()))
			assert.Contains(t, client.values, setAsideKey)
			_, found, err = s.Load(t.Context(), nil)
			require.NoError(t, err)
			assert.False(t, found)
			require.NoError(t, s.Save(t.Context(), []byte("anew"), []Key{key(1)}, present))
			restored, state := load(t, client)
			assert.Equal(t, present, restored)
			assert.Equal(t, "anew", state)
		})
	}
}

func TestAStorageThatFailsIsNotADamagedCheckpoint(t *testing.T) {
	client := newMemory()
	client.fail = errors.New("away")
	_, _, err := New(client).Load(t.Context(), nil)
	require.ErrorIs(t, err, client.fail)
	require.NotErrorIs(t, err, ErrDamaged)
}

func FuzzDecode(f *testing.F) {
	h := head{nextID: 3, runs: []run{{1, 5, 1}}, state: []byte("state")}
	f.Add(h.encode())
	for chunk := range encodeChunks([]Key{key(1)}, entries{key(1): value(1)}) {
		f.Add(chunk)
	}
	f.Add([]byte{version, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, stored []byte) {
		// With and without a checksum that fits, so that the decoders behind it are reached.
		for _, b := range [][]byte{stored, seal(append([]byte{version}, stored...))} {
			if _, err := decodeHead(b); err != nil {
				require.ErrorIs(t, err, ErrDamaged)
			}
			if err := decodeChunk(b, func(Key, []byte) error { return nil }); err != nil {
				require.ErrorIs(t, err, ErrDamaged)
			}
		}
	})
}
