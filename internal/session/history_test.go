// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

// putCounts lets an event occur again and again, so that the versions go on.
func putCounts(api *apitest.Server, name string, first, last int32) {
	for count := first; count <= last; count++ {
		api.Put(harness.Event(name, count))
	}
}

// restoreSilently restores the versions of a backup in a cluster that does not say which one it is.
func restoreSilently(api *apitest.Server, backup string) {
	api.Restore(backup)
	api.RefuseCluster(http.StatusServiceUnavailable)
	api.Cut()
}

// awaitNext puts an event and waits until the moment at which its record is there: it may still be in
// the outbox.
func awaitNext(p *harness.Process, api *apitest.Server, name string) {
	before := len(p.Logs.Names())
	api.Put(harness.Event(name, 1))
	for len(p.Logs.Names()) == before {
		time.Sleep(time.Millisecond)
	}
}

// waitForTheCluster lets the process deliver records, b+1 the last one, just before a restore of a
// cluster that then does not say which one it is for ten minutes.
func waitForTheCluster(t *testing.T, p *harness.Process, api *apitest.Server) {
	t.Helper()
	api.Put(harness.Event("a", 2))
	p.AwaitRecords(t, "a+2")
	backup := api.Version()
	putCounts(api, "a", 3, 12)
	time.Sleep(time.Minute)
	awaitNext(p, api, "b")
	restoreSilently(api, backup)
	time.Sleep(10 * time.Minute)
}

// The leader waits for the cluster's answer after a restore, and loses the lease meanwhile. The
// elector must not wait for it: it stands for no election before, and calls no other component.
func TestATermEndsWhileTheClusterDoesNotSayWhichOneItIs(t *testing.T) {
	for name, shared := range map[string]bool{"without storage": false, "with shared storage": true} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				var on *harness.Disk
				if shared {
					on = harness.NewDisk()
				}
				a := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on, Elector: harness.NewElector(), Interval: 30 * time.Second})
				a.Elect()
				api.Put(harness.Event("one", 1))
				a.AwaitRecords(t, "one+1")
				backup := api.Version()
				putCounts(api, "one", 2, 51)
				time.Sleep(62 * time.Second)
				api.Put(harness.Event("two", 3)) // After the last collection.
				time.Sleep(5 * time.Second)
				restoreSilently(api, backup)
				time.Sleep(2 * time.Second)
				before := a.Sum()
				var deposed atomic.Bool
				go func() {
					a.Depose()
					deposed.Store(true)
				}()
				time.Sleep(time.Minute)
				assert.True(t, deposed.Load(), "the elector waits for the end of the term")
				assert.EqualValues(t, 54, a.Sum(), "the last sums of the term; before its end: %d", before)
				api.RefuseCluster(0)
				time.Sleep(time.Minute)
				assert.True(t, deposed.Load())
			})
		})
	}
}

// A record was delivered long ago when the process is killed, while it waits for the cluster.
func TestACrashWhileTheClusterDoesNotSayWhichOneItIsRepeatsNothingOld(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		on := harness.NewDisk()
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: on})
		waitForTheCluster(t, p, api)
		killed := on.Copied() // As a crash leaves it now.
		api.RefuseCluster(0)
		q := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: killed})
		time.Sleep(time.Minute)
		assert.NotContains(t, q.Logs.Names(), "b+1", "it was delivered ten minutes before the crash")
	})
}

// The UID was never known, as behind a proxy that answers 502 for kube-system: no record can name the
// wrong cluster, and nothing can be compared.
func TestARestoreWhereTheUIDWasNeverKnownEndsNothing(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.RefuseCluster(http.StatusBadGateway)
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning"})
		time.Sleep(10 * time.Second)
		api.Put(harness.Event("a", 2))
		p.AwaitRecords(t, "a+2")
		backup := api.Version()
		putCounts(api, "a", 3, 12)
		time.Sleep(time.Minute)
		api.Restore(backup)
		api.Put(harness.Event("b", 1))
		api.Cut()
		time.Sleep(10 * time.Minute)
		assert.Contains(t, p.Logs.Names(), "b+1")
	})
}

// Replicas share the storage, and the leader's term ends in an orderly way while it waits.
func TestAHandoverWhileTheClusterDoesNotSayWhichOneItIsRepeatsNothing(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, harness.NewDisk(), "start_at: beginning")
		a.Elect()
		waitForTheCluster(t, a, api)
		a.Depose()
		b.Elect()
		time.Sleep(time.Minute)
		assert.Empty(t, b.Logs.Names(), "a delivered it ten minutes ago")
	})
}

// The leader delivers what its windows hold before the history ends, in which their versions are. The
// restored cluster gives these versions again: its events below them are not delivered by that.
func TestWhatWindowsHoldAtARestoreMovesNoPositionOfTheNewHistory(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "{start_at: beginning, dedup_interval: 1h}")
		a.Elect()
		api.Put(harness.Event("one", 1))
		a.AwaitRecords(t, "one+1")
		backup := api.Version()
		putCounts(api, "one", 2, 51)
		harness.Settle()
		api.Restore(backup)
		api.Cut()
		a.AwaitRecords(t, "one+1", "one+50")
		time.Sleep(time.Minute)
		a.Logs.Reject(errors.New("the queue is full"))
		api.Put(harness.Event("two", 1))
		harness.Settle()
		a.Depose()
		b.Elect()
		b.AwaitRecords(t, "two+1")
	})
}

// The elector tells its users one after the other: other receivers of it must go on.
func TestAClusterThatDoesNotAnswerEndsNothingOfAnotherReceiver(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		shared := harness.NewElector()
		a := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Elector: shared})
		shared.Elect()
		api.Put(harness.Event("one", 1))
		a.AwaitRecords(t, "one+1")
		backup := api.Version()
		putCounts(api, "one", 2, 11)
		time.Sleep(time.Minute)
		restoreSilently(api, backup)
		time.Sleep(2 * time.Second)
		elected := make(chan struct{})
		go func() { // As the extension: the calls come one after the other.
			shared.Depose()
			shared.Elect()
			close(elected)
		}()
		time.Sleep(10 * time.Minute)
		select {
		case <-elected:
		default:
			t.Error("the elector could not tell its users for ten minutes that this process leads again")
		}
		api.RefuseCluster(0)
		<-elected
	})
}
