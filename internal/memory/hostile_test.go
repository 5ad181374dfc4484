// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// foundWith returns an object as the resolver returns it, with any text in its fields; nil if there
// is no such object.
func foundWith(namespace, name, uid, text string) *resolver.Object {
	var b []byte
	for _, value := range []string{text, "PodMetrics" + text, namespace, name, uid, "", "", "", "", "", "", "0"} {
		b = append(binary.AppendUvarint(b, uint64(len(value))+1), value...)
	}
	o := &resolver.Object{}
	if o.UnmarshalBinary(b) != nil {
		return nil
	}
	o.Labels = map[string]string{text: name, "app": text}
	return o
}

// hostile returns an event whose fields anyone may have chosen, as a stream passes it on.
func hostile(namespace, name, uid, text string, seconds int64, count int32) *corev1.Event {
	at, micro := metav1.Unix(seconds, 0), metav1.NewMicroTime(time.Unix(seconds, 123_456_000))
	of := corev1.ObjectReference{Kind: text, Namespace: namespace, Name: name, UID: types.UID(uid), APIVersion: text, FieldPath: text}
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: text,
			CreationTimestamp: at, Labels: map[string]string{text: text}, Annotations: map[string]string{text: text},
		},
		InvolvedObject: of, Related: &of, Reason: text, Message: text, Type: text, Action: text, Count: count,
		FirstTimestamp: at, LastTimestamp: at, EventTime: micro,
		Series:              &corev1.EventSeries{Count: count, LastObservedTime: micro},
		ReportingController: text, ReportingInstance: text, Source: corev1.EventSource{Component: text, Host: text},
	}
	event.Normalize(ev)
	return ev
}

// values returns all entries of a checkpoint of the memory.
func valuesOf(m *Memory) map[checkpoint.Key]string {
	found := map[checkpoint.Key]string{}
	for k := range m.Keys() {
		found[k] = string(m.Value(k))
	}
	return found
}

// FuzzWhatIsSavedCanBeRestored fills a memory with one event, whatever it contains, and all that
// comes of it: a deleted event, a window that holds occurrences, a series with the workload, and the
// objects of the chain.
func FuzzWhatIsSavedCanBeRestored(f *testing.F) {
	const year10000, yearMinus1 = 253402300800, -62198755200
	for _, text := range []string{"", "a/b", "\xff\xfe", "\x00\n\"\u2028", strings.Repeat("x", 300<<10), "18446744073709551616"} {
		f.Add("ns", "name", "", text, int64(0), int32(1))
		f.Add("", "", text, text, int64(year10000), int32(math.MaxInt32))
		f.Add(text, text, text, "t", int64(yearMinus1), int32(math.MinInt32))
		f.Add("a", text, "9e107d9d-372b-4b6e-8d2f-0123456789ab", text, int64(math.MaxInt64/4), int32(0))
	}
	f.Fuzz(func(t *testing.T, namespace, name, uid, text string, seconds int64, count int32) {
		config := withObjects()
		config.DedupInterval, config.Counts = time.Hour, true
		m, ev := New(config, start), hostile(namespace, name, uid, text, seconds, count)
		m.SetCluster(uid)
		m.BeginList("")
		m.EndList("", start)
		objects := []*resolver.Object{resolver.Reference{Kind: "Pod", Namespace: namespace, Name: name}.Object()}
		for _, o := range []*resolver.Object{foundWith(namespace, name, uid, text), foundWith(namespace, name, "", text)} {
			if o != nil {
				objects = append(objects, o)
			}
		}
		seen := []observation.Observation{{
			Event: ev, Occurrences: max(1, m.Change("", ev)), SeenAt: start,
			Chain: resolver.Chain{Objects: objects, Resolution: resolver.Complete},
			Tags:  extract.Tags{Metric: []extract.Tag{{Name: text, Value: name}}},
		}}
		m.Windows.Admit(seen, start)
		m.Windows.Admit(seen, start)
		m.Use(seen)
		m.Count(seen, start)
		m.Delete("", hostile(namespace, name+"2", uid, text, seconds, count), start)
		m.Advance("", text)

		next := restarted(t, m, config)
		n, err := next.Unreadable()
		require.Zero(t, n, err)
		require.Len(t, slices.Collect(next.Windows.Keys()), 1)
		saved := valuesOf(m)
		for _, s := range []string{namespace, name, uid, text} {
			if !utf8.ValidString(s) {
				saved = valuesOf(next) // Invalid UTF-8 is replaced.
				next = restarted(t, next, config)
			}
		}
		if restored := valuesOf(next); !maps.Equal(saved, restored) {
			require.Equal(t, saved, restored)
		}
		held := next.Windows.Flush(2)[0]
		want, _ := ev.Marshal()
		got, _ := held.Event.Marshal()
		require.Equal(t, string(want), string(got))
		require.Equal(t, seen[0].Occurrences, held.Occurrences)
		require.True(t, start.Equal(held.SeenAt))
	})
}

// TestAnEntryThatCannotBeReadCostsItself damages one entry after the other.
func TestAnEntryThatCannotBeReadCostsItself(t *testing.T) {
	config := withObjects()
	config.Coverage.Namespaces = []string{"ns"}
	config.DedupInterval, config.Counts = time.Hour, true
	m := using(New(config, start), foundObject(t, "a"))
	m.BeginList("ns")
	m.EndList("ns", start)
	m.Advance("ns", "7")
	seen := observed(ev("ns", "a", 3, 5), m.Change("ns", ev("ns", "a", 3, 5)))
	m.Windows.Admit(seen, start)
	m.Windows.Admit(seen, start)
	m.Count(seen, start)
	content := m.Content()
	saved := valuesOf(m)
	require.Len(t, saved, 5, "one of each kind")
	saved[keyOf('x', []byte("of a later version"))] = "1"
	for damaged := range saved {
		for name, value := range map[string]string{
			"not a value": "{", "empty": "", "null": "null", "of another entry": "{}", "zeros": "\x00\x00", "a series of nothing": `{"occurrences":-1}`,
		} {
			next := New(config, start)
			for k, v := range saved {
				if k[0] == 'x' {
					v = "1"
				}
				if k == damaged {
					_ = next.Restore(k, []byte(v)) // an older value
					require.Error(t, next.Restore(k, []byte(value)), "%c: %s", k[0], name)
				} else if k[0] != 'x' {
					require.NoError(t, next.Restore(k, []byte(v)))
				}
			}
			n, err := next.Unreadable()
			assert.Equal(t, 1, n)
			require.Error(t, err)
			require.NoError(t, next.Settle(content.State, start))
			found := valuesOf(next)
			for k, v := range saved {
				if k != damaged && k[0] != 'x' && k[0] != ledgerKind {
					assert.Equal(t, v, found[k], "%c is damaged, and %c lost", damaged[0], k[0])
				}
			}
			again := next.Content()
			assert.Contains(t, again.Changed, damaged, "the next save removes it")
			if damaged[0] != streamKind { // A stream exists as soon as it is watched.
				assert.Nil(t, again.Source.Value(damaged), "%c", damaged[0])
			}
		}
	}
}

func TestAnEntryThatIsWrittenAgainIsReadable(t *testing.T) {
	m := New(configured(""), start)
	m.Change("", ev("ns", "a", 3, 5))
	next := New(configured(""), start)
	for k, v := range valuesOf(m) {
		require.Error(t, next.Restore(k, []byte("{")))
		require.NoError(t, next.Restore(k, []byte(v)))
	}
	n, _ := next.Unreadable()
	assert.Zero(t, n)
}

func TestAStateThatCannotBeReadCostsItself(t *testing.T) {
	config := configured("")
	config.Counts = true
	for _, state := range []string{"", "{", "null", "[]", `{"cluster":5}`, `"text"`} {
		m := New(config, start)
		m.SetCluster("one")
		m.Count(observed(ev("ns", "a", 3, 5), 3), start)
		next := New(config, start)
		for k, v := range valuesOf(m) {
			require.NoError(t, next.Restore(k, []byte(v)))
		}
		_ = next.Settle([]byte(state), start)
		assert.Empty(t, next.Cluster())
		assert.EqualValues(t, 3, sumOf(next, start.Add(time.Hour)), state)
	}
}
