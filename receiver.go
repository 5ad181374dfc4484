// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/details"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/loop"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/progress"
	"github.com/kubeevents/kubeeventsreceiver/internal/series"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// shutdownGrace is the time after the call of Shutdown in which taken events may still be
// delivered.
const shutdownGrace = 5 * time.Second

// shutdownLimit is the maximum time that Shutdown waits. All work ends earlier, unless storage, or
// a pipeline that ignores its context, hangs. The exporters, which the Collector shuts down later,
// must not wait for that.
const shutdownLimit = 15 * time.Second

// eventsReceiver watches events and emits them as logs and as a metric. One serves both pipelines
// of a configuration. It starts what lasts as long as the process; the loop has the rest.
type eventsReceiver struct {
	config    *Config
	settings  receiver.Settings
	extractor *extract.Extractor
	health    *health.Health
	logs      consumer.Logs    // nil: in no logs pipeline
	metrics   consumer.Metrics // nil: in no metrics pipeline

	// Two pipelines start and shut down the receiver that they share: the first call of each counts.
	start, stop       sync.Once
	startErr, stopErr error

	cancel context.CancelFunc // nil: not started
	// cancelDrain ends lookups and deliveries that outlast the grace.
	cancelDrain context.CancelFunc
	done        chan struct{} // closed when all work has ended

	// Start opens the following.
	client   *rest.RESTClient // of the core group
	watches  *rest.RESTClient // for watches only
	elector  elector
	storage  storage.Client     // nil: nothing is saved
	resolver *resolver.Resolver // nil: owners are not looked up
	details  *details.Details   // nil: nothing is read
}

func newReceiver(config *Config, settings receiver.Settings) (*eventsReceiver, error) {
	observer, err := health.New(settings)
	if err != nil {
		return nil, err
	}
	extractor, err := config.extractor()
	if err != nil {
		return nil, err
	}
	return &eventsReceiver{config: config, settings: settings, extractor: extractor, health: observer}, nil
}

// Start fails for what the user must fix: the configuration of the client. It does not wait for the
// API server.
func (r *eventsReceiver) Start(ctx context.Context, host component.Host) error {
	r.health.AddHost(host)
	r.start.Do(func() {
		if r.startErr = r.begin(ctx, host); r.startErr != nil {
			r.elector.close()
		}
	})
	return r.startErr
}

func (r *eventsReceiver) begin(ctx context.Context, host component.Host) error {
	if err := r.checkOutput(); err != nil {
		return err
	}
	restConfig, err := kubeclient.RESTConfig(r.config.auth(), r.settings.BuildInfo.Version)
	if err != nil {
		return err
	}
	if r.watches, err = kubeclient.Events(watch.Paced(restConfig)); err == nil {
		r.client, err = kubeclient.Events(restConfig)
	}
	if err != nil {
		return fmt.Errorf("the client configuration cannot be used: %w", err)
	}
	if r.storage, err = r.openStorage(ctx, host); err != nil {
		return err
	}
	if r.elector, err = r.openElector(host); err != nil {
		return err
	}
	if r.resolver, err = r.newResolver(restConfig); err != nil {
		return err
	}
	if r.details, err = r.newDetails(restConfig); err != nil {
		return err
	}
	if err := r.health.Measure(r.elector.leadership.Leads, r.config.Series.Max, r.resolver); err != nil {
		return err
	}
	if r.config.LeaderElector == nil {
		r.health.Waiting(health.Streams(r.config.streams())...)
	} else {
		r.health.Standby()
	}
	r.launch()
	return nil
}

// checkOutput returns an error if all pipelines are of the signal that is disabled. This is not known
// before each pipeline has been created.
func (r *eventsReceiver) checkOutput() error {
	if r.logs != nil || r.metrics != nil {
		return nil
	}
	key, other := "events.k8s.event", "metrics"
	if r.config.Events.K8sEvent.Enabled {
		key, other = "metrics."+series.MetricName, "logs"
	}
	return fmt.Errorf("%s.enabled: false, and no %s pipeline has the receiver, so nothing would be emitted; set it to true, or add the receiver to a %s pipeline", key, other, other)
}

func (r *eventsReceiver) newResolver(restConfig *rest.Config) (*resolver.Resolver, error) {
	if !r.config.Owners.Enabled {
		return nil, nil
	}
	return r.config.Owners.NewResolver(restConfig, r.extractor, len(r.config.Namespaces) > 0, r.health)
}

func (r *eventsReceiver) newDetails(restConfig *rest.Config) (*details.Details, error) {
	wanted := r.config.Details
	return details.New(restConfig, details.Settings{
		ContainerStatus: wanted.Enabled && wanted.ContainerStatus,
		TemplateChanges: wanted.Enabled && wanted.TemplateChanges,
		ConfigMaps:      wanted.ConfigMaps,
		Timeout:         r.config.Owners.LookupTimeout,
		Observer:        r.health,
	})
}

// launch starts all work in contexts of its own: Start's ends with Start.
func (r *eventsReceiver) launch() {
	stop, cancel := context.WithCancel(context.Background())
	drain, cancelDrain := context.WithCancel(context.Background())
	r.cancel, r.cancelDrain = cancel, cancelDrain
	r.done = make(chan struct{})
	events := loop.New(r.loop())
	go func() {
		defer close(r.done)
		var beats sync.WaitGroup
		// Until the last delivery: without beats, that would look like a pause of the process.
		delivering, delivered := context.WithCancel(context.Background())
		if r.elector.leadership.IsElected() {
			beats.Go(func() { r.elector.leadership.Beat(delivering) })
		}
		events.Run(stop, drain)
		delivered()
		beats.Wait()
		r.close(drain)
	}()
}

func (r *eventsReceiver) loop() loop.Settings {
	settings := r.config.loop()
	settings.Logger, settings.Version = r.settings.Logger, r.settings.BuildInfo.Version
	settings.Logs, settings.Metrics = r.logs, r.metrics
	settings.Health, settings.Leadership = r.health, r.elector.leadership
	settings.Owners, settings.Details = owners.New(r.resolver, r.extractor), r.details
	settings.Converter.ScopeVersion, settings.Converter.TagsLeftOut = settings.Version, r.health.TagsLeftOut
	settings.Client, settings.Watches = r.client, r.watches
	settings.Progress = func() progress.Progress { return r.progress() }
	return settings
}

// progress returns where a session notes what it has delivered.
func (r *eventsReceiver) progress() progress.Progress {
	switch {
	case r.storage != nil:
		return progress.NewCheckpoint(r.storage, r.health, r.settings.Logger)
	case r.config.LeaderElector != nil:
		at := r.config.progressConfigMap(r.settings.ID)
		return progress.NewConfigMap(r.client, at.Namespace, at.Name, r.health, r.settings.Logger)
	default:
		return progress.Nowhere{}
	}
}

// close releases what Start opened.
func (r *eventsReceiver) close(ctx context.Context) {
	r.elector.close()
	if r.client != nil {
		kubeclient.Close(r.client)
		kubeclient.Close(r.watches)
	}
	if r.resolver != nil {
		r.resolver.Close()
	}
	r.details.Close()
	if r.storage == nil {
		return
	}
	if err := r.storage.Close(ctx); err != nil {
		r.settings.Logger.Warn("Cannot close the storage", zap.Error(err))
	}
}

// Shutdown ends the watches, delivers what was taken from them, and returns when all work has
// ended, or with the context's error if a pipeline hangs longer than the context allows.
func (r *eventsReceiver) Shutdown(ctx context.Context) error {
	r.stop.Do(func() { r.stopErr = r.end(ctx) })
	return r.stopErr
}

func (r *eventsReceiver) end(ctx context.Context) error {
	receivers.forget(r)
	defer r.health.Shutdown()
	if r.cancel == nil {
		r.close(ctx)
		return nil
	}
	r.cancel()
	defer r.cancelDrain()
	grace := time.AfterFunc(shutdownGrace, r.cancelDrain)
	defer grace.Stop()
	select {
	case <-r.done:
		return nil
	case <-time.After(shutdownLimit):
		return fmt.Errorf("the receiver has not ended within %v: check the exporters and the storage extension", shutdownLimit)
	case <-ctx.Done():
		return fmt.Errorf("events were still being delivered: %w", ctx.Err())
	}
}
