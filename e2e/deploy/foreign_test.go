// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// fileOf is the content of the file that a variable names, which is part of another project.
func fileOf(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skip(variable + " names no file")
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// TestTheOperatorsResource applies the collector with the Operator's own resource definition.
// OPERATOR_CRD names the file, config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml in
// its repository.
func TestTheOperatorsResource(t *testing.T) {
	kube.apply(t, harness.Objects(t, fileOf(t, "OPERATOR_CRD")))
	all := readManifests(t, "operator/collector.yaml")
	kube.apply(t, all.but("OpenTelemetryCollector"))
	kube.apply(t, all.of("OpenTelemetryCollector"))
}
