// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheOperatorsResource applies the collector with the Operator's own resource definition, which is part of the
// Operator: OPERATOR_CRD names the file, config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml in its repository.
func TestTheOperatorsResource(t *testing.T) {
	file := os.Getenv("OPERATOR_CRD")
	if file == "" {
		t.Skip("OPERATOR_CRD names no file")
	}
	definition, err := os.ReadFile(file)
	require.NoError(t, err)
	kube.apply(t, decodeManifests(t, string(definition)))
	all := readManifests(t, "operator/collector.yaml")
	kube.apply(t, all.but("OpenTelemetryCollector"))
	kind := all.of("OpenTelemetryCollector")[0].GroupVersionKind()
	eventually(t, func() bool {
		kube.mapper.Reset()
		_, err := kube.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil
	}, "the new kind")
	kube.apply(t, all.of("OpenTelemetryCollector"))
}
