// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/instance"
)

// NewFactory returns the factory of the kube_incidents connector.
func NewFactory() connector.Factory {
	all := &instances{}
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithLogsToTraces(all.createTraces, metadata.LogsToTracesStability),
		connector.WithLogsToLogs(all.createLogs, metadata.LogsToLogsStability),
		connector.WithLogsToMetrics(all.createMetrics, metadata.LogsToMetricsStability),
	)
}

// instances has the tracker of each configured connector. Its outputs share it: stamped records and
// spans must have the same ids.
type instances struct {
	instance.Registry[*Config, *tracker]
}

func (i *instances) createTraces(_ context.Context, settings connector.Settings, config component.Config, next consumer.Traces) (connector.Logs, error) {
	return i.create(settings, config, func(t *tracker, _ *output) { t.traces = next })
}

func (i *instances) createMetrics(_ context.Context, settings connector.Settings, config component.Config, next consumer.Metrics) (connector.Logs, error) {
	return i.create(settings, config, func(t *tracker, _ *output) { t.watch.metrics = next })
}

func (i *instances) createLogs(_ context.Context, settings connector.Settings, config component.Config, next consumer.Logs) (connector.Logs, error) {
	return i.create(settings, config, func(t *tracker, o *output) {
		t.watch.logs = next
		if t.config.Stamp { // The records that it passes on are the ones that it must read.
			t.stamps, o.stamped, t.taker = true, next, o
		}
	})
}

func (i *instances) create(settings connector.Settings, config component.Config, connect func(*tracker, *output)) (connector.Logs, error) {
	t, err := i.Get(config.(*Config), func() (*tracker, error) { return newTracker(settings, config.(*Config)) })
	if err != nil {
		return nil, err
	}
	o := &output{tracker: t, instances: i}
	if t.taker == nil {
		t.taker = o
	}
	connect(t, o)
	return o, nil
}
