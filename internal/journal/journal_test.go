// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/journal"
)

var errCrash = errors.New("the process ended")

// memory is a storage client that fails after some writes.
type memory struct {
	values map[string][]byte
	writes int // that are left; negative: any number
	reads  int

	isUnreadable bool   // all reads fail
	isUnanswered bool   // a head of two chunks is applied, but its write fails
	missing      []byte // the value of a missing key
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.reads++
	if m.isUnreadable {
		return nil, errCrash
	}
	if value, ok := m.values[key]; ok {
		return value, nil
	}
	return m.missing, nil
}

func (m *memory) write() error {
	left := m.writes
	if left != 0 {
		m.writes--
	}
	if left == 0 {
		return errCrash
	}
	return nil
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	if err := m.write(); err != nil {
		return err
	}
	m.values[key] = value
	if m.isUnanswered && key == "head" && strings.Contains(string(value), `"chunks":2`) {
		return errCrash
	}
	return nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	if err := m.write(); err != nil {
		return err
	}
	delete(m.values, key)
	return nil
}

func (m *memory) Batch(ctx context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		change := func() error { return m.Set(ctx, op.Key, op.Value) }
		if op.Type == storage.Delete {
			change = func() error { return m.Delete(ctx, op.Key) }
		}
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}

func (*memory) Close(context.Context) error { return nil }

func open(t *testing.T, m *memory) (j *journal.Journal, stored []string) {
	t.Helper()
	j, err := journal.Open(t.Context(), m, func(value []byte) error {
		stored = append(stored, string(value))
		return nil
	})
	require.NoError(t, err)
	return j, stored
}

// chunks returns the chunks of a snapshot.
func chunks(all ...string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, one := range all {
			if !yield([]byte(one)) {
				return
			}
		}
	}
}

// life writes a snapshot, appends two entries, replaces everything by a snapshot, and appends one more.
func life(ctx context.Context, j *journal.Journal) error {
	return errors.Join(
		j.Snapshot(ctx, chunks("-")), j.Append(ctx, []byte("a")), j.Append(ctx, []byte("b")),
		j.Snapshot(ctx, chunks("a", "b")), j.Append(ctx, []byte("c")),
	)
}

func TestJournalIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string][]byte{"a missing key has no value": nil, "a missing key has an empty value": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{values: map[string][]byte{}, writes: -1, missing: empty}
			j, stored := open(t, m)
			assert.Empty(t, stored)
			assert.True(t, j.IsNew())
			require.NoError(t, life(t.Context(), j))
			j, stored = open(t, m)
			assert.Equal(t, []string{"a", "b", "c"}, stored)
			assert.False(t, j.IsNew())
			assert.Len(t, m.values, 4, "the head, two chunks and an entry")
		})
	}
}

// TestAnEntryNeedsASnapshotOfItsProcess: an entry of the process before may arrive late, at the same key.
func TestAnEntryNeedsASnapshotOfItsProcess(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.ErrorContains(t, j.Append(t.Context(), []byte("a")), "snapshot")
	require.NoError(t, life(t.Context(), j))
	j, _ = open(t, m)
	require.ErrorContains(t, j.Append(t.Context(), []byte("d")), "snapshot")
	_, stored := open(t, m)
	assert.Equal(t, []string{"a", "b", "c"}, stored)
}

// TestAnEntryNeedsASnapshotThatIsStored: after a crash, another head would hide the entry.
func TestAnEntryNeedsASnapshotThatIsStored(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.NoError(t, j.Snapshot(t.Context(), chunks("a")))
	m.writes = 3 // The second head fails.
	require.ErrorIs(t, j.Snapshot(t.Context(), chunks("a", "b")), errCrash)
	m.writes = -1
	require.ErrorContains(t, j.Append(t.Context(), []byte("c")), "snapshot")
	_, stored := open(t, m)
	assert.Equal(t, []string{"a"}, stored)
}

// TestASnapshotIsRepeatedAfterAHeadWithoutAnAnswer: the storage has the head of the first try. Whichever write of the second
// try is the last one, all can be read.
func TestASnapshotIsRepeatedAfterAHeadWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for writes := range 8 {
		m := &memory{values: map[string][]byte{}, writes: -1}
		j, _ := open(t, m)
		require.NoError(t, errors.Join(j.Snapshot(t.Context(), chunks("a")), j.Append(t.Context(), []byte("b"))))
		m.isUnanswered = true
		require.ErrorIs(t, j.Snapshot(t.Context(), chunks("a", "b")), errCrash)
		m.isUnanswered, m.writes = false, writes
		_ = j.Snapshot(t.Context(), chunks("a", "b"))
		m.writes = -1
		_, stored := open(t, m)
		assert.Equal(t, []string{"a", "b"}, stored, "after %d writes", writes)
	}
}

// TestASnapshotLooksOnlyForWhatMayBeLeft: its cost does not grow with the number of snapshots.
func TestASnapshotLooksOnlyForWhatMayBeLeft(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	reads := func() int {
		before := m.reads
		require.NoError(t, j.Snapshot(t.Context(), chunks("a")))
		return m.reads - before
	}
	reads()
	want := reads()
	for range 10 {
		assert.Equal(t, want, reads())
	}
}

// TestAnEntryIsRepeatedAsItIs: it keeps its key and its value, and the next one does not overtake it.
// Storage may take a head, but no chunk, for days.
func TestASnapshotThatIsRepeatedForDaysLooksOnlyForWhatTheLastAttemptLeft(t *testing.T) {
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.NoError(t, j.Snapshot(t.Context(), chunks("first")))
	for range 1000 {
		m.writes = 2 // The head, and the first chunk. The next attempt removes it.
		if len(m.values) > 2 {
			m.writes++
		}
		require.Error(t, j.Snapshot(t.Context(), chunks("second", "third")))
		require.LessOrEqual(t, len(m.values), 3, "the head, the first snapshot, and what the last attempt left")
	}
	m.writes, m.reads = -1, 0
	require.NoError(t, j.Snapshot(t.Context(), chunks("second", "third")))
	assert.Less(t, m.reads, 20)
	_, stored := open(t, m)
	assert.Equal(t, []string{"second", "third"}, stored)
	assert.Len(t, m.values, 3)
}

func TestAnEntryIsRepeatedAsItIs(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.NoError(t, j.Snapshot(t.Context(), chunks("-")))
	m.writes = 0
	require.ErrorIs(t, j.Append(t.Context(), []byte("a")), errCrash)
	require.ErrorIs(t, j.Retry(t.Context()), errCrash)
	require.ErrorIs(t, j.Append(t.Context(), []byte("b")), errCrash)
	m.writes = -1
	require.NoError(t, j.Append(t.Context(), []byte("c")))
	_, stored := open(t, m)
	assert.Equal(t, []string{"-", "a", "c"}, stored)
	require.NoError(t, j.Retry(t.Context()))
	_, again := open(t, m)
	assert.Equal(t, stored, again, "nothing is left to repeat")
}

// TestASnapshotReplacesAnEntryThatFailed: the entry is not appended to what has it already.
func TestASnapshotReplacesAnEntryThatFailed(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.NoError(t, j.Snapshot(t.Context(), chunks("-")))
	m.writes = 0
	require.ErrorIs(t, j.Append(t.Context(), []byte("a")), errCrash)
	m.writes = -1
	require.NoError(t, j.Snapshot(t.Context(), chunks("b")))
	require.NoError(t, j.Append(t.Context(), []byte("c")))
	_, stored := open(t, m)
	assert.Equal(t, []string{"b", "c"}, stored)
}

// TestCrash: whichever write is the last one, what was stored before can be read, and the next process
// leaves nothing of what is not needed.
func TestCrash(t *testing.T) {
	t.Parallel()
	for writes := range 12 {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			m := &memory{values: map[string][]byte{}, writes: writes}
			j, _ := open(t, m)
			want := []string{}
			if j.Snapshot(t.Context(), chunks("a", "b")) == nil {
				want = []string{"a", "b"}
			}
			if j.Append(t.Context(), []byte("c")) == nil {
				want = append(want, "c")
			}
			if j.Snapshot(t.Context(), chunks("abc")) == nil {
				want = []string{"abc"}
			}
			m.writes = -1
			j, stored := open(t, m)
			assert.Equal(t, want, append([]string{}, stored...))
			require.NoError(t, j.Snapshot(t.Context(), chunks("d")))
			_, stored = open(t, m)
			assert.Equal(t, []string{"d"}, stored)
			assert.Len(t, m.values, 2, "the head and a chunk")
		})
	}
}

// TestAStorageThatCannotBeRead: nothing is taken for empty.
func TestAStorageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.NoError(t, life(t.Context(), j))
	before := maps.Clone(m.values)
	m.isUnreadable = true
	_, err := journal.Open(t.Context(), m, func([]byte) error { return nil })
	require.ErrorIs(t, err, errCrash)
	_, _, err = journal.SetAside(t.Context(), m)
	require.ErrorIs(t, err, errCrash)
	require.ErrorIs(t, j.Snapshot(t.Context(), chunks("a")), errCrash)
	delete(before, "head") // It names the same generation.
	delete(m.values, "head")
	assert.Equal(t, before, m.values)
}

// TestASnapshotIsWanted when the entries take more than the snapshot, and more than 4 MiB, and after a start.
func TestASnapshotIsWanted(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	megabytes := func(n int) []byte { return make([]byte, n<<20) }
	check := func(wanted bool, when string) {
		t.Helper()
		assert.Equal(t, wanted, j.WantsSnapshot(), when)
		again, _ := open(t, m)
		assert.True(t, again.WantsSnapshot(), "%s, after a start", when)
	}
	check(true, "nothing is stored")
	require.NoError(t, j.Snapshot(t.Context(), chunks("-")))
	check(false, "a snapshot")
	require.NoError(t, errors.Join(j.Append(t.Context(), megabytes(3)), j.Append(t.Context(), megabytes(1))))
	check(false, "4 MiB of entries")
	require.NoError(t, j.Append(t.Context(), []byte("a")))
	check(true, "more than 4 MiB of entries")
	require.NoError(t, j.Snapshot(t.Context(), slices.Values([][]byte{megabytes(3), megabytes(3)})))
	check(false, "a snapshot of 6 MiB")
	require.NoError(t, j.Append(t.Context(), megabytes(6)))
	check(false, "as much in entries")
	require.NoError(t, j.Append(t.Context(), []byte("a")))
	check(true, "more in entries")
}

func TestStrangeContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ head, message string }{
		"no JSON":         {"x", "the key head"},
		"a newer format":  {`{"format":2}`, "the format is 2"},
		"a missing chunk": {`{"format":1,"generation":1,"chunks":3}`, "part 2 of the stored state: the stored state cannot be read: it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{values: map[string][]byte{"head": []byte(c.head), "1/0": []byte("a"), "1/1": []byte("b")}, writes: -1}
			_, err := journal.Open(t.Context(), m, func([]byte) error { return nil })
			assert.ErrorContains(t, err, c.message)
		})
	}
}

// TestSetAside: what another cluster's process stored stays, and the next journal starts from scratch.
func TestSetAside(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.NoError(t, life(t.Context(), j))
	head, before := m.values["head"], maps.Clone(m.values)
	j, key, err := journal.SetAside(t.Context(), m)
	require.NoError(t, err)
	assert.Equal(t, head, m.values[key])
	assert.True(t, j.IsNew())
	_, stored := open(t, m)
	assert.Empty(t, stored)
	require.NoError(t, j.Snapshot(t.Context(), chunks("d")))
	j, stored = open(t, m)
	assert.Equal(t, []string{"d"}, stored)
	require.NoError(t, j.Snapshot(t.Context(), chunks("e")))
	delete(before, "head")
	for name, value := range before {
		assert.Equal(t, value, m.values[name], "the key %s stays", name)
	}
}

// TestARemovalThatFails: a full disk may refuse to delete what a snapshot has replaced. The snapshot
// counts all the same, the journal can be read, and the next snapshot deletes the rest.
func TestARemovalThatFails(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.NoError(t, errors.Join(j.Snapshot(t.Context(), chunks("a")), j.Append(t.Context(), []byte("b"))))
	m.writes = 4 // the head, the chunk, the head, and one of two removals
	require.NoError(t, j.Snapshot(t.Context(), chunks("ab")))
	assert.Len(t, m.values, 3)
	m.writes = -1
	require.NoError(t, j.Append(t.Context(), []byte("c")))
	restarted := &memory{values: maps.Clone(m.values), writes: -1}
	again, stored := open(t, restarted)
	assert.Equal(t, []string{"ab", "c"}, stored)
	for _, next := range []struct {
		*journal.Journal
		*memory
	}{{j, m}, {again, restarted}} {
		require.NoError(t, next.Snapshot(t.Context(), chunks("abc")))
		assert.Len(t, next.values, 2, "the head and a chunk")
	}
}

// TestWhatVersion010Wrote: a crash of it can have left the generation before, and a part of the one after.
func TestWhatVersion010Wrote(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{
		"head": []byte(`{"format":1,"generation":2,"chunks":1}`),
		"0/0":  []byte("set aside"), "1/0": []byte("-"), "2/0": []byte("a"), "2/1": []byte("b"), "3/0": []byte("-"), "3/1": []byte("-"),
	}, writes: -1}
	j, stored := open(t, m)
	assert.Equal(t, []string{"a", "b"}, stored)
	require.NoError(t, j.Snapshot(t.Context(), chunks("ab")))
	_, stored = open(t, m)
	assert.Equal(t, []string{"ab"}, stored)
	assert.Len(t, m.values, 3, "the head, the chunk, and what was set aside")
}
