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
		"an unknown key":               {"namespace: [a]", []string{"namespace is not an option; did you mean namespaces?"}},
		"an unknown key within owners": {"owners: {lookup_timout: 3s}", []string{"owners.lookup_timout is not an option; did you mean lookup_timeout?"}},
		"an unknown key within a rule": {"extract: {labels: [{tag_nam: a, key: k}]}", []string{"extract.labels[0].tag_nam is not an option; did you mean tag_name?"}},
		"a value of another type":      {"owners: {max_depth: deep}", []string{`owners.max_depth: "deep" is not a whole number; write one`}},
		"a map as a list":              {"namespaces: {}", []string{"namespaces: {} is not a list; write ["}},
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
		"no burst":            {"kube_api_burst: 0", []string{"kube_api_burst: 0", "from 1 to 1000000"}},
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
		"a tag from a plural":  {"extract: {labels: [{key: team, from: pods}]}", []string{"labels[0].from", `"pods"`, "kinds are singular", "other values are nearest, namespace, node and event"}},
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
		"a regular expression for all reasons":             {"include_reasons: [.*]", []string{"include_reasons[0]", `".*"`, "match nothing", "write *"}},
		"a regular expression with alternatives":           {"include_reasons: [Failed|BackOff]", []string{"include_reasons[0]", `"Failed|BackOff"`, "write Failed, BackOff"}},
		"a regular expression with its begin":              {"exclude_reasons: [^Failed]", []string{"exclude_reasons[0]", `"^Failed"`, "write Failed"}},
		"a regular expression with its end":                {"exclude_namespaces: [kube-system$]", []string{"exclude_namespaces[0]", `"kube-system$"`, "write kube-system"}},
		"a glob of a shell":                                {`include_reasons: ["Failed{Mount,Scheduling}"]`, []string{"include_reasons[0]", `"Failed{Mount,Scheduling}"`, "one entry for each alternative"}},
		"all reasons are excluded":                         {`exclude_reasons: [Pulled, "*"]`, []string{"exclude_reasons[1]", `"*"`, "excludes all reasons", "remove it"}},
		"all reasons are excluded by two globs in one":     {`exclude_reasons: ["**"]`, []string{"exclude_reasons[0]", `"**"`, "excludes all reasons"}},
		"all namespaces are excluded":                      {`exclude_namespaces: ["?*"]`, []string{"exclude_namespaces[0]", `"?*"`, "excludes all namespaces", "remove it"}},
		"all kinds are excluded":                           {`exclude_kinds: ["*"]`, []string{"exclude_kinds[0]", `"*"`, "excludes all kinds", "remove it"}},
		"a reason that a glob excludes":                    {"{include_reasons: [A*, FailedMount], exclude_reasons: [Failed*]}", []string{"include_reasons[1]", `"FailedMount"`, `exclude_reasons: "Failed*"`, "remove it from one"}},
		"a long name of the cluster":                       {"cluster_name: " + strings.Repeat("x", 3000), []string{"cluster_name: ", `"xxxxxxxxxxxxxxxxxxxx"`, "3000 bytes", "at most 1024"}},
		"a collection interval without a unit":             {"collection_interval: 30", []string{"collection_interval: 30 has no unit; write 30s"}},
		"a dedup interval without a unit":                  {"dedup_interval: 60", []string{"dedup_interval: 60 has no unit; write 60s"}},
		"a retry that becomes faster":                      {"retry_on_failure: {multiplier: 0.5}", []string{"retry_on_failure.multiplier", "0.5", "set 1 or more"}},
		"a retry without a multiplier":                     {"retry_on_failure: {multiplier: 0}", []string{"retry_on_failure.multiplier", "0", "set 1 or more"}},
		"a multiplier that is no number":                   {"retry_on_failure: {multiplier: .nan}", []string{"retry_on_failure.multiplier", "NaN", "set 1 or more"}},
		"a maximum pause without a unit":                   {"retry_on_failure: {max_interval: 5}", []string{"retry_on_failure.max_interval: 5 has no unit; write 5s"}},
		"a glob in both lists":                             {"{include_reasons: [Back*], exclude_reasons: [Back*]}", []string{"include_reasons[0]", `"Back*"`, "remove it from one"}},
		"a namespace that is none, twice":                  {"namespaces: [A_, A_]", []string{"namespaces[1]", "is not a namespace name"}},
		"a context with another auth type":                 {"{auth_type: none, context: blue}", []string{"context", "has no effect with auth_type: none"}},
		"a retry without a pause":                          {"retry_on_failure: {initial_interval: 0s}", []string{"retry_on_failure.initial_interval: 0s", "such as 1s"}},
		"a retry that gives up without a unit":             {"retry_on_failure: {max_elapsed_time: 5}", []string{"retry_on_failure.max_elapsed_time: 5 has no unit; write 5s"}},
		"a retry without a unit":                           {"retry_on_failure: {initial_interval: 1}", []string{"retry_on_failure.initial_interval: 1 has no unit; write 1s"}},
		"an unknown start":                                 {"start_at: now", []string{"start_at", `"now"`, "end", "beginning"}},
		"no depth":                                         {"owners: {max_depth: 0}", []string{"owners.max_depth: 0", "from 1 to 100"}},
		"no lookup timeout":                                {"owners: {lookup_timeout: 0s}", []string{"owners.lookup_timeout: 0s", "such as 2s"}},
		"a timeout without unit":                           {"owners: {lookup_timeout: 2}", []string{"owners.lookup_timeout: 2 has no unit; write 2s"}},
		"no cache":                                         {"owners: {cache_size: 0}", []string{"owners.cache_size: 0", "from 1 to 10000000"}},
		"a negative cache TTL":                             {"owners: {cache_ttl: -1s}", []string{"owners.cache_ttl: -1s", "such as 10m"}},
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
		"no collection interval":               {"collection_interval: 0s", []string{"collection_interval: 0s", "such as 30s"}},
		"no series":                            {"series: {max: 0}", []string{"series.max: 0", "from 1 to 10000000"}},
		"no series TTL":                        {"series: {ttl: 0s}", []string{"series.ttl: 0s", "collection_interval, which is 30s", "set at least 30s"}},
		"an unknown attribute of the resource": {"resource_attributes: {k8s.ower.uid: {enabled: true}}", []string{"resource_attributes.k8s.ower.uid is not an option; did you mean k8s.owner.uid?"}},
		"an unknown attribute of the metric": {
			"metrics: {k8s.event.occurrences: {attributes: [k8s.pod.name]}}", []string{"k8s.event.occurrences", "k8s.pod.name", "k8s.event.reason"},
		},
		"a filter of a resource attribute": {
			"resource_attributes: {k8s.pod.name: {events_exclude: [{strict: a}]}}", []string{"resource_attributes.k8s.pod.name.events_exclude", "remove this setting", "filter processor"},
		},
		"another aggregation": {
			"metrics: {k8s.event.occurrences: {aggregation_strategy: avg}}", []string{"metrics.k8s.event.occurrences.aggregation_strategy", `"avg"`, "remove it"},
		},
		"a quoted number for a duration":           {`collection_interval: "30"`, []string{`collection_interval: "30" has no unit; write 30s`}},
		"half a second without a unit":             {"owners: {cache_ttl: 0.5}", []string{"owners.cache_ttl: 0.5 has no unit; write 0.5s"}},
		"a long time without a unit":               {"series: {ttl: 3600000}", []string{"series.ttl: 3600000 has no unit; write 3600000s"}},
		"an endless duration":                      {"collection_interval: .inf", []string{"collection_interval: +Inf is not a duration; write numbers with"}},
		"an endless duration as a text":            {"dedup_interval: infinity", []string{`dedup_interval: "infinity" is not a duration; write numbers with`}},
		"a duration with a blank":                  {"collection_interval: 30 s", []string{`collection_interval: "30 s"`, "units ms, s, m or h and no blanks", "such as 30s"}},
		"a duration in days":                       {"series: {ttl: 1d}", []string{`series.ttl: "1d"`, "units ms, s, m or h", "1h30m"}},
		"a duration in capitals":                   {"dedup_interval: 5M", []string{`dedup_interval: "5M"`, "units ms, s, m or h"}},
		"a switch as a duration":                   {"dedup_interval: true", []string{"dedup_interval: true is not a duration", "such as 30s"}},
		"a duration below a millisecond":           {"collection_interval: 5us", []string{"collection_interval: 5µs is below 1ms", "such as 30s"}},
		"an elector that is configured in place":   {"k8s_leader_elector: {lease_name: x}", []string{"k8s_leader_elector: {\"lease_name\":\"x\"} is not the name of an extension; write one", "below extensions"}},
		"an elector as a switch":                   {"k8s_leader_elector: true", []string{"k8s_leader_elector: true is not the name of an extension; write one"}},
		"storage as an empty map":                  {"storage: {}", []string{"storage: {} is not the name of an extension; write one, such as file_storage"}},
		"storage without a name":                   {`storage: ""`, []string{`storage: "" is not the name of an extension; write one, such as file_storage`}},
		"storage as a path":                        {"storage: /var/lib/otelcol", []string{`storage: "/var/lib/otelcol" is not the name of an extension; write one`}},
		"an attribute as a switch":                 {"resource_attributes: {k8s.owner.uid: true}", []string{"resource_attributes.k8s.owner.uid: true is not a map; write {enabled: true}"}},
		"the metric as a switch":                   {"metrics: {k8s.event.occurrences: false}", []string{"metrics.k8s.event.occurrences: false", "write {enabled: false}"}},
		"the metric with a text as a switch":       {`metrics: {k8s.event.occurrences: {enabled: "no"}}`, []string{`metrics.k8s.event.occurrences.enabled: "no" is neither true nor false; write one of them`}},
		"a misspelled switch of the metric":        {"metrics: {k8s.event.occurrences: {enable: true}}", []string{"metrics.k8s.event.occurrences.enable is not an option; did you mean enabled?"}},
		"an unknown metric":                        {"metrics: {k8s.events: {enabled: true}}", []string{"metrics.k8s.events is not an option; write one of k8s.event.occurrences"}},
		"records as a switch":                      {"events: {k8s.event: false}", []string{"events.k8s.event: false is not a map; write {enabled: false}"}},
		"a switch one level too high":              {"events: {enabled: true}", []string{"events.enabled is not an option; did you mean events.k8s.event.enabled?"}},
		"retries as a switch":                      {"retry_on_failure: false", []string{"retry_on_failure: false is not a map; write {enabled: false}"}},
		"owners as a switch":                       {"owners: true", []string{"owners: true is not a map; write {enabled: true}"}},
		"owners as a list":                         {"owners: [pod]", []string{"owners: [\"pod\"] is not a map; write a map with cache_size, cache_ttl, enabled"}},
		"an option of owners one level too high":   {"cache_size: 5", []string{"cache_size is not an option; did you mean owners.cache_size?"}},
		"an option of series one level too high":   {"initial_zero: true", []string{"initial_zero is not an option; did you mean series.initial_zero?"}},
		"an option of retries one level too high":  {"max_elapsed_time: 1m", []string{"did you mean retry_on_failure.max_elapsed_time?"}},
		"half an owner":                            {"owners: {max_depth: 1.5}", []string{"owners.max_depth: 1.5 is not a whole number; write one"}},
		"a quoted number":                          {`owners: {max_depth: "3"}`, []string{`owners.max_depth: "3"`, "write one without quotes"}},
		"a number beyond all others":               {"owners: {cache_size: 99999999999999999999}", []string{"owners.cache_size: 100000000000000000000 is not a whole number; write one"}},
		"a cache without a limit":                  {"owners: {cache_size: 1000000000}", []string{"owners.cache_size: 1000000000", "from 1 to 10000000"}},
		"series without a limit":                   {"series: {max: 1000000000}", []string{"series.max: 1000000000", "from 1 to 10000000"}},
		"a rate in words":                          {"kube_api_qps: fast", []string{`kube_api_qps: "fast" is not a number; write one`}},
		"a quoted multiplier":                      {`retry_on_failure: {multiplier: "2"}`, []string{`retry_on_failure.multiplier: "2" is not a number; write one without quotes`}},
		"a switch in words":                        {"owners: {enabled: yes please}", []string{`owners.enabled: "yes please" is neither true nor false; write one of them`}},
		"a number as a switch":                     {"series: {initial_zero: 1}", []string{"series.initial_zero: 1 is neither true nor false; write one of them"}},
		"a number as a list":                       {"namespaces: 5", []string{"namespaces: 5 is not a list; write [ and ] around it"}},
		"a number in a list":                       {"namespaces: [1]", []string{"namespaces[0]: 1 is not a text; write one, with quotes if it is a number"}},
		"a map in a list":                          {"include_reasons: [{a: b}]", []string{"include_reasons[0]: {\"a\":\"b\"} is not a text; write one"}},
		"a text as rules":                          {"extract: {labels: team}", []string{`extract.labels: "team" is not a list; write [`}},
		"a text as a rule":                         {"extract: {labels: [team]}", []string{`extract.labels[0]: "team" is not a map; write a map with from, key, key_regex, tag_name`}},
		"a rule without its list":                  {"extract: {labels: {key: team}}", []string{"extract.labels: {\"key\":\"team\"} is not a list; write ["}},
		"a misspelled key of the second rule":      {"extract: {annotations: [{key: a}, {keyy: a}]}", []string{"extract.annotations[1].keyy is not an option; did you mean key?"}},
		"a number as a tag name":                   {"extract: {labels: [{tag_name: 1, key: k}]}", []string{"extract.labels[0].tag_name: 1 is not a text; write one"}},
		"a number as the cluster's name":           {"cluster_name: 1", []string{"cluster_name: 1 is not a text; write one, with quotes"}},
		"a map as a path":                          {"{auth_type: kubeConfig, kubeconfig: {path: a}}", []string{"kubeconfig: {\"path\":\"a\"} is not a text; write one"}},
		"a list as a context":                      {"{auth_type: kubeConfig, context: [a]}", []string{"context: [\"a\"] is not a text; write one"}},
		"a misspelled key of retries":              {"retry_on_failure: {max_elapsed: 3m}", []string{"retry_on_failure.max_elapsed is not an option; did you mean max_elapsed_time?"}},
		"a misspelled filter":                      {"exclude_reason: [Pulled]", []string{"exclude_reason is not an option; did you mean exclude_reasons?"}},
		"a misspelled size":                        {"owners: {cache_sze: 5}", []string{"owners.cache_sze is not an option; did you mean cache_size?"}},
		"a misspelled maximum":                     {"series: {maxx: 5}", []string{"series.maxx is not an option; did you mean max?"}},
		"an option in another case":                {"Start_At: end", []string{"Start_At is not an option; did you mean start_at?"}},
		"an option in camel case":                  {"clusterName: blue", []string{"clusterName is not an option; did you mean cluster_name?"}},
		"a rate of another system":                 {"kubeQPS: 5", []string{"kubeQPS is not an option; write kube_api_qps"}},
		"a burst of another system":                {"kubeBurst: 5", []string{"kubeBurst is not an option; did you mean kube_api_burst?"}},
		"an option like no other":                  {"password: secret", []string{"password is not an option; write one of auth_type, cluster_name, "}},
		"an option of owners like no other":        {"owners: {bogusbogus: 1}", []string{"owners.bogusbogus is not an option; write one of cache_size, cache_ttl, enabled, lookup_timeout, max_depth"}},
		"two unknown options":                      {"{namespace: a, start: b}", []string{"namespace is not an option", "\nstart is not an option"}},
		"an unknown option, and a wrong one":       {"{namespace: a, owners: {lookup_timeout: 2}}", []string{"namespace is not an option", "owners.lookup_timeout: 2 has no unit"}},
		"the longest pause below the first one":    {"retry_on_failure: {initial_interval: 60s}", []string{"retry_on_failure.max_interval: 30s is shorter than retry_on_failure.initial_interval, which is 1m0s; set at least 1m0s"}},
		"an end of retries below a pause":          {"retry_on_failure: {max_elapsed_time: 5s}", []string{"retry_on_failure: 'max_elapsed_time' must not be less than 'max_interval'"}},
		"series that are dropped before they show": {"{collection_interval: 5m, series: {ttl: 1m}}", []string{"series.ttl: 1m0s is shorter than collection_interval, which is 5m0s; set at least 5m0s"}},
		"a regular expression with both ends":      {"exclude_reasons: ['^Pull.*$']", []string{"exclude_reasons[0]", `"^Pull.*$"`, "globs", "not regular expressions", "write Pull*"}},
		"alternatives in brackets":                 {"include_reasons: ['(Failed|BackOff).*']", []string{"include_reasons[0]", "not regular expressions", "write one entry for each alternative"}},
		"alternative kinds":                        {"exclude_kinds: ['pod|node']", []string{"exclude_kinds[0]", `"pod|node"`, "write pod, node"}},
		"a regular expression for kinds":           {"include_kinds: ['^pod.*$']", []string{"include_kinds[0]", `"^pod.*$"`, "not regular expressions", "write pod*"}},
		"a bad retry":                              {"retry_on_failure: {multiplier: -1}", []string{"retry_on_failure", "multiplier"}},
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

func TestTheKeysOfOtherSystemsNameOurs(t *testing.T) {
	options := confmap.New()
	require.NoError(t, options.Marshal(createDefaultConfig()))
	for key, fix := range hints {
		assert.False(t, options.IsSet(key), "%s is an option", key)
		_, err := configure(t, key+": [a]")
		require.ErrorContains(t, err, key+" is not an option; "+fix)
	}
	for _, key := range []string{"objects", "operators", "route", "kubeQPS", "maxEventAgeSeconds", "resource_version", "interval", "dedup_window", "k8s_api_config"} {
		assert.Contains(t, hints, key)
	}
}

func TestRightConfiguration(t *testing.T) {
	for _, config := range []string{
		"kube_api_qps: 0.5", "{auth_type: kubeConfig, context: prod}", "{include_reasons: ['A*'], exclude_reasons: [AB]}",
		"{namespaces: [a], exclude_namespaces: ['b*']}", "event_types: [Warning, Custom]", "retry_on_failure: {enabled: false, multiplier: 0}",
		"storage:", "owners:", "dedup_interval: 0", "owners: {max_depth: 1e2}", "kube_api_qps: 5", "namespaces: team-a", "namespaces: 'a,b'",
		"include_reasons: ['*']", "{include_reasons: ['A[b]'], exclude_reasons: ['A*']}", "include_kinds: ['*']", "exclude_kinds: ['*.*']", `exclude_reasons: ['\*', '???', '[^F]*', 'v1[.]*', 'Sync failed']`,
		"cluster_name: " + strings.Repeat("x", 1024), "retry_on_failure: {multiplier: 1}", "dedup_interval: 0s",
		"extract: {labels: [{tag_name: $1, key_regex: (.*), from: Rollout.argoproj.io}]}",
		"extract: {labels: [{tag_name: k8s.pod.label.team, key: team}, {tag_name: k8s.owner.team, key: team}, {tag_name: k8s.$1, key_regex: (.*)}]}",
	} {
		_, err := configure(t, config)
		assert.NoError(t, err, config)
	}
}

// Programs that embed the Collector configure it with Go's own types.
func TestATypedConfiguration(t *testing.T) {
	conf := confmap.NewFromStringMap(map[string]any{
		"namespaces": []string{"a"}, "event_types": []string(nil), "collection_interval": time.Minute, "kube_api_qps": float32(2), "owners": map[string]any{"cache_size": int64(7)},
	})
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	assert.Equal(t, []string{"a"}, cfg.Namespaces)
	assert.Equal(t, time.Minute, cfg.CollectionInterval)
	assert.Equal(t, 7, cfg.Owners.CacheSize)
}

func TestStorageHasNoUseTogetherWithALeaderElector(t *testing.T) {
	for config, refused := range map[string]bool{
		"{storage: file_storage, k8s_leader_elector: k8s_leader_elector}":      true,
		"{storage: redis_storage/own, k8s_leader_elector: k8s_leader_elector}": true,
		"storage: file_storage": false,
		"{k8s_leader_elector: k8s_leader_elector, progress_config_map: ns/progress}": false,
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

func TestTheConfigMapOfTheProgressHasANamespaceAndAName(t *testing.T) {
	for config, want := range map[string]string{
		"{k8s_leader_elector: e, progress_config_map: progress}":    `progress_config_map: "progress" does not name the ConfigMap in which the leader notes its progress; write NAMESPACE/NAME`,
		"{k8s_leader_elector: e, progress_config_map: /progress}":   `progress_config_map: "/progress" does not name the ConfigMap`,
		"{k8s_leader_elector: e, progress_config_map: ns/a/b}":      `progress_config_map: "ns/a/b" does not name the ConfigMap`,
		"{k8s_leader_elector: e, progress_config_map: ns/Progress}": `progress_config_map: "ns/Progress" does not name the ConfigMap`,
		"progress_config_map: ns/progress":                          `progress_config_map: "ns/progress" has no use without k8s_leader_elector; remove it`,
	} {
		_, err := configure(t, config)
		require.ErrorContains(t, err, want, config)
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
