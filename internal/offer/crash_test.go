// SPDX-License-Identifier: Apache-2.0

package offer_test

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

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/offer"
	"github.com/kubeevents/kubeeventsreceiver/internal/repeat"
)

// stored is what outlives a process.
type stored struct {
	ledger  map[ledger.Key][]byte
	windows map[repeat.Key][]byte
	note    []byte
	place   int // the state up to which a checkpoint knows the event
}

// process is one life of a receiver that watches one event.
type process struct {
	on      *stored
	ledger  *ledger.Ledger
	windows *repeat.Windows
	offers  *offer.Offers
}

func start(t *testing.T, on *stored, interval time.Duration) *process {
	p := &process{on, ledger.New(), repeat.New(interval), &offer.Offers{}}
	p.ledger.Track()
	p.windows.Track()
	for k, v := range on.ledger {
		require.NoError(t, p.ledger.Restore(k, v))
	}
	for k, v := range on.windows {
		require.NoError(t, p.windows.Restore(k, v))
	}
	require.NoError(t, p.offers.Restore(on.note))
	p.ledger.Settle(map[string]uint16{"": 0}, []string{""}, time.Unix(0, 0))
	p.windows.Settle(p.offers)
	return p
}

// batch accounts for states and offers what they bring. It notes what it offers before and saves after, unless it is
// killed on the way.
func (p *process) batch(states []*corev1.Event, listed bool, now time.Time, last bool, pipeline map[string]int64, dies death) {
	var observations []observation.Observation
	for _, ev := range states {
		if !listed && p.offers.Precedes(ev) {
			continue
		}
		if n := p.ledger.Observe("", ev); n > 0 {
			observations = p.offers.Split(observations, observation.Observation{Event: ev, Occurrences: n, SeenAt: now})
		}
	}
	if listed {
		p.offers.WithdrawAll("")
	}
	records := p.windows.Admit(observations, now)
	if last {
		records = append(records, p.windows.Flush()...)
	}
	p.on.note = p.offers.Encode(records)
	if dies == beforeDelivery {
		return
	}
	for _, r := range records {
		if uid := fmt.Sprintf("%s-%d", r.Event.UID, event.Count(r.Event)); pipeline[uid] == 0 {
			pipeline[uid] = r.Occurrences
		}
	}
	if dies != afterDelivery {
		p.save()
	}
}

func (p *process) save() {
	for _, k := range p.ledger.TakeChanged() {
		p.on.ledger[k] = p.ledger.Value(k)
	}
	for _, k := range p.windows.TakeChanged() {
		if value := p.windows.Value(k); value != nil {
			p.on.windows[k] = value
		} else {
			delete(p.on.windows, k)
		}
	}
	p.on.note = p.offers.Encode(nil)
}

type death int

const (
	never death = iota
	beforeDelivery
	afterDelivery
)

// An event is counted on while its watcher is killed again and again, at the worst moments, and finds after each start
// either every state since its checkpoint or only the newest one. A backend that drops records with a log.record.uid that
// it has holds each occurrence once.
func TestWhateverIsReadAfterACrashEachOccurrenceIsToldOnce(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		interval := time.Duration(random.IntN(3)) * 7 * time.Second
		history := history(random, 1+random.IntN(25))
		on := &stored{ledger: map[ledger.Key][]byte{}, windows: map[repeat.Key][]byte{}}
		pipeline := map[string]int64{}
		now := time.Unix(1000, 0)

		head := 0 // the newest state that exists
		for p := start(t, on, interval); on.place < len(history); p = start(t, on, interval) {
			at := on.place
			compacted := random.IntN(2) == 0 && head > at
			for dies := never; dies == never && on.place < len(history); {
				head = min(len(history), max(head, at+1+random.IntN(4)))
				next := min(head, at+1+random.IntN(4))
				states := history[at:next]
				if compacted {
					next, states = head, history[head-1:head]
				}
				if random.IntN(3) == 0 {
					dies = death(1 + random.IntN(2))
				}
				now = now.Add(time.Duration(random.IntN(5)) * time.Second)
				p.batch(states, compacted, now, next == len(history), pipeline, dies)
				compacted = false
				at = next
				if dies == never {
					on.place = next
				}
			}
			now = now.Add(time.Duration(random.IntN(10)) * time.Second)
			head = min(len(history), head+random.IntN(5))
		}
		var total int64
		for _, occurrences := range pipeline {
			total += occurrences
		}
		require.Equal(t, event.Count(history[len(history)-1]), total, "seed %d, interval %s: %v", seed, interval, pipeline)
	}
}

// history is an event as its recorder writes it: counts jump, and now and then the event is gone by the TTL and created
// again with the count that it goes on with.
func history(random *rand.Rand, states int) (all []*corev1.Event) {
	count, uid := int32(0), 0
	for i := range states {
		count += 1 + random.Int32N(3)
		if random.IntN(8) == 0 {
			uid++
		}
		all = append(all, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "e", UID: types.UID(strconv.Itoa(uid)), ResourceVersion: strconv.Itoa(i + 1),
			},
			Count: count,
		})
	}
	return all
}
