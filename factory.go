// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
)

// NewFactory makes the factory of the receiver kube_events.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithLogs(createLogs, metadata.LogsStability),
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
		receiver.WithTraces(explainTraces, component.StabilityLevelUndefined),
	)
}

// explainTraces says which component emits traces. Without it, the Collector only says that this one does not.
func explainTraces(context.Context, receiver.Settings, component.Config, consumer.Traces) (receiver.Traces, error) {
	return nil, errors.New("the receiver emits logs and metrics; for traces of rollouts, write kube_incidents as the exporter of a logs pipeline and as the receiver of the traces pipeline")
}

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval = time.Second
	// The API server keeps the events while the pipeline rejects them, so there is no reason to
	// give up.
	retry.MaxElapsedTime = 0
	return &Config{
		AuthType:     kubeclient.AuthServiceAccount,
		KubeAPIQPS:   -1,
		KubeAPIBurst: 100,
		StartAt:      StartAtEnd,
		Owners:       owners.DefaultConfig(),
		Details:      DetailsConfig{Enabled: true, ContainerStatus: true, TemplateChanges: true},
		Extract: ExtractConfig{
			Metadata:        []string{extract.ServiceName, extract.ServiceNamespace},
			OTelAnnotations: true,
			Labels:          extract.DefaultLabels(),
		},
		CollectionInterval: 30 * time.Second,
		Series:             SeriesConfig{Max: 30_000, TTL: time.Hour, InitialZero: true},
		Metrics:            metadata.DefaultMetricsConfig(),
		Events:             metadata.DefaultEventsConfig(),
		ResourceAttributes: metadata.DefaultResourceAttributesConfig(),
		RetryOnFailure:     retry,
	}
}

func createLogs(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
	r, err := receivers.get(config.(*Config), settings)
	if err != nil {
		return nil, err
	}
	if config.(*Config).Events.K8sEvent.Enabled {
		r.logs = next
	}
	return r, nil
}

func createMetrics(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	r, err := receivers.get(config.(*Config), settings)
	if err != nil {
		return nil, err
	}
	if config.(*Config).Metrics.K8sEventOccurrences.Enabled {
		r.metrics = next
	}
	return r, nil
}

// receivers lets the logs and the metrics pipeline of one configuration share one receiver, and
// with it one watch: the Collector calls the factory once for each signal, with the same *Config.
var receivers = sharedReceivers{byConfig: map[*Config]*eventsReceiver{}}

type sharedReceivers struct {
	mu       sync.Mutex // guards byConfig
	byConfig map[*Config]*eventsReceiver
}

func (s *sharedReceivers) get(config *Config, settings receiver.Settings) (*eventsReceiver, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.byConfig[config]; ok {
		return r, nil
	}
	r, err := newReceiver(config, settings)
	if err != nil {
		return nil, err
	}
	s.byConfig[config] = r
	return r, nil
}

// forget lets a later receiver of the same configuration start again.
func (s *sharedReceivers) forget(r *eventsReceiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byConfig[r.config] == r {
		delete(s.byConfig, r.config)
	}
}
