// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/series"
)

// configure reads what a user writes under receivers.kube_events, as the Collector does.
func configure(t *testing.T, written string) (*Config, error) {
	t.Helper()
	raw := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(written), &raw))
	cfg := createDefaultConfig().(*Config)
	if err := confmap.NewFromStringMap(raw).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

func TestDefaults(t *testing.T) {
	cfg, err := configure(t, "")
	require.NoError(t, err)
	assert.Equal(t, "serviceAccount", cfg.AuthType)
	assert.InDelta(t, -1, cfg.KubeAPIQPS, 0)
	assert.Equal(t, 100, cfg.KubeAPIBurst)
	assert.Equal(t, "end", cfg.StartAt)
	assert.Equal(t, OwnersConfig{Enabled: true, MaxDepth: 10, LookupTimeout: 2 * time.Second, CacheSize: 100_000, CacheTTL: 10 * time.Minute}, cfg.Owners)
	assert.Equal(t, []ExtractRule{{TagName: "tilt.manifest", Key: "tilt-manifest"}}, cfg.Extract.Labels)
	assert.Empty(t, cfg.Extract.Annotations)
	assert.Zero(t, cfg.DedupInterval)
	assert.Equal(t, 30*time.Second, cfg.CollectionInterval)
	assert.Equal(t, SeriesConfig{Max: 30_000, TTL: time.Hour, InitialZero: true}, cfg.Series)
	assert.Equal(t, metadata.DefaultMetricsConfig(), cfg.Metrics)
	assert.True(t, cfg.RetryOnFailure.Enabled)
	assert.Zero(t, cfg.RetryOnFailure.MaxElapsedTime, "the API server keeps the events, so nothing is given up")
	assert.Equal(t, []string{""}, cfg.streams(), "one watch for the whole cluster")
}

func TestEverythingCanBeConfigured(t *testing.T) {
	cfg, err := configure(t, `
auth_type: kubeConfig
kubeconfig: /etc/kube
context: blue
kube_api_qps: -1
kube_api_burst: 7
namespaces: [a, b]
exclude_namespaces: [kube-*]
event_types: [Warning]
include_reasons: [Failed*]
exclude_reasons: [FailedMount]
include_kinds: [pod, "*.example.com"]
exclude_kinds: [Node]
start_at: beginning
owners: {enabled: false, max_depth: 3, lookup_timeout: 1s, cache_size: 5, cache_ttl: 1m}
extract:
  labels: [{key: team}]
  annotations: [{tag_name: "x.$1", key_regex: "x/(.*)", from: rollout.argoproj.io}]
dedup_interval: 1m
collection_interval: 5s
series: {max: 9, ttl: 2h}
retry_on_failure: {enabled: true, initial_interval: 2s, max_elapsed_time: 1m}
`)
	require.NoError(t, err)
	assert.Equal(t, []ExtractRule{{Key: "team"}}, cfg.Extract.Labels, "setting it replaces the default, field by field")
	assert.Equal(t, []ExtractRule{{TagName: "x.$1", KeyRegex: "x/(.*)", From: "rollout.argoproj.io"}}, cfg.Extract.Annotations)
	assert.Equal(t, []string{"a", "b"}, cfg.streams())
	assert.Equal(t, time.Minute, cfg.RetryOnFailure.MaxElapsedTime)

	cfg, err = configure(t, "extract: {labels: []}")
	require.NoError(t, err)
	assert.Empty(t, cfg.Extract.Labels, "an empty list extracts nothing")
}

func TestWrongConfigurationIsExplained(t *testing.T) {
	tests := map[string]struct {
		config string
		want   []string // key, value, fix
	}{
		"an unknown key":               {"namespace: [a]", []string{"invalid keys: namespace"}},
		"an unknown key within owners": {"owners: {lookup_timout: 3s}", []string{"'owners' has invalid keys: lookup_timout"}},
		"an unknown key within a rule": {"extract: {labels: [{tag_nam: a, key: k}]}", []string{"'extract.labels[0]' has invalid keys: tag_nam"}},
		"a value of another type":      {"owners: {max_depth: deep}", []string{"max_depth", "int"}},
		"a map as a list":              {"namespaces: {}", []string{"namespaces"}},
		"two errors of rules": {
			"extract: {labels: [{tag_name: t}], annotations: [{tag_name: u}]}", []string{"extract.labels[0]: ", "\nextract.annotations[0]: "},
		},
		"an unknown service attribute": {"extract: {metadata: [k8s.pod.ip]}", []string{"extract", "metadata[0]", `"k8s.pod.ip"`, "service.name"}},
		"an unknown auth type":         {"auth_type: token", []string{"auth_type", `"token"`, "use serviceAccount, kubeConfig or none"}},
		"a context without kubeConfig": {"context: blue", []string{"context", `"blue"`, "auth_type: kubeConfig"}},
		"a kubeconfig without kubeConfig": {
			"{auth_type: none, kubeconfig: /etc/kube}", []string{"kubeconfig", `"/etc/kube"`, "auth_type: kubeConfig"},
		},
		"no rate":             {"kube_api_qps: 0", []string{"kube_api_qps", "0", "above 0", "-1"}},
		"a negative rate":     {"kube_api_qps: -2", []string{"kube_api_qps", "-2", "-1"}},
		"no burst":            {"kube_api_burst: 0", []string{"kube_api_burst", "0", "1 or more"}},
		"a glob as namespace": {"namespaces: [team-*]", []string{"namespaces[0]", `"team-*"`, "leave namespaces empty"}},
		"a namespace twice":   {"namespaces: [a, a]", []string{"namespaces[1]", `"a"`, "remove one"}},
		"a namespace listed and excluded": {
			"{namespaces: [kube-system], exclude_namespaces: [kube-*]}", []string{"namespaces[0]", `"kube-system"`, `"kube-*"`, "remove it from one"},
		},
		"a bad namespace glob": {`exclude_namespaces: ["[a"]`, []string{"exclude_namespaces[0]", `"[a"`, "not a valid glob"}},
		"a bad reason glob":    {`include_reasons: [ok, "[a"]`, []string{"include_reasons[1]", `"[a"`, "not a valid glob"}},
		"an empty glob":        {`exclude_reasons: [""]`, []string{"exclude_reasons[0]", "empty", "remove it"}},
		"a reason in both lists": {
			"{include_reasons: [Killing], exclude_reasons: [Killing]}", []string{"include_reasons[0]", `"Killing"`, "exclude_reasons", "remove it from one"},
		},
		"a plural":                             {"include_kinds: [pod, Deployments]", []string{"include_kinds[1]", `"Deployments"`, "kinds are singular, such as deployment"}},
		"a short name":                         {"include_kinds: [deploy]", []string{"include_kinds[0]", `"deploy"`, "write deployment"}},
		"a bad kind glob":                      {`exclude_kinds: ["[a"]`, []string{"exclude_kinds[0]", `"[a"`, "not a valid glob"}},
		"a kind in both lists in another case": {"{include_kinds: [pod], exclude_kinds: [Pod]}", []string{"include_kinds[0]", `"pod"`, "exclude_kinds", "remove it from one"}},
		"neither logs nor the metric": {
			"{events: {k8s.event: {enabled: false}}, metrics: {k8s.event.occurrences: {enabled: false}}}",
			[]string{"events.k8s.event.enabled", "metrics.k8s.event.occurrences.enabled", "set one to true"},
		},
		"a kind in both lists": {"{include_kinds: [pod], exclude_kinds: [pod]}", []string{"include_kinds[0]", `"pod"`, "exclude_kinds", "remove it from one"}},
		"a tag from a plural":  {"extract: {labels: [{key: team, from: pods}]}", []string{"labels[0].from", `"pods"`, "kinds are singular"}},
		"an empty event type":  {`event_types: [""]`, []string{"event_types[0]", `""`, "Warning"}},
		"an event type in the wrong case": {
			"event_types: [Normal, warning]", []string{"event_types[1]", `"warning"`, "match nothing", "did you mean Warning?"},
		},
		"the begin of an event type":                       {"event_types: [Warn]", []string{"event_types[0]", `"Warn"`, "match nothing", "did you mean Warning?"}},
		"an event type as a glob":                          {`event_types: ["*"]`, []string{"event_types[0]", `"*"`, "empty for all"}},
		"an event type with white space":                   {`event_types: ["Critical "]`, []string{"event_types[0]", `"Critical "`, "white space", `write "Critical"`}},
		"an event type in the wrong case with white space": {`event_types: [" warning\n"]`, []string{"event_types[0]", `" warning\n"`, "match nothing", "did you mean Warning?"}},
		"an event type of white space":                     {`event_types: [" "]`, []string{"event_types[0]", `" "`, "is not an event type", "remove it"}},
		"a reason with white space":                        {`include_reasons: ["Failed* "]`, []string{"include_reasons[0]", `"Failed* "`, "match nothing", `write "Failed*"`}},
		"a list of reasons in one text":                    {`exclude_reasons: "Pulled, Created"`, []string{"exclude_reasons[1]", `" Created"`, `write "Created"`}},
		"a namespace glob with white space":                {`exclude_namespaces: [" kube-*"]`, []string{"exclude_namespaces[0]", `" kube-*"`, `write "kube-*"`}},
		"a kind glob with white space":                     {`include_kinds: ["pod* "]`, []string{"include_kinds[0]", `"pod* "`, "not a valid glob"}},
		"a namespace with white space":                     {`namespaces: ["shop "]`, []string{"namespaces[0]", `"shop "`, "not a namespace name"}},
		"a regular expression for all reasons":             {"include_reasons: [.*]", []string{"include_reasons[0]", `".*"`, "match nothing", "write * for any text"}},
		"a regular expression with alternatives":           {"include_reasons: [Failed|BackOff]", []string{"include_reasons[0]", `"Failed|BackOff"`, "one entry for each alternative"}},
		"a regular expression with its begin":              {"exclude_reasons: [^Failed]", []string{"exclude_reasons[0]", `"^Failed"`, "is not a glob"}},
		"a regular expression with its end":                {"exclude_namespaces: [kube-system$]", []string{"exclude_namespaces[0]", `"kube-system$"`, "is not a glob"}},
		"a glob of a shell":                                {`include_reasons: ["Failed{Mount,Scheduling}"]`, []string{"include_reasons[0]", `"Failed{Mount,Scheduling}"`, "one entry for each alternative"}},
		"all reasons are excluded":                         {`exclude_reasons: [Pulled, "*"]`, []string{"exclude_reasons[1]", `"*"`, "excludes all reasons", "remove it"}},
		"all reasons are excluded by two globs in one":     {`exclude_reasons: ["**"]`, []string{"exclude_reasons[0]", `"**"`, "excludes all reasons"}},
		"all namespaces are excluded":                      {`exclude_namespaces: ["?*"]`, []string{"exclude_namespaces[0]", `"?*"`, "excludes all namespaces", "remove it"}},
		"all kinds are excluded":                           {`exclude_kinds: ["*"]`, []string{"exclude_kinds[0]", `"*"`, "excludes all kinds", "remove it"}},
		"a reason that a glob excludes":                    {"{include_reasons: [A*, FailedMount], exclude_reasons: [Failed*]}", []string{"include_reasons[1]", `"FailedMount"`, `exclude_reasons: "Failed*"`, "remove it from one"}},
		"a long name of the cluster":                       {"cluster_name: " + strings.Repeat("x", 3000), []string{"cluster_name: ", `"xxxxxxxxxxxxxxxxxxxx"`, "3000 bytes", "at most 1024"}},
		"a collection interval without a unit":             {"collection_interval: 30", []string{"collection_interval", "30ns", "without a unit", "such as 30s"}},
		"a dedup interval without a unit":                  {"dedup_interval: 60", []string{"dedup_interval", "60ns", "without a unit", "such as 5m"}},
		"a retry that becomes faster":                      {"retry_on_failure: {multiplier: 0.5}", []string{"retry_on_failure.multiplier", "0.5", "set 1 or more"}},
		"a retry without a multiplier":                     {"retry_on_failure: {multiplier: 0}", []string{"retry_on_failure.multiplier", "0", "set 1 or more"}},
		"a multiplier that is no number":                   {"retry_on_failure: {multiplier: .nan}", []string{"retry_on_failure.multiplier", "NaN", "set 1 or more"}},
		"a retry without a pause":                          {"retry_on_failure: {initial_interval: 0s}", []string{"retry_on_failure.initial_interval", "0s", "not above 0"}},
		"a retry that gives up without a unit":             {"retry_on_failure: {max_elapsed_time: 5}", []string{"retry_on_failure.max_elapsed_time", "5ns", "such as 5m"}},
		"a retry without a unit":                           {"retry_on_failure: {initial_interval: 1}", []string{"retry_on_failure.initial_interval", "1ns", "without a unit", "such as 1s"}},
		"an unknown start":                                 {"start_at: now", []string{"start_at", `"now"`, "end", "beginning"}},
		"no depth":                                         {"owners: {max_depth: 0}", []string{"owners.max_depth", "0", "1 or more"}},
		"no lookup timeout":                                {"owners: {lookup_timeout: 0s}", []string{"owners.lookup_timeout", "0s", "above 0"}},
		"a timeout without unit":                           {"owners: {lookup_timeout: 2}", []string{"owners.lookup_timeout", "2ns", "without a unit", "such as 2s"}},
		"no cache":                                         {"owners: {cache_size: 0}", []string{"owners.cache_size", "0", "1 or more"}},
		"a negative cache TTL":                             {"owners: {cache_ttl: -1s}", []string{"owners.cache_ttl", "-1s", "above 0"}},
		"neither key nor regex":                            {"extract: {labels: [{tag_name: t}]}", []string{"extract", "labels[0]", "key", "key_regex", "exactly one"}},
		"both key and regex":                               {"extract: {annotations: [{key: a, key_regex: b}]}", []string{"extract", "annotations[0]", `"a"`, `"b"`, "exactly one"}},
		"a bad regex":                                      {`extract: {labels: [{key_regex: "("}]}`, []string{"extract", "labels[0].key_regex", `"("`, "regular expression"}},
		"from nowhere":                                     {`extract: {labels: [{key: a, from: "a b"}]}`, []string{"extract", "labels[0].from", `"a b"`, "nearest", "namespace", "node", "event", "deployment"}},
		"an attribute of the receiver as tag name": {
			"extract: {labels: [{tag_name: k8s.pod.name, key: a}]}", []string{"extract", "labels[0].tag_name", `"k8s.pod.name"`, "choose another name", "k8s.<kind>.label.<key>"},
		},
		"an attribute of the receiver for all keys": {
			"extract: {annotations: [{tag_name: k8s.cluster.uid, key_regex: a.*}]}",
			[]string{"extract", "annotations[0].tag_name", `"k8s.cluster.uid"`, "choose another name", "k8s.<kind>.annotation.<key>"},
		},
		"an attribute of records as tag name": {
			"extract: {labels: [{tag_name: k8s.event.reason, key: a, from: event}]}", []string{"extract", "labels[0].tag_name", `"k8s.event.reason"`, "choose another name"},
		},
		"a negative interval":                  {"dedup_interval: -1s", []string{"dedup_interval", "-1s", "0s"}},
		"no collection interval":               {"collection_interval: 0s", []string{"collection_interval", "0s", "above 0"}},
		"no series":                            {"series: {max: 0}", []string{"series.max", "0", "1 or more"}},
		"no series TTL":                        {"series: {ttl: 0s}", []string{"series.ttl", "0s", "above 0"}},
		"an unknown attribute of the resource": {"resource_attributes: {k8s.ower.uid: {enabled: true}}", []string{"'resource_attributes' has invalid keys: k8s.ower.uid"}},
		"an unknown attribute of the metric": {
			"metrics: {k8s.event.occurrences: {attributes: [k8s.pod.name]}}", []string{"k8s.event.occurrences", "k8s.pod.name", "k8s.event.reason"},
		},
		"a filter of a resource attribute": {
			"resource_attributes: {k8s.pod.name: {events_exclude: [{strict: a}]}}", []string{"resource_attributes.k8s.pod.name.events_exclude", "remove this setting", "filter processor"},
		},
		"another aggregation": {
			"metrics: {k8s.event.occurrences: {aggregation_strategy: avg}}", []string{"metrics.k8s.event.occurrences.aggregation_strategy", `"avg"`, "remove it"},
		},
		"a bad retry": {"retry_on_failure: {multiplier: -1}", []string{"retry_on_failure", "multiplier"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := configure(t, tt.config)
			require.Error(t, err)
			for _, part := range tt.want {
				assert.Contains(t, err.Error(), part)
			}
		})
	}
}

func TestRightConfiguration(t *testing.T) {
	for _, config := range []string{
		"kube_api_qps: 0.5", "{auth_type: kubeConfig, context: prod}", "{include_reasons: ['A*'], exclude_reasons: [AB]}",
		"{namespaces: [a], exclude_namespaces: ['b*']}", "event_types: [Warning, Custom]", "retry_on_failure: {enabled: false, multiplier: 0}",
		"include_reasons: ['*']", "include_kinds: ['*']", "exclude_kinds: ['*.*']", `exclude_reasons: ['\*', '???', '[^F]*', 'v1[.]*', 'Sync failed']`,
		"cluster_name: " + strings.Repeat("x", 1024), "retry_on_failure: {multiplier: 1}", "dedup_interval: 0s",
		"extract: {labels: [{tag_name: $1, key_regex: (.*), from: Rollout.argoproj.io}]}",
		"extract: {labels: [{tag_name: k8s.pod.label.team, key: team}, {tag_name: k8s.owner.team, key: team}, {tag_name: k8s.$1, key_regex: (.*)}]}",
	} {
		_, err := configure(t, config)
		assert.NoError(t, err, config)
	}
}

func TestStorageHasNoUseTogetherWithALeaderElector(t *testing.T) {
	for config, refused := range map[string]bool{
		"{storage: file_storage, k8s_leader_elector: k8s_leader_elector}":      true,
		"{storage: redis_storage/own, k8s_leader_elector: k8s_leader_elector}": true,
		"storage: file_storage":                  false,
		"k8s_leader_elector: k8s_leader_elector": false,
	} {
		_, err := configure(t, config)
		if !refused {
			require.NoError(t, err, config)
			continue
		}
		for _, part := range []string{"storage: ", "k8s_leader_elector: ", "remove storage", "remove k8s_leader_elector"} {
			require.ErrorContains(t, err, part, config)
		}
	}
}

func TestAllErrorsAreReportedAtOnce(t *testing.T) {
	_, err := configure(t, "{start_at: now, kube_api_burst: 0, series: {max: 0}}")
	require.ErrorContains(t, err, "start_at")
	require.ErrorContains(t, err, "kube_api_burst")
	require.ErrorContains(t, err, "series.max")
}

func TestTheDefaultAttributesOfPoints(t *testing.T) {
	config, err := configure(t, "")
	require.NoError(t, err)
	assert.Equal(t, semconv.Disabled{"k8s.workload.uid": true}, config.disabledOfPoints())
	// mdatagen's switches and the receiver have the same attributes.
	config, err = configure(t, "metrics: {k8s.event.occurrences: {attributes: ["+strings.Join(series.Attributes(), ", ")+", otel.metric.overflow]}}")
	require.NoError(t, err)
	assert.Empty(t, config.disabledOfPoints())
}
