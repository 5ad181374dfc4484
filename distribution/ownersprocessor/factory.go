// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/instance"
	"github.com/kubeevents/kubeeventsreceiver/distribution/ownersprocessor/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
)

// NewFactory returns the factory of the kube_owners processor.
func NewFactory() processor.Factory {
	all := &instances{}
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithLogs(all.createLogs, metadata.LogsStability),
		processor.WithMetrics(all.createMetrics, metadata.MetricsStability),
		processor.WithTraces(all.createTraces, metadata.TracesStability),
	)
}

// instances lets all pipelines of a configuration share what is known: the Collector makes a processor for each.
type instances struct {
	instance.Registry[*Config, *enricher]
}

// enricher is what the pipelines of a configuration share.
type enricher struct {
	instances *instances
	config    *Config
	settings  processor.Settings
	extractor *extract.Extractor
	telemetry *telemetry

	start    sync.Once
	startErr error
	lookups  *lookups // nil: not started
	table    *table
}

func (i *instances) get(config *Config, settings processor.Settings) (*enricher, error) {
	return i.Get(config, func() (*enricher, error) { return i.newEnricher(config, settings) })
}

func (i *instances) newEnricher(config *Config, settings processor.Settings) (*enricher, error) {
	extractor, err := config.Extract.CompileWithoutEvents()
	if err != nil {
		return nil, err
	}
	telemetry, err := newTelemetry(settings)
	if err != nil {
		return nil, err
	}
	return &enricher{instances: i, config: config, settings: settings, extractor: extractor, telemetry: telemetry}, nil
}

// Start fails for what the user must fix: the configuration of the client. It does not wait for the API server.
func (e *enricher) Start(context.Context, component.Host) error {
	e.start.Do(func() { e.startErr = e.begin() })
	return e.startErr
}

func (e *enricher) begin() error {
	api, err := kubeclient.RESTConfig(e.config.Auth, e.settings.BuildInfo.Version)
	if err != nil {
		return err
	}
	api.UserAgent = strings.Replace(api.UserAgent, "kube-events-receiver", "kube-owners-processor", 1)
	return e.connect(api)
}

// connect begins with an empty table.
func (e *enricher) connect(api *rest.Config) error {
	resolver, err := e.config.Owners.NewResolver(api, e.extractor, false, e.telemetry)
	if err != nil {
		return err
	}
	e.lookups = newLookups(resolver, e.extractor, e.config.disabled())
	e.table = newTable(e.config.Owners.CacheSize, e.config.Owners.CacheTTL, e.lookups.find)
	return nil
}

// Shutdown ends the lookups when the last pipeline shuts down.
func (e *enricher) Shutdown(context.Context) error {
	if e.instances.Release(e.config) && e.lookups != nil {
		e.lookups.resolver.Close()
		e.table.close()
	}
	return nil
}

func (e *enricher) options() []processorhelper.Option {
	return []processorhelper.Option{
		processorhelper.WithStart(e.Start), processorhelper.WithShutdown(e.Shutdown),
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
	}
}

func (i *instances) createLogs(ctx context.Context, settings processor.Settings, config component.Config, next consumer.Logs) (processor.Logs, error) {
	e, err := i.get(config.(*Config), settings)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewLogs(ctx, settings, config, next, e.logs, e.options()...)
}

func (i *instances) createMetrics(ctx context.Context, settings processor.Settings, config component.Config, next consumer.Metrics) (processor.Metrics, error) {
	e, err := i.get(config.(*Config), settings)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewMetrics(ctx, settings, config, next, e.metrics, e.options()...)
}

func (i *instances) createTraces(ctx context.Context, settings processor.Settings, config component.Config, next consumer.Traces) (processor.Traces, error) {
	e, err := i.get(config.(*Config), settings)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewTraces(ctx, settings, config, next, e.traces, e.options()...)
}
