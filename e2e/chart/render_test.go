// SPDX-License-Identifier: Apache-2.0

// Package chart checks what helm renders from deploy/chart: golden outputs, errors about wrong values,
// and the Collector's configuration. A real control plane accepts all manifests of deploy/, and gives them
// the documented permissions and no more. e2e/node installs them on a real node.
package chart

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var update = flag.Bool("update", false, "write the golden outputs")

// manifests are objects, in the order in which they are applied.
type manifests []*unstructured.Unstructured

// render renders the chart as the release kube-events in the namespace observability.
func render(t *testing.T, arguments ...string) manifests {
	t.Helper()
	return harness.Chart(t, "kube-events", "observability", arguments...)
}

// renderValues renders the chart with a file of values.
func renderValues(t *testing.T, values string) manifests {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	return render(t, "--values", file)
}

// of are the objects of a kind.
func (m manifests) of(kind string) (found manifests) {
	for _, object := range m {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	return found
}

// only is the one object of a kind, as its own type.
func only[T any](t *testing.T, m manifests, kind string) T {
	t.Helper()
	found := m.of(kind)
	require.Len(t, found, 1, kind)
	return decoded[T](t, found[0].Object)
}

// decoded is an object as its own type, of which every field must be known.
func decoded[T any](t *testing.T, object map[string]any) T {
	t.Helper()
	var result T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &result, true))
	return result
}

// install is what helm installs in a namespace with some values.
func install(t *testing.T, namespace string, values ...string) manifests {
	t.Helper()
	var arguments []string
	for _, value := range values {
		arguments = append(arguments, "--set", value)
	}
	return harness.Chart(t, "kube-events", namespace, arguments...)
}

// config is the Collector's configuration.
func (m manifests) config(t *testing.T) (config map[string]any) {
	t.Helper()
	for _, object := range m.of("ConfigMap") {
		text, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
		require.NoError(t, err)
		if found {
			require.Nil(t, config, "one ConfigMap has a configuration")
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &config))
		}
	}
	require.NotNil(t, config)
	return config
}

// TestGoldenOutputs renders the values of each testdata/NAME.values.yaml, and compares the result
// with testdata/NAME.yaml. -update writes these files.
func TestGoldenOutputs(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob(filepath.Join("testdata", "*.values.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, values := range all {
		t.Run(filepath.Base(values), func(t *testing.T) {
			t.Parallel()
			manifest, stderr, err := harness.HelmTemplate(t, "kube-events", "observability", "--values", values)
			require.NoError(t, err, stderr)
			assert.Empty(t, stderr)
			golden := strings.TrimSuffix(values, ".values.yaml") + ".yaml"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(manifest), 0o600))
			}
			expected, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(expected), manifest)
		})
	}
}

// rendered are the plain manifests and the golden outputs, by file.
func rendered(t *testing.T) map[string]manifests {
	t.Helper()
	plain, err := filepath.Glob(harness.InRepository("deploy", "manifests", "*.yaml"))
	require.NoError(t, err)
	golden, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	require.NoError(t, err)
	all := map[string]manifests{}
	for _, path := range append(plain, golden...) {
		if strings.HasSuffix(path, ".values.yaml") {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all[filepath.Base(path)] = harness.Objects(t, string(text))
	}
	for _, name := range []string{"default.yaml", "ha.yaml", "single.yaml", "namespaced.yaml", "trial.yaml", "everything.yaml"} {
		require.Contains(t, slices.Collect(maps.Keys(all)), name)
	}
	return all
}

// TestThePageHasRolloutsOfStatefulSets: every configuration with the page extracts the label that
// names the revision of their pods. The page cannot see these rollouts without it.
func TestThePageHasRolloutsOfStatefulSets(t *testing.T) {
	t.Parallel()
	configs := map[string]map[string]any{
		"page and OTLP": render(t, "--set", "page.enabled=true,otlp.endpoint=http://gateway:4318").config(t),
		"trial.yaml":    rendered(t)["trial.yaml"].config(t),
	}
	for _, path := range []string{"distribution/config.yaml", "tools/image/config.yaml"} {
		var config map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, path)), &config))
		configs[path] = config
	}
	for name, config := range configs {
		assert.Contains(t, config["exporters"], "event_page", name)
		labels, _, err := unstructured.NestedSlice(config, "receivers", "kube_events", "extract", "labels")
		require.NoError(t, err, name)
		assert.Equal(t, []any{
			map[string]any{"tag_name": "tilt.manifest", "key": "tilt-manifest"},
			map[string]any{"key": "controller-revision-hash", "from": "pod"},
		}, labels, name)
	}
}

// TestTheUsersLabelsKeepTheRevision: a list in `config` replaces the chart's, but does not take the
// revision from the page. A rule of the user that gives the same attribute stays alone.
func TestTheUsersLabelsKeepTheRevision(t *testing.T) {
	t.Parallel()
	const (
		team     = "{key: example.com/team, tag_name: team}"
		renamed  = "{key: controller-revision-hash, tag_name: revision}"
		own      = "{key: controller-revision-hash, tag_name: k8s.pod.label.controller-revision-hash}"
		revision = "{key: controller-revision-hash, from: pod}"
	)
	for name, test := range map[string]struct{ enabled, given, expected string }{
		"the page":               {"page", team, team + ", " + revision},
		"rollouts":               {"rollouts", team, team + ", " + revision},
		"neither":                {"podMonitor", team, team},
		"the same attribute":     {"page", own, own},
		"the same label renamed": {"page", renamed, renamed + ", " + revision},
		"no list and no default": {"page", "", revision},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := func(rules string) any {
				if rules == "" {
					return nil
				}
				var decoded any
				require.NoError(t, yaml.UnmarshalStrict([]byte("["+rules+"]"), &decoded))
				return decoded
			}
			values, err := yaml.Marshal(map[string]any{
				"otlp":       map[string]any{"endpoint": "http://gateway:4318"},
				test.enabled: map[string]any{"enabled": true},
				"config":     map[string]any{"receivers": map[string]any{"kube_events": map[string]any{"extract": map[string]any{"labels": list(test.given)}}}},
			})
			require.NoError(t, err)
			labels, _, err := unstructured.NestedSlice(renderValues(t, string(values)).config(t), "receivers", "kube_events", "extract", "labels")
			require.NoError(t, err)
			assert.Equal(t, list(test.expected), any(labels))
		})
	}
}

// TestTheCollectorAcceptsTheConfiguration of each manifest, with the arguments and the variables of
// the container.
func TestTheCollectorAcceptsTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, all := range rendered(t) {
		if len(all.of("Deployment")) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.validate(t)
		})
	}
}

// configFile is where the container has its configuration.
const configFile = "/etc/otelcol/config.yaml"

// validate asks the Collector whether it accepts the configuration, the arguments and the variables.
func (m manifests) validate(t *testing.T) {
	t.Helper()
	container := containerOf(t, m)
	validate(t, m.config(t), container.Env, container.Args...)
}

func validate(t *testing.T, config map[string]any, env []corev1.EnvVar, arguments ...string) {
	t.Helper()
	if storage, found := config["extensions"].(map[string]any)["file_storage"]; found {
		// The Collector checks that the directory exists.
		storage.(map[string]any)["directory"] = t.TempDir()
	}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	var given []string
	for _, argument := range arguments {
		given = append(given, strings.Replace(argument, configFile, file, 1))
	}
	harness.Validate(t, env, given...)
}
