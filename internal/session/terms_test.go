// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestTheEndOfATermKeepsWhatTheWindowsHold(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, dedup_interval: 1h}"
		a, b := harness.NewReplicas(t, api, nil, config)
		a.Elect()
		api.Put(harness.Event("one", 1))
		harness.Settle()
		api.Put(harness.Event("one", 4))
		harness.Settle()
		a.Depose()
		assert.Equal(t, []string{"one+1"}, a.Logs.Names())
		harness.Settle()
		b.Elect()
		b.AwaitRecords(t, "one+3")
		b.Depose()
		harness.Settle()
		a.Elect()
		a.AwaitRecords(t, "one+1")
	})
}

func TestAProcessThatLeadsAgainDeliversWhatItsWindowsHeld(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "{start_at: beginning, dedup_interval: 1h}")
		a.Elect()
		api.Put(harness.Event("one", 1))
		harness.Settle()
		api.Put(harness.Event("one", 4))
		harness.Settle()
		a.Depose()
		harness.Settle()
		a.Elect()
		a.AwaitRecords(t, "one+1", "one+3")
	})
}

func TestASumBelongsToOneTermWithoutStorage(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		a.Elect()
		api.Put(harness.Event("one", 2))
		a.AwaitSum(t, 2)
		a.Depose()
		emitted := a.Metrics.DataPointCount()
		time.Sleep(time.Minute)
		assert.Equal(t, emitted, a.Metrics.DataPointCount(), "a standby emits none")
		again := time.Now()
		a.Elect()
		api.Put(harness.Event("one", 3))
		a.AwaitSum(t, 1)
		assert.False(t, a.Starts()[len(a.Starts())-1].Before(again), "with a new start time")
	})
}

func TestTheMetricGoesOnAfterAFailoverWithSharedStorage(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		a, b := harness.NewReplicas(t, api, on, "start_at: beginning")
		a.Elect()
		api.Put(harness.Event("one", 2))
		a.AwaitRecords(t, "one+2")
		a.Depose()
		api.Put(harness.Event("one", 5))
		b.Elect()
		b.AwaitSum(t, 5)
		b.AwaitRecords(t, "one+3")
		assert.Equal(t, a.Starts(), b.Starts())
		assert.Empty(t, harness.Published(api), "with storage, the checkpoint has the position")
	})
}

func TestWhatALeaderCouldNotDeliverTheNextOneDeliversByteForByte(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		a, b := harness.NewReplicas(t, api, on, "start_at: beginning")
		var saved [][]byte
		a.Logs.OnAttempt(func() {
			for key, value := range on.Content() {
				if strings.HasPrefix(key, "o/") {
					request, err := s2.Decode(nil, value[:len(value)-4]) // Without the checksum.
					assert.NoError(t, err)
					saved = append(saved, request)
				}
			}
		})
		a.Logs.Reject(errors.New("the queue is full"))
		a.Elect()
		api.Put(harness.Event("one", 1))
		harness.Eventually(t, func() bool { return a.Logs.Attempted() > 0 })
		a.Depose()
		api.Put(harness.Event("one", 4))
		b.Elect()
		b.AwaitRecords(t, "one+1", "one+3")
		assert.Equal(t, saved[0], b.Logs.Requests()[0])
	})
}

func TestAProcessWithoutACheckpointOfItsPredecessorSaysSo(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, harness.NewDisk(), "")
		a.Elect()
		harness.Settle()
		assert.Equal(t, 1, a.Log.FilterMessageSnippet("the replicas do not share this storage").Len())
	})
}

func TestALeaderThatIsDeposedWhileThePipelineRejectsEmitsNoMore(t *testing.T) {
	for name, shared := range map[string]bool{"without storage": false, "with shared storage": true} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				var on *harness.Disk
				if shared {
					on = harness.NewDisk()
				}
				a := harness.NewReplica(t, api, on, "start_at: beginning")
				a.Logs.Reject(errors.New("the queue is full"))
				a.Elect()
				harness.Settle()
				api.Put(harness.Event("one", 1))
				time.Sleep(2 * time.Minute)
				assert.True(t, a.Host.Fails())
				a.Depose()
				assert.False(t, a.Host.Fails(), "a standby does not deliver, so its pipeline does not fail")
				attempts := a.Logs.Attempted()
				a.Logs.Reject(nil)
				api.Put(harness.Event("two", 1))
				time.Sleep(time.Minute)
				assert.Equal(t, attempts, a.Logs.Attempted())
				a.Elect()
				a.AwaitRecords(t, "one+1", "two+1")
			})
		})
	}
}

func TestWhileItIsNotCertainWhoLeadsNothingIsWritten(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		a := harness.NewReplica(t, api, on, "start_at: beginning")
		a.ElectAndDeliver(t, api, "one")
		on.Fail(nil, harness.ErrDisk)
		api.Put(harness.Event("two", 1))
		a.AwaitRecords(t, "one+1", "two+1")
		a.Pause()
		synctest.Wait()
		on.Fail(nil, nil)
		kept := on.Content()
		time.Sleep(time.Minute)
		assert.Equal(t, kept, on.Content())
		a.AwaitSum(t, 2)
	})
}

// An orderly stop of a leader whose last delivery takes longer than a pause of the process.
func TestALeaderThatStopsDuringASlowDeliveryRepeatsNothing(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		d := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: d, Elector: harness.NewElector()})
		p.Elect()
		harness.Settle()
		api.Put(harness.Event("zero", 1))
		harness.Settle()
		var slow atomic.Bool
		slow.Store(true)
		began := make(chan struct{})
		p.Logs.OnAttempt(func() {
			if slow.CompareAndSwap(true, false) {
				close(began)
				time.Sleep(4 * time.Second)
			}
		})
		api.Put(harness.Event("one", 1))
		<-began
		p.Stop()
		assert.Equal(t, []string{"zero+1", "one+1"}, p.Logs.Names())
		assert.Equal(t, int64(2), p.Sum())
		next := harness.NewReplica(t, api, d, "start_at: beginning")
		next.Elect()
		harness.Settle()
		assert.Empty(t, next.Logs.Names())
	})
}
