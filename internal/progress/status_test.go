// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// failures is an observer that knows why the storage does not work; empty: it works.
type failures struct {
	writes
	cause atomic.Value
}

func (f *failures) Failed(_, cause, _ string, _ error) { f.cause.Store(cause) }
func (f *failures) Works(_, _ string)                  { f.cause.Store("") }

func TestTheStatusOfStorageThatFailsAndWorksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		var status failures
		c, l := loadObserved(t, disk, &status)
		defer c.End(t.Context())
		disk.Fail(nil, harness.ErrDisk)
		observe(c, l, 0, 1, 1)
		time.Sleep(time.Minute)
		assert.Equal(t, "unavailable", status.cause.Load())
		assert.NotZero(t, status.unsaved.Load())
		disk.Fail(nil, nil)
		time.Sleep(time.Minute)
		assert.Empty(t, status.cause.Load())
		assert.Zero(t, status.unsaved.Load())
	})
}

// hanging is storage whose reads hang.
type hanging struct{ storage.Client }

func (hanging) Get(ctx context.Context, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAReadThatHangsIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var status failures
		go loadObserved(t, hanging{}, &status)
		time.Sleep(time.Minute)
		assert.Equal(t, "slow", status.cause.Load())
	})
}

// What happens between two first starts is lost.
func TestTheFirstCompleteListIsNotedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := harness.NewDisk()
		c, l := load(t, disk)
		defer c.End(t.Context())
		observe(c, l, 0, 1, 1)
		synctest.Wait()
		l.BeginList("")
		l.EndList("", time.Now())
		observe(c, l, 0, 2, 2)
		synctest.Wait()
		assert.Len(t, stored(t, disk), 3, "two events, and the position of the stream")
	})
}
