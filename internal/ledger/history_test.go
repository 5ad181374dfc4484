// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is the plain model that the ledger is held against: an API server's store of events and the
// recorders that write to it. It counts every occurrence as it happens, which the ledger has to
// find from what it is shown.
type world struct {
	random *rand.Rand
	now    time.Time
	rv     int
	uids   int
	stored map[string]*corev1.Event
	counts map[string]int32 // the recorders' own memory, which outlives the object
	truth  int64

	watched []*corev1.Event // messages since the last one that the ledger has taken
	deleted map[*corev1.Event]bool
	history []*corev1.Event // everything ever shown, for duplicates
}

func newWorld(seed uint64) *world {
	return &world{
		random: rand.New(rand.NewPCG(seed, 1)), now: start, stored: map[string]*corev1.Event{}, counts: map[string]int32{}, deleted: map[*corev1.Event]bool{},
	}
}

// occur makes n occurrences of an event and writes them at once, as a throttled recorder does.
func (w *world) occur(name string, n int32) {
	w.truth += int64(n)
	w.counts[name] += n
	w.rv++
	ev, ok := w.stored[name]
	if !ok {
		w.uids++
		ev = &corev1.Event{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(strconv.Itoa(w.uids)), CreationTimestamp: metav1.NewTime(w.now),
		}}
	}
	w.write(ev, w.counts[name])
}

// write stores a new state of the event: old recorders in count, new ones in the series, which
// appears at 2.
func (w *world) write(old *corev1.Event, count int32) {
	ev := old.DeepCopy()
	ev.ResourceVersion = strconv.Itoa(w.rv)
	newStyle := ev.Name[len(ev.Name)-1]%2 == 0
	switch {
	case !newStyle:
		ev.Count = count
	case count > 1:
		ev.Series = &corev1.EventSeries{Count: count}
	}
	w.stored[ev.Name] = ev
	w.watched = append(w.watched, ev)
}

// relabel changes an event without an occurrence.
func (w *world) relabel(name string) {
	if ev, ok := w.stored[name]; ok {
		w.rv++
		w.write(ev, w.counts[name])
	}
}

// expire is the TTL: the object goes, the recorder's count stays.
func (w *world) expire(name string) {
	ev, ok := w.stored[name]
	if !ok {
		return
	}
	w.rv++
	gone := ev.DeepCopy()
	gone.ResourceVersion = strconv.Itoa(w.rv)
	delete(w.stored, name)
	w.watched = append(w.watched, gone)
	w.deleted[gone] = true
}

// watch hands the pending messages to the ledger, some of them twice, old ones now and then again.
func (w *world) watch(l *counts) (occurrences int64) {
	for _, ev := range w.watched {
		occurrences += w.show(l, ev)
		if w.random.IntN(4) == 0 {
			occurrences += w.show(l, ev)
		}
		w.history = append(w.history, ev)
		if w.random.IntN(4) == 0 {
			occurrences += w.show(l, w.history[w.random.IntN(len(w.history))])
		}
	}
	w.watched = nil
	return occurrences
}

func (w *world) show(l *counts, ev *corev1.Event) int64 {
	if w.deleted[ev] {
		l.Delete("", ev, w.now)
		return 0
	}
	return l.Observe("", ev)
}

// relist loses what was not watched and shows what is stored, in any order.
func (w *world) relist(l *counts) (occurrences int64) {
	w.watched = nil
	l.BeginList("")
	for _, ev := range w.stored {
		occurrences += l.Observe("", ev)
		w.history = append(w.history, ev)
	}
	l.EndList("", w.now)
	return occurrences
}

// step does one random thing and returns the occurrences that the ledger found in it.
func (w *world) step(l *counts, what, which byte) int64 {
	name := "event-" + fmt.Sprint(which%12)
	w.now = w.now.Add(time.Duration(which) * time.Second)
	switch what % 8 {
	case 0, 1, 2:
		w.occur(name, 1)
	case 3:
		w.occur(name, int32(which%9)+1)
	case 4:
		w.relabel(name)
	case 5:
		w.expire(name)
	case 6:
		return w.watch(l)
	case 7:
		return w.relist(l)
	}
	return 0
}

// settle shows the ledger all that is left: an event that expired between two relists took its last
// occurrences with it, so those messages are watched first.
func (w *world) settle(l *counts) int64 {
	return w.watch(l) + w.relist(l)
}

// check runs a history. Occurrences that nobody can see (written and expired between two looks, and
// not carried on by a later re-creation) do not count: a relist therefore brings back what was
// expired unseen first.
func check(t *testing.T, seed uint64, steps []byte) {
	w, l := newWorld(seed), countsOf()
	total := int64(0)
	for i := 0; i+1 < len(steps); i += 2 {
		if steps[i]%8 == 7 {
			w.reviveUnseen()
		}
		total += w.step(l, steps[i], steps[i+1])
	}
	total += w.settle(l)
	require.Equal(t, w.truth, total)

	total += w.relist(l)
	require.Equal(t, w.truth, total, "a further relist finds nothing new")
}

// reviveUnseen lets every recorder whose event expired unseen write once more, so that its count
// can be seen.
func (w *world) reviveUnseen() {
	for _, ev := range w.watched {
		if _, live := w.stored[ev.Name]; !live {
			w.occur(ev.Name, 1)
		}
	}
}

func TestTotalsEqualTheTruthForRandomHistories(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 2))
		steps := make([]byte, 2*(20+random.IntN(200)))
		for i := range steps {
			steps[i] = byte(random.IntN(256))
		}
		check(t, seed, steps)
	}
}
