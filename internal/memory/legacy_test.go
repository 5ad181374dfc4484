// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
)

// values is a storage in memory.
type values map[string][]byte

func (v values) Get(_ context.Context, key string) ([]byte, error)     { return v[key], nil }
func (v values) Set(_ context.Context, key string, value []byte) error { v[key] = value; return nil }
func (v values) Delete(_ context.Context, key string) error            { delete(v, key); return nil }
func (v values) Close(context.Context) error                           { return nil }
func (v values) Batch(_ context.Context, ops ...*storage.Operation) error {
	for _, o := range ops {
		switch o.Type {
		case storage.Get:
			o.Value = v[o.Key]
		case storage.Set:
			v[o.Key] = o.Value
		case storage.Delete:
			delete(v, o.Key)
		}
	}
	return nil
}

func opened(t *testing.T, on values, config Config, now time.Time) (*Memory, *checkpoint.Store) {
	t.Helper()
	m, store := New(config, now), checkpoint.New(on)
	t.Cleanup(store.Close)
	loaded, err := store.Load(t.Context(), m.Restore)
	require.NoError(t, err)
	require.NotNil(t, loaded)
	require.NoError(t, m.Settle(loaded.State, now))
	return m, store
}

// TestTheCheckpointOfTheVersionBeforeIsRead reads what that version wrote, and what this format was
// before it had objects. It had seen 60 events with counts from 1 to 5 before it started, of which
// 10 were deleted, and 181 since: 396 occurrences, of which 35 are held in 5 windows.
func TestTheCheckpointOfTheVersionBeforeIsRead(t *testing.T) {
	for _, file := range []string{"v2.json", "v3.json"} {
		t.Run(file, func(t *testing.T) { requireRead(t, file) })
	}
}

func requireRead(t *testing.T, file string) {
	t.Helper()
	on := values{}
	stored, err := os.ReadFile("checkpoint/testdata/" + file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(stored, &on))
	config := configured("")
	config.Coverage.FieldSelector, config.DedupInterval, config.Identity = "type=Normal", 48*time.Hour, "settings"
	config.Objects = 100
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)

	for _, version := range []string{"before", "this one"} {
		m, _ := opened(t, on, config, now)
		assert.Equal(t, 241, m.Len(), version)
		assert.EqualValues(t, 396, sumOf(m, now), version)
		assert.Equal(t, "257", m.Resume(""), version)
		assert.Equal(t, map[string]uint64{"": 257}, m.DeliveredUpTo(), version)
		assert.Equal(t, 5, m.Windows.Len(), version)
		assert.Equal(t, "2026-11-22T02", startOf(m, now).Format("2006-01-02T15"), version)
		held := int64(0)
		for _, o := range m.Windows.Flush(100) {
			held += o.Occurrences
		}
		assert.EqualValues(t, 35, held, version)

		m, store := opened(t, on, config, now)
		content := m.Content()
		assert.Empty(t, content.Changed, version)
		require.NoError(t, store.Save(t.Context(), content))
	}

	m, _ := opened(t, on, config, now)
	for i := range 60 {
		changed := ev("ns", fmt.Sprintf("before-%d", i), int32(i%5+1)+3, 1000)
		assert.EqualValues(t, 3, m.Change("", changed), "before-%d", i)
	}
	assert.EqualValues(t, 1, m.Change("", ev("ns", "round-0-0", 10, 1001)))
	assert.EqualValues(t, 1, m.Change("", ev("ns", "round-11-14", 3, 1002)))
}
