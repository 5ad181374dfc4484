// SPDX-License-Identifier: Apache-2.0

package literalenvprovider

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
)

// resolve reads a configuration as the Collector does.
func resolve(t *testing.T, config string) (map[string]any, error) {
	t.Helper()
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"yaml:" + config},
		ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory(), NewFactory()},
	})
	require.NoError(t, err)
	resolved, err := resolver.Resolve(t.Context())
	if err != nil {
		return nil, err
	}
	return resolved.ToStringMap(), nil
}

func TestValuesStayAsTheyAre(t *testing.T) {
	for _, value := range []string{
		"plain", "", "$", "$$", "a$b", "${env:HOME}", "$${literalenv:LITERAL_TEST}", "${literalenv:LITERAL_TEST}", "{a: b}", "0123", "true", "a: b\nc", "}${",
	} {
		t.Run(value, func(t *testing.T) {
			t.Setenv("LITERAL_TEST", value)
			config, err := resolve(t, "{alone: '${literalenv:LITERAL_TEST}', inside: 'ApiKey ${literalenv:LITERAL_TEST} $$'}")
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"alone": value, "inside": "ApiKey " + value + " $"}, config)
		})
	}
}

func TestAVariableThatIsNotSet(t *testing.T) {
	_, err := resolve(t, "{a: '${literalenv:LITERAL_TEST_UNSET}'}")
	assert.ErrorContains(t, err, `environment variable "LITERAL_TEST_UNSET" is not set`)
}
