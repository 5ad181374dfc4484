// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// legacyDisk is a disk with a checkpoint of the version before.
func legacyDisk(t *testing.T) *disk {
	t.Helper()
	d := newDisk()
	stored, err := os.ReadFile("testdata/v2.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(stored, &d.values))
	return d
}

// legacyKeys returns the keys that the version before wrote.
func legacyKeys(d *disk) []string {
	return append(append(d.keys("run/"), d.keys("note")...), present(d, "head")...)
}

func present(d *disk, key string) []string {
	if _, ok := d.values[key]; !ok {
		return nil
	}
	return []string{key}
}

func TestACrashBetweenTheVersionsFindsOneOfThem(t *testing.T) {
	for cut, complete := 0, false; !complete; cut++ {
		d := legacyDisk(t)
		s, loaded, before := load(t, d)
		assert.Contains(t, string(loaded.State), `"257"`)
		require.Len(t, before, 241+5+4+1)

		changed := key(1)
		after := before.clone()
		after[changed] = []byte("changed")
		d.fails, d.tear = 2, func(n int) int {
			complete = cut >= n-1
			return min(cut, n-1)
		}
		err := s.Save(t.Context(), Content{State: []byte(`"new"`), Changed: []Key{changed}, Source: after, Outbox: [][]byte{[]byte("request")}})
		if err != nil {
			require.ErrorIs(t, err, ErrNotAcknowledged)
		}
		s.Close()

		next, loaded, restored := load(t, d)
		want := before
		if _, named := d.values[termKey]; named {
			want = after
			assert.Equal(t, `"new"`, string(loaded.State))
			assert.Equal(t, [][]byte{[]byte("request")}, loaded.Outbox)
		} else {
			assert.Contains(t, string(loaded.State), `"257"`)
			assert.Empty(t, loaded.Outbox)
			assert.Equal(t, legacyDisk(t).values["head"], d.values["head"])
		}
		require.Equal(t, want, restored, "after %d operations", cut)

		for range 3 {
			require.NoError(t, next.Save(t.Context(), Content{State: []byte(`"newer"`), Source: restored}))
		}
		assert.Empty(t, legacyKeys(d))
		_, loaded, again := load(t, d)
		assert.Equal(t, `"newer"`, string(loaded.State))
		assert.Equal(t, restored, again)
	}
}

func TestACorruptCheckpointOfTheVersionBeforeIsSetAside(t *testing.T) {
	for name, damage := range map[string]func(d *disk){
		"the head is cut short":   func(d *disk) { d.values["head"] = d.values["head"][:10] },
		"the head is empty":       func(d *disk) { d.values["head"] = []byte{} },
		"of the version before":   func(d *disk) { d.values["head"] = seal([]byte{legacyVersion - 1, 0, 0}) },
		"the number of runs lies": func(d *disk) { d.values["head"] = seal([]byte{legacyVersion, 1, 100, 1}) },
		"a run is gone":           func(d *disk) { delete(d.values, "run/17/2") },
		"a bit has changed":       func(d *disk) { d.values["run/8/1"][9] ^= 1 },
		"an entry is cut short":   func(d *disk) { d.values["run/8/1"] = seal([]byte{legacyVersion, 'e', 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			d := legacyDisk(t)
			damage(d)
			kept := maps.Clone(d.values)
			s := New(d)
			_, err := s.Load(t.Context(), func(Key, []byte) error { return nil })
			require.ErrorIs(t, err, ErrCorrupt)
			assert.Equal(t, "head", s.SetAside())
			now := entries{key(2): []byte("b")}
			for range 5 {
				require.NoError(t, s.Save(t.Context(), Content{State: []byte("2"), Changed: []Key{key(2)}, Source: now}))
			}
			for k, value := range kept {
				assert.Equal(t, value, d.values[k], "%s is overwritten", k)
			}
			_, loaded, restored := load(t, d)
			assert.Equal(t, "2", string(loaded.State))
			assert.Equal(t, now, restored)
		})
	}
}
