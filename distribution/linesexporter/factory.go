// SPDX-License-Identifier: Apache-2.0

package linesexporter

import (
	"context"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
)

// NewFactory returns the factory of the event_lines exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		component.MustNewType("event_lines"),
		createDefaultConfig,
		exporter.WithLogs(createLogs, component.StabilityLevelDevelopment),
	)
}

func createDefaultConfig() component.Config {
	return &Config{Color: ColorAuto}
}

func createLogs(_ context.Context, _ exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	color := cfg.(*Config).Color.enabled(os.Stdout)
	return &linesExporter{out: os.Stdout, format: lineFormat{color: color}}, nil
}
