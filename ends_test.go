// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/internal/apitest"
)

// A standby whose elector's Lease is not known must lose nothing.
func TestAStandbyWhoseLeaseIsNotKnownLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		p := launch(t, api, options{config: "start_at: beginning", vote: &vote{}})
		settle()
		api.Put(eventNamed("one", 1))
		settle()
		p.elect()
		settle()
		api.Put(eventNamed("two", 1))
		settle()
		assert.Equal(t, []string{"one+1", "two+1"}, p.logs.names())
		p.depose()
		api.Put(eventNamed("three", 1))
		settle()
		p.elect()
		settle()
		assert.Equal(t, []string{"one+1", "two+1", "three+1"}, p.logs.names())
	})
}

// The status of a process that was deposed while it delivered the outbox.
func TestALeaderThatIsDeposedWhileItDeliversTheOutboxReportsNoPipeline(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		d := newDisk()
		first := newReplica(t, api, d, "start_at: beginning")
		first.elect()
		settle()
		first.logs.reject(errors.New("full"))
		api.Put(eventNamed("one", 1))
		settle()
		first.stop()

		p := newReplica(t, api, d, "start_at: beginning")
		p.logs.reject(errors.New("full"))
		p.elect()
		time.Sleep(3 * time.Minute)
		assert.True(t, p.host.fails(), "it reports the pipeline")
		p.depose()
		settle()
		assert.False(t, p.host.fails(), "a standby reports a pipeline")
		p.logs.reject(nil)
		p.elect()
		settle()
		assert.Equal(t, []string{"one+1"}, p.logs.names())
		time.Sleep(5 * time.Minute)
		st, text := p.host.status()
		assert.False(t, p.host.fails(), "%v %v", st, text)
	})
}

// An orderly stop of a leader whose last delivery takes longer than a pause of the process.
func TestALeaderThatStopsDuringASlowDeliveryRepeatsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		d := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: d, vote: newVote()})
		p.elect()
		settle()
		api.Put(eventNamed("zero", 1))
		settle()
		var slow atomic.Bool
		slow.Store(true)
		began := make(chan struct{})
		p.logs.onAttempt(func() {
			if slow.CompareAndSwap(true, false) {
				close(began)
				time.Sleep(4 * time.Second)
			}
		})
		api.Put(eventNamed("one", 1))
		<-began
		p.stop()
		assert.Equal(t, []string{"zero+1", "one+1"}, p.logs.names())
		assert.Equal(t, int64(2), p.sum())
		next := newReplica(t, api, d, "start_at: beginning")
		next.elect()
		settle()
		assert.Empty(t, next.logs.names())
	})
}

// The storage fails once; the pipeline rejects for hours. Then the process is killed.
func TestAWriteIsRepeatedWhileThePipelineRejects(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		d := newDisk()
		p := launch(t, api, options{config: "start_at: beginning", disk: d})
		settle()
		api.Put(eventNamed("zero", 1))
		settle()
		p.logs.reject(errors.New("full"))
		d.fail(nil, errors.New("no space left"))
		api.Put(eventNamed("one", 1))
		settle()
		d.fail(nil, nil)
		time.Sleep(2 * time.Hour)
		_, text := p.host.status()
		assert.NotContains(t, text, "no space left", "the storage has worked for two hours")
		crashed := d.copied()
		api.Delete(eventNamed("one", 1))
		api.Compact()
		q := launch(t, api, options{config: "start_at: beginning", disk: crashed})
		settle()
		assert.Equal(t, []string{"one+1"}, q.logs.names(), "nothing is lost by a crash")
	})
}

// Occurrences of after a restore, in a window that held occurrences of before it.
func TestAWindowThatOutlivesARestoreHoldsThePositionBack(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		const config = "{start_at: beginning, dedup_interval: 1m}"
		a, b := newReplica(t, api, nil, config), newReplica(t, api, nil, config)
		a.elect()
		api.Put(eventNamed("one", 1))
		a.awaitRecords(t, "one+1")
		backup := api.Version()
		for range 20 {
			api.Put(eventNamed("another", 1)) // So that the versions from here on are far above the backup's.
		}
		api.Put(eventNamed("one", 2))
		settle()
		api.Restore(backup)
		api.Cut()
		settle()
		api.Put(eventNamed("one", 4))
		settle()
		b.elect() // a is dead, as far as anybody knows.
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"one+1", "one+3"}, b.logs.names(), "one in the lost history, and three above the backup")
	})
}

// A standby whose queue is stalled has no connection on which it could notice a restore.
func TestAStandbyWhoseQueueIsStalledNoticesARestore(t *testing.T) {
	for name, publishes := range map[string]bool{"the leader is idle": false, "the leader publishes all the time": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				a, b := newReplica(t, api, nil, "start_at: beginning"), newReplica(t, api, nil, "start_at: beginning")
				a.elect()
				api.Put(eventNamed("before", 1))
				a.awaitRecords(t, "before+1")
				backup := api.Version()
				a.logs.reject(errors.New("the queue is full"))
				for i := range 200 {
					api.Put(eventNamed("lost", int32(i+1)))
				}
				time.Sleep(2 * time.Minute)
				api.Restore(backup)
				api.Cut()
				a.logs.reject(nil)
				for i := range 60 {
					if publishes {
						api.Put(eventNamed("since", int32(i+1)))
					}
					time.Sleep(2 * time.Second)
				}
				assert.Len(t, b.logged("known_version"), 1)
				api.Put(eventNamed("last", 1))
				settle()
				assert.Zero(t, receiverOf(t, b).Health.Waiting(), "the leader has delivered it")
			})
		})
	}
}

// The windows of a checkpoint of another cluster are delivered like its outbox.
func TestWhatTheWindowsOfAnotherClusterHeldIsDelivered(t *testing.T) {
	const config = "{start_at: end, dedup_interval: 20s}"
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		on := newDisk()
		first := launch(t, api, options{config: config, disk: on})
		settle()
		api.Put(eventNamed("a", 1))
		first.awaitRecords(t, "a+1")
		api.Put(eventNamed("a", 4))
		first.awaitSum(t, 4)
		crashed := on.copied()
		api.SetCluster("another-cluster")
		second := launch(t, api, options{config: config, disk: crashed})
		second.awaitRecords(t, "a+3")
		resource := second.logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().AsRaw()
		assert.Equal(t, "cluster-uid", resource["k8s.cluster.uid"])
		assert.NotContains(t, resource, "k8s.workload.name", "this cluster does not know it")
		second.stop()
		third := launch(t, api, options{config: config, disk: crashed})
		settle()
		assert.Empty(t, third.logs.names())
	})
}
