// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"errors"
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
	)
}

// instances has the tracker of each configured connector. Its two outputs share it: stamped records
// and spans must have the same ids.
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
	t, err := i.trackerFor(settings, config.(*Config))
	if err != nil {
		return nil, err
	}
	t.traces = next
	return &output{tracker: t, instances: i}, nil
}

func (i *instances) createLogs(_ context.Context, settings connector.Settings, config component.Config, next consumer.Logs) (connector.Logs, error) {
	if !config.(*Config).Stamp {
		return nil, errors.New("stamp: false, but a pipeline of logs receives from this connector; set stamp: true, or let only a pipeline of traces receive from it")
	}
	t, err := i.trackerFor(settings, config.(*Config))
	if err != nil {
		return nil, err
	}
	t.stamps = true
	return &output{tracker: t, instances: i, logs: next}, nil
}
