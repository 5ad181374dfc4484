// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

	isBrief      bool   // only one write fails
	isUnreadable bool   // all reads fail
	unanswered   string // the key of which writes arrive, but fail; empty: none
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	if m.isUnreadable {
		return nil, errCrash
	}
	return m.values[key], nil
}

func (m *memory) write() error {
	left := m.writes
	if left != 0 || m.isBrief {
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
	if key == m.unanswered {
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

// life appends two entries, replaces them by a snapshot, and appends one more.
func life(ctx context.Context, j *journal.Journal) error {
	return errors.Join(
		j.Append(ctx, []byte("a")), j.Append(ctx, []byte("b")),
		j.Snapshot(ctx, [][]byte{[]byte("a"), []byte("b")}),
		j.Append(ctx, []byte("c")),
	)
}

func TestJournalIsReadAgain(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, stored := open(t, m)
	assert.Empty(t, stored)
	require.NoError(t, life(t.Context(), j))
	_, stored = open(t, m)
	assert.Equal(t, []string{"a", "b", "c"}, stored)
	assert.Len(t, m.values, 4, "the head, two chunks and an entry")
}

// TestCrash: whichever write is the last one, what was stored before can be read.
func TestCrash(t *testing.T) {
	t.Parallel()
	for writes := range 9 {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			m := &memory{values: map[string][]byte{}, writes: writes}
			j, _ := open(t, m)
			acknowledged := 0
			for _, entry := range []string{"a", "b"} {
				if j.Append(t.Context(), []byte(entry)) == nil {
					acknowledged++
				}
			}
			_ = j.Snapshot(t.Context(), [][]byte{[]byte("a"), []byte("b")}[:acknowledged])
			m.writes = -1
			j, stored := open(t, m)
			assert.Equal(t, []string{"a", "b"}[:acknowledged], append([]string{}, stored...))
			require.NoError(t, j.Append(t.Context(), []byte("c")))
			before := maps.Clone(m.values)
			_, stored = open(t, m)
			assert.Equal(t, append([]string{"a", "b"}[:acknowledged:acknowledged], "c"), stored)
			assert.Equal(t, before, m.values, "nothing is left to remove")
		})
	}
}

// surplus is a chunk that the next snapshot does not have.
const surplus = "-"

// TestAWriteThatFails: whichever write fails, those after it succeed, and all that was acknowledged can be read.
func TestAWriteThatFails(t *testing.T) {
	t.Parallel()
	for writes := range 16 {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			m := &memory{values: map[string][]byte{}, writes: writes, isBrief: true}
			j, _ := open(t, m)
			acknowledged := ""
			isKept := func() {
				t.Helper()
				_, stored := open(t, &memory{values: maps.Clone(m.values), writes: -1})
				assert.Equal(t, acknowledged, strings.ReplaceAll(strings.Join(stored, ""), surplus, ""))
			}
			for _, entry := range []string{"a", "b", "c", "d", "e"} {
				if j.Append(t.Context(), []byte(entry)) == nil {
					acknowledged += entry
				}
				isKept()
				if entry == "b" || entry == "d" {
					_ = j.Snapshot(t.Context(), [][]byte{[]byte(acknowledged), []byte(surplus), []byte(surplus)})
					isKept()
					_ = j.Snapshot(t.Context(), [][]byte{[]byte(acknowledged)})
					isKept()
				}
			}
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
	require.ErrorIs(t, j.Snapshot(t.Context(), [][]byte{[]byte("a")}), errCrash)
	assert.Equal(t, before, m.values)
}

// TestASnapshotIsWanted when the entries take more than the snapshot, and more than 4 MiB, also after a restart.
func TestASnapshotIsWanted(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	megabytes := func(n int) []byte { return make([]byte, n<<20) }
	check := func(wanted bool, when string) {
		t.Helper()
		assert.Equal(t, wanted, j.WantsSnapshot(), when)
		again, _ := open(t, m)
		assert.Equal(t, wanted, again.WantsSnapshot(), "%s, after a restart", when)
	}
	check(false, "nothing is stored")
	require.NoError(t, errors.Join(j.Append(t.Context(), megabytes(3)), j.Append(t.Context(), megabytes(1))))
	check(false, "4 MiB of entries")
	require.NoError(t, j.Append(t.Context(), []byte("a")))
	check(true, "more than 4 MiB of entries")
	require.NoError(t, j.Snapshot(t.Context(), [][]byte{megabytes(3), megabytes(3)}))
	check(false, "a snapshot of 6 MiB")
	require.NoError(t, j.Append(t.Context(), megabytes(6)))
	check(false, "as much in entries")
	require.NoError(t, j.Append(t.Context(), []byte("a")))
	check(true, "more in entries")
}

// TestHeadWithoutAnAnswer: a snapshot whose head arrived, although its write failed, does not hide the
// entries that come after it.
func TestHeadWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: -1}
	j, _ := open(t, m)
	require.NoError(t, j.Append(t.Context(), []byte("a")))
	m.unanswered = "head"
	require.ErrorIs(t, j.Snapshot(t.Context(), [][]byte{[]byte("a")}), errCrash)
	m.unanswered = ""
	require.NoError(t, j.Append(t.Context(), []byte("b")))
	_, stored := open(t, m)
	assert.Equal(t, []string{"a", "b"}, stored)
}

// TestASnapshotAfterOneThatFailed: what the first one left is not read as entries of the second one.
func TestASnapshotAfterOneThatFailed(t *testing.T) {
	t.Parallel()
	m := &memory{values: map[string][]byte{}, writes: 3}
	j, _ := open(t, m)
	require.ErrorIs(t, j.Snapshot(t.Context(), [][]byte{[]byte("a"), []byte("b"), []byte("c")}), errCrash)
	m.writes = -1
	require.NoError(t, j.Snapshot(t.Context(), [][]byte{[]byte("a")}))
	_, stored := open(t, m)
	assert.Equal(t, []string{"a"}, stored)
}

func TestStrangeContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ head, message string }{
		"no JSON":         {"x", "the key head"},
		"a newer format":  {`{"format":2}`, "the format is 2"},
		"a missing chunk": {`{"format":1,"generation":1,"chunks":1}`, "it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{values: map[string][]byte{"head": []byte(c.head)}, writes: -1}
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
	require.NoError(t, j.Append(t.Context(), []byte("d")))
	_, stored := open(t, m)
	assert.Equal(t, []string{"d"}, stored)
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
	require.NoError(t, errors.Join(j.Append(t.Context(), []byte("a")), j.Append(t.Context(), []byte("b"))))
	m.writes = 3 // the chunk, the head, and one of two removals
	require.NoError(t, j.Snapshot(t.Context(), [][]byte{[]byte("ab")}))
	j, stored := open(t, m)
	assert.Equal(t, []string{"ab"}, stored)
	m.writes = -1
	restarted := &memory{values: maps.Clone(m.values), writes: -1}
	open(t, restarted)
	assert.Len(t, restarted.values, 2, "a restart deletes the rest, too")
	require.NoError(t, j.Append(t.Context(), []byte("c")))
	require.NoError(t, j.Snapshot(t.Context(), [][]byte{[]byte("ab"), []byte("c")}))
	assert.Len(t, m.values, 3, "the head and two chunks")
}
