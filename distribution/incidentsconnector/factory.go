// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
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
	mu       sync.Mutex
	trackers map[*Config]*tracker
}

// trackerFor returns the tracker of a configuration. Each output releases it when it shuts down.
func (i *instances) trackerFor(settings connector.Settings, config *Config) (*tracker, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if t := i.trackers[config]; t != nil {
		t.outputs++
		return t, nil
	}
	t, err := newTracker(settings, config)
	if err != nil {
		return nil, err
	}
	if i.trackers == nil {
		i.trackers = map[*Config]*tracker{}
	}
	i.trackers[config] = t
	t.outputs++
	return t, nil
}

// release reports whether this was the last output of the tracker.
func (i *instances) release(t *tracker) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if t.outputs--; t.outputs > 0 {
		return false
	}
	delete(i.trackers, t.config)
	return true
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
	t, err := i.trackerFor(settings, config.(*Config))
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
