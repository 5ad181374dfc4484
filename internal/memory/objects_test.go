// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// foundObject returns an object as the resolver returns it, with a label.
func foundObject(t testing.TB, name string) *resolver.Object {
	t.Helper()
	var b []byte
	for _, text := range []string{"", "Pod", "", name, "uid-" + name, "", "", "", "", "", "", "0"} {
		b = append(binary.AppendUvarint(b, uint64(len(text))+1), text...)
	}
	o := &resolver.Object{}
	require.NoError(t, o.UnmarshalBinary(b))
	o.Labels = map[string]string{"app": "fe"}
	return o
}

func withObjects() Config {
	config := configured("")
	config.Objects = 10
	return config
}

func using(m *Memory, objects ...*resolver.Object) *Memory {
	m.Use([]observation.Observation{{Chain: resolver.Chain{Objects: objects}}})
	return m
}

// A restarted process emits the same tags, also if the API server does not answer.
func TestTheObjectsOfTagsAreSaved(t *testing.T) {
	m := New(withObjects(), start)
	m.Use([]observation.Observation{{TagSources: []*resolver.Object{foundObject(t, "node")}}})
	assert.Equal(t, []*resolver.Object{foundObject(t, "node")}, restarted(t, m, withObjects()).Objects())
}

func TestWithoutOwnersNoObjectIsSavedOrRestored(t *testing.T) {
	none := withObjects()
	none.Objects = 0
	m := using(New(none, start), foundObject(t, "a"))
	assert.Zero(t, m.Unsaved())

	m = restarted(t, using(New(withObjects(), start), foundObject(t, "a")), none)
	assert.Empty(t, m.Objects())
	assert.Equal(t, 1, m.Unsaved(), "they are removed from the checkpoint")
	m = restarted(t, m, withObjects())
	assert.Empty(t, m.Objects())
}

func TestObjectsAreSavedWithTheOtherEntries(t *testing.T) {
	on := values{}
	now := start.Add(time.Minute)
	m, store := New(withObjects(), start), checkpoint.New(on)
	defer store.Close()
	using(m, foundObject(t, "a"), foundObject(t, "b"), resolver.Reference{Kind: "Pod", Name: "c"}.Object())
	require.NoError(t, store.Save(t.Context(), m.Content()))
	m, _ = opened(t, on, withObjects(), now)
	assert.ElementsMatch(t, []*resolver.Object{foundObject(t, "a"), foundObject(t, "b")}, m.Objects())
	using(m, foundObject(t, "b"))
	assert.Zero(t, m.Unsaved(), "only what changes is saved again")
}

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
