// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestAClusterThatDoesNotAnswerWhichOneItIsIsReported(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.RefuseCluster(http.StatusServiceUnavailable)
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Disk: harness.NewDisk()})
		api.Put(harness.Event("a", 3))
		time.Sleep(time.Minute)
		assert.Empty(t, p.Logs.Names())
		_, text := p.Host.Status()
		assert.Contains(t, text, "kube-system")
		api.RefuseCluster(0)
		p.AwaitRecords(t, "a+3")
		assert.False(t, p.Host.Fails())
	})
}

// The status of a process that was deposed while it delivered the outbox.
func TestALeaderThatIsDeposedWhileItDeliversTheOutboxReportsNoPipeline(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		d := harness.NewDisk()
		first := harness.NewReplica(t, api, d, "start_at: beginning")
		first.Elect()
		harness.Settle()
		first.Logs.Reject(errors.New("full"))
		api.Put(harness.Event("one", 1))
		harness.Settle()
		first.Stop()

		p := harness.NewReplica(t, api, d, "start_at: beginning")
		p.Logs.Reject(errors.New("full"))
		p.Elect()
		time.Sleep(3 * time.Minute)
		assert.True(t, p.Host.Fails(), "it reports the pipeline")
		p.Depose()
		harness.Settle()
		assert.False(t, p.Host.Fails(), "a standby reports a pipeline")
		p.Logs.Reject(nil)
		p.Elect()
		harness.Settle()
		assert.Equal(t, []string{"one+1"}, p.Logs.Names())
		time.Sleep(5 * time.Minute)
		st, text := p.Host.Status()
		assert.False(t, p.Host.Fails(), "%v %v", st, text)
	})
}
