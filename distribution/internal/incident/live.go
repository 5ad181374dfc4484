// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// maxWaiting bounds the facts that wait while the model is in use, in bytes.
const maxWaiting = 16 << 20

// Live is a Model that several components use at the same time. Records never wait for those who use it. Its
// methods may be called concurrently.
type Live struct {
	clock func() time.Time
	// Harmless are the reasons of warnings that are no problem, in addition to the known ones. Who reads the records
	// for Take heeds them.
	Harmless []string
	// Keep gets facts before the model does; nil: nobody keeps them. It is set before the first Take.
	Keep func([]*Fact)

	mu     sync.Mutex // for the following
	model  *Model
	isFrom time.Time // the begun that the model has

	waiting sync.Mutex // for the following
	facts   []*Fact    // that the model does not have yet
	bytes   int        // of facts
	missed  int64      // facts for which there was no room
	begun   time.Time  // see Begin
}

// NewLive returns a Live that knows nothing of the time before now.
func NewLive(clock func() time.Time) *Live {
	return &Live{clock: clock, model: NewModel(clock())}
}

// Begin notes that records are complete from a time on. The zero time changes nothing.
func (l *Live) Begin(at time.Time) {
	l.waiting.Lock()
	defer l.waiting.Unlock()
	if !at.IsZero() {
		l.begun = at
	}
}

// FactsOf returns the facts that records show. With resources, the newest fact of each workload has the attributes of its
// resource.
func FactsOf(records []*record.Record, now time.Time, withResources bool) []*Fact {
	facts, newest := make([]*Fact, 0, len(records)), map[Key]int{}
	for i, r := range records {
		f := FactOf(r, now)
		facts = append(facts, f)
		if known, ok := newest[f.Key]; withResources && (!ok || !f.Last.Before(facts[known].Last)) {
			newest[f.Key] = i
		}
	}
	for _, i := range newest {
		facts[i].Resource = ResourceOf(records[i].Attributes)
	}
	return facts
}

// Take takes facts over. Who uses the model next gives them to it. It returns for how many there is no room.
func (l *Live) Take(facts []*Fact) (missed int) {
	l.waiting.Lock()
	defer l.waiting.Unlock()
	for _, f := range facts {
		size := f.size()
		if l.bytes+size > maxWaiting {
			missed++
			continue
		}
		l.facts, l.bytes = append(l.facts, f), l.bytes+size
	}
	l.missed += int64(missed)
	return missed
}

// Missed returns for how many facts there was no room.
func (l *Live) Missed() int64 {
	l.waiting.Lock()
	defer l.waiting.Unlock()
	return l.missed
}

// Use calls a function with the Model, which has all facts that came before. What the Model computed for it is dropped
// afterwards: it takes the memory of the facts again, and the next one asks about another time.
func (l *Live) Use(f func(*Model)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add()
	f(l.model)
	l.model.newest = nil
}

// AddUnlessUsed gives the Model the facts that came, unless somebody uses it.
func (l *Live) AddUnlessUsed() {
	if l.mu.TryLock() {
		defer l.mu.Unlock()
		l.add()
	}
}

// add gives the Model the facts that came. The caller has its lock.
func (l *Live) add() {
	l.waiting.Lock()
	facts, begun := l.facts, l.begun
	l.facts, l.bytes = nil, 0
	l.waiting.Unlock()
	if !begun.Equal(l.isFrom) {
		l.isFrom = begun
		l.model.Begin(begun)
	}
	if len(facts) == 0 {
		return
	}
	if l.Keep != nil {
		l.Keep(facts)
	}
	l.model.AddFacts(facts, l.clock())
}

// Replay gives the Model facts that were stored.
func (l *Live) Replay(facts []*Fact) { l.Use(func(m *Model) { m.replay(facts, l.clock()) }) }

// Facts yields copies of all facts, with the attributes of the resource for one of each workload. Nobody waits for who
// reads them.
func (l *Live) Facts(yield func(*Fact) bool) {
	var keys []Key
	l.Use(func(m *Model) { keys = slices.Collect(maps.Keys(m.workloads)) })
	for _, key := range keys {
		var facts []Fact
		l.Use(func(m *Model) { facts = m.factsOf(key) })
		for i := range facts {
			if !yield(&facts[i]) {
				return
			}
		}
	}
}

func (m *Model) factsOf(key Key) (facts []Fact) {
	w := m.workloads[key]
	if w == nil {
		return nil
	}
	for _, f := range w.facts {
		facts = append(facts, *f)
	}
	if len(facts) > 0 {
		facts[0].Resource = w.resource
	}
	if len(facts) > 0 && (len(w.before.begun) > 0 || !w.before.scaled.IsZero()) {
		facts[0].before = &forgotten{maps.Clone(w.before.begun), w.before.scaled}
	}
	return facts
}
