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
