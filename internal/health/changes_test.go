// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// statusHost is a host that keeps the reports.
type statusHost struct {
	component.Host
	reports []*componentstatus.Event
}

func (h *statusHost) Report(event *componentstatus.Event) { h.reports = append(h.reports, event) }

func TestTheStatusAndTheLogHaveEachChangeOnce(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	h, err := New(settings)
	require.NoError(t, err)
	host := &statusHost{}
	h.AddHost(host)
	require.Empty(t, host.reports, "nothing has failed")
	for i, step := range []struct {
		do       func()
		messages []string // that the log gets
		reported int
		isOK     bool
	}{
		{func() { h.Waiting(Streams([]string{"", "a"})...) }, nil, 1, false},
		{func() { h.Restarting("", watch.CauseUnavailable, errors.New("no")) }, []string{"Cannot watch events; retrying"}, 1, false},
		{func() { h.Answered("") }, nil, 1, false}, // For the first time, it does not watch again.
		{func() { h.Answered("a") }, nil, 1, true},
		{func() { h.Answered("a") }, nil, 0, true},
		{func() { h.Restarting("a", watch.CauseExpired, nil) }, nil, 0, true},
		{func() { h.Restarting("a", watch.CauseForbidden, errors.New("no")) }, []string{"Cannot watch events; retrying"}, 1, false},
		{func() { h.Restarting("a", watch.CauseForbidden, errors.New("no")) }, nil, 0, false},
		{func() { h.Restarting("a", watch.CauseUnauthorized, errors.New("no")) }, []string{"Cannot watch events; retrying"}, 1, false},
		{func() { h.RejectingLong(time.Minute) }, nil, 1, false},
		{func() { h.Answered("a") }, []string{"Watching events again"}, 1, false},
		{func() { h.AcceptingAgain() }, nil, 1, true},
	} {
		host.reports = nil
		step.do()
		var messages []string
		for _, entry := range logs.TakeAll() {
			messages = append(messages, entry.Message)
		}
		assert.Equal(t, step.messages, messages, i)
		assert.Len(t, host.reports, step.reported, i)
		assert.Equal(t, step.isOK, h.AllWork(append(Streams([]string{"", "a"}), logsPipeline)...), i)
		if step.reported > 0 {
			assert.Equal(t, step.isOK, host.reports[0].Status() == componentstatus.StatusOK, i)
		}
	}
}

func TestAPipelineThatStartsLaterGetsTheStatus(t *testing.T) {
	h, err := New(receivertest.NewNopSettings(metadata.Type))
	require.NoError(t, err)
	h.Failed("part", "cause", "", errors.New("no"))
	host := &statusHost{}
	h.AddHost(host)
	require.Len(t, host.reports, 1)
	assert.ErrorContains(t, host.reports[0].Err(), "no")
}

func TestAMissingPermissionIsNamedWithItsRole(t *testing.T) {
	for namespace, want := range map[string]string{"": "events of the cluster: bind a ClusterRole with", "a": "events of namespace a: bind a Role in namespace a with"} {
		assert.ErrorContains(t, explain(namespace, watch.CauseForbidden, errors.New("no")), want)
	}
}

func TestAnErrorOfTheNetworkHasAFix(t *testing.T) {
	for name, test := range map[string]struct {
		err error
		fix string
	}{
		"no such host":          {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api"}}, "check the host name"},
		"a refused connection":  {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "whether it runs"},
		"no route":              {&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, "network policies"},
		"no answer in time":     {context.DeadlineExceeded, "network policies"},
		"another certificate":   {&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, "certificate authority"},
		"an error of a program": {errors.New("disk full: free disk space"), ": disk full: free disk space"},
	} {
		err := explain("", watch.CauseOf(test.err), &url.Error{Op: "Get", URL: "https://192.0.2.1", Err: test.err})
		require.ErrorContains(t, err, `events of the cluster: Get "https://192.0.2.1": `, name)
		assert.ErrorContains(t, err, test.fix, name)
		assert.Equal(t, name != "an error of a program", strings.Contains(err.Error(), "; check "), name)
	}
}

func TestWhatTheTelemetryMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collector := componenttest.NewTelemetry()
		defer func() { assert.NoError(t, collector.Shutdown(context.Background())) }()
		settings := receivertest.NewNopSettings(metadata.Type)
		settings.TelemetrySettings = collector.NewTelemetrySettings()
		h, err := New(settings)
		require.NoError(t, err)
		leads := false
		require.NoError(t, h.Measure(func() bool { return leads }, 9, nil))
		value := func(name string) (value float64) {
			m, err := collector.GetMetric("otelcol_kube_events_" + name)
			require.NoError(t, err, name)
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				value = float64(data.DataPoints[0].Value)
			case metricdata.Gauge[float64]:
				value = data.DataPoints[0].Value
			case metricdata.Sum[int64]:
				value = float64(data.DataPoints[0].Value)
			}
			return value
		}
		assert.Zero(t, value("leading"))
		leads = true
		assert.InDelta(t, 1, value("leading"), 0)
		for range 5 {
			h.Arrived()
		}
		h.Withdrawn()
		h.DealtWith([]watch.Change{{Event: &corev1.Event{}}, {Kind: watch.KindListEnded}, {Event: &corev1.Event{}}})
		assert.InDelta(t, 2, value("waiting"), 0)
		assert.Zero(t, value("checkpoint_age"))
		h.Unsaved(time.Now().Add(-5 * time.Second))
		assert.InDelta(t, 5, value("checkpoint_age"), 0)
		h.Saved()
		assert.Zero(t, value("checkpoint_age"))
		h.Accounted(7, 3)
		assert.InDelta(t, 7, value("received"), 0)
		assert.InDelta(t, 3, value("filtered"), 0)
		h.Counted(4, 2)
		assert.InDelta(t, 4, value("series"), 0)
		assert.InDelta(t, 2, value("series_overflow"), 0)
		assert.InDelta(t, 9, value("series_limit"), 0)
		h.CacheHit()
		h.Resolved([]observation.Observation{{}, {Chain: resolver.Chain{Resolution: resolver.ResolutionComplete}}})
		assert.InDelta(t, 1, value("owner_cache_hits"), 0)
		resolutions, err := collector.GetMetric("otelcol_kube_events_owner_resolutions")
		require.NoError(t, err)
		assert.Len(t, resolutions.Data.(metricdata.Sum[int64]).DataPoints, 1, "without lookups there is no resolution")
		h.Shutdown()
	})
}
