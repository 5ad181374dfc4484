// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cell is the unit in which coverages differ.
type cell struct{ namespace, eventType string }

func cellOf(ev *corev1.Event) cell { return cell{ev.Namespace, ev.Type} }

// cells returns what a stream with a selector covers.
func cells(stream, selector string) map[cell]bool {
	found := map[cell]bool{}
	for _, namespace := range []string{"a", "b", "c"} {
		for _, eventType := range []string{"Normal", "Warning"} {
			if (stream == "" || stream == namespace) && (selector == "" || selector == "type="+eventType) {
				found[cell{namespace, eventType}] = true
			}
		}
	}
	return found
}

// store is the cluster's store of events, with the history of its changes.
type store struct {
	version uint64
	uids    int
	events  map[string]*corev1.Event
	history []change
	counts  map[string]int32 // the recorders' memory, which outlives the object
}

type change struct {
	version uint64
	gone    bool
	event   *corev1.Event
}

// put stores a state of the event with this count.
func (s *store) put(namespace, name, eventType string, count int32) {
	key := namespace + "/" + name
	s.version++
	ev := &corev1.Event{Type: eventType, Count: count, Reason: "R", InvolvedObject: corev1.ObjectReference{Kind: "Pod"}}
	ev.Namespace, ev.Name, ev.CreationTimestamp = namespace, name, metav1.NewTime(start)
	if old, ok := s.events[key]; ok {
		ev.UID = old.UID
	} else {
		s.uids++
		ev.UID = types.UID(strconv.Itoa(s.uids))
	}
	ev.ResourceVersion = strconv.FormatUint(s.version, 10)
	s.events[key], s.counts[key] = ev, count
	s.history = append(s.history, change{s.version, false, ev})
}

func (s *store) expire(key string) {
	ev, ok := s.events[key]
	if !ok {
		return
	}
	s.version++
	gone := ev.DeepCopy()
	gone.ResourceVersion = strconv.FormatUint(s.version, 10)
	delete(s.events, key)
	s.history = append(s.history, change{s.version, true, gone})
}

// restore makes the store what it was at a version.
func (s *store) restore(version uint64) {
	s.events, s.version = map[string]*corev1.Event{}, version
	s.history = slices.DeleteFunc(s.history, func(c change) bool { return c.version > version })
	for _, c := range s.history {
		if key := event.Name(c.event).String(); c.gone {
			delete(s.events, key)
		} else {
			s.events[key] = c.event
		}
	}
}

// known is what the model remembers of an event.
type known struct {
	uid     types.UID
	count   int64
	version uint64
	lost    bool // the version is of a history that the cluster has lost
	live    bool
	stream  string // that brought it
}

// model computes in plain maps what must count.
type model struct {
	known map[string]known
	// complete has the cells of the last coverage whose streams were all listed, and partial those
	// of the streams that were listed since.
	complete, partial map[cell]bool
	watched           map[string]bool   // namespaces, that were ever listed
	selectors         map[string]string // of the last listing of each stream, since the last complete coverage
	unaware           bool              // the receiver has not noticed that the cluster's versions went back
	counted           int64
	recorded          int64
}

func newModel() *model {
	return &model{
		known: map[string]known{}, complete: map[cell]bool{}, partial: map[cell]bool{}, watched: map[string]bool{},
		selectors: map[string]string{},
	}
}

func (m *model) clone() *model {
	c := *m
	c.known, c.complete, c.partial = maps.Clone(m.known), maps.Clone(m.complete), maps.Clone(m.partial)
	c.watched, c.selectors = maps.Clone(m.watched), maps.Clone(m.selectors)
	return &c
}

func (m *model) observe(stream string, ev *corev1.Event) int64 {
	key, seen := event.Name(ev).String(), known{ev.UID, int64(ev.Count), event.ResourceVersion(ev), false, true, stream}
	k, ok := m.known[key]
	newer := k.lost || seen.version > k.version
	switch {
	case !ok:
		m.known[key] = seen
		return seen.count
	case !newer && (k.uid != seen.uid || !k.live && seen.version < k.version):
		return 0
	}
	occurrences := max(0, seen.count-k.count)
	if occurrences == 0 && k.uid != seen.uid {
		occurrences = seen.count
	}
	if k.uid == seen.uid && !k.lost {
		seen.count = max(seen.count, k.count)
	}
	if !newer {
		seen.version = k.version
	}
	m.known[key] = seen
	return occurrences
}

// remember is a listed event that no coverage included.
func (m *model) remember(stream string, ev *corev1.Event) int64 {
	live := m.known[event.Name(ev).String()].live
	if n := m.observe(stream, ev); live {
		return n
	}
	return 0
}

func (m *model) delete(stream string, ev *corev1.Event) {
	key := event.Name(ev).String()
	k, ok := m.known[key]
	newer := k.lost || event.ResourceVersion(ev) > k.version
	if ok && (!k.live || k.uid != ev.UID && !newer) {
		return
	}
	k.uid, k.count, k.live, k.stream = ev.UID, max(k.count, int64(ev.Count)), false, stream
	if newer {
		k.version, k.lost = event.ResourceVersion(ev), false
	}
	m.known[key] = k
}

// receiver is the memory with the streams and the storage around it, and the model next to it.
type receiver struct {
	t      *testing.T
	random *rand.Rand
	store  *store
	memory *Memory
	model  *model

	config  Config
	streams map[string]*reading
	now     time.Time

	disk    map[checkpoint.Key][]byte
	state   []byte
	saved   *model
	pending int64 // occurrences in records that are not saved yet
	story   []string
}

func (r *receiver) tell(format string, args ...any) {
	r.story = append(r.story, fmt.Sprintf(format, args...))
}

func describe(ev *corev1.Event) string {
	return fmt.Sprintf("%s/%s %s uid %s count %d at %s", ev.Namespace, ev.Name, ev.Type, ev.UID, ev.Count, ev.ResourceVersion)
}

// reading is a stream of the running process.
type reading struct {
	at      uint64 // where the watch goes on; 0: a listing is due
	listing []*corev1.Event
	shown   map[string]bool // in the listing; nil: no listing has begun
	version uint64          // of the listing
}

func (r *receiver) coverage() Coverage {
	all := [][]string{{""}, {"a"}, {"b"}, {"a", "b"}, {"a", "b", "c"}, {"c", "a"}}
	return Coverage{
		Namespaces:    all[r.random.IntN(len(all))],
		FieldSelector: []string{"", "", "type=Warning"}[r.random.IntN(3)],
	}
}

// begin starts a process from what is stored.
func (r *receiver) begin() {
	r.tell("begins with %q", r.config.Coverage)
	if r.config.DedupInterval == 0 { // Windows that end later by this clock are not saved again.
		r.now = r.now.Add(time.Duration(r.random.IntN(61)-30) * time.Second)
	}
	r.memory, r.model, r.pending = New(r.config, r.now), newModel(), 0
	if r.state != nil {
		for k, value := range r.disk {
			require.NoError(r.t, r.memory.Restore(k, value))
		}
		require.NoError(r.t, r.memory.Settle(r.state, r.now))
		r.model = r.saved.clone()
	}
	r.settle()
	r.streams = map[string]*reading{}
	for _, stream := range r.config.Coverage.Namespaces {
		resume, _ := strconv.ParseUint(r.memory.Resume(stream), 10, 64)
		r.streams[stream] = &reading{at: resume}
	}
}

// settle ends the coverage before, once all streams of the present one are listed.
func (r *receiver) settle() {
	selectors, covered := map[string]string{}, map[cell]bool{}
	for _, stream := range r.config.Coverage.Namespaces {
		selector, ok := r.model.selectors[stream]
		if !ok || selector != r.config.Coverage.FieldSelector {
			return
		}
		selectors[stream] = selector
		maps.Copy(covered, cells(stream, selector))
	}
	r.model.selectors, r.model.complete, r.model.partial = selectors, covered, map[cell]bool{}
	for key, k := range r.model.known {
		if !slices.Contains(r.config.Coverage.Namespaces, k.stream) {
			k.live = false // Nothing will tell when it is deleted.
			r.model.known[key] = k
		}
	}
}

func (r *receiver) save() {
	r.tell("saves")
	content := r.memory.Content()
	for _, k := range content.Changed {
		if value := content.Source.Value(k); value != nil {
			r.disk[k] = value
		} else {
			delete(r.disk, k)
		}
	}
	r.state = content.State
	r.memory.Saved()
	r.model.recorded += r.pending
	r.pending = 0
	r.saved = r.model.clone()

	entries := 0
	for k := range content.Source.Keys() {
		value, stored := content.Source.Value(k), r.disk[k]
		if k[0] == streamKind && stored == nil {
			continue // A stream of which nothing is known yet.
		}
		entries++
		require.True(r.t, bytes.Equal(stored, value), "a snapshot has what the changes add up to: %c %q %q", k[0], stored, value)
	}
	require.Len(r.t, r.disk, entries)
	require.Zero(r.t, r.memory.Unsaved())
}

// account checks what the memory returned, and records it.
func (r *receiver) account(ev *corev1.Event, got int64, want ...int64) {
	r.tell("%s: %d of %v", describe(ev), got, want)
	require.Contains(r.t, want, got)
	r.model.counted += got
	if got == 0 {
		r.record(nil)
		return
	}
	o := []observation.Observation{{
		Event: ev, Occurrences: got, SeenAt: r.now,
		Chain: resolver.Chain{Objects: []*resolver.Object{{APIVersion: "v1", Kind: "Pod", Namespace: ev.Namespace, Name: "p"}}},
	}}
	r.memory.Tally.Add(o, r.now)
	r.record(o)
}

func (r *receiver) record(o []observation.Observation) {
	for _, record := range append(r.memory.Windows.Due(r.now, 1), r.memory.Windows.Admit(o, r.now)...) {
		r.pending += record.Occurrences
	}
}

// list shows the memory one event of a listing.
func (r *receiver) list(stream string, ev *corev1.Event) {
	covered := r.model.complete[cellOf(ev)] || r.model.partial[cellOf(ev)]
	remembered := false
	for _, of := range []string{ev.Namespace, ""} {
		if selector, ok := r.model.selectors[of]; ok && cells(of, selector)[cellOf(ev)] {
			remembered = true
		}
	}
	isNew := r.config.FromBeginning && !r.model.watched[ev.Namespace]
	other := r.model.clone()
	got, observed, existed := r.memory.List(stream, ev), r.model.observe(stream, ev), other.remember(stream, ev)
	switch {
	case covered && !remembered && !isNew:
		// The filter became narrower for this stream and not yet for all: either is right.
		r.account(ev, got, observed, existed)
	case covered || isNew:
		r.account(ev, got, observed)
	default:
		r.account(ev, got, existed)
	}
}

// read lets a stream go on.
func (r *receiver) read(stream string) {
	s := r.streams[stream]
	switch {
	case r.model.unaware:
		r.forgetVersions()
	case s.at == 0 && s.shown == nil:
		r.tell("lists %q", stream)
		r.memory.BeginList(stream)
		s.shown, s.version = map[string]bool{}, r.store.version
		for _, key := range slices.Sorted(maps.Keys(r.store.events)) {
			if ev := r.store.events[key]; cells(stream, r.config.Coverage.FieldSelector)[cellOf(ev)] {
				s.listing = append(s.listing, ev)
			}
		}
		r.random.Shuffle(len(s.listing), func(i, j int) { s.listing[i], s.listing[j] = s.listing[j], s.listing[i] })
	case s.at == 0 && len(s.listing) > 0:
		ev := s.listing[0]
		s.listing, s.shown[event.Name(ev).String()] = s.listing[1:], true
		r.list(stream, ev)
	case s.at == 0:
		r.endList(stream, s)
	default:
		r.watch(stream, s)
	}
}

func (r *receiver) forgetVersions() {
	r.tell("restored")
	r.memory.ForgetVersions()
	for key, k := range r.model.known {
		k.lost = true
		r.model.known[key] = k
	}
	for stream := range r.streams {
		*r.streams[stream] = reading{}
	}
	r.model.unaware = false
}

func (r *receiver) endList(stream string, s *reading) {
	r.tell("listed %q", stream)
	r.memory.EndList(stream, r.now)
	r.memory.Advance(stream, strconv.FormatUint(s.version, 10))
	for key, k := range r.model.known {
		if k.stream == stream && !s.shown[key] {
			k.live = false
			r.model.known[key] = k
		}
	}
	for c := range cells(stream, "") {
		r.model.watched[c.namespace] = true
	}
	r.model.selectors[stream] = r.config.Coverage.FieldSelector
	maps.Copy(r.model.partial, cells(stream, r.config.Coverage.FieldSelector))
	r.settle()
	*s = reading{at: s.version}
}

func (r *receiver) watch(stream string, s *reading) {
	for _, c := range r.store.history {
		if c.version <= s.at || !cells(stream, r.config.Coverage.FieldSelector)[cellOf(c.event)] {
			continue
		}
		s.at = c.version
		if c.gone {
			r.tell("deleted %s", describe(c.event))
			r.memory.Delete(stream, c.event, r.now)
			r.model.delete(stream, c.event)
			r.memory.Advance(stream, strconv.FormatUint(c.version-1, 10))
			return
		}
		r.account(c.event, r.memory.Change(stream, c.event), r.model.observe(stream, c.event))
		r.memory.Advance(stream, c.event.ResourceVersion)
		return
	}
}

// breakOff makes the stream list again.
func (r *receiver) breakOff(stream string) {
	*r.streams[stream] = reading{}
}

// change changes the store at random.
func (r *receiver) change() {
	namespace, name := string("abc"[r.random.IntN(3)]), fmt.Sprint("e", r.random.IntN(3))
	key, eventType := namespace+"/"+name, []string{"Normal", "Warning"}[r.random.IntN(2)]
	if ev, ok := r.store.events[key]; ok {
		eventType = ev.Type
	} else if name != "e2" {
		eventType = []string{"Normal", "Warning"}[len(name+namespace)%2]
	}
	switch r.random.IntN(6) {
	case 0:
		r.store.expire(key)
	case 1:
		if ev, ok := r.store.events[key]; ok {
			r.store.put(namespace, name, eventType, ev.Count) // A label.
			return
		}
		r.store.put(namespace, name, eventType, 1+int32(r.random.IntN(3))) // A recorder that knows no count.
	default:
		r.store.put(namespace, name, eventType, r.store.counts[key]+1+int32(r.random.IntN(3)))
	}
}

func (r *receiver) stream() string {
	return r.config.Coverage.Namespaces[r.random.IntN(len(r.config.Coverage.Namespaces))]
}

func (r *receiver) step() {
	r.now = r.now.Add(time.Duration(r.random.IntN(3)) * time.Second)
	switch n := r.random.IntN(200); {
	case n < 70:
		r.change()
	case n < 170:
		r.read(r.stream())
	case n < 185:
		r.save()
	case n < 190:
		r.breakOff(r.stream())
	case n < 191 && r.store.version > 10:
		r.store.restore(r.store.version - uint64(r.random.IntN(9)))
		r.model.unaware = true
		if r.saved != nil {
			r.saved.unaware = true
		}
	case n < 195:
		r.begin() // A crash.
	case n < 196:
		r.save()
		r.config.Coverage = r.coverage()
		r.begin()
	}
}

// readAll lets all streams read all that is there.
func (r *receiver) readAll() {
	for _, stream := range r.config.Coverage.Namespaces {
		for s := r.streams[stream]; r.model.unaware || s.at < r.store.version; {
			before := s.at
			r.read(stream)
			if s.at == before && s.at > 0 {
				break
			}
		}
	}
}

// TestTheMemoryCountsWhatTheModelSays takes the memory through random histories of a cluster:
// changes, deletions, listings that break off, restored backups, other namespaces and filters,
// saves and crashes.
func TestTheMemoryCountsWhatTheModelSays(t *testing.T) {
	seeds := memorytest.Sized(500, 60)
	if testing.Short() {
		seeds = 60
	}
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := &receiver{
			t: t, random: random, now: start, disk: map[checkpoint.Key][]byte{},
			store: &store{events: map[string]*corev1.Event{}, counts: map[string]int32{}},
			config: Config{
				FromBeginning: seed%2 == 0, DedupInterval: time.Duration(seed/2%2) * 10 * time.Second,
				Tally: tally.Config{MaxSeries: 5, SeriesTTL: 100 * time.Hour}, Saved: true,
			},
		}
		r.config.Coverage = r.coverage()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(r.story[max(0, len(r.story)-60):], "\n"))
			}
		})
		r.begin()
		for range 100 + random.IntN(300) {
			r.step()
		}
		r.readAll()
		r.save()
		r.begin()
		r.readAll()
		for records := r.memory.Windows.Flush(2); len(records) > 0; records = r.memory.Windows.Flush(2) {
			for _, record := range records {
				r.pending += record.Occurrences
			}
		}
		r.save()
		require.Equal(t, r.model.counted, r.model.recorded, "seed %d: the records have what counts", seed)
		require.Equal(t, r.model.counted, sumOf(r.memory, r.now), "seed %d: the metric has what counts", seed)
	}
}

// sumOf is the sum of the metric over all series.
func sumOf(m *Memory, now time.Time) (total int64) {
	for request := range m.Tally.Metrics(tally.Scope{}, semconv.Cluster{}, now) {
		for _, dp := range request.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			total += dp.IntValue()
		}
	}
	return total
}

// startOf is the start time of the first series that the metric reports.
func startOf(m *Memory, now time.Time) time.Time {
	for request := range m.Tally.Metrics(tally.Scope{}, semconv.Cluster{}, now) {
		return request.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).StartTimestamp().AsTime()
	}
	return time.Time{}
}
