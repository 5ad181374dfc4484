// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestDedupIntervalHoldsRepeatsBack(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns), "dedup_interval: 1h")
	r.fence(t, ns)

	ev := kube.makeEvent(t, ns, withCount(eventOf("Repeated", "pod"), 2))
	other := kube.makeEvent(t, ns, eventOf("Other", "pod"))
	assert.Equal(t, int64(2), r.of(t, ev.Name).occurrences(), "the first at once")
	r.of(t, other.Name)

	ev = kube.updateEvent(t, withCount(ev, 3))
	r.fence(t, ns)
	firstHeld := time.Now()
	for n := int32(4); n <= 9; n++ {
		ev.Message = "the newest message"
		ev = kube.updateEvent(t, withCount(ev, n))
	}
	r.fence(t, ns)
	assert.Len(t, r.records(named(ev.Name)), 1, "no repeat within the window")
	r.awaitSum(t, 2, withReason("Repeated")) // The metric counts what the records report, at the same time.

	r.stop()
	assert.EqualValues(t, 9, r.sum(withReason("Repeated")))
	records := r.records(named(ev.Name))
	assert.Equal(t, []observation{{2, 2}, {9, 7}}, observationsOf(records), "shutdown flushes what was held, summed")
	assert.Equal(t, "the newest message", records[1].body())
	assert.True(t, records[1].log.ObservedTimestamp().AsTime().Before(firstHeld), "observed when it was first held")
	assert.Len(t, r.records(named(other.Name)), 1, "nothing was held of it")
}

func TestDedupIntervalGivesOneRecordAWindow(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	const interval, updates = 400 * time.Millisecond, 40
	r := kube.run(t, in(ns), "dedup_interval: 400ms")
	r.fence(t, ns)

	began := time.Now()
	ev := kube.makeEvent(t, ns, eventOf("Repeated", "pod"))
	for n := int32(2); n <= updates; n++ {
		ev = kube.updateEvent(t, withCount(ev, n))
		if n%10 == 0 {
			r.fence(t, ns) // So that it takes several windows.
		}
	}
	eventually(t, func() bool { return total(r.records(named(ev.Name))) == updates }, "all occurrences without a shutdown")
	windows := int(time.Since(began)/interval) + 1
	records := r.records(named(ev.Name))
	assert.LessOrEqual(t, len(records), windows, "at most one record a window")
	assert.Equal(t, observation{1, 1}, observationsOf(records)[0], "the first at once")
	assert.EqualValues(t, updates, records[len(records)-1].count())
}

func TestDedupIntervalSumsAcrossARecreation(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns), "dedup_interval: 1h")
	r.fence(t, ns)
	h := &history{t: t, c: kube, ns: ns}
	h.counted(3)
	r.of(t, h.ev.Name)
	h.count(5)
	h.delete()
	h.counted(6)
	r.fence(t, ns)
	r.stop()
	assert.Equal(t, []observation{{3, 3}, {6, 3}}, observationsOf(r.records(named(h.ev.Name))))
}

func TestWithoutDedupIntervalARepeatIsARecord(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	ev := kube.makeEvent(t, ns, &corev1.Event{Reason: "Repeated", Count: 1, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "pod"}})
	r.of(t, ev.Name)
	for n := int32(2); n <= 30; n++ {
		ev = kube.updateEvent(t, withCount(ev, n))
	}
	assert.Len(t, r.await(30, named(ev.Name)), 30)
}
