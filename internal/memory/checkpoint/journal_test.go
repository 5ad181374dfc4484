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
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// disk is a storage whose writes can be torn, lose their answer, or arrive late.
type disk struct {
	values map[string][]byte
	// tear returns how many of n operations a write that fails applies; nil: all.
	tear func(n int) int
	// skip returns whether a write that fails leaves out an operation, and goes on; nil: none.
	skip func(i int) bool
	// fails is how many of the next writes fail, applied or not.
	fails int
	// read is what reads return; nil: they work.
	read   error
	wrote  int           // bytes
	gate   chan struct{} // nil: calls return at once
	before func()        // called before each call; nil: nothing
	failed [][]*storage.Operation
}

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

var errDisk = errors.New("the disk fails")

func (d *disk) Get(ctx context.Context, key string) ([]byte, error) {
	read := storage.GetOperation(key)
	err := d.Batch(ctx, read)
	return read.Value, err
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
	if before := d.before; before != nil {
		d.before = nil
		before()
		d.before = before
	}
	if isRead := !slices.ContainsFunc(operations, func(o *storage.Operation) bool { return o.Type != storage.Get }); isRead {
		d.apply(operations)
		return d.read
	}
	if d.fails == 0 {
		d.apply(operations)
		return nil
	}
	d.fails--
	d.failed = append(d.failed, operations)
	applied := len(operations)
	if d.tear != nil {
		applied = d.tear(applied + 1)
	}
	for i, o := range operations[:applied] {
		if d.skip == nil || !d.skip(i) {
			d.apply([]*storage.Operation{o})
		}
	}
	return errDisk
}

func (d *disk) apply(operations []*storage.Operation) {
	for _, o := range operations {
		switch o.Type {
		case storage.Delete:
			delete(d.values, o.Key)
		case storage.Set:
			d.values[o.Key] = bytes.Clone(o.Value)
			d.wrote += len(o.Key) + len(o.Value)
		case storage.Get:
			o.Value = bytes.Clone(d.values[o.Key])
		}
	}
}

// keys returns the keys with a prefix, in their order.
func (d *disk) keys(prefix string) (found []string) {
	for _, k := range slices.Sorted(maps.Keys(d.values)) {
		if strings.HasPrefix(k, prefix) {
			found = append(found, k)
		}
	}
	return found
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
	// possible has what a crash may leave: the last acknowledged write, and those that were not
	// acknowledged, which may yet arrive. Nil is an empty disk.
	possible []*content
	late     []lateWrite
	number   int
}

// lateWrite is a write that failed, and may yet arrive.
type lateWrite struct {
	by         *Store
	operations []*storage.Operation
}

func (w *lateWrite) names() bool {
	return slices.ContainsFunc(w.operations, func(o *storage.Operation) bool {
		return o.Key == termKey && o.Type == storage.Set
	})
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
	m.possible = append(m.possible, &content{entries: m.now.clone(), outbox: outbox, state: state})
	m.saved(m.store.Save(context.Background(), Content{State: []byte(state), Changed: changed, Source: m.now, Outbox: outbox}))
}

func (m *model) settle() { m.saved(m.store.Settle(context.Background())) }

// saved takes the result of the last write.
func (m *model) saved(err error) {
	for _, operations := range m.disk.failed {
		m.late = append(m.late, lateWrite{m.store, operations})
	}
	m.disk.failed = nil
	if err == nil {
		m.possible = m.possible[len(m.possible)-1:]
	}
}

// restart loads the checkpoint after a crash and compares it with what it may have.
func (m *model) restart(t *testing.T) {
	if m.store != nil {
		m.store.Close()
	}
	if m.random.IntN(2) == 0 {
		m.disk.fails = 0
	}
	store, loaded, restored := load(t, m.disk)
	m.store, m.now = store, restored.clone()
	if loaded == nil {
		require.Contains(t, m.possible, (*content)(nil), "the last acknowledged checkpoint is lost")
		return
	}
	for i, possible := range m.possible {
		if possible == nil || possible.state != string(loaded.State) {
			continue
		}
		if !maps.EqualFunc(possible.entries, restored, bytes.Equal) {
			require.Equal(t, possible.entries, restored)
		}
		require.Equal(t, possible.outbox, loaded.Outbox)
		// It is the present one. The others may still arrive.
		m.possible = append(slices.Delete(m.possible, i, i+1), possible)
		return
	}
	require.Fail(t, "a checkpoint that was never written, or one that others have replaced")
}

// TestACrashFindsTheLastWriteOrTheOneBefore saves random changes into a disk whose writes are torn,
// lose their answers and arrive late, also those of processes before, and restarts now and then.
func TestACrashFindsTheLastWriteOrTheOneBefore(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := &model{random: random, disk: newDisk(), possible: []*content{nil}}
		m.restart(t)
		m.disk.fails, m.disk.tear = random.IntN(2), random.IntN
		for range 300 {
			switch random.IntN(20) {
			case 0:
				m.restart(t)
			case 1:
				m.disk.fails, m.disk.tear = 1+random.IntN(6), nil // The answer is lost.
			case 2:
				m.disk.fails, m.disk.tear = 1+random.IntN(6), random.IntN
			case 3, 4:
				m.arriveLate()
				if random.IntN(2) == 0 {
					m.restart(t)
				}
			}
			if random.IntN(100) == 0 || !m.store.IsSettled() && random.IntN(10) == 0 {
				m.setAside()
			}
			if !m.store.IsSettled() && random.IntN(5) == 0 {
				m.restart(t)
			}
			if !m.store.IsSettled() {
				if m.settle(); !m.store.IsSettled() {
					continue
				}
			}
			m.save()
		}
		m.restart(t)
		m.store.Close()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// arriveLate applies a write that failed some time ago, or the beginning of it.
func (m *model) arriveLate() {
	if len(m.late) == 0 {
		return
	}
	i := len(m.late) - 1 - m.random.IntN(min(len(m.late), 1+m.random.IntN(30)))
	late := m.late[i]
	m.late = slices.Delete(m.late, i, i+1)
	present := m.store.journal
	before := m.disk.values[headKey(present.named)]
	m.disk.apply(late.operations[:m.random.IntN(len(late.operations)+1)])
	named, err := m.store.term(context.Background())
	isForgotten := err == nil && named < present.named && !slices.Contains(present.acknowledged.Former, named)
	isReplaced := late.names() && late.by != m.store && len(m.possible) == 1 &&
		!bytes.Equal(before, m.disk.values[headKey(present.named)])
	// A write may be too late: it names a term whose head is deleted, or it is the first write of a
	// session that had loaded the same checkpoint as this one. The next writes repair it.
	if isForgotten || isReplaced {
		m.settleAndSave()
		m.settleAndSave()
	}
}

// settleAndSave saves until it succeeds.
func (m *model) settleAndSave() {
	for !m.store.IsSettled() {
		m.settle()
	}
	m.save()
	for !m.store.IsSettled() {
		m.settle()
	}
}

// setAside begins another checkpoint.
func (m *model) setAside() {
	m.store.SetAside()
	m.now = entries{}
	m.save()
}

func TestARepeatedWriteIsComplete(t *testing.T) {
	for at := range 7 {
		for name, fault := range map[string]func(d *disk){
			"torn":                    func(d *disk) { d.tear = func(n int) int { return min(n-1, at) } },
			"an operation is missing": func(d *disk) { d.skip = func(i int) bool { return i == at } },
		} {
			d := newDisk()
			fault(d)
			s, _, _ := load(t, d)
			for i := range 2 {
				d.fails = 1
				now := entries{key(1): {byte(i)}}
				require.NoError(t, s.Save(t.Context(), Content{State: []byte("1"), Changed: []Key{key(1)}, Source: now, Outbox: [][]byte{{byte(i)}}}))
				_, loaded, restored := load(t, &disk{values: maps.Clone(d.values)})
				require.NotNil(t, loaded, "%s, %d", name, at)
				assert.Equal(t, [][]byte{{byte(i)}}, loaded.Outbox)
				assert.Equal(t, now, restored)
			}
		}
	}
}

func TestALateWriteOfADeposedLeaderReachesNothing(t *testing.T) {
	d := newDisk()
	old, _, _ := load(t, d)
	now := entries{key(1): []byte("a")}
	require.NoError(t, old.Save(t.Context(), Content{State: []byte("1"), Changed: []Key{key(1)}, Source: now, Outbox: [][]byte{[]byte("one")}}))
	now[key(2)] = []byte("b")
	late := old.journal.write(Content{State: []byte("2"), Changed: []Key{key(2)}, Source: now, Outbox: [][]byte{[]byte("two")}})

	next, loaded, restored := load(t, d)
	require.Equal(t, [][]byte{[]byte("one")}, loaded.Outbox)
	require.NoError(t, next.Save(t.Context(), Content{State: []byte("3"), Source: restored, KeepOutbox: true}))
	require.NoError(t, d.Batch(t.Context(), late.operations...))

	_, loaded, restored = load(t, d)
	assert.Equal(t, "3", string(loaded.State))
	assert.Equal(t, [][]byte{[]byte("one")}, loaded.Outbox)
	assert.Equal(t, 1, loaded.Starts)
	assert.Equal(t, entries{key(1): []byte("a")}, restored)
}

func TestTheStorageHoldsNoMoreThanItNeeds(t *testing.T) {
	for name, fault := range map[string]func(d *disk, i int){
		"": func(*disk, int) {},
		"although deletions and answers are lost": func(d *disk, i int) {
			if i%50 == 0 {
				d.fails, d.tear = 1, func(n int) int { return n / 2 }
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			s, _, _ := load(t, d)
			now := entries{}
			for i := range 20_000 {
				if i%1000 == 999 {
					s.Close()
					s, _, _ = load(t, d)
				}
				fault(d, i)
				k := key(i % 500)
				now[k] = fmt.Appendf(nil, "value %d", i)
				require.NoError(t, s.Save(t.Context(), Content{State: []byte("1"), Changed: []Key{k}, Source: now, Outbox: [][]byte{[]byte("request")}}))
			}
			s.Close()
			assert.Less(t, len(d.values), 6000)
			total := 0
			for _, value := range d.values {
				total += len(value)
			}
			assert.Less(t, total, 500_000)
			assert.LessOrEqual(t, len(d.keys("o/")), 3)
			assert.LessOrEqual(t, len(d.keys("head/")), formerHeads+2)
			for _, k := range d.keys("head/") {
				assert.Less(t, len(d.values[k]), 2000)
			}
		})
	}
}

func TestACheckpointThatCannotBeUsedIsSetAside(t *testing.T) {
	for name, damage := range map[string]func(d *disk){
		"the head is cut short":    func(d *disk) { d.values[d.keys("head/")[0]] = d.values[d.keys("head/")[0]][:10] },
		"the head is gone":         func(d *disk) { delete(d.values, d.keys("head/")[0]) },
		"an entry is gone":         func(d *disk) { delete(d.values, d.keys("j/")[0]) },
		"a bit has changed":        func(d *disk) { d.values[d.keys("o/")[0]][0] ^= 1 },
		"the term is not a number": func(d *disk) { d.values["term"] = seal([]byte("one")) },
		"the head has no number":   func(d *disk) { d.values[d.keys("head/")[0]] = seal([]byte(`{"version":1,"term":"one"}`)) },
		"of a later version":       func(d *disk) { h := newHead(1); h.Version++; d.values[d.keys("head/")[0]] = h.encode() },
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
				if k != termKey && k != claimKey {
					assert.Equal(t, value, d.values[k], "%s is overwritten", k)
				}
			}
			if term, err := decodeTerm(kept[termKey]); err == nil {
				assert.Equal(t, encodeTerm(term), d.values[setAsideKey], "it can be found")
			}
			_, loaded, restored := load(t, d)
			assert.Equal(t, "2", string(loaded.State))
			assert.Equal(t, now, restored)
		})
	}
}

func TestAHeadWithoutNumbersIsContinued(t *testing.T) {
	d := newDisk()
	s, _, _ := load(t, d)
	require.NoError(t, saveOne(t, s, 1))
	d.values[d.keys("head/")[0]] = seal(fmt.Appendf(nil, `{"version":1,"term":%d}`, s.journal.named))
	s, _, _ = load(t, d)
	require.NoError(t, saveOne(t, s, 2))
	_, loaded, restored := load(t, d)
	assert.Equal(t, "2", string(loaded.State))
	assert.Len(t, restored, 1)
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

// slowDisk takes a while to answer.
type slowDisk struct {
	*disk
	answered bool
}

func (d *slowDisk) Batch(ctx context.Context, operations ...*storage.Operation) error {
	time.Sleep(closeWait / 2)
	defer func() { d.answered = true }()
	return d.disk.Batch(ctx, operations...)
}

func TestCloseWaitsForAWriteThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDisk{disk: newDisk()}
		s := New(d)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Save(ctx, Content{Source: entries{}}), context.Canceled)
		s.Close()
		synctest.Wait()
		assert.True(t, d.answered)
	})
}

// TestAMapMayChangeWhileItIsRead checks what the specification of Go says of a range over a map,
// also for one that iter.Pull suspends while the map grows by far, and that another goroutine
// continues.
func TestAMapMayChangeWhileItIsRead(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		const lasting = 500
		m, seen := entries{}, map[Key]int{}
		for i := range lasting + random.IntN(2000) {
			m[key(i)] = nil
		}
		next, stop := iter.Pull(m.Keys())
		for open := true; open; {
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range random.IntN(50) {
					var k Key
					if k, open = next(); open {
						seen[k]++
					}
				}
			}()
			<-done
			for range random.IntN(500) {
				k := key(lasting + random.IntN(20_000))
				if random.IntN(3) == 0 {
					m[k] = nil
				} else {
					delete(m, k)
				}
			}
		}
		stop()
		for i := range lasting {
			require.Equal(t, 1, seen[key(i)], "seed %d", seed)
		}
	}
}

// TestNothingIsLeftRunning ends sessions while a snapshot is being written. A goroutine that is
// left would keep the bubble from ending.
func TestNothingIsLeftRunning(t *testing.T) {
	for name, end := range map[string]func(s *Store){
		"close":     (*Store).Close,
		"set aside": func(s *Store) { s.SetAside() },
		"load": func(s *Store) {
			_, err := s.Load(context.Background(), func(Key, []byte) error { return nil })
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, now := New(newDisk()), entries{}
				var changed []Key
				for i := range 20_000 {
					changed = append(changed, key(i))
					now[key(i)] = bytes.Repeat([]byte("x"), 30)
				}
				for s.journal.keys == nil {
					require.NoError(t, s.Save(t.Context(), Content{State: []byte("1"), Changed: changed[:100], Source: now}))
				}
				go end(s)
				synctest.Wait()
				assert.Nil(t, s.journal.keys)
			})
		})
	}
}

func TestRequestsMayShareABuffer(t *testing.T) {
	d := newDisk()
	buffer := []byte("onetwothree, and room for more")
	outbox := [][]byte{buffer[:3], buffer[3:6], buffer[6:11]}
	require.NoError(t, New(d).Save(t.Context(), Content{State: []byte("1"), Source: entries{}, Outbox: outbox}))
	assert.Equal(t, "onetwothree, and room for more", string(buffer))
	_, loaded, _ := load(t, d)
	assert.Equal(t, [][]byte{[]byte("one"), []byte("two"), []byte("three")}, loaded.Outbox)
}

// TestASnapshotIsCompleteAlthoughSessionsAreShort restarts long before a snapshot of all entries
// could be complete at the usual pace.
func TestASnapshotIsCompleteAlthoughSessionsAreShort(t *testing.T) {
	d, now := newDisk(), entries{}
	var all []Key
	for i := range 3000 {
		all = append(all, key(i))
		now[key(i)] = bytes.Repeat([]byte("x"), 30)
	}
	s := New(d)
	require.NoError(t, s.Save(t.Context(), Content{State: []byte("1"), Changed: all, Source: now}))
	most, random := 0, rand.New(rand.NewPCG(1, 2))
	for i := range 600 {
		from := random.IntN(len(all) - 50)
		require.NoError(t, s.Save(t.Context(), Content{State: []byte("1"), Changed: all[from : from+50], Source: now}))
		if i%2 == 1 {
			s.Close()
			s, _, _ = load(t, d)
			most = max(most, s.journal.acknowledged.JournalBytes)
		}
	}
	s.Close()
	assert.Less(t, most, 6*s.journal.acknowledged.SnapshotBytes)
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
