// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
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

// load starts to note progress on the disk, and returns the ledger with what is there.
func load(t *testing.T, disk *harness.Disk) (*progress.Checkpoint, *ledger.Ledger) {
	c := progress.NewCheckpoint(disk, unobserved{}, zap.NewNop())
	return c, c.Load(t.Context(), "cluster", func() *ledger.Ledger {
		return ledger.New(ledger.Config{Coverage: ledger.Coverage{Namespaces: []string{""}}})
	}, func() {})
}

// eventWith returns an event with a number and a count, which is its resource version, too.
func eventWith(number, count int) *corev1.Event {
	name := strconv.Itoa(number)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(count)},
		Count:      int32(count),
	}
}

// TestASnapshotReplacesACheckpointThatHasGrown: a checkpoint of more than 4 MiB is written again as a whole. No state is
// lost, also if the storage cannot be written for a while.
func TestASnapshotReplacesACheckpointThatHasGrown(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"at once": nil, "the storage fails at first": harness.ErrDisk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk := harness.NewDisk()
				c, l := load(t, disk)
				l.BeginList("")
				for i := range 200_000 {
					l.Observe(ledger.Seen{Event: eventWith(i, 1), IsListed: true})
				}
				l.EndList("", time.Now())
				note := func() {
					c.Note()
					time.Sleep(2 * time.Second)
				}
				note()
				grown := disk.Size()
				require.Greater(t, grown, 4<<20)

				disk.Fail(nil, failure)
				l.Delete("", eventWith(0, 2), time.Now())
				l.Observe(ledger.Seen{Event: eventWith(1, 2)})
				note()
				l.Observe(ledger.Seen{Event: eventWith(2, 3)})
				l.Observe(ledger.Seen{Event: eventWith(1, 4)})
				note()
				disk.Fail(nil, nil)
				time.Sleep(2 * time.Second)
				assert.Contains(t, string(disk.Content()["head"]), `"generation":1`)
				assert.Less(t, disk.Size(), grown+1000, "what was replaced is deleted")

				l.Observe(ledger.Seen{Event: eventWith(3, 2)})
				c.Note()
				c.End(t.Context())
				next, read := load(t, disk)
				assert.Equal(t, maps.Collect(l.All()), maps.Collect(read.All()))
				next.End(t.Context())
			})
		})
	}
}
