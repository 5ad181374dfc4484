// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// ev is an event of a namespace, "ns/name", with a count at a resource version.
func ev(namespace, name string, count int32, version uint64) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + name),
			ResourceVersion: strconv.FormatUint(version, 10), CreationTimestamp: metav1.NewTime(start),
		},
		Count: count, Type: "Normal",
	}
}

func observed(of *corev1.Event, n int64) []observation.Observation {
	return []observation.Observation{{
		Event: of, Occurrences: n, SeenAt: start,
		Chain: resolver.Chain{Objects: []*resolver.Object{{APIVersion: "v1", Kind: "Pod", Namespace: of.Namespace, Name: "p"}}},
	}}
}

func configured(namespaces ...string) Config {
	return Config{Coverage: Coverage{Namespaces: namespaces}, Tally: tally.Config{MaxSeries: 5, SeriesTTL: time.Hour}, Identity: "i", Saved: true}
}

// position is what a leader has published.
type position map[string]uint64

func (p position) Of(stream string) (uint64, bool) {
	version := max(p[stream], p[""])
	return version, version > 0
}

func (p position) Reached(namespace string, version uint64) bool {
	reached, ok := p.Of(namespace)
	return ok && version <= reached
}

// restarted saves the memory, and returns what the next process with this configuration finds.
func restarted(t *testing.T, m *Memory, config Config) *Memory {
	t.Helper()
	content := m.Content()
	m.Saved()
	next := New(config, start.Add(time.Hour))
	for k := range content.Source.Keys() {
		require.NoError(t, next.Restore(k, content.Source.Value(k)))
	}
	require.NoError(t, next.Settle(content.State, start.Add(time.Hour)))
	return next
}

func TestWithoutAPositionStartAtDecidesAboutTheFirstList(t *testing.T) {
	for fromBeginning, want := range map[bool]int64{false: 0, true: 3} {
		config := configured("")
		config.FromBeginning = fromBeginning
		m := New(config, start)
		m.BeginList("")
		assert.Equal(t, want, m.List("", ev("ns", "a", 3, 5)))
		m.EndList("", start)
		assert.Equal(t, int64(2), m.Change("", ev("ns", "a", 5, 6)))
		m.BeginList("")
		assert.Equal(t, int64(4), m.List("", ev("ns", "b", 4, 7)), "what a later list has is new")
	}
}

func TestAListAfterAPositionHasWhatIsNewerThanThePosition(t *testing.T) {
	for _, fromBeginning := range []bool{false, true} {
		config := configured("a", "b", "c")
		config.FromBeginning, config.Start = fromBeginning, position{"a": 10, "b": 20}
		m := New(config, start)
		for stream, list := range map[string]map[uint64]int64{"a": {9: 0, 10: 0, 11: 3}, "b": {20: 0, 21: 3}} {
			m.BeginList(stream)
			for version, want := range list {
				assert.Equal(t, want, m.List(stream, ev(stream, "e"+strconv.FormatUint(version, 10), 3, version)), "%s at %d", stream, version)
			}
			m.EndList(stream, start)
		}
		want := map[bool]int64{false: 0, true: 3}[fromBeginning]
		assert.Equal(t, want, m.List("c", ev("c", "e", 3, 99)), "start_at decides only where there is no position")
	}
}

func TestAnEventThatExistedAtThePositionIsKnown(t *testing.T) {
	config := configured("")
	config.Start = position{"": 10}
	m := New(config, start)
	m.BeginList("")
	m.Existing("", ev("ns", "a", 3, 9))
	m.EndList("", start)
	assert.Equal(t, int64(2), m.Change("", ev("ns", "a", 5, 11)))
	assert.Equal(t, int64(1), m.Change("", ev("ns", "b", 1, 12)))
}

func TestAPositionOfALostHistoryDecidesNothing(t *testing.T) {
	config := configured("")
	config.Start = position{"": 10}
	m := New(config, start)
	m.ForgetVersions()
	m.BeginList("")
	assert.Zero(t, m.List("", ev("ns", "a", 3, 99)), "start_at does")
}

func TestAnEventThatAWindowHoldsHoldsThePositionBack(t *testing.T) {
	config := configured("a", "b")
	config.DedupInterval = time.Minute
	m := New(config, start)
	assert.Empty(t, m.DeliveredUpTo(), "no stream has been listed")
	for _, stream := range []string{"a", "b"} {
		m.BeginList(stream)
		m.EndList(stream, start)
		m.Advance(stream, "10")
	}
	m.Windows.Admit(observed(ev("a", "e", 1, 11), 1), start)
	m.Advance("a", "11")
	assert.Equal(t, map[string]uint64{"a": 11, "b": 10}, m.DeliveredUpTo(), "its record is delivered")
	m.Windows.Admit(observed(ev("a", "e", 2, 12), 1), start)
	m.Windows.Admit(observed(ev("a", "e", 3, 13), 1), start)
	m.Advance("a", "20")
	m.Advance("b", "30")
	assert.Equal(t, map[string]uint64{"a": 11, "b": 30}, m.DeliveredUpTo(), "before the first that is held, and no other stream")
	assert.Len(t, m.EndWindows(), 1)
	assert.Equal(t, map[string]uint64{"a": 20, "b": 30}, m.DeliveredUpTo())

	config.Coverage.Namespaces = []string{""}
	m = New(config, start)
	m.BeginList("")
	m.EndList("", start)
	m.Windows.Admit(observed(ev("a", "e", 1, 11), 1), start)
	m.Windows.Admit(observed(ev("a", "e", 2, 12), 1), start)
	m.Advance("", "20")
	assert.Equal(t, map[string]uint64{"": 11}, m.DeliveredUpTo())
}

func TestAStreamThatListsAgainKeepsItsPosition(t *testing.T) {
	m := New(configured(""), start)
	m.BeginList("")
	m.Advance("", "")
	assert.Empty(t, m.DeliveredUpTo(), "the first list is not complete")
	m.EndList("", start)
	m.Advance("", "10")
	m.BeginList("")
	assert.Equal(t, map[string]uint64{"": 10}, m.DeliveredUpTo())
	m.ForgetVersions()
	assert.Empty(t, m.DeliveredUpTo(), "the version does not exist any more")
}

func TestOtherSettingsOfASeriesStartSumsAt0(t *testing.T) {
	m := New(configured(""), start)
	m.Tally.Add(observed(ev("ns", "a", 3, 5), 3), start)
	m.Change("", ev("ns", "a", 3, 5))

	same := restarted(t, m, configured(""))
	assert.Equal(t, int64(3), sumOf(same, start.Add(2*time.Hour)))
	assert.Equal(t, start, startOf(same, start.Add(2*time.Hour)))

	config := configured("")
	config.Identity = "other"
	other := restarted(t, m, config)
	assert.Zero(t, sumOf(other, start.Add(2*time.Hour)))
	assert.Equal(t, int64(1), other.Change("", ev("ns", "a", 4, 6)), "counts of events are kept")
	other.Tally.Add(observed(ev("ns", "a", 4, 6), 1), start)
	again := restarted(t, other, config)
	assert.Equal(t, int64(1), sumOf(again, start.Add(3*time.Hour)), "also after another restart")
	assert.Equal(t, start.Add(time.Hour), startOf(again, start.Add(3*time.Hour)), "with a new start time: that of the process with the other settings")
}

func TestACheckpointNamesItsCluster(t *testing.T) {
	m := New(configured(""), start)
	m.SetCluster("one")
	assert.Equal(t, "one", restarted(t, m, configured("")).Cluster())
}

func TestOnlyWhatChangedIsUnsaved(t *testing.T) {
	m := New(configured(""), start)
	m.BeginList("")
	m.Change("", ev("ns", "a", 3, 5))
	m.Advance("", "5")
	assert.Equal(t, 2, m.Unsaved(), "the event and the stream")
	m.Content()
	assert.Zero(t, m.Unsaved())
	m.Change("", ev("ns", "a", 3, 5))
	m.Advance("", "5")
	assert.Zero(t, m.Unsaved(), "the same again changes nothing")
}

// TestAChangeOfTheCoverageCountsNothingAgain has more live events than the ledger remembers of
// deleted ones, and forgets what it may between any two listings.
func TestAChangeOfTheCoverageCountsNothingAgain(t *testing.T) {
	const events = ledger.MaxDeleted * 3 / 2
	all := make([]*corev1.Event, events)
	for i := range all {
		all[i] = ev([]string{"a", "b"}[i%2], "e"+strconv.Itoa(i), 3, uint64(i+1))
	}
	list := func(m *Memory, stream string) (counted int64) {
		m.BeginList(stream)
		for _, e := range all {
			if stream == "" || stream == e.Namespace {
				counted += m.List(stream, e)
			}
		}
		m.EndList(stream, start)
		for m.Forget(start) {
			continue
		}
		return counted
	}
	selecting := configured("")
	selecting.Coverage.FieldSelector = "type=Normal"
	beginning := configured("")
	beginning.FromBeginning = true
	for name, configs := range map[string][]Config{
		"from the cluster to namespaces":       {beginning, configured("a", "b")},
		"from namespaces to the cluster":       {beginning, configured("a", "b"), configured("")},
		"another selector, and back":           {beginning, selecting, configured("")},
		"namespaces with a selector, and back": {beginning, {Coverage: Coverage{Namespaces: []string{"b", "a"}, FieldSelector: "type=Normal"}, Saved: true}, configured("")},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(configs[0], start)
			require.EqualValues(t, 3*events, list(m, ""))
			for _, config := range configs[1:] {
				for i, stream := range config.Coverage.Namespaces {
					if i < 2 { // The process ends between the listings of its streams.
						m = restarted(t, m, config)
					}
					for m.Forget(start) {
						continue
					}
					require.Zero(t, list(m, stream), stream)
				}
			}
			require.Equal(t, events, m.Len())
		})
	}
}

func TestWhatNoStreamCoversAnyMoreIsForgottenInTime(t *testing.T) {
	m := New(configured(""), start)
	m.BeginList("")
	m.List("", ev("a", "e", 3, 1))
	m.List("", ev("b", "e", 3, 2))
	m.EndList("", start)
	m = restarted(t, m, configured("a"))
	m.Forget(start.Add(100 * time.Hour))
	assert.Equal(t, 2, m.Len(), "the new stream is not listed yet")
	m.BeginList("a")
	m.List("a", ev("a", "e", 3, 1))
	m.EndList("a", start)
	m.Forget(start.Add(100 * time.Hour))
	assert.Equal(t, 1, m.Len())
}

func TestACheckpointThatIsNoneOfThisProgram(t *testing.T) {
	m := New(configured(""), start)
	require.Error(t, m.Restore(keyOf('x', nil), []byte("1")))
	require.ErrorIs(t, m.Settle([]byte("{"), start), checkpoint.ErrCorrupt)
	for _, kind := range []byte{ledgerKind, streamKind, windowKind, seriesKind} {
		require.Error(t, m.Restore(keyOf(kind, nil), []byte("{")), "%c", kind)
	}
}

// Storage that cannot be written for days must not cost memory for each event that came meanwhile.
func TestWhatComesAndGoesWhileNothingIsSavedIsNotSavedLater(t *testing.T) {
	config := configured("")
	config.DedupInterval, config.Objects = time.Minute, 10
	m, now := New(config, start), start
	m.Change("", ev("ns", "known", 1, 1))
	saved := m.Content()
	require.Len(t, saved.Changed, 2, "the event and its stream")
	m.Delete("", ev("ns", "known", 1, 1), now)
	for i := range 100 {
		for count := int32(1); count <= 2; count++ { // A window opens, and then holds the second state.
			changed := ev("ns", strconv.Itoa(i), count, uint64(2*i)+uint64(count))
			of := observed(changed, m.Change("", changed))
			of[0].Chain.Objects[0] = foundObject(t, strconv.Itoa(i))
			m.Use(of)
			m.Windows.Admit(of, now)
			now = now.Add(time.Second)
		}
		m.Delete("", ev("ns", strconv.Itoa(i), 2, uint64(2*i)+3), now)
		now = now.Add(ledger.RememberDeleted + time.Hour)
		require.Len(t, m.Windows.Due(now, 10), 1)
		m.Forget(now)
	}
	assert.Zero(t, m.Len())
	values := map[bool]int{}
	for _, k := range m.Content().Changed {
		values[m.Value(k) != nil]++
	}
	assert.Equal(t, map[bool]int{true: config.Objects, false: 1}, values, "the objects that are remembered, and the end of the known event")
}
