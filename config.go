// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/filter"
	"github.com/kubeevents/kubeeventsreceiver/internal/kind"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/loop"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/series"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/internal/userconfig"
)

// The values of Config.StartAt.
const (
	StartAtEnd       = "end"
	StartAtBeginning = "beginning"
)

// Config configures the receiver. The defaults named here are those of the factory's
// CreateDefaultConfig; the zero Config is not valid.
type Config struct {
	// AuthType selects how the receiver finds the API server and authenticates to it:
	// serviceAccount, kubeConfig or none. Default: serviceAccount.
	AuthType string `mapstructure:"auth_type"`
	// Kubeconfig is the path of a kubeconfig, for auth_type kubeConfig. Empty selects the usual
	// files (KUBECONFIG, then ~/.kube/config).
	Kubeconfig string `mapstructure:"kubeconfig"`
	// Context selects a context of the kubeconfig. Empty selects the current one.
	Context string `mapstructure:"context"`
	// ClusterName sets k8s.cluster.name of every record and data point. Empty (the default) leaves
	// it out.
	ClusterName string `mapstructure:"cluster_name"`
	// KubeAPIQPS limits the owner lookups per second. Default: -1, which leaves limiting to the API
	// server's priority and fairness.
	KubeAPIQPS float32 `mapstructure:"kube_api_qps"`
	// KubeAPIBurst is the burst of owner lookups above KubeAPIQPS. Default: 100.
	KubeAPIBurst int `mapstructure:"kube_api_burst"`

	// Namespaces restricts the receiver to these namespaces, with one watch each. Empty (the
	// default) watches the whole cluster.
	Namespaces []string `mapstructure:"namespaces"`
	// ExcludeNamespaces excludes events by globs for the namespace of the involved object.
	ExcludeNamespaces []string `mapstructure:"exclude_namespaces"`
	// EventTypes restricts the receiver to events of these types. Kubernetes itself writes Normal
	// and Warning. Empty (the default) takes all.
	EventTypes []string `mapstructure:"event_types"`
	// IncludeReasons has globs for the reasons to take. Empty (the default) takes all.
	IncludeReasons []string `mapstructure:"include_reasons"`
	// ExcludeReasons has globs for the reasons to leave out. They take precedence over
	// IncludeReasons.
	ExcludeReasons []string `mapstructure:"exclude_reasons"`
	// IncludeKinds has globs for the kind of the involved object, as kubectl writes it: pod,
	// deployment.apps, *.example.com. Empty (the default) takes all.
	IncludeKinds []string `mapstructure:"include_kinds"`
	// ExcludeKinds has globs for the kinds to leave out. They take precedence over IncludeKinds.
	ExcludeKinds []string `mapstructure:"exclude_kinds"`
	// StartAt selects whether the first start emits the events that already exist: end (no) or
	// beginning (yes). Default: end.
	StartAt string `mapstructure:"start_at"`

	// Owners configures the lookup of owner chains.
	Owners OwnersConfig `mapstructure:"owners"`
	// Details configures what the receiver reads that Events do not say.
	Details DetailsConfig `mapstructure:"details"`
	// Extract selects the labels and annotations that become attributes: of the objects on the
	// chain, of the Namespace, of the Node, and of the Event itself.
	Extract ExtractConfig `mapstructure:"extract"`

	// DedupInterval limits records to one for each involved object, reason and type in each
	// interval, with the occurrences summed. Default: 0, which makes a record of each observation.
	DedupInterval time.Duration `mapstructure:"dedup_interval"`
	// CollectionInterval is the time between two points of the metric. Default: 30s.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// Series bounds the series of the metric.
	Series SeriesConfig `mapstructure:"series"`

	// Metrics switches the metric off, or chooses the attributes of its points. By default, it has all
	// except k8s.workload.uid.
	Metrics metadata.MetricsConfig `mapstructure:"metrics"`

	// Events switches the log records off. By default, they are enabled.
	Events metadata.EventsConfig `mapstructure:"events"`
	// ResourceAttributes switches resource attributes of records on and off. By default, the UIDs of
	// owners and k8s.owner.api_version are off.
	ResourceAttributes metadata.ResourceAttributesConfig `mapstructure:"resource_attributes"`

	// Storage names a storage extension. With it, a restart loses nothing, and a crash repeats at
	// most the last second, with the same log.record.uid. Nil means none.
	Storage *component.ID `mapstructure:"storage"`

	// LeaderElector names a leader elector extension. With it, only the leader emits. Its progress
	// is in a ConfigMap, so it excludes Storage. Without it, every replica emits.
	LeaderElector *component.ID `mapstructure:"k8s_leader_elector"`
	// ProgressConfigMap is the NAMESPACE/NAME of this ConfigMap, in the watched cluster. Empty (the default)
	// selects kube-events-leader-ID in the pod's namespace, with the receiver's ID.
	ProgressConfigMap string `mapstructure:"progress_config_map"`

	// RetryOnFailure configures the retries of a batch that the pipeline rejects with a retryable
	// error. By default, the receiver retries until the pipeline accepts it.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	// Dial opens the connections to the API server, for programs that embed the receiver. Nil (the
	// default) means with client-go's timeouts.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `mapstructure:"-"`
}

// OwnersConfig configures the lookup of owner chains.
type OwnersConfig = owners.Config

// DetailsConfig configures what the receiver reads, once each, that a few Events do not say.
type DetailsConfig struct {
	// Enabled turns all of them on. Default: true.
	Enabled bool `mapstructure:"enabled"`
	// ContainerStatus adds why the container ended to records that report a restart or a failed Job.
	// Default: true.
	ContainerStatus bool `mapstructure:"container_status"`
	// TemplateChanges adds what a new revision changed, by which tool and manager. Default: true.
	TemplateChanges bool `mapstructure:"template_changes"`
	// ConfigMaps adds, to ContainerStatus, which ConfigMap of the pod changed last. It needs the
	// permission to get ConfigMaps. Default: false.
	ConfigMaps bool `mapstructure:"config_maps"`
}

// ExtractConfig selects the labels and annotations that become attributes, and the attributes of
// the service that a record is about.
type ExtractConfig = extract.Config

// ExtractRule extracts one label or annotation, or all whose key matches a regular expression.
type ExtractRule = extract.Rule

// SeriesConfig bounds the series of the metric.
type SeriesConfig struct {
	// Max is the maximum number of series. The events of one namespace may have half of them. One
	// overflow series counts the rest. Default: 30000.
	Max int `mapstructure:"max"`
	// TTL is the time after which a series that does not change is dropped. Default: 1h.
	TTL time.Duration `mapstructure:"ttl"`
	// InitialZero makes 0 the first point of a new series, so that its value is an increase.
	// Default: true.
	InitialZero bool `mapstructure:"initial_zero"`
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reads the configuration. Each error has the key, the value and the fix.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return userconfig.Unmarshal(conf, c, hints) }

// Validate returns every error of the configuration, each with the key, the value and the fix.
func (c *Config) Validate() error {
	_, errExtract := c.extractor()
	return errors.Join(
		c.auth().Check(),
		c.validateClusterName(),
		c.validateNamespaces(),
		c.validateEventTypes(),
		c.validateReasons(),
		c.validateKinds(),
		userconfig.OneOf("start_at", c.StartAt, StartAtEnd, StartAtBeginning),
		c.Owners.Check(),
		errExtract,
		userconfig.ZeroOrAbove("dedup_interval", c.DedupInterval, "5m, or 0s to switch it off"),
		userconfig.Above0("collection_interval", c.CollectionInterval, "30s"),
		c.validateStorage(),
		c.validateElector(),
		userconfig.Within("series.max", c.Series.Max, 10_000_000),
		userconfig.NotBelow("series.ttl", c.Series.TTL, "collection_interval", c.CollectionInterval),
		c.validateSwitches(),
		c.validateRetries(),
	)
}

func (c *Config) validateClusterName() error {
	if len(c.ClusterName) <= text.MaxValue {
		return nil
	}
	return fmt.Errorf("cluster_name: %.20q… has %d bytes; set a name of at most %d bytes", c.ClusterName, len(c.ClusterName), text.MaxValue)
}

func (c *Config) validateNamespaces() error {
	errs := errors.Join(globs("exclude_namespaces", c.ExcludeNamespaces), notAll("namespaces", c.ExcludeNamespaces))
	for i, namespace := range c.Namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			errs = errors.Join(errs, fmt.Errorf("namespaces[%d]: %q is not a namespace name; list names, not globs, or leave namespaces empty to watch all", i, namespace))
			continue
		}
		if slices.Contains(c.Namespaces[:i], namespace) {
			errs = errors.Join(errs, fmt.Errorf("namespaces[%d]: %q is listed twice; remove one", i, namespace))
		}
		for _, glob := range c.ExcludeNamespaces {
			if excluded, _ := path.Match(glob, namespace); excluded {
				errs = errors.Join(errs, fmt.Errorf("namespaces[%d]: %q is also excluded by exclude_namespaces: %q; remove it from one of them", i, namespace, glob))
			}
		}
	}
	return errs
}

func (c *Config) validateEventTypes() (errs error) {
	for i, eventType := range c.EventTypes {
		if problem := problemOfType(eventType); problem != "" {
			errs = errors.Join(errs, fmt.Errorf("event_types[%d]: %q %s", i, eventType, problem))
		}
	}
	return errs
}

// problemOfType returns why a type would match nothing, and the fix; empty if it may match.
func problemOfType(eventType string) string {
	trimmed := strings.TrimSpace(eventType)
	if trimmed == "" {
		return "is not an event type; name one, such as Warning, or remove it"
	}
	if strings.ContainsAny(eventType, `*?[`) {
		return "is a glob, and types are names; write Normal or Warning, or leave event_types empty for all"
	}
	for _, known := range []string{corev1.EventTypeNormal, corev1.EventTypeWarning} {
		if eventType != known && strings.HasPrefix(strings.ToLower(known), strings.ToLower(trimmed)) {
			return "would match nothing; did you mean " + known + "?"
		}
	}
	return problemOfSpace(eventType)
}

// problemOfSpace returns the fix for a value with white space around it; empty if it has none.
func problemOfSpace(value string) string {
	trimmed := strings.TrimSpace(value)
	if trimmed == value {
		return ""
	}
	return fmt.Sprintf("has white space around it, and would match nothing; write %q", trimmed)
}

func (c *Config) validateReasons() error {
	return errors.Join(globs("include_reasons", c.IncludeReasons), globs("exclude_reasons", c.ExcludeReasons), notAll("reasons", c.ExcludeReasons),
		notBoth("reasons", c.IncludeReasons, c.ExcludeReasons, covers))
}

// covers reports whether a glob excludes what another one includes: a name that it matches, or the
// same glob.
func covers(excluded, included string) bool {
	if strings.ContainsAny(included, `*?[\`) {
		return excluded == included
	}
	matches, _ := path.Match(excluded, included)
	return matches
}

func (c *Config) validateKinds() error {
	_, errInclude := kinds("include_kinds", c.IncludeKinds)
	_, errExclude := kinds("exclude_kinds", c.ExcludeKinds)
	return errors.Join(errInclude, errExclude, notAll("kinds", c.ExcludeKinds), notBoth("kinds", c.IncludeKinds, c.ExcludeKinds, strings.EqualFold))
}

// kinds compiles globs of kinds. The error names each one that is invalid.
func kinds(key string, globs []string) (patterns []kind.Pattern, errs error) {
	for i, glob := range globs {
		pattern, err := kind.ParseGlob(glob)
		if isExpression(glob) {
			err = fmt.Errorf("%q %s", glob, fixOfExpression(glob))
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s[%d]: %w", key, i, err))
		}
		patterns = append(patterns, pattern)
	}
	return patterns, errs
}

// notAll rejects globs that exclude everything, such as *, ** or ?*.
func notAll(list string, exclude []string) (errs error) {
	for i, glob := range exclude {
		if strings.Contains(glob, "*") && strings.Trim(glob, "*?") == "" {
			errs = errors.Join(errs, fmt.Errorf("exclude_%s[%d]: %q excludes all %s; remove it, or exclude fewer", list, i, glob, list))
		}
	}
	return errs
}

// notBoth rejects values that are both included and excluded.
func notBoth(list string, include, exclude []string, covers func(excluded, included string) bool) (errs error) {
	for i, included := range include {
		for _, excluded := range exclude {
			if covers(excluded, included) {
				errs = errors.Join(errs, fmt.Errorf("include_%s[%d]: %q is also excluded by exclude_%s: %q; remove it from one of them", list, i, included, list, excluded))
			}
		}
	}
	return errs
}

// validateRetries rejects what would retry almost without a pause, or with pauses that become shorter.
// The Collector rejects a max_elapsed_time that is shorter than a pause.
func (c *Config) validateRetries() error {
	retry := c.RetryOnFailure
	if !retry.Enabled {
		return nil
	}
	var errMultiplier error
	if !(retry.Multiplier >= 1) {
		errMultiplier = fmt.Errorf("retry_on_failure.multiplier: %v would make each pause shorter; set 1 or more, such as 1.5", retry.Multiplier)
	}
	return errors.Join(
		userconfig.Above0("retry_on_failure.initial_interval", retry.InitialInterval, "1s"),
		userconfig.NotBelow("retry_on_failure.max_interval", retry.MaxInterval, "retry_on_failure.initial_interval", retry.InitialInterval),
		errMultiplier,
	)
}

// validateSwitches rejects what mdatagen generates, but the receiver does not do.
func (c *Config) validateSwitches() (errs error) {
	for name, attribute := range c.resourceAttributes() {
		for _, setting := range []struct {
			key   string
			isSet bool
		}{
			{"metrics_include", attribute.MetricsInclude != nil}, {"metrics_exclude", attribute.MetricsExclude != nil},
			{"events_include", attribute.EventsInclude != nil}, {"events_exclude", attribute.EventsExclude != nil},
		} {
			if setting.isSet {
				errs = errors.Join(errs, fmt.Errorf("resource_attributes.%s.%s: only \"enabled\" is supported here; remove this setting, and use the filter processor", name, setting.key))
			}
		}
	}
	if strategy := c.Metrics.K8sEventOccurrences.AggregationStrategy; strategy != metadata.AggregationStrategySum {
		errs = errors.Join(errs, fmt.Errorf("metrics.%s.aggregation_strategy: %q is not possible; remove it: occurrences are summed", series.MetricName, strategy))
	}
	if !c.Events.K8sEvent.Enabled && !c.Metrics.K8sEventOccurrences.Enabled {
		errs = errors.Join(errs, fmt.Errorf("events.k8s.event.enabled and metrics.%s.enabled: both are false, so nothing would be emitted; "+
			"set one to true, or remove the receiver", series.MetricName))
	}
	return errs
}

// resourceAttributes returns the settings of the resource attributes, by name. mdatagen generates a
// field for each.
func (c *Config) resourceAttributes() iter.Seq2[string, metadata.ResourceAttributeConfig] {
	return func(yield func(string, metadata.ResourceAttributeConfig) bool) {
		all := reflect.ValueOf(c.ResourceAttributes)
		for i := range all.NumField() {
			attribute, ok := all.Field(i).Interface().(metadata.ResourceAttributeConfig)
			if ok && !yield(all.Type().Field(i).Tag.Get("mapstructure"), attribute) {
				return
			}
		}
	}
}

// disabled returns the resource attributes that are switched off.
func (c *Config) disabled() semconv.Disabled {
	names := semconv.Disabled{}
	for name, attribute := range c.resourceAttributes() {
		if !attribute.Enabled {
			names[name] = true
		}
	}
	return names
}

// disabledOfPoints returns the attributes of the metric's points that are switched off. The
// overflow series always has its mark.
func (c *Config) disabledOfPoints() semconv.Disabled {
	names := semconv.Disabled{}
	type name = metadata.K8sEventOccurrencesMetricAttributeKey
	for _, attribute := range series.Attributes() {
		if !slices.Contains(c.Metrics.K8sEventOccurrences.EnabledAttributes, name(attribute)) {
			names[attribute] = true
		}
	}
	return names
}

func (c *Config) validateStorage() error {
	if c.Storage == nil || c.LeaderElector == nil {
		return nil
	}
	return fmt.Errorf("storage: %q has no use together with k8s_leader_elector: %q, whose leader notes its progress in a ConfigMap; "+
		"remove storage, or remove k8s_leader_elector and run one replica", c.Storage, c.LeaderElector)
}

func (c *Config) validateElector() error {
	if c.ProgressConfigMap == "" {
		return nil
	}
	if c.LeaderElector == nil {
		return fmt.Errorf("progress_config_map: %q has no use without k8s_leader_elector; remove it, or name the elector",
			c.ProgressConfigMap)
	}
	if namesConfigMap(namespacedName(c.ProgressConfigMap)) {
		return nil
	}
	return fmt.Errorf("progress_config_map: %q does not name the ConfigMap in which the leader notes its progress; "+
		"write NAMESPACE/NAME, such as kube-events/kube-events-progress, and let the receiver create, get and update it",
		c.ProgressConfigMap)
}

// progressConfigMap returns where the leader of a receiver notes its progress. The default is next to the Lease
// of the examples: in the pod's namespace, with a name for each receiver.
func (c *Config) progressConfigMap(receiver component.ID) types.NamespacedName {
	if c.ProgressConfigMap != "" {
		return namespacedName(c.ProgressConfigMap)
	}
	name := strings.NewReplacer("_", "-", "/", ".").Replace(strings.ToLower(receiver.String()))
	return types.NamespacedName{Namespace: kubeclient.Namespace(), Name: "kube-events-leader-" + name}
}

func namesConfigMap(name types.NamespacedName) bool {
	return len(validation.IsDNS1123Label(name.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(name.Name)) == 0
}

func namespacedName(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func globs(key string, patterns []string) (errs error) {
	for i, pattern := range patterns {
		if problem := problemOfGlob(pattern); problem != "" {
			errs = errors.Join(errs, fmt.Errorf("%s[%d]: %q %s", key, i, pattern, problem))
		}
	}
	return errs
}

// problemOfGlob returns what is wrong with a glob of reasons or namespaces, and the fix; empty if
// nothing is.
func problemOfGlob(pattern string) string {
	if pattern == "" {
		return "is empty; remove it"
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return `is not a valid glob; escape a literal *, ?, [ or \ with \`
	}
	if strings.Contains(pattern, ".*") || strings.Contains(pattern, ".+") || isExpression(pattern) {
		return fixOfExpression(pattern)
	}
	return problemOfSpace(pattern)
}

// isExpression reports whether a glob is a regular expression, or has alternatives in braces.
func isExpression(glob string) bool {
	return strings.ContainsAny(glob, "|{") || strings.HasPrefix(glob, "^") || strings.HasSuffix(glob, "$")
}

func fixOfExpression(expression string) string {
	glob := strings.NewReplacer("^", "", "$", "", ".*", "*", ".+", "*", "|", ", ").Replace(expression)
	if strings.ContainsAny(glob, "({") {
		glob = "one entry for each alternative"
	}
	return "would match nothing, because filters are globs, not regular expressions; write " + glob
}

func (c *Config) extractor() (*extract.Extractor, error) { return c.Extract.Compile() }

func (c *Config) auth() kubeclient.Auth {
	return kubeclient.Auth{
		Type: c.AuthType, Kubeconfig: c.Kubeconfig, Context: c.Context, QPS: c.KubeAPIQPS, Burst: c.KubeAPIBurst, Dial: c.Dial,
	}
}

func (c *Config) filter() filter.Filter {
	include, _ := kinds("include_kinds", c.IncludeKinds) // Validate has checked them.
	exclude, _ := kinds("exclude_kinds", c.ExcludeKinds)
	return filter.Filter{
		IncludeKinds:      include,
		ExcludeKinds:      exclude,
		Types:             c.EventTypes,
		IncludeReasons:    c.IncludeReasons,
		ExcludeReasons:    c.ExcludeReasons,
		ExcludeNamespaces: c.ExcludeNamespaces,
	}
}

// streams are the namespaces to watch, with an empty name for the whole cluster.
func (c *Config) streams() []string {
	if len(c.Namespaces) == 0 {
		return []string{""}
	}
	return c.Namespaces
}

// loop returns the settings of the loop that follow from the configuration.
func (c *Config) loop() loop.Settings {
	return loop.Settings{
		ClusterName:        c.ClusterName,
		Streams:            c.streams(),
		FromBeginning:      c.StartAt == StartAtBeginning,
		DedupInterval:      c.DedupInterval,
		CollectionInterval: c.CollectionInterval,
		Series: series.Settings{
			Max: c.Series.Max, TTL: c.Series.TTL, InitialZero: c.Series.InitialZero, Disabled: c.disabledOfPoints(),
		},
		Retry:     c.RetryOnFailure,
		Filter:    c.filter(),
		Converter: logrecord.Converter{ScopeName: metadata.ScopeName, Disabled: c.disabled()},
	}
}
