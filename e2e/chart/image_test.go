// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// components are the types of a Collector's components and providers, such as "exporters/otlp_http".
type components map[string]bool

var provider = regexp.MustCompile(`\$\{([a-z]+):`)

// componentsOf are those that a release needs: those of its configuration, and the provider of each of its arguments.
func componentsOf(t *testing.T, values ...string) components {
	t.Helper()
	all := install(t, "observability", values...)
	config := all.config(t)
	found := components{}
	for _, kind := range []string{"receivers", "processors", "exporters", "connectors", "extensions"} {
		section, _ := config[kind].(map[string]any)
		for id := range section {
			name, _, _ := strings.Cut(id, "/")
			found[kind+"/"+name] = true
		}
	}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	for _, match := range provider.FindAllStringSubmatch(string(text), -1) {
		found["providers/"+match[1]] = true
	}
	for _, argument := range containerOf(t, all).Args {
		for option, name := range map[string]string{"--config=": "file", "--set=": "yaml"} {
			if strings.HasPrefix(argument, option) {
				found["providers/"+name] = true
			}
		}
	}
	return found
}

// TestTheManifestForUsersHasWhatTheChartNeeds: the components of the default, and for each value what it adds.
func TestTheManifestForUsersHasWhatTheChartNeeds(t *testing.T) {
	t.Parallel()

	values := map[string][]string{
		"mode=single":         {endpoint, "mode=single"},
		"otlp.protocol=grpc":  {"otlp.endpoint=http://gw:4317", "otlp.protocol=grpc"},
		"otlp.secretHeaders":  {endpoint, "otlp.secretHeaders.A.name=s", "otlp.secretHeaders.A.key=k"},
		"additionalBackends":  {endpoint, "additionalBackends.new.endpoint=http://new"},
		"prometheus.enabled":  {endpoint, "prometheus.enabled=true", "otlp.signals={logs}"},
		"page.enabled":        {endpoint, "page.enabled=true"},
		"page.hosts":          {endpoint, "page.enabled=true", "page.hosts={a.b}", "page.htpasswdSecret=s"},
		"problems.enabled":    {endpoint, "problems.enabled=true"},
		"rollouts.enabled":    {endpoint, "rollouts.enabled=true"},
		"extraArgs":           {endpoint, "extraArgs={--set=service.telemetry.logs.level=debug}"},
		"backend.secret":      {endpoint, "backend.preset=otlp", "backend.secret=s"},
		"backend.preset=otlp": {endpoint, "backend.preset=otlp"},
	}
	values["problems.enabled without a backend"] = []string{"page.enabled=true", "problems.enabled=true"}
	var presets map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, "deploy", "chart", "backends.yaml")), &presets))
	for name := range presets {
		values["backend.preset="+name] = []string{endpoint, "backend.preset=" + name, "backend.secret=s"}
	}
	implied := map[string][]string{
		"page.hosts": {"page.enabled"}, "problems.enabled without a backend": {"page.enabled", "problems.enabled"},
	}
	needs := components{}
	manifest := manifestForUsers(t)
	base := componentsOf(t, endpoint)
	for name := range base {
		assert.Equal(t, []string{""}, manifest[name], "%s: every release needs it", name)
	}
	for value, arguments := range values {
		for name := range componentsOf(t, arguments...) {
			needs[name] = true
			switch {
			case base[name], slices.ContainsFunc(implied[value], func(other string) bool { return slices.Contains(manifest[name], other) }):
			case name == "providers/literalenv" && strings.HasPrefix(value, "backend.preset="): // That of backend.secret.
			default:
				assert.Contains(t, manifest[name], value, name)
			}
		}
	}
	for name, conditions := range manifest {
		assert.Contains(t, needs, name, "the chart never needs it")
		for _, value := range conditions {
			if value != "" {
				require.Contains(t, values, value, "%s: an unknown value", name)
				assert.Contains(t, componentsOf(t, values[value]...), name, value)
			}
		}
	}
	assert.Subset(t, slices.Collect(maps.Keys(needs)), slices.Collect(maps.Keys(base)))
}

// manifestForUsers are the components in the manifest of examples/own-image, and the values that need each; "": all.
func manifestForUsers(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	kind := ""
	for line := range strings.Lines(harness.Read(t, "examples", "own-image", "builder.yaml")) {
		if section, isSection := strings.CutSuffix(strings.TrimSpace(line), ":"); isSection {
			kind = section
		}
		if !strings.HasPrefix(line, "  - gomod: ") {
			continue
		}
		_, comment, commented := strings.Cut(strings.TrimSpace(line), " # ")
		require.True(t, commented, line)
		name, conditions, _ := strings.Cut(comment, ": ")
		found[kind+"/"+name] = strings.Split(conditions, ", ")
	}
	require.NotEmpty(t, found)
	return found
}
