// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"errors"
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
		exporter.WithMetrics(explainMetrics, component.StabilityLevelUndefined),
		exporter.WithTraces(explainTraces, component.StabilityLevelUndefined),
	)
}

// errOnlyLogs is the fix for a pipeline of another signal. Without it, the Collector only says that the exporter does not support it.
var errOnlyLogs = errors.New("the page takes logs only; write event_page in the exporters of a logs pipeline, and remove it from this one")

func explainMetrics(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) {
	return nil, errOnlyLogs
}

func explainTraces(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
	return nil, errOnlyLogs
}

func createLogs(_ context.Context, settings exporter.Settings, config component.Config) (exporter.Logs, error) {
	return newPageExporter(config.(*Config), settings), nil
}
