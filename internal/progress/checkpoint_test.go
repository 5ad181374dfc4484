// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/progress"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// unobserved is an observer that reports nothing.
type unobserved struct{}

func (unobserved) Failed(_, _, _ string, _ error) {}
func (unobserved) Works(_, _ string)              {}
func (unobserved) Unsaved(time.Time)              {}
func (unobserved) Saved()                         {}
func (unobserved) NotSaved()                      {}

// writes is an observer that knows since when something is not noted, and how many writes have failed.
type writes struct {
	unobserved
	unsaved atomic.Int64 // 0: everything is noted
	failed  atomic.Int64
}

func (w *writes) Unsaved(since time.Time) { w.unsaved.Store(since.UnixNano()) }
func (w *writes) Saved()                  { w.unsaved.Store(0) }
func (w *writes) NotSaved()               { w.failed.Add(1) }

// load starts to note progress in the storage, and returns the ledger with what is there.
func load(t *testing.T, client storage.Client) (*progress.Checkpoint, *ledger.Ledger) {
	return loadObserved(t, client, unobserved{})
}

func loadObserved(t *testing.T, client storage.Client, observer progress.Observer) (*progress.Checkpoint, *ledger.Ledger) {
	c := progress.NewCheckpoint(client, observer, zap.NewNop())
	return c, c.Load(t.Context(), "cluster", emptyLedger, func() {})
}

func emptyLedger() *ledger.Ledger {
	return ledger.New(ledger.Settings{Coverage: ledger.Coverage{Namespaces: []string{""}}})
}

// loadLogged loads the checkpoint as a process of a cluster does, and returns what it logs from a level on.
func loadLogged(t *testing.T, client storage.Client, cluster string, level zapcore.LevelEnabler) (*progress.Checkpoint, *ledger.Ledger, *observer.ObservedLogs) {
	core, logs := observer.New(level)
	c := progress.NewCheckpoint(client, unobserved{}, zap.New(core))
	return c, c.Load(t.Context(), cluster, emptyLedger, func() {}), logs
}

// stored returns what a process reads that starts now.
func stored(t *testing.T, disk *harness.Disk) map[string][]byte {
	t.Helper()
	c, l := load(t, disk.Copied())
	all := maps.Collect(l.All())
	c.End(t.Context())
	return all
}

// observe lets a ledger observe some events, all with this count, and notes it.
func observe(c *progress.Checkpoint, l *ledger.Ledger, from, to, count int) {
	for i := from; i < to; i++ {
		l.Observe(ledger.Seen{Event: eventWith(i, count)})
	}
	l.Advance("", strconv.Itoa(count))
	c.Note()
}

// manyEvents take more than the checkpoint keeps in memory of what changes.
const manyEvents = 25_000

// eventWith returns an event with a number and a count, which is its resource version, too.
func eventWith(number, count int) *corev1.Event {
	name := strconv.Itoa(number)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(count)},
		Count:      int32(count),
	}
}

// TestASnapshotReplacesACheckpointThatHasGrown by more than 4 MiB. It has all that was noted.
func TestASnapshotReplacesACheckpointThatHasGrown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		c, l := load(t, disk)
		for count := 1; count <= 10; count++ {
			observe(c, l, 0, 10_000, count)
			time.Sleep(2 * time.Second)
		}
		require.Contains(t, string(disk.Content()["head"]), `"generation":1`)
		grown := disk.Size()
		require.Greater(t, grown, 4<<20)
		l.Delete("", eventWith(0, 12), time.Now())
		observe(c, l, 1, 2, 12)
		time.Sleep(2 * time.Second)
		assert.Contains(t, string(disk.Content()["head"]), `"generation":2`)
		assert.Less(t, disk.Size(), grown/8, "what was replaced is deleted")
		assert.Equal(t, maps.Collect(l.All()), stored(t, disk))
		observe(c, l, 2, 3, 13)
		c.End(t.Context())
		assert.Equal(t, maps.Collect(l.All()), stored(t, disk))
	})
}

// TestWhileStorageFailsLittleIsKept: events come, go, and are forgotten; what the checkpoint keeps does not grow. A kill after
// the storage works again loses nothing.
func TestWhileStorageFailsLittleIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		c, l := load(t, disk)
		observe(c, l, 0, 10, 1)
		time.Sleep(time.Second)
		before := stored(t, disk)
		disk.Fail(nil, harness.ErrDisk)
		for first := 10; first < 180_000; first += 100 {
			observe(c, l, first, first+100, first)
			for i := range 100 {
				l.Delete("", eventWith(first+i, first+1), time.Now())
			}
			l.Forget(time.Now())
			time.Sleep(time.Hour)
		}
		c.Note()
		assert.Equal(t, before, stored(t, disk))
		disk.Fail(nil, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Less(t, disk.Size(), 2<<20, "the storage gets nothing of events that are forgotten")
		assert.LessOrEqual(t, disk.Largest, 1<<20)
		assert.Equal(t, maps.Collect(l.All()), stored(t, disk))
		c.End(t.Context())
	})
}

// TestAWriteThatFailsIsRepeatedLater: each time later, and as soon as possible after a write that succeeds, and at the end.
func TestAWriteThatFailsIsRepeatedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		var w writes
		c, l := loadObserved(t, disk, &w)
		fail := func(d time.Duration) (failed int) {
			observe(c, l, 0, 1, 1)
			time.Sleep(time.Minute)
			disk.Fail(nil, harness.ErrDisk)
			before := w.failed.Load()
			observe(c, l, 0, 1, int(before)+2)
			time.Sleep(d)
			return int(w.failed.Load() - before)
		}
		assert.Equal(t, 4, fail(12*time.Second), "at once, and after 1.6, 3.2 and 6.4 s")
		assert.InDelta(t, 60, fail(30*time.Minute), 6, "at last every 30 s")
		disk.Fail(nil, nil)
		time.Sleep(30 * time.Second)
		assert.Equal(t, maps.Collect(l.All()), stored(t, disk))
		assert.Equal(t, 4, fail(12*time.Second))
		began := time.Now()
		disk.Fail(nil, nil)
		c.End(t.Context())
		assert.Equal(t, maps.Collect(l.All()), stored(t, disk))
		assert.Equal(t, began, time.Now(), "the end does not wait")
	})
}

// slow is storage of which the first write of a chunk hangs until it is answered.
type slow struct {
	*harness.Disk
	answers chan error // Closed after the first.
}

func (s *slow) Set(ctx context.Context, key string, value []byte) error {
	if key != "head" {
		if err := <-s.answers; err != nil {
			return err
		}
	}
	return s.Disk.Set(ctx, key, value)
}

// TestStorageHangsDuringASnapshot: meanwhile, so much changes that a second snapshot replaces it. Whether or not the first
// one is written, a process that starts reads what was noted at one time.
func TestStorageHangsDuringASnapshot(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"it is written": nil, "it is not written": harness.ErrDisk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slow{harness.NewDisk(), make(chan error)}
				var w writes
				c, l := loadObserved(t, s, &w)
				observe(c, l, 0, 10, 1)
				began := time.Now()
				first := maps.Collect(l.All())
				time.Sleep(time.Hour)
				observe(c, l, 0, manyEvents, 2)
				observe(c, l, 0, manyEvents, 3)
				observe(c, l, 5, 6, 4)
				s.answers <- answer
				close(s.answers)
				synctest.Wait()
				if answer == nil {
					assert.Equal(t, first, stored(t, s.Disk))
				}
				assert.Equal(t, began.UnixNano(), w.unsaved.Load(), "when the last write began, or the process")
				time.Sleep(2 * time.Second)
				synctest.Wait()
				assert.Zero(t, w.unsaved.Load())
				assert.Equal(t, maps.Collect(l.All()), stored(t, s.Disk))
				assert.Less(t, s.Largest, 1<<20+100, "a snapshot has several chunks")
				c.End(t.Context())
			})
		})
	}
}

// TestAnEntryThatFailedIsNotedBeforeTheNext: a process that starts reads the newer count.
func TestAnEntryThatFailedIsNotedBeforeTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		c, l := load(t, disk)
		observe(c, l, 0, 1, 1)
		time.Sleep(time.Second)
		disk.Fail(nil, harness.ErrDisk)
		observe(c, l, 0, 2, 2)
		time.Sleep(time.Second)
		observe(c, l, 1, 3, 3)
		disk.Fail(nil, nil)
		time.Sleep(2 * time.Second)
		assert.Equal(t, maps.Collect(l.All()), stored(t, disk))
		c.End(t.Context())
	})
}

// TestACheckpointOfAnotherClusterIsNotUsed, and it is not lost.
func TestACheckpointOfAnotherClusterIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		c, l := load(t, disk)
		observe(c, l, 0, 5, 1)
		c.End(t.Context())
		before := maps.Collect(l.All())
		require.NotEmpty(t, before)
		for cluster, want := range map[string]int{"cluster": 5, "": 5, "another": 0} {
			copied := disk.Copied()
			c, l, logs := loadLogged(t, copied, cluster, zap.InfoLevel)
			assert.Equal(t, want, l.Len(), cluster)
			c.End(t.Context())
			if want > 0 {
				assert.Equal(t, before, maps.Collect(l.All()), cluster)
				assert.Len(t, logs.FilterMessage("Resuming from the checkpoint").All(), 1)
				continue
			}
			said := logs.FilterField(zap.String("checkpoint_cluster", "cluster")).All()
			require.Len(t, said, 1)
			assert.Equal(t, "another", said[0].ContextMap()["cluster"])
			key, _ := said[0].ContextMap()["set_aside"].(string)
			assert.NotEmpty(t, copied.Content()[key], "it stays in the storage")
		}
	})
}

// TestAnEntryThatIsCutShortCostsNothingElse, wherever it is cut.
func TestAnEntryThatIsCutShortCostsNothingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		c, l := load(t, disk)
		observe(c, l, 0, 5, 1)
		c.End(t.Context())
		chunk := disk.Content()["1/0"]
		at := bytes.Index(chunk, []byte("\x0de")) // A key of 13 bytes: of an event.
		require.GreaterOrEqual(t, at, 0)
		entry := chunk[at:]
		size := 1 + int(entry[0])        // of the key
		size += 1 + int(entry[size]) - 1 // of the value, whose length counts from 1
		for cut := range size {
			copied := disk.Copied()
			copied.Values["1/0"] = append(slices.Clone(chunk), entry[:cut]...)
			c, l, logs := loadLogged(t, copied, "cluster", zap.ErrorLevel)
			assert.Equal(t, 5, l.Len(), "cut after %d bytes", cut)
			assert.Equal(t, min(cut, 1), logs.FilterField(zap.Int("entries", 1)).Len(), "cut after %d bytes", cut)
			c.End(t.Context())
		}
	})
}

// TestASnapshotThatFailsIsWrittenLater without an event.
func TestASnapshotThatFailsIsWrittenLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		c, l := load(t, disk)
		disk.Fail(nil, harness.ErrDisk)
		observe(c, l, 0, 5, 1)
		time.Sleep(time.Second)
		observe(c, l, 0, 1, 2)
		time.Sleep(time.Second)
		disk.Fail(nil, nil)
		time.Sleep(10 * time.Second)
		assert.Equal(t, maps.Collect(l.All()), stored(t, disk))
		c.End(t.Context())
	})
}
