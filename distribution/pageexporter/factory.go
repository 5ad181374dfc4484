// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	_ "time/tzdata" // The image has no time zones, and functions of OTTL take their names.

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/kubeevents/kubeeventsreceiver/distribution/pageexporter/internal/metadata"
)

// NewFactory returns the factory of the event_page exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createLogs(_ context.Context, settings exporter.Settings, config component.Config) (exporter.Logs, error) {
	return newPageExporter(config.(*Config), settings), nil
}
