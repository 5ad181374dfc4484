// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// disk is a storage whose writes can be torn, lost, or lose their answer.
type disk struct {
	values map[string][]byte
	// tear returns how many operations of the next write are applied; nil: all.
	tear func(n int) int
	// err is what the next write returns, applied or not.
	err error
	// read is what reads return; nil: they work.
	read  error
	wrote int           // bytes
	gate  chan struct{} // nil: calls return at once
}

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

var errDisk = errors.New("the disk fails")

func (d *disk) Get(_ context.Context, key string) ([]byte, error) {
	if d.gate != nil {
		<-d.gate
	}
	return bytes.Clone(d.values[key]), d.read
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Close(context.Context) error { return nil }

func (d *disk) Batch(_ context.Context, operations ...*storage.Operation) error {
	if d.gate != nil {
		<-d.gate
	}
	applied := len(operations)
	if d.tear != nil {
		applied = d.tear(applied)
	}
	for _, o := range operations[:applied] {
		if o.Type == storage.Delete {
			delete(d.values, o.Key)
			continue
		}
		d.values[o.Key] = bytes.Clone(o.Value)
		d.wrote += len(o.Key) + len(o.Value)
	}
	err := d.err
	d.tear, d.err = nil, nil
	return err
}

// entries are what a checkpoint is taken of.
type entries map[Key][]byte

func (e entries) Value(k Key) []byte  { return e[k] }
func (e entries) Keys() iter.Seq[Key] { return maps.Keys(e) }
func (e entries) clone() entries      { return maps.Clone(e) }

func key(n int) (k Key) {
	binary.BigEndian.PutUint64(k[1:], uint64(n))
	return k
}

func load(t require.TestingT, d *disk) (*Store, *Loaded, entries) {
	s, restored := New(d), entries{}
	loaded, err := s.Load(context.Background(), func(k Key, value []byte) error {
		if value == nil {
			delete(restored, k)
		} else {
			restored[k] = bytes.Clone(value)
		}
		return nil
	})
	require.NoError(t, err)
	return s, loaded, restored
}

// model is a receiver that saves batches, and knows what it may find after a crash.
type model struct {
	random *rand.Rand
	disk   *disk
	store  *Store
	now    entries
	// saved is what the last acknowledged write has, and next what a write has that was not
	// acknowledged; nil: there is none.
	saved, next *content
	number      int
}

// content is what one write saves.
type content struct {
	entries entries
	outbox  [][]byte
	state   string
}

func (m *model) change() (changed []Key) {
	for range m.random.IntN(60) {
		k := key(m.random.IntN(3000))
		changed = append(changed, k)
		if m.random.IntN(3) == 0 {
			delete(m.now, k)
			continue
		}
		m.number++
		m.now[k] = fmt.Appendf(nil, "%d-%s", m.number, bytes.Repeat([]byte("x"), m.random.IntN(200)))
	}
	return changed
}

func (m *model) save() {
	m.number++
	changed, state := m.change(), fmt.Sprintf(`"%d"`, m.number)
	var outbox [][]byte
	for i := range m.random.IntN(4) {
		outbox = append(outbox, fmt.Appendf(nil, "request %d of %d", i, m.number))
	}
	m.next = &content{entries: m.now.clone(), outbox: outbox, state: state}
	err := m.store.Save(context.Background(), Content{State: []byte(state), Changed: changed, Source: m.now, Outbox: outbox})
	if err == nil {
		m.saved, m.next = m.next, nil
	}
}

// restart loads the checkpoint after a crash and compares it with what it may have.
func (m *model) restart(t *testing.T) {
	store, loaded, restored := load(t, m.disk)
	for _, possible := range []*content{m.saved, m.next} {
		if possible != nil && loaded != nil && possible.state == string(loaded.State) {
			if !maps.EqualFunc(possible.entries, restored, bytes.Equal) {
				assert.Equal(t, possible.entries, restored)
			}
			assert.Equal(t, possible.outbox, loaded.Outbox)
			m.store, m.saved, m.next, m.now = store, possible, nil, restored.clone()
			return
		}
	}
	require.Nil(t, loaded, "a checkpoint that was never written")
	require.Nil(t, m.saved, "the last acknowledged checkpoint is lost")
	m.store, m.next, m.now = store, nil, entries{}
}

// TestACrashFindsTheLastWriteOrTheOneBefore saves random changes into a disk whose writes are torn and
// lose their answers, and restarts now and then, also with terms, while late writes of leaders
// before arrive.
func TestACrashFindsTheLastWriteOrTheOneBefore(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := &model{random: random, disk: newDisk(), now: entries{}}
		m.store = New(m.disk)
		terms := seed%2 == 0
		m.restart(t)
		for range 300 {
			switch random.IntN(30) {
			case 0:
				late := m.store
				m.restart(t)
				if terms {
					m.store.BeginTerm()
					m.save()
					if late.pending != nil {
						_ = m.disk.Batch(context.Background(), late.pending.operations...)
					}
				}
			case 1:
				m.disk.err = errDisk // The answer is lost.
			case 2:
				m.disk.err, m.disk.tear = errDisk, random.IntN
			}
			if !m.store.IsSettled() {
				if err := m.store.Settle(context.Background()); err != nil {
					continue
				}
				m.saved, m.next = m.next, nil
			}
			m.save()
		}
		m.restart(t)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestALateWriteOfADeposedLeaderReachesNothing(t *testing.T) {
	d := newDisk()
	old, _, _ := load(t, d)
	old.BeginTerm()
	now := entries{key(1): []byte("a")}
	require.NoError(t, old.Save(t.Context(), Content{State: []byte("1"), Changed: []Key{key(1)}, Source: now, Outbox: [][]byte{[]byte("one")}}))
	now[key(2)] = []byte("b")
	late := old.journal.write(Content{State: []byte("2"), Changed: []Key{key(2)}, Source: now, Outbox: [][]byte{[]byte("two")}})

	next, loaded, restored := load(t, d)
	require.Equal(t, [][]byte{[]byte("one")}, loaded.Outbox)
	next.BeginTerm()
	require.NoError(t, next.Save(t.Context(), Content{State: []byte("3"), Source: restored, KeepOutbox: true}))
	require.NoError(t, d.Batch(t.Context(), late.operations...))

	_, loaded, restored = load(t, d)
	assert.Equal(t, "3", string(loaded.State))
	assert.Equal(t, [][]byte{[]byte("one")}, loaded.Outbox)
	assert.Equal(t, 1, loaded.Starts)
	assert.Equal(t, entries{key(1): []byte("a")}, restored)
}

func TestTheStorageHoldsNoMoreThanItNeeds(t *testing.T) {
	d := newDisk()
	s, _, _ := load(t, d)
	now := entries{}
	for i := range 20_000 {
		k := key(i % 500)
		now[k] = fmt.Appendf(nil, "value %d", i)
		require.NoError(t, s.Save(t.Context(), Content{State: []byte("1"), Changed: []Key{k}, Source: now, Outbox: [][]byte{[]byte("request")}}))
	}
	assert.Less(t, len(d.values), 4000)
	total := 0
	for _, value := range d.values {
		total += len(value)
	}
	assert.Less(t, total, 400_000)
	head, err := decodeHead(d.values[headKey(1)])
	require.NoError(t, err)
	assert.Less(t, len(head.encode()), 1500)
}

func TestACheckpointThatCannotBeUsedIsSetAside(t *testing.T) {
	for name, damage := range map[string]func(d *disk){
		"the head is cut short":    func(d *disk) { d.values["head/1"] = d.values["head/1"][:10] },
		"the head is gone":         func(d *disk) { delete(d.values, "head/1") },
		"an entry is gone":         func(d *disk) { delete(d.values, span{journalKind, 1, 0, 1}.key(0)) },
		"a bit has changed":        func(d *disk) { d.values[span{outboxKind, 1, 0, 1}.key(0)][0] ^= 1 },
		"the term is not a number": func(d *disk) { d.values["term"] = seal([]byte("one")) },
		"of a later version":       func(d *disk) { h := newHead(1); h.Version++; d.values["head/1"] = h.encode() },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			s, _, _ := load(t, d)
			now := entries{key(1): []byte("a")}
			require.NoError(t, s.Save(t.Context(), Content{State: []byte("1"), Changed: []Key{key(1)}, Source: now, Outbox: [][]byte{[]byte("one")}}))
			damage(d)
			kept := maps.Clone(d.values)

			s = New(d)
			_, err := s.Load(t.Context(), func(Key, []byte) error { return nil })
			require.ErrorIs(t, err, ErrCorrupt)
			s.SetAside()
			now = entries{key(2): []byte("b")}
			require.NoError(t, s.Save(t.Context(), Content{State: []byte("2"), Changed: []Key{key(2)}, Source: now}))
			for k, value := range kept {
				if k != termKey {
					assert.Equal(t, value, d.values[k], "%s is overwritten", k)
				}
			}
			_, loaded, restored := load(t, d)
			assert.Equal(t, "2", string(loaded.State))
			assert.Equal(t, now, restored)
		})
	}
}

func TestAStorageThatHangsFailsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		s, _, _ := load(t, d)
		d.gate = make(chan struct{})
		began := time.Now()
		err := s.Save(t.Context(), Content{State: []byte("1"), Source: entries{}})
		require.ErrorIs(t, err, ErrNotAcknowledged)
		assert.Equal(t, Deadline, time.Since(began))
		require.ErrorIs(t, s.Save(t.Context(), Content{}), ErrNotAcknowledged, "no other write begins")
		close(d.gate)
		<-s.Attempt()
		require.NoError(t, s.Poll())
		assert.True(t, s.IsSettled())
	})
}

func FuzzLoad(f *testing.F) {
	d := newDisk()
	s := New(d)
	now := entries{key(1): []byte("a"), key(2): {}}
	_ = s.Save(context.Background(), Content{State: []byte("1"), Changed: []Key{key(1), key(2), key(3)}, Source: now, Outbox: [][]byte{[]byte("one")}})
	for k, value := range d.values {
		f.Add(k, value)
	}
	f.Fuzz(func(t *testing.T, k string, value []byte) {
		damaged := &disk{values: maps.Clone(d.values)}
		damaged.values[k] = value
		_, err := New(damaged).Load(t.Context(), func(Key, []byte) error { return nil })
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		}
	})
}
