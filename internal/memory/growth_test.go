// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/objects"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

const (
	growthBatch    = 100
	growthInterval = 10 * time.Minute // of dedup windows
	growthSeries   = 1000
)

// crowd is a memory of many events.
type crowd struct {
	*Memory
	live    int
	now     time.Time
	version uint64
	next    int // the event that is next to change
	ev      corev1.Event
	b       *testing.B
	longest time.Duration
}

// newCrowd lists the events.
func newCrowd(b *testing.B, live int, saved bool, namespaces ...string) *crowd {
	c := &crowd{
		Memory: New(Config{
			Coverage: Coverage{Namespaces: namespaces}, DedupInterval: growthInterval, Saved: saved, Counts: true,
			Tally: tally.Config{MaxSeries: growthSeries, SeriesTTL: time.Hour},
		}, start),
		live: live, now: start, b: b,
	}
	for _, namespace := range namespaces {
		c.BeginList(namespace)
	}
	for i := range live {
		c.List(namespaces[i%len(namespaces)], c.event(i, 1))
		if saved && c.Unsaved() >= 1000 {
			c.Content()
			c.Saved()
		}
	}
	for _, namespace := range namespaces {
		c.EndList(namespace, c.now)
		c.Advance(namespace, strconv.FormatUint(c.version, 10))
	}
	if saved {
		c.Content()
	}
	return c
}

// event returns a state of an event. It is valid until the next call.
func (c *crowd) event(i int, count int32) *corev1.Event {
	number := strconv.Itoa(i)
	c.version++
	c.ev.ObjectMeta = metav1.ObjectMeta{
		Namespace: "team-" + number[len(number)-1:], Name: "app-6f5c9d7b4-xk2lp." + number, UID: types.UID("uid-" + number),
		ResourceVersion: strconv.FormatUint(c.version, 10), CreationTimestamp: metav1.NewTime(start),
	}
	c.ev.Count = count
	return &c.ev
}

// observed returns a batch of events that change, each kept for itself.
func (c *crowd) observed() []observation.Observation {
	batch := make([]observation.Observation, growthBatch)
	for i := range batch {
		ev := *c.event(c.next%c.live, int32(2+c.next/c.live))
		batch[i] = observed(&ev, 1)[0]
		c.next++
	}
	return batch
}

// measure measures one step of a batch. prepare is not measured.
func (c *crowd) measure(prepare func(), step func()) {
	c.b.ReportAllocs()
	var spent time.Duration
	for c.b.Loop() {
		c.b.StopTimer()
		prepare()
		c.b.StartTimer()
		began := time.Now()
		step()
		took := time.Since(began)
		spent += took
		c.longest = max(c.longest, took)
	}
	c.b.ReportMetric(float64(spent.Nanoseconds())/float64(c.b.N), "ns/batch")
	c.b.ReportMetric(float64(c.longest.Microseconds()), "longest-µs")
}

// BenchmarkGrowth shows that what is done with a batch of 100 events does not take longer the more
// events are alive. A map of 1,000,000 events does not fit into the processor's cache, so that an
// access takes a few times as long. The longest batch includes pauses of the garbage collector.
func BenchmarkGrowth(b *testing.B) {
	steps := map[string]func(b *testing.B, live int){
		"account/changed": accountChanged, "account/created-and-deleted": accountChurn,
		"dedup/open": dedupOpen, "dedup/held": dedupHeld, "position/held": positionHeld,
		"save": saveBatch, "metrics": emitMetrics, "list-of-a-namespace": listNamespace,
	}
	for _, step := range []string{
		"account/changed", "account/created-and-deleted", "dedup/open", "dedup/held", "position/held", "save", "metrics", "list-of-a-namespace",
	} {
		for _, live := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/live=%d", step, live), func(b *testing.B) { steps[step](b, live) })
		}
	}
}

func accountChanged(b *testing.B, live int) {
	c := newCrowd(b, live, true, "")
	var events []observation.Observation
	c.measure(func() {
		events = c.observed()
		c.Content()
	}, func() {
		c.Forget(c.now)
		for i := range events {
			c.Change("", events[i].Event)
		}
	})
}

// accountChurn replaces the oldest events by new ones. Deleted events are remembered for a day, up
// to ledger.MaxDeleted of them.
func accountChurn(b *testing.B, live int) {
	c := newCrowd(b, live, true, "")
	var created, deleted []corev1.Event
	c.measure(func() {
		created, deleted = created[:0], deleted[:0]
		for range growthBatch {
			created, deleted = append(created, *c.event(c.next+live, 1)), append(deleted, *c.event(c.next, 1))
			c.next++
		}
		c.Content()
	}, func() {
		c.now = c.now.Add(time.Second)
		c.Forget(c.now)
		for i := range created {
			c.Change("", &created[i])
			c.Delete("", &deleted[i], c.now)
		}
	})
}

// dedupOpen has a window for each event that is alive, and none holds anything.
func dedupOpen(b *testing.B, live int) {
	c := newCrowd(b, live, false, "")
	admit := func(batch []observation.Observation) {
		c.now = c.now.Add(growthInterval * growthBatch / time.Duration(live))
		c.Windows.Due(c.now, 1000)
		c.Windows.Admit(batch, c.now)
	}
	for range live / growthBatch {
		admit(c.observed())
	}
	var batch []observation.Observation
	c.measure(func() { batch = c.observed() }, func() { admit(batch) })
}

// fillHeld opens a window for each event, and lets each hold something.
func (c *crowd) fillHeld() {
	for range 2 {
		for range c.live / growthBatch {
			c.now = c.now.Add(growthInterval * growthBatch / time.Duration(3*c.live))
			c.Windows.Admit(c.observed(), c.now)
		}
	}
	require.Len(c.b, slices.Collect(c.Windows.Keys()), c.live)
}

func dedupHeld(b *testing.B, live int) {
	c := newCrowd(b, live, true, "")
	c.fillHeld()
	var batch []observation.Observation
	c.measure(func() {
		batch = c.observed()
		c.Windows.TakeChanged()
	}, func() {
		c.now = c.now.Add(growthInterval * growthBatch / time.Duration(live))
		c.Windows.Due(c.now, 1000)
		c.Windows.Admit(batch, c.now)
	})
}

func positionHeld(b *testing.B, live int) {
	c := newCrowd(b, live, false, "")
	c.fillHeld()
	c.measure(func() {}, func() { require.Len(c.b, c.DeliveredUpTo(), 1) })
}

// nowhere is a storage that forgets what it is given.
type nowhere struct{}

func (nowhere) Get(context.Context, string) ([]byte, error)               { return nil, nil }
func (nowhere) Set(context.Context, string, []byte) error                 { return nil }
func (nowhere) Delete(context.Context, string) error                      { return nil }
func (nowhere) Close(context.Context) error                               { return nil }
func (nowhere) Batch(context.Context, ...*storage.Operation) (none error) { return }

// saveBatch saves 100 changes of events, and the objects and sums that they need.
func saveBatch(b *testing.B, live int) {
	c := newCrowd(b, live, true, "")
	store := checkpoint.New(nowhere{})
	defer store.Close()
	c.measure(func() {
		for _, o := range c.observed() {
			c.Change("", o.Event)
		}
	}, func() {
		require.NoError(b, store.Save(b.Context(), c.Content()))
		c.Saved()
	})
}

// emitMetrics emits the sums of 1,000 series.
func emitMetrics(b *testing.B, live int) {
	c := newCrowd(b, live, false, "")
	for i := range growthSeries {
		of := observed(c.event(i, 1), 1)
		of[0].Chain.Resolution = resolver.Complete
		of[0].Chain.Objects = []*resolver.Object{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: strconv.Itoa(i)}}
		c.Count(of, c.now)
	}
	c.measure(func() {}, func() {
		c.Tally.Expire(c.now)
		points := 0
		for request := range c.Tally.Metrics(tally.Scope{}, semconv.Cluster{UID: "uid"}, c.now) {
			points += request.DataPointCount()
		}
		require.Equal(b, growthSeries, points)
		c.Tally.Emitted()
	})
}

// listNamespace lists one of 1,000 namespaces, each with as many events as the others.
func listNamespace(b *testing.B, live int) {
	namespaces := make([]string, 1000)
	for i := range namespaces {
		namespaces[i] = "namespace-" + strconv.Itoa(i)
	}
	c := newCrowd(b, live, true, namespaces...)
	var events []corev1.Event
	c.measure(func() {
		c.Content()
		events = events[:0]
		for i := 0; i < live; i += len(namespaces) {
			events = append(events, *c.event(i, 1))
		}
	}, func() {
		c.BeginList(namespaces[0])
		for i := range events {
			c.List(namespaces[0], &events[i])
		}
		c.EndList(namespaces[0], c.now)
	})
}

// BenchmarkLongest measures the longest batch of 1,000 changes, for what happens once in a while.
func BenchmarkLongest(b *testing.B) {
	const live, batch = 1_000_000, 1000
	longest := func(b *testing.B, batches int, do func(i int)) {
		var longest time.Duration
		for i := range batches {
			began := time.Now()
			do(i)
			longest = max(longest, time.Since(began))
		}
		b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("the first listing", func(b *testing.B) {
		c := newCrowd(b, 1, true, "")
		longest(b, live/batch, func(int) {
			for range batch {
				c.List("", c.event(c.next, 1))
				c.next++
			}
			c.Content()
		})
	})
	for name, deleted := range map[string]int{"none": 0, "one": 1, "all": live} {
		b.Run("the end of a listing that finds deleted "+name, func(b *testing.B) {
			c := newCrowd(b, live, true, "")
			c.BeginList("")
			for i := range live - deleted {
				c.List("", c.event(i, 1))
			}
			longest(b, 1, func(int) { c.EndList("", c.now) })
		})
	}
	b.Run("all deleted events are forgotten", func(b *testing.B) {
		c := newCrowd(b, live, true, "")
		c.BeginList("")
		c.EndList("", c.now)
		c.Content()
		longest(b, live/batch, func(int) {
			c.Forget(c.now.Add(48 * time.Hour))
			c.Content()
		})
	})
	b.Run("the windows of a listing end", func(b *testing.B) {
		c := newCrowd(b, live, true, "")
		for range live / growthBatch {
			c.Windows.Admit(c.observed(), c.now)
		}
		longest(b, live/batch, func(int) { c.Windows.Due(c.now.Add(growthInterval), batch) })
	})
	b.Run("a snapshot", func(b *testing.B) {
		c := newCrowd(b, live, true, "")
		c.objects = objects.New(100_000)
		c.objects.Track()
		for i := range 100_000 {
			c.objects.Use([]*resolver.Object{foundObject(b, strconv.Itoa(i))})
		}
		c.objects.TakeChanged()
		store := checkpoint.New(nowhere{})
		defer store.Close()
		longest(b, 2000, func(int) {
			for range batch {
				c.Change("", c.event(c.next%live, int32(2+c.next/live)))
				c.next++
			}
			require.NoError(b, store.Save(b.Context(), c.Content()))
			c.Saved()
		})
	})
}
