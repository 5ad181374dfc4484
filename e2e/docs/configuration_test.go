// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"sigs.k8s.io/yaml"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// allOptions returns the first configuration of the page, with every option of the receiver.
func allOptions(t *testing.T) map[string]any {
	t.Helper()
	config := map[string]map[string]map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(blocksOf(t, "docs/configuration.md", "yaml")[0].text), &config))
	options := config["receivers"]["kube_events"]
	require.NotEmpty(t, options)
	return options
}

// TestThePageHasTheDefaults: who copies the whole configuration changes nothing.
func TestThePageHasTheDefaults(t *testing.T) {
	t.Parallel()
	config := kubeevents.NewFactory().CreateDefaultConfig().(*kubeevents.Config)
	require.NoError(t, confmap.NewFromStringMap(allOptions(t)).Unmarshal(config))
	rule := &config.Extract.Labels[0]
	require.Equal(t, "nearest", rule.From)
	rule.From = "" // It means the same.
	require.NoError(t, confmap.Validate(config))
	assert.Equal(t, flattened(t, kubeevents.NewFactory().CreateDefaultConfig()), flattened(t, config))
}

// flattened returns the values of a configuration by their paths. An empty list is as good as none.
func flattened(t *testing.T, config any) map[string]any {
	t.Helper()
	conf := confmap.New()
	require.NoError(t, conf.Marshal(config))
	values := map[string]any{}
	for _, key := range conf.AllKeys() {
		value := reflect.ValueOf(conf.Get(key))
		if value.IsValid() && (value.Kind() != reflect.Slice || value.Len() > 0) {
			values[key] = value.Interface()
		}
	}
	return values
}

// The names of some options have dots. So the tests join the parts of a path as confmap does.
const (
	extractRules     = "extract::"
	annotationRules  = "extract::annotations::"
	attributes       = "resource_attributes"
	exampleAttribute = "resource_attributes::k8s.workload.uid::enabled"
	// aggregation is what mdatagen generates for a metric. The receiver only sums.
	aggregation = "metrics::k8s.event.occurrences::aggregation_strategy"
)

// TestThePageHasEveryOption, and none that there is not.
func TestThePageHasEveryOption(t *testing.T) {
	t.Parallel()
	onThePage := map[string]bool{}
	addPaths(onThePage, "", allOptions(t))
	assert.ElementsMatch(t, slices.Collect(maps.Keys(optionsOf(t))), slices.Collect(maps.Keys(onThePage)))
}

// optionsOf returns the paths of all options. One resource attribute is an example of all.
func optionsOf(t *testing.T) map[string]bool {
	t.Helper()
	paths := map[string]bool{}
	addFields(paths, "", reflect.TypeFor[kubeevents.Config]())
	maps.DeleteFunc(paths, func(path string, _ bool) bool {
		return path == aggregation ||
			strings.HasPrefix(path, attributes) && path != exampleAttribute ||
			strings.HasPrefix(path, annotationRules) // They have the options of those for labels.
	})
	require.NotEmpty(t, paths)
	return paths
}

// addFields adds the options of a struct, and of those in it. A list of structs has the options of one.
func addFields(paths map[string]bool, prefix string, of reflect.Type) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		path := prefix + name
		fieldType := field.Type
		isList := fieldType.Kind() == reflect.Slice && fieldType.Elem().Kind() == reflect.Struct
		switch {
		case !field.IsExported():
		case name == "": // squashed
			addFields(paths, prefix, fieldType)
		case isList && strings.HasPrefix(path, extractRules):
			paths[path] = true
			addFields(paths, path+confmap.KeyDelimiter, fieldType.Elem())
		case fieldType.Kind() == reflect.Struct:
			addFields(paths, path+confmap.KeyDelimiter, fieldType)
		default:
			paths[path] = true
		}
	}
}

// addPaths adds the options that a configuration sets.
func addPaths(paths map[string]bool, prefix string, options map[string]any) {
	for name, value := range options {
		path := prefix + name
		if inner, ok := value.(map[string]any); ok {
			addPaths(paths, path+confmap.KeyDelimiter, inner)
			continue
		}
		paths[path] = true
		list, _ := value.([]any)
		for _, element := range list {
			if inner, ok := element.(map[string]any); ok {
				addPaths(paths, path+confmap.KeyDelimiter, inner)
			}
		}
	}
}

// readSchema returns the schema that editors use.
func readSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema := &jsonschema.Schema{}
	require.NoError(t, json.Unmarshal([]byte(harness.Read(t, "config.schema.json")), schema))
	return schema
}

// TestTheSchemaHasEveryOption, with the default that the receiver has.
func TestTheSchemaHasEveryOption(t *testing.T) {
	t.Parallel()
	defaults := map[string]any{}
	addDefaults(t, defaults, "", readSchema(t))
	options := optionsOf(t)
	// The schema does not list the names of resource attributes.
	delete(options, exampleAttribute)
	options[attributes] = true
	maps.DeleteFunc(defaults, func(path string, _ any) bool { return strings.HasPrefix(path, annotationRules) })
	assert.ElementsMatch(t, slices.Collect(maps.Keys(options)), slices.Collect(maps.Keys(defaults)))

	conf := confmap.New()
	require.NoError(t, conf.Marshal(kubeevents.NewFactory().CreateDefaultConfig()))
	for path, value := range defaults {
		if value == nil {
			continue
		}
		expected := conf.Get(path)
		if _, ok := expected.(time.Duration); ok {
			duration, err := time.ParseDuration(value.(string))
			require.NoError(t, err, path)
			value = duration
		}
		assert.Equal(t, fmt.Sprint(expected), fmt.Sprint(value), path)
	}
}

// addDefaults adds the options of a schema, each with its default.
func addDefaults(t *testing.T, defaults map[string]any, prefix string, schema *jsonschema.Schema) {
	t.Helper()
	for name, property := range schema.Properties {
		path := prefix + name
		if len(property.Properties) > 0 {
			addDefaults(t, defaults, path+confmap.KeyDelimiter, property)
			continue
		}
		var value any
		if property.Default != nil {
			require.NoError(t, json.Unmarshal(property.Default, &value))
		}
		defaults[path] = value
		if property.Items != nil && len(property.Items.Properties) > 0 {
			addDefaults(t, defaults, path+confmap.KeyDelimiter, property.Items)
		}
	}
}

// TestTheSchemaAcceptsThePage, and rejects wrong values.
func TestTheSchemaAcceptsThePage(t *testing.T) {
	t.Parallel()
	// mdatagen identifies a schema by its package, which is no absolute URI.
	schema, err := readSchema(t).Resolve(&jsonschema.ResolveOptions{BaseURI: "https://pkg.go.dev/"})
	require.NoError(t, err)
	options := allOptions(t)
	for name, value := range options {
		if value == nil {
			delete(options, name) // Nothing is set.
		}
	}
	require.NoError(t, schema.Validate(options))
	for name, wrong := range map[string]map[string]any{
		"no such value":    {"auth_type": "magic"},
		"another type":     {"namespaces": "shop"},
		"a number too low": {"owners": map[string]any{"max_depth": 0}},
		"not a duration":   {"collection_interval": "often"},
		"a key of a rule":  {"extract": map[string]any{"labels": []any{map[string]any{"key": 1}}}},
		"an unknown key":   {"exclude_reason": []any{"Pulled"}},
		"an inner key":     {"owners": map[string]any{"cache_sze": 5}},
		"a rule's key":     {"extract": map[string]any{"labels": []any{map[string]any{"keyy": "team"}}}},
		"a switch's key":   {"resource_attributes": map[string]any{"k8s.pod.uid": map[string]any{"enable": true}}},
		"a wrong switch":   {"resource_attributes": map[string]any{"k8s.pod.uid": map[string]any{"enabled": "no"}}},
	} {
		require.Error(t, schema.Validate(wrong), name)
	}
}
