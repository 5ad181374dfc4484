// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestTheFactory(t *testing.T) {
	factory := kubeeventsreceiver.NewFactory()
	assert.Equal(t, "kube_events", factory.Type().String())
	assert.NoError(t, componenttest.CheckConfigStruct(factory.CreateDefaultConfig()))
}

func TestATracesPipelineNamesTheConnector(t *testing.T) {
	factory := kubeeventsreceiver.NewFactory()
	_, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(metadata.Type), factory.CreateDefaultConfig(), consumertest.NewNop())
	require.ErrorContains(t, err, "write kube_incidents as the exporter of a logs pipeline and as the receiver of the traces pipeline")
}

func TestBothPipelinesShareOneWatch(t *testing.T) {
	api := apitest.New(t)
	logs, metrics := &consumertest.LogsSink{}, &consumertest.MetricsSink{}
	stop := harness.Start(t, harness.ConfigFor(t, api, "{start_at: beginning, collection_interval: 10ms}"), logs, metrics)
	api.Put(harness.Event("a", 3))
	harness.AwaitNames(t, logs, "a+3")
	require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, harness.Timeout, 5*time.Millisecond)
	stop()
	assert.Equal(t, []string{"list", "watch"}, api.Requests())
}

func TestStartFailsForAConfigurationThatTheUserMustFix(t *testing.T) {
	for name, tt := range map[string]struct{ config, want string }{
		"a kubeconfig that is not there": {"{auth_type: kubeConfig, kubeconfig: /nowhere/config}", `"/nowhere/config"`},
		"a context that is not there":    {"{auth_type: kubeConfig, kubeconfig: testdata/unreachable.kubeconfig, context: blue}", `"blue"`},
		"no service account":             {"{}", "auth_type: kubeConfig"},
		"no environment":                 {"{auth_type: none}", "KUBERNETES_SERVICE_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), harness.Configured(t, tt.config), consumertest.NewNop())
			require.NoError(t, err)
			require.ErrorContains(t, r.Start(t.Context(), componenttest.NewNopHost()), tt.want)
			require.NoError(t, r.Shutdown(t.Context()))
		})
	}
}

func TestAReceiverWhoseOnlySignalIsDisabledDoesNotStart(t *testing.T) {
	factory, settings, next := kubeeventsreceiver.NewFactory(), receivertest.NewNopSettings(metadata.Type), consumertest.NewNop()
	start := func(r component.Component, err error) error {
		require.NoError(t, err)
		defer func() { assert.NoError(t, r.Shutdown(t.Context())) }()
		return r.Start(t.Context(), componenttest.NewNopHost())
	}
	logs, err := factory.CreateLogs(t.Context(), settings, harness.Configured(t, "events: {k8s.event: {enabled: false}}"), next)
	require.ErrorContains(t, start(logs, err), "events.k8s.event.enabled: false, and no metrics pipeline has the receiver")
	metrics, err := factory.CreateMetrics(t.Context(), settings, harness.Configured(t, "metrics: {k8s.event.occurrences: {enabled: false}}"), next)
	require.ErrorContains(t, start(metrics, err), "metrics.k8s.event.occurrences.enabled: false, and no logs pipeline has the receiver")
}

func TestShutdown(t *testing.T) {
	create := func(t *testing.T, cfg *kubeeventsreceiver.Config) receiver.Logs {
		r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		return r
	}
	t.Run("of a receiver that was never started", func(t *testing.T) {
		r := create(t, harness.ConfigFor(t, &apitest.Server{URL: "http://127.0.0.1:1"}, ""))
		require.NoError(t, r.Shutdown(t.Context()))
	})
	t.Run("twice", func(t *testing.T) {
		r := create(t, harness.ConfigFor(t, apitest.New(t), ""))
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, r.Shutdown(t.Context()))
		require.NoError(t, r.Shutdown(t.Context()))
	})
	t.Run("with an API server that is away", func(t *testing.T) {
		r := create(t, harness.ConfigFor(t, &apitest.Server{URL: "http://127.0.0.1:1"}, ""))
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, r.Shutdown(t.Context()))
	})
	t.Run("and the same configuration starts again", func(t *testing.T) {
		api := apitest.New(t)
		cfg := harness.ConfigFor(t, api, "start_at: beginning")
		api.Put(harness.Event("a", 1))
		for range 2 {
			sink := &consumertest.LogsSink{}
			stop := harness.Start(t, cfg, sink, nil)
			harness.AwaitNames(t, sink, "a+1")
			stop()
		}
	})
}

// The Collector's shutdown has no deadline of its own: the pod's grace period ends it.
func TestShutdownDoesNotWaitForAPipelineThatIgnoresItsContext(t *testing.T) {
	for deadline, want := range map[time.Duration]string{
		time.Millisecond: "events were still being delivered",
		time.Hour:        "has not ended within 15s: check the exporters",
	} {
		t.Run(deadline.String(), func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				release := make(chan struct{})
				entered := make(chan struct{}, 1)
				logs := &harness.Pipeline{}
				logs.OnAttempt(func() {
					entered <- struct{}{}
					<-release
				})
				r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), harness.ConfigFor(t, api, "start_at: beginning"), logs)
				require.NoError(t, err)
				require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
				api.Put(harness.Event("a", 1))
				<-entered
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				require.ErrorContains(t, r.Shutdown(ctx), want)
				close(release)
			})
		})
	}
}

func TestSecretsDoNotReachTheLog(t *testing.T) {
	const secret = "do-not-tell-anyone"
	for name, status := range map[string]int{"not accepted": http.StatusUnauthorized, "not allowed": http.StatusForbidden, "broken": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New(t)
			api.Refuse(func(*http.Request) int { return status })
			cfg := harness.ConfigFor(t, api, "")
			kubeconfig, err := os.ReadFile(cfg.Kubeconfig)
			require.NoError(t, err)
			withToken := strings.Replace(string(kubeconfig), "user: {}", "user: {token: "+secret+"}", 1)
			require.NoError(t, os.WriteFile(cfg.Kubeconfig, []byte(withToken), 0o600))

			settings := receivertest.NewNopSettings(metadata.Type)
			core, logged := observer.New(zap.DebugLevel)
			settings.Logger = zap.New(core)
			harness.StartIn(t, cfg, settings, componenttest.NewNopHost(), consumertest.NewNop(), nil)
			require.Eventually(t, func() bool { return logged.Len() > 0 }, harness.Timeout, time.Millisecond, "the failure is logged")
			for _, entry := range logged.All() {
				assert.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), secret)
			}
		})
	}
}

func TestReceiversOfOneProcessHaveTheirOwnConnections(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				p := harness.Launch(t, api, harness.Options{Config: "start_at: beginning"})
				api.Put(harness.Event(name, 1))
				p.AwaitRecords(t, name+"+1")
			})
		})
	}
}
