// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
)

func TestInvalidConfigurations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings map[string]any
		message  string
	}{
		"no idle timeout":                {map[string]any{"idle_timeout": "0s", "settle_time": "0s"}, "idle_timeout: 0s is below 1ms; set a duration such as 5m"},
		"an idle timeout without a unit": {map[string]any{"idle_timeout": 5}, "idle_timeout: 5 has no unit; write 5s"},
		"a settle time without a unit":   {map[string]any{"settle_time": 10}, "settle_time: 10 has no unit; write 10s"},
		"a quoted settle time":           {map[string]any{"settle_time": "10"}, `settle_time: "10" has no unit; write 10s`},
		"a negative settle time":         {map[string]any{"settle_time": "-1s"}, "settle_time: -1s is below 1ms; set a duration such as 10s, or 0s"},
		"a long settle time":             {map[string]any{"settle_time": "6m"}, "settle_time: 6m0s is longer than idle_timeout, which is 5m0s; set a shorter settle_time, or a longer idle_timeout"},
		"a glob":                         {map[string]any{"harmless_reasons": []any{"AuditOnly", "*"}}, `harmless_reasons[1]: "*" is not the name of a reason: reasons are CamelCase names such as AuditOnly`},
		"a reason with a blank":          {map[string]any{"harmless_reasons": []any{"audit only"}}, `harmless_reasons[0]: "audit only" is not the name of a reason: reasons are CamelCase names such as AuditOnly`},
		"no rollouts":                    {map[string]any{"max_rollouts": 0}, "max_rollouts: 0 must be 1 or more; set a number such as 1000"},
		"half a rollout":                 {map[string]any{"max_rollouts": 1.5}, "max_rollouts: 1.5 is not a whole number; write one"},
		"a misspelled key":               {map[string]any{"idle_timout": "5m"}, "idle_timout is not an option; did you mean idle_timeout?"},
		"an unknown key":                 {map[string]any{"window": "5m"}, "window is not an option; write one of harmless_reasons, idle_timeout, max_rollouts, settle_time, stamp, storage"},
		"storage in place":               {map[string]any{"storage": map[string]any{"directory": "/var"}}, `storage: {"directory":"/var"} is not the name of an extension; write one, such as file_storage`},
		"a stamp as a text":              {map[string]any{"stamp": "yes"}, `stamp: "yes" is neither true nor false; write one of them`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := createDefaultConfig().(*Config)
			err := confmap.NewFromStringMap(c.settings).Unmarshal(config)
			if err == nil {
				err = config.Validate()
			}
			assert.ErrorContains(t, err, c.message)
		})
	}
}

func TestDefaultConfiguration(t *testing.T) {
	t.Parallel()
	config := createDefaultConfig().(*Config)
	require.NoError(t, config.Validate())
	assert.Equal(t, &Config{IdleTimeout: 5 * time.Minute, SettleTime: 10 * time.Second, MaxRollouts: 1000}, config)
}

func TestStorageThatIsNoStorage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		extensions host
		message    string
	}{
		"missing":        {host{}, `storage: "disk" is not among the extensions that run`},
		"something else": {host{diskID: component.Component(nil)}, `storage: "disk" is not a storage extension`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := createDefaultConfig().(*Config)
			config.Storage = &diskID
			settings := connectortest.NewNopSettings(metadata.Type)
			settings.TelemetrySettings = componenttest.NewNopTelemetrySettings()
			traces, err := NewFactory().CreateLogsToTraces(t.Context(), settings, config, consumertest.NewNop())
			require.NoError(t, err)
			assert.ErrorContains(t, traces.Start(t.Context(), c.extensions), c.message)
			require.NoError(t, traces.Shutdown(t.Context()))
		})
	}
}
