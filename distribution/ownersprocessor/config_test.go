// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.yaml.in/yaml/v3"

	"github.com/kubeevents/kubeeventsreceiver/distribution/ownersprocessor/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
)

// load reads a configuration as the Collector does, and validates it.
func load(t *testing.T, text string) (*Config, error) {
	t.Helper()
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	config := createDefaultConfig().(*Config)
	if err := confmap.NewFromStringMap(raw).Unmarshal(config); err != nil {
		return config, err
	}
	return config, config.Validate()
}

func TestTheDefaultIsValid(t *testing.T) {
	config, err := load(t, "")
	require.NoError(t, err)
	assert.Equal(t, 200*time.Millisecond, config.Wait)
	assert.Equal(t, 100_000, config.Owners.CacheSize)
}

func TestOptionsAreThoseOfTheReceiver(t *testing.T) {
	config, err := load(t, `
auth_type: kubeConfig
kubeconfig: /etc/kubeconfig
context: prod
kube_api_qps: 50
kube_api_burst: 60
wait: 1s
owners: {max_depth: 3, lookup_timeout: 5s, cache_size: 7, cache_ttl: 1m}
extract: {metadata: [service.name], otel_annotations: true, labels: [{key: team, from: namespace}], annotations: [{key_regex: 'a/(.*)', tag_name: a.$1}]}
resource_attributes: {k8s.owner.chain: {enabled: true}, k8s.workload.uid: {enabled: false}}
`)
	require.NoError(t, err)
	assert.Equal(t, "kubeConfig", config.Auth.Type)
	assert.Equal(t, "/etc/kubeconfig", config.Auth.Kubeconfig)
	assert.Equal(t, "prod", config.Auth.Context)
	assert.InDelta(t, 50, config.Auth.QPS, 0)
	assert.Equal(t, 60, config.Auth.Burst)
	assert.Equal(t, 5*time.Second, config.Owners.LookupTimeout)
	assert.Equal(t, []extract.Rule{{Key: "team", From: "namespace"}}, config.Extract.Labels)
	assert.False(t, config.disabled()["k8s.owner.chain"])
	assert.True(t, config.disabled()["k8s.workload.uid"])
	assert.True(t, config.disabled()["k8s.owner.kind"])
}

func TestAWrongOptionNamesTheFix(t *testing.T) {
	for text, fix := range map[string]string{
		"auth_type: token":                           `auth_type: "token" is not known; use serviceAccount, kubeConfig or none`,
		"kubeconfig: /etc/kubeconfig":                `set auth_type: kubeConfig, or remove it`,
		"wait: 200":                                  `wait: 200 has no unit; write 200ms`,
		"owners: {lookup_timeout: 5}":                `owners.lookup_timeout: 5 has no unit; write 5s`,
		"wait: -1s":                                  `set a duration such as 200ms, or 0s to wait for nothing`,
		"wait: 11s":                                  `longer than owners.lookup_timeout, which is 10s`,
		"owners: {enabled: false}":                   `remove the processor from its pipelines`,
		"owners: {cache_size: 0}":                    `owners.cache_size: 0 is not possible`,
		"owner: {}":                                  `owner is not an option; did you mean owners?`,
		"namespaces: [shop]":                         `namespaces is not an option`,
		"storage: file_storage":                      `storage is not an option; write one of auth_type, context, extract, kube_api_burst, kube_api_qps, kubeconfig, owners, resource_attributes, wait`,
		"extract: {labels: [{key: a, from: event}]}": `extract.labels[0].from: "event" is possible only in the receiver kube_events`,
		"extract: {annotations: [{key: a, from: Event}]}":            `extract.annotations[0].from: "Event" is possible only in the receiver kube_events; use a kind, nearest, namespace or node`,
		"extract: {labels: [{key: a, from: pods}]}":                  `kinds are singular, such as pod; other values are nearest, namespace and node`,
		"extract: {labels: [{key: a, tag_name: k8s.workload.name}]}": `is an attribute of this component itself; choose another name`,
		"resource_attributes: {k8s.workload.nam: {enabled: true}}":   `resource_attributes.k8s.workload.nam is not an option; did you mean k8s.workload.name?`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := load(t, text)
			assert.ErrorContains(t, err, fix)
		})
	}
}

func TestPipelinesOfAConfigurationShareWhatIsKnown(t *testing.T) {
	factory, settings := NewFactory(), processortest.NewNopSettings(metadata.Type)
	config := createDefaultConfig().(*Config)
	config.Auth.Type, config.Auth.Kubeconfig = "kubeConfig", "testdata/kubeconfig.yaml"
	logs, err := factory.CreateLogs(t.Context(), settings, config, consumertest.NewNop())
	require.NoError(t, err)
	traces, err := factory.CreateTraces(t.Context(), settings, config, consumertest.NewNop())
	require.NoError(t, err)
	assert.True(t, logs.Capabilities().MutatesData)
	for range 2 { // A configuration that was shut down starts again.
		require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, logs.Shutdown(t.Context()))
		require.NoError(t, traces.ConsumeTraces(t.Context(), tracesOf(pod)), "the other pipeline goes on")
		require.NoError(t, traces.Shutdown(t.Context()))
		logs, err = factory.CreateLogs(t.Context(), settings, config, consumertest.NewNop())
		require.NoError(t, err)
		traces, err = factory.CreateTraces(t.Context(), settings, config, consumertest.NewNop())
		require.NoError(t, err)
	}
	require.NoError(t, logs.Shutdown(t.Context()), "without a start")
	require.NoError(t, traces.Shutdown(t.Context()))
}

func TestTheLastPipelineEndsTheLookups(t *testing.T) {
	e := newEnricher(t, newCluster(), nil)
	_, err := e.instances.get(e.config, e.settings)
	require.NoError(t, err)
	require.NoError(t, e.Shutdown(t.Context()))
	assert.False(t, e.table.closed)
	again, err := e.instances.get(e.config, e.settings)
	require.NoError(t, err)
	assert.Same(t, e, again)
	require.NoError(t, again.Shutdown(t.Context()))
}

func TestAnUnreadableKubeconfigIsSaid(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Auth.Type, config.Auth.Kubeconfig = "kubeConfig", "testdata/missing.yaml"
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), config, consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, p.Start(t.Context(), componenttest.NewNopHost()), "missing.yaml")
	require.NoError(t, p.Shutdown(t.Context()))
}
