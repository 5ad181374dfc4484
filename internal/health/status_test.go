// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
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

// The cost of the status, and of its text, must not grow with the square of the namespaces.
func TestTheStatusOfManyNamespacesIsFlat(t *testing.T) {
	observer, err := health.New(receivertest.NewNopSettings(metadata.Type))
	require.NoError(t, err)
	var last lastEvent
	observer.AddHost(&last)
	observer.Waiting(health.Streams([]string{"a", "b", "c"})...)
	joined, ok := last.Err().(interface{ Unwrap() []error })
	require.True(t, ok)
	assert.Len(t, joined.Unwrap(), 3)
}

// lastEvent is a host that keeps the last status.
type lastEvent struct {
	component.Host
	*componentstatus.Event
}

func (l *lastEvent) Report(event *componentstatus.Event) { l.Event = event }

// The status of a process that was deposed while its pipeline rejected events.
func TestALeaderThatIsDeposedReportsNoPipeline(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		first := harness.NewReplica(t, api, nil, "start_at: beginning")
		first.Elect()
		harness.Settle()
		first.Logs.Reject(errors.New("full"))
		api.Put(harness.Event("one", 1))
		harness.Settle()
		first.Stop()

		p := harness.NewReplica(t, api, nil, "start_at: beginning")
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

// A page in the same Collector reads it from the status, because a standby is healthy, but emits nothing.
func TestTheStatusSaysWhetherThisIsAStandby(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.NewReplica(t, api, nil, "")
		assert.True(t, p.Host.IsStandby(), "before the first election")
		p.Elect()
		harness.Settle()
		assert.False(t, p.Host.IsStandby())
		p.Depose()
		harness.Settle()
		assert.True(t, p.Host.IsStandby())
	})
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{})
		harness.Settle()
		assert.False(t, p.Host.IsStandby(), "without an elector")
	})
}

func TestACredentialThatIsNotAcceptedIsReportedWithItsFix(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		api.Refuse(func(*http.Request) int { return http.StatusUnauthorized })
		p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning"})
		time.Sleep(time.Minute)
		_, text := p.Host.Status()
		assert.Contains(t, text, "renew the token or certificate")
	})
}
