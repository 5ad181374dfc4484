// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/internal/large"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// found returns an object as the resolver returns it, with a label.
func found(t testing.TB, apiVersion, name, uid, label string) *resolver.Object {
	t.Helper()
	var b []byte
	for _, text := range []string{apiVersion, "Pod", "ns", name, uid, "", "", "", "", "", "", "0"} {
		b = append(binary.AppendUvarint(b, uint64(len(text))+1), text...)
	}
	o := &resolver.Object{}
	require.NoError(t, o.UnmarshalBinary(b))
	if label != "" {
		o.Labels = map[string]string{"app": label}
	}
	return o
}

func pod(t testing.TB, name, label string) *resolver.Object {
	t.Helper()
	return found(t, "v1", name, "uid-"+name, label)
}

func used(objects ...*resolver.Object) []*resolver.Object { return objects }

func tracking(size int) *Objects {
	o := New(size)
	o.Track()
	return o
}

// names are the remembered objects, the one that was used last at the end.
func names(o *Objects) (all []string) {
	for _, object := range o.All() {
		all = append(all, object.Name)
	}
	return all
}

// restarted returns what a restart restores, with room for size objects.
func restarted(t *testing.T, o *Objects, size int) *Objects {
	t.Helper()
	next := tracking(size)
	for k := range o.Keys() {
		require.NoError(t, next.Restore(k, o.Value(k)))
	}
	return next
}

func TestAnObjectIsSavedAgainOnlyIfItsContentHasChanged(t *testing.T) {
	first := pod(t, "a", "one")
	for name, test := range map[string]struct {
		then *resolver.Object
		want int
	}{
		"the same object":                 {first, 0},
		"read again, and not changed":     {pod(t, "a", "one"), 0},
		"read again in another version":   {found(t, "v2", "a", "uid-a", "one"), 0},
		"a label has changed":             {pod(t, "a", "two"), 1},
		"a label is gone":                 {pod(t, "a", ""), 1},
		"another object of the same name": {found(t, "v1", "a", "uid-2", "one"), 1},
		"of another group":                {found(t, "other/v1", "a", "uid-a", "one"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := tracking(10)
			o.Use(used(first))
			require.Len(t, o.TakeChanged(), 1)
			o.Use(used(test.then))
			assert.Equal(t, test.want, o.Changed())
			assert.Same(t, test.then, o.All()[len(o.All())-1], "the one that was read last is remembered")
			o.TakeChanged()
			o.Use(used(test.then))
			assert.Zero(t, o.Changed())
			assert.Equal(t, o.All(), restarted(t, o, 10).All())
		})
	}
}

func TestAnObjectThatIsKnownOnlyFromAReferenceIsNotRemembered(t *testing.T) {
	o := tracking(10)
	o.Use(used(resolver.Reference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "uid-a"}.Object()))
	assert.Empty(t, o.All())
	assert.Zero(t, o.Changed())
}

func TestTheObjectsThatWereUsedLastStay(t *testing.T) {
	a, b, c := pod(t, "a", ""), pod(t, "b", ""), pod(t, "c", "")
	o := tracking(2)
	o.Use(used(a, b, a))
	o.TakeChanged()
	o.Use(used(c))
	assert.Equal(t, []string{"a", "c"}, names(o))
	changed := map[string]bool{}
	for _, k := range o.TakeChanged() {
		changed[fmt.Sprint(o.Value(k) == nil)] = true
	}
	assert.Equal(t, map[string]bool{"true": true, "false": true}, changed, "the one that is forgotten is removed from the checkpoint")
	assert.Nil(t, o.Value(keyOf(b)))
	o.Use(used(b))
	assert.Equal(t, []string{"c", "b"}, names(o))
	assert.Equal(t, []string{"c", "b"}, names(restarted(t, o, 2)), "a restart keeps the order")
}

func TestAfterARestartWithLessRoomTheRestIsRemoved(t *testing.T) {
	a, b, c := pod(t, "a", ""), pod(t, "b", ""), pod(t, "c", "")
	o := tracking(3)
	o.Use(used(a, b, c))
	next := restarted(t, o, 2)
	assert.Equal(t, []string{"b", "c"}, names(next))
	assert.Equal(t, []Key{keyOf(a)}, next.TakeChanged())
	none := restarted(t, o, 0)
	assert.Empty(t, none.All())
	assert.ElementsMatch(t, []Key{keyOf(a), keyOf(b), keyOf(c)}, none.TakeChanged())
	none.Use(used(a))
	assert.Zero(t, len(none.All())+none.Changed())
}

func TestTheLastValueOfAnObjectIsRestored(t *testing.T) {
	o := tracking(3)
	old, now := pod(t, "a", "old"), pod(t, "a", "new")
	k := keyOf(old)
	require.NoError(t, o.Restore(k, encode(old)))
	require.NoError(t, o.Restore(k, encode(now)))
	assert.Equal(t, used(now), o.All())
	require.NoError(t, o.Restore(k, nil))
	assert.Empty(t, o.All())
	assert.Zero(t, o.Changed())
	require.NoError(t, o.Restore(k, nil))
	assert.Error(t, o.Restore(k, []byte("corrupt")))
}

func TestObjectsMayChangeWhileTheirKeysAreRead(t *testing.T) {
	o := tracking(3)
	a, b, c := pod(t, "a", ""), pod(t, "b", ""), pod(t, "c", "")
	o.Use(used(a, b))
	var read []Key
	for k := range o.Keys() {
		read = append(read, k)
		o.Use(used(pod(t, "b", ""), c))
	}
	assert.True(t, slices.Contains(read, keyOf(a)) && slices.Contains(read, keyOf(b)), "what exists all the time is read")
}

// BenchmarkUse notes chains of three objects that are all known, as nearly all are.
func BenchmarkUse(b *testing.B) {
	const pods = 10_000
	o := tracking(100_000)
	var chains [][]*resolver.Object
	for i := range pods {
		chains = append(chains, used(pod(b, fmt.Sprint("pod-", i), ""), pod(b, fmt.Sprint("rs-", i/10), ""), pod(b, fmt.Sprint("d-", i/10), "")))
		if i%10 > 0 {
			copy(chains[i][1:], chains[i-1][1:])
		}
		o.Use(chains[i])
	}
	o.TakeChanged()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.Use(chains[i%pods])
	}
	require.Zero(b, o.Changed())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/chain")
}

// BenchmarkUseReadAgain notes objects that were read again and have not changed.
func BenchmarkUseReadAgain(b *testing.B) {
	o := tracking(100_000)
	versions := [][]*resolver.Object{used(pod(b, "a", "x")), used(pod(b, "a", "x"))}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.Use(versions[i%2])
	}
}

// BenchmarkMemory reports what an object takes in addition to the object itself, which the
// resolver's cache has, too.
func BenchmarkMemory(b *testing.B) {
	const size = 100_000
	all := make([]*resolver.Object, size)
	for i := range all {
		all[i] = pod(b, fmt.Sprint("pod-", i), "")
	}
	memorytest.Report(b, "B/object", size, func() any {
		o := New(size)
		o.Use(all)
		return o
	})
	runtime.KeepAlive(all)
}

func TestLargeObjectsMakeRoomOnlyForLargeOnes(t *testing.T) {
	o := tracking(10_000)
	o.Use(used(pod(t, "small", "a")))
	label := strings.Repeat("l", large.Most/10)
	for i := range 10 {
		o.Use(used(pod(t, fmt.Sprint("large-", i), label)))
		o.Use(used(o.All()[slices.Index(names(o), "large-0")]))
	}
	assert.Contains(t, names(o), "small")
	assert.Contains(t, names(o), "large-0", "it was used last")
	assert.NotContains(t, names(o), "large-1")
	assert.Equal(t, names(o), names(restarted(t, o, 10_000)))
}
