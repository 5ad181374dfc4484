// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// foundObject returns an object as the resolver returns it, with a label.
func foundObject(t testing.TB, name string) *resolver.Object {
	t.Helper()
	var b []byte
	for field, text := range map[protowire.Number]string{2: "Pod", 4: name, 5: "uid-" + name} {
		b = protowire.AppendTag(b, field, protowire.BytesType)
		b = protowire.AppendString(b, text)
	}
	o := &resolver.Object{}
	require.NoError(t, o.UnmarshalBinary(b))
	o.Labels = map[string]string{"app": "fe"}
	return o
}

func withObjects(wanted ...string) Config {
	config := configured("")
	config.Objects, config.Kept = 10, extract.Kept{Labels: extract.Keys{Named: wanted}}
	return config
}

func using(m *Memory, objects ...*resolver.Object) *Memory {
	m.Use([]observation.Observation{{Chain: resolver.Chain{Objects: objects}}})
	return m
}

func TestAStoredObjectHasTagsIfAllThatAreWantedWereKept(t *testing.T) {
	pod := foundObject(t, "a")
	untagged := foundObject(t, "a")
	untagged.Labels = nil
	for name, test := range map[string]struct {
		kept, wanted []string
		want         *resolver.Object
	}{
		"the same":  {[]string{"app"}, []string{"app"}, pod},
		"fewer":     {[]string{"app", "team"}, []string{"app"}, pod},
		"more":      {[]string{"app"}, []string{"app", "team"}, untagged},
		"none kept": {nil, []string{"app"}, untagged},
	} {
		t.Run(name, func(t *testing.T) {
			m := using(New(withObjects(test.kept...), start), pod)
			for range 3 {
				m = restarted(t, m, withObjects(test.wanted...))
				assert.Equal(t, []*resolver.Object{test.want}, m.Objects())
			}
		})
	}
}

func TestObjectsThatLoseTheirTagsAreSavedWithoutThem(t *testing.T) {
	m := using(New(withObjects("app"), start), foundObject(t, "a"))
	m = restarted(t, m, withObjects("app", "team"))
	assert.Equal(t, 1, m.Unsaved(), "the next checkpoint names the new labels")
	assert.Zero(t, restarted(t, m, withObjects("app", "team")).Unsaved())
}

func TestWithoutOwnersNoObjectIsSavedOrRestored(t *testing.T) {
	none := withObjects("app")
	none.Objects = 0
	m := using(New(none, start), foundObject(t, "a"))
	assert.Zero(t, m.Unsaved())

	m = restarted(t, using(New(withObjects("app"), start), foundObject(t, "a")), none)
	assert.Empty(t, m.Objects())
	assert.Equal(t, 1, m.Unsaved(), "they are removed from the checkpoint")
	m = restarted(t, m, withObjects("app"))
	assert.Empty(t, m.Objects())
}

func TestObjectsAreSavedWithTheOtherEntries(t *testing.T) {
	on := values{}
	now := start.Add(time.Minute)
	m, store := New(withObjects("app"), start), checkpoint.New(on)
	defer store.Close()
	using(m, foundObject(t, "a"), foundObject(t, "b"), resolver.Reference{Kind: "Pod", Name: "c"}.Object())
	require.NoError(t, store.Save(t.Context(), m.Content()))
	m, _ = opened(t, on, withObjects("app"), now)
	assert.ElementsMatch(t, []*resolver.Object{foundObject(t, "a"), foundObject(t, "b")}, m.Objects())
	using(m, foundObject(t, "b"))
	assert.Zero(t, m.Unsaved(), "only what changes is saved again")
}
