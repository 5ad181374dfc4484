// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// putCounts lets an event occur again and again, so that the versions go on.
func putCounts(api *apitest.Server, name string, first, last int32) {
	for count := first; count <= last; count++ {
		api.Put(eventNamed(name, count))
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
func (p *process) awaitNext(api *apitest.Server, name string) {
	before := len(p.logs.names())
	api.Put(eventNamed(name, 1))
	for len(p.logs.names()) == before {
		time.Sleep(time.Millisecond)
	}
}

// waitForTheCluster lets the process deliver records, b+1 the last one, just before a restore of a
// cluster that then does not say which one it is for ten minutes.
func (p *process) waitForTheCluster(t *testing.T, api *apitest.Server) {
	t.Helper()
	api.Put(eventNamed("a", 2))
	p.awaitRecords(t, "a+2")
	backup := api.Version()
	putCounts(api, "a", 3, 12)
	time.Sleep(time.Minute)
	p.awaitNext(api, "b")
	restoreSilently(api, backup)
	time.Sleep(10 * time.Minute)
}

// The leader waits for the cluster's answer after a restore, and loses the lease meanwhile. The
// elector must not wait for it: it stands for no election before, and calls no other component.
func TestATermEndsWhileTheClusterDoesNotSayWhichOneItIs(t *testing.T) {
	for name, shared := range map[string]bool{"without storage": false, "with shared storage": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				var on *disk
				if shared {
					on = newDisk()
				}
				a := launch(t, api, options{config: "start_at: beginning", disk: on, vote: newVote(), interval: 30 * time.Second})
				a.elect()
				api.Put(eventNamed("one", 1))
				a.awaitRecords(t, "one+1")
				backup := api.Version()
				putCounts(api, "one", 2, 51)
				time.Sleep(62 * time.Second)
				api.Put(eventNamed("two", 3)) // After the last collection.
				time.Sleep(5 * time.Second)
				restoreSilently(api, backup)
				time.Sleep(2 * time.Second)
				before := a.sum()
				var deposed atomic.Bool
				go func() {
					a.depose()
					deposed.Store(true)
				}()
				time.Sleep(time.Minute)
				assert.True(t, deposed.Load(), "the elector waits for the end of the term")
				assert.EqualValues(t, 54, a.sum(), "the last sums of the term; before its end: %d", before)
				api.RefuseCluster(0)
				time.Sleep(time.Minute)
				assert.True(t, deposed.Load())
			})
		})
	}
}

// A record was delivered long ago when the process is killed, while it waits for the cluster.
func TestACrashWhileTheClusterDoesNotSayWhichOneItIsRepeatsNothingOld(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: on})
		p.waitForTheCluster(t, api)
		killed := on.copied() // As a crash leaves it now.
		api.RefuseCluster(0)
		q := launch(t, api, options{config: "start_at: beginning", disk: killed})
		time.Sleep(time.Minute)
		assert.NotContains(t, q.logs.names(), "b+1", "it was delivered ten minutes before the crash")
	})
}

// The UID was never known, as behind a proxy that answers 502 for kube-system: no record can name the
// wrong cluster, and nothing can be compared.
func TestARestoreWhereTheUIDWasNeverKnownEndsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		api.RefuseCluster(http.StatusBadGateway)
		p := launch(t, api, options{config: "start_at: beginning"})
		time.Sleep(10 * time.Second)
		api.Put(eventNamed("a", 2))
		p.awaitRecords(t, "a+2")
		backup := api.Version()
		putCounts(api, "a", 3, 12)
		time.Sleep(time.Minute)
		api.Restore(backup)
		api.Put(eventNamed("b", 1))
		api.Cut()
		time.Sleep(10 * time.Minute)
		assert.Contains(t, p.logs.names(), "b+1")
	})
}

// Replicas share the storage, and the leader's term ends in an orderly way while it waits.
func TestAHandoverWhileTheClusterDoesNotSayWhichOneItIsRepeatsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := newReplicas(t, api, newDisk(), "start_at: beginning")
		a.elect()
		a.waitForTheCluster(t, api)
		a.depose()
		b.elect()
		time.Sleep(time.Minute)
		assert.Empty(t, b.logs.names(), "a delivered it ten minutes ago")
	})
}

// The elector tells its users one after the other: other receivers of it must go on.
func TestAClusterThatDoesNotAnswerEndsNothingOfAnotherReceiver(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		shared := newVote()
		a := launch(t, api, options{config: "start_at: beginning", vote: shared})
		shared.elect()
		api.Put(eventNamed("one", 1))
		a.awaitRecords(t, "one+1")
		backup := api.Version()
		putCounts(api, "one", 2, 11)
		time.Sleep(time.Minute)
		restoreSilently(api, backup)
		time.Sleep(2 * time.Second)
		elected := make(chan struct{})
		go func() { // As the extension: the calls come one after the other.
			shared.depose()
			shared.elect()
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
