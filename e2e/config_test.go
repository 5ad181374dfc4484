// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
)

// TestDefaults: what a user gets who sets nothing.
func TestDefaults(t *testing.T) {
	t.Parallel()
	conf := confmap.New()
	require.NoError(t, conf.Marshal(kubeevents.NewFactory().CreateDefaultConfig()))
	settings := conf.ToStringMap()
	for key, want := range map[string]any{
		"auth_type": "serviceAccount", "kubeconfig": "", "context": "", "cluster_name": "", "kube_api_qps": float32(-1), "kube_api_burst": 100,
		"start_at": "end", "dedup_interval": time.Duration(0), "collection_interval": 30 * time.Second,
		"owners": map[string]any{"enabled": true, "max_depth": 10, "lookup_timeout": 2 * time.Second, "cache_size": 100000, "cache_ttl": 10 * time.Minute},
		"metrics": map[string]any{
			"max_series": 10000, "series_ttl": time.Hour, "initial_zero": true,
			"k8s.event.occurrences": map[string]any{
				"enabled": true, "aggregation_strategy": "sum",
				"attributes": []any{
					"k8s.cluster.name", "k8s.cluster.uid", "k8s.namespace.name", "k8s.workload.api_version", "k8s.workload.kind", "k8s.workload.name",
					"k8s.event.reason", "k8s.event.type", "k8s.object.kind", "otel.metric.overflow",
				},
			},
		},
	} {
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(settings[key]), key) // Names of attributes have a type of their own.
	}
	for _, key := range []string{"namespaces", "exclude_namespaces", "event_types", "include_reasons", "exclude_reasons", "include_kinds", "exclude_kinds"} {
		assert.Empty(t, settings[key], key)
	}
	extract := settings["extract"].(map[string]any)
	assert.Equal(t, []any{"service.name", "service.namespace"}, extract["metadata"])
	assert.Equal(t, true, extract["otel_annotations"])
	assert.Empty(t, extract["annotations"])
	rule := extract["labels"].([]any)[0].(map[string]any)
	assert.Equal(t, "tilt.manifest", rule["tag_name"])
	assert.Equal(t, "tilt-manifest", rule["key"])
	assert.Contains(t, settings, "retry_on_failure")
}

// TestWrongConfiguration: the message names the key, the value and the fix.
func TestWrongConfiguration(t *testing.T) {
	t.Parallel()
	for config, parts := range map[string][]string{
		"auth_type: magic": {"auth_type", `"magic"`, "serviceAccount", "kubeConfig", "none"},
		"{auth_type: serviceAccount, kubeconfig: /some/file}":        {"kubeconfig", `"/some/file"`, "auth_type: kubeConfig"},
		"{auth_type: none, kubeconfig: /some/file}":                  {"kubeconfig", `"/some/file"`, "auth_type: kubeConfig"},
		"{auth_type: serviceAccount, kubeconfig: '', context: prod}": {"context", `"prod"`, "auth_type: kubeConfig"},
		"kube_api_qps: 0":                                                   {"kube_api_qps", "0", "above 0", "-1"},
		"kube_api_qps: -2":                                                  {"kube_api_qps", "-2", "above 0", "-1"},
		"kube_api_burst: 0":                                                 {"kube_api_burst", "0", "1 or more"},
		"namespaces: ['team-*']":                                            {"namespaces", `"team-*"`, "names"},
		"{namespaces: [a, b], exclude_namespaces: [b]}":                     {"namespaces", `"b"`, "exclude_namespaces"},
		"{namespaces: [team-a], exclude_namespaces: ['team-*']}":            {"namespaces", `"team-a"`, `"team-*"`},
		"exclude_namespaces: ['a[']":                                        {"exclude_namespaces", `"a["`, "glob"},
		"include_reasons: ['a[']":                                           {"include_reasons", `"a["`, "glob"},
		"exclude_reasons: ['a[']":                                           {"exclude_reasons", `"a["`, "glob"},
		"include_kinds: [pods]":                                             {"include_kinds[0]", `"pods"`, "write pod"},
		"{include_reasons: [A, B], exclude_reasons: [B]}":                   {"include_reasons", `"B"`, "exclude_reasons"},
		"event_types: [NORMAL]":                                             {"event_types[0]", `"NORMAL"`, "write Normal"},
		"start_at: middle":                                                  {"start_at", `"middle"`, "end", "beginning"},
		"owners: {max_depth: 0}":                                            {"owners", "max_depth", "0", "1 or more"},
		"owners: {lookup_timeout: 0s}":                                      {"owners", "lookup_timeout", "0s", "above 0"},
		"owners: {lookup_timeout: -1s}":                                     {"owners", "lookup_timeout", "-1s", "above 0"},
		"owners: {cache_size: 0}":                                           {"owners", "cache_size", "0", "1 or more"},
		"owners: {cache_ttl: 0s}":                                           {"owners", "cache_ttl", "0s", "above 0"},
		"dedup_interval: -1s":                                               {"dedup_interval", "-1s", "0s"},
		"collection_interval: 0s":                                           {"collection_interval", "0s", "above 0"},
		"metrics: {max_series: 0}":                                          {"metrics", "max_series", "0", "1 or more"},
		"metrics: {series_ttl: 0s}":                                         {"metrics", "series_ttl", "0s", "above 0"},
		"extract: {metadata: [service.name, k8s.pod.ip]}":                   {"extract", "metadata[1]", `"k8s.pod.ip"`, "service.name"},
		"extract: {labels: [{tag_name: a}]}":                                {"extract", "labels[0]", "key", "key_regex", "one of"},
		"extract: {labels: [{tag_name: a, key: k, key_regex: r}]}":          {"extract", "labels[0]", `"k"`, `"r"`, "one of"},
		"extract: {labels: [{tag_name: a, key_regex: '('}]}":                {"extract", "labels[0]", "key_regex", `"("`},
		"extract: {labels: [{tag_name: k8s.object.name, key: k}]}":          {"extract", "labels[0].tag_name", `"k8s.object.name"`, "another name"},
		"extract: {annotations: [{tag_name: a, key: k}, {key: ''}]}":        {"extract", "annotations[1]"},
		"extract: {annotations: [{tag_name: a, key: k, from: 'a b'}]}":      {"extract", "annotations[0]", "from", `"a b"`, "nearest"},
		"retry_on_failure: {initial_interval: -1s}":                         {"retry_on_failure", "initial_interval"},
		"no_such_key: 1":                                                    {"no_such_key"},
		"owners: {no_such_key: 1}":                                          {"owners", "no_such_key"},
		"extract: {labels: [{tag_name: a, key: k, regex: r}]}":              {"extract", "regex"},
		"{storage: file_storage, k8s_leader_elector: k8s_leader_elector}":   {"storage", `"file_storage"`, "k8s_leader_elector", "remove storage", "all replicas share"},
		"{storage: file_storage/x, k8s_leader_elector: k8s_leader_elector}": {"storage", `"file_storage/x"`, "k8s_leader_elector"},
		"kube_api_qps: fast":                                                {"kube_api_qps"},
		"namespaces: {}":                                                    {"namespaces"},
	} {
		t.Run(config, func(t *testing.T) {
			_, err := unmarshal(t, map[string]any{"auth_type": "kubeConfig"}, config)
			require.Error(t, err)
			for _, part := range parts {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

// TestAllErrorsAtOnce: who has made two mistakes need not start twice.
func TestAllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := unmarshal(t, map[string]any{}, "start_at: middle\ndedup_interval: -1s")
	assert.ErrorContains(t, err, "start_at")
	assert.ErrorContains(t, err, "dedup_interval")
}

func TestRightConfiguration(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		"", "kube_api_qps: -1", "kube_api_qps: 0.5", "dedup_interval: 0s", "dedup_interval: 1m", "context: prod",
		"extract: {labels: []}", "extract: {labels: [{key: team}]}", "extract: {labels: [{tag_name: $1, key_regex: (.*), from: Rollout.argoproj.io}]}",
		"{include_reasons: ['A*'], exclude_reasons: [AB]}", "{namespaces: [a], exclude_namespaces: ['b*']}", "event_types: [Warning, Custom]",
		"extract: {labels: [{tag_name: k8s.pod.label.team, key: team}, {tag_name: k8s.owner.team, key: team}, {tag_name: k8s.$1, key_regex: (.*)}]}",
		"storage: file_storage", "{storage: redis_storage, k8s_leader_elector: k8s_leader_elector}",
		"retry_on_failure: {enabled: false}", "retry_on_failure: {max_elapsed_time: 0s, initial_interval: 1s}",
	} {
		t.Run(config, func(t *testing.T) {
			_, err := unmarshal(t, map[string]any{"auth_type": "kubeConfig"}, config)
			assert.NoError(t, err)
		})
	}
}
