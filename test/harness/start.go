// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.yaml.in/yaml/v3"

	"github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// Timeout is how long tests outside of a bubble wait.
const Timeout = 20 * time.Second

// Configured returns what a user writes under receivers.kube_events, as the Collector reads it.
func Configured(t *testing.T, written string) *kubeeventsreceiver.Config {
	t.Helper()
	raw := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(written), &raw))
	cfg := kubeeventsreceiver.NewFactory().CreateDefaultConfig().(*kubeeventsreceiver.Config)
	require.NoError(t, confmap.NewFromStringMap(raw).Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

// ConfigFor returns a configuration that reaches the API server.
func ConfigFor(t *testing.T, api *apitest.Server, more string) *kubeeventsreceiver.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`, api.URL)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	cfg := Configured(t, more)
	cfg.AuthType, cfg.Kubeconfig, cfg.Dial = "kubeConfig", path, api.Dial
	cfg.RetryOnFailure.InitialInterval = 10 * time.Millisecond
	require.NoError(t, cfg.Validate())
	return cfg
}

// Start starts a receiver in a logs pipeline, and in a metrics pipeline unless that is nil.
func Start(t *testing.T, cfg *kubeeventsreceiver.Config, logs consumer.Logs, metrics consumer.Metrics) (stop func()) {
	t.Helper()
	return StartIn(t, cfg, receivertest.NewNopSettings(metadata.Type), componenttest.NewNopHost(), logs, metrics)
}

// StartIn starts a receiver in the pipelines that are not nil, and returns what stops it before the test
// ends.
func StartIn(t *testing.T, cfg *kubeeventsreceiver.Config, settings receiver.Settings, host component.Host, logs consumer.Logs, metrics consumer.Metrics) (stop func()) {
	t.Helper()
	var receivers []component.Component
	if logs != nil {
		r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), settings, cfg, logs)
		require.NoError(t, err)
		receivers = append(receivers, r)
	}
	if metrics != nil {
		r, err := kubeeventsreceiver.NewFactory().CreateMetrics(t.Context(), settings, cfg, metrics)
		require.NoError(t, err)
		receivers = append(receivers, r)
	}
	for _, r := range receivers {
		require.NoError(t, r.Start(t.Context(), host))
	}
	stop = sync.OnceFunc(func() {
		for _, r := range receivers {
			assert.NoError(t, r.Shutdown(context.Background()))
		}
	})
	t.Cleanup(stop)
	return stop
}
