// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/cluster"
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/session"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// shutdownGrace is how long what was taken may still be delivered after Shutdown was called.
const shutdownGrace = 5 * time.Second

// aloneTimeout is longer than a Collector needs from the first to the last of its receivers' shutdowns.
const aloneTimeout = 2 * time.Minute

// lifecycle lets two pipelines start and shut down the receiver that they share: the first call of
// each counts.
type lifecycle struct {
	start    sync.Once
	startErr error
	stop     sync.Once
	stopErr  error

	mu        sync.Mutex  // guards the following
	pipelines int         // that started the receiver and did not shut it down
	alone     *time.Timer // reports that a pipeline still names the receiver, which has ended

	cancel context.CancelFunc // nil: not started
	// cancelDrain ends lookups and deliveries that outlast the grace.
	cancelDrain context.CancelFunc
	done        chan struct{} // closed when all work has ended
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
	return &eventsReceiver{
		config:    config,
		settings:  settings,
		extractor: extractor,
		Process: session.Process{
			Config:    config.session(),
			Logger:    settings.Logger,
			Version:   settings.BuildInfo.Version,
			Health:    observer,
			Filter:    config.filter(),
			Converter: logrecord.Converter{ScopeName: metadata.ScopeName, ScopeVersion: settings.BuildInfo.Version, Disabled: config.disabled()},
		},
	}, nil
}

// readPause is the longest time between two reads of the streams' connection. What is read together
// is a batch: a write and a request, which cost about as much for one event as for many.
const readPause = 40 * time.Millisecond

// Start fails for what the user must fix: the configuration of the client. It does not wait for the
// API server.
func (r *eventsReceiver) Start(ctx context.Context, host component.Host) error {
	r.Health.AddHost(host)
	r.life.enter()
	r.life.start.Do(func() { r.life.startErr = r.begin(ctx, host) })
	return r.life.startErr
}

func (r *eventsReceiver) begin(ctx context.Context, host component.Host) error {
	r.config.warn(r.Logger)
	restConfig, err := kubeclient.RESTConfig(r.config.auth(), r.settings.BuildInfo.Version)
	if err != nil {
		return err
	}
	if r.Client, err = kubeclient.Events(restConfig, kubeclient.Pacing{Pause: readPause, Paced: r.Health.Paced}); err != nil {
		return fmt.Errorf("the client configuration cannot be used: %w", err)
	}
	if err := r.useExtensions(ctx, host); err != nil {
		return err
	}
	if err := r.newResolver(restConfig); err != nil {
		return err
	}
	r.Owners = owners.New(r.resolver, r.extractor)
	sources := health.Sources{Leads: r.Leadership.Leads, SeriesLimit: r.config.Metrics.MaxSeries, Owners: r.resolver}
	if err := r.Health.Measure(sources); err != nil {
		return err
	}
	r.Cluster = cluster.New(r.Client)
	r.launch()
	return nil
}

// useExtensions opens the storage and the leader elector that the configuration names.
func (r *eventsReceiver) useExtensions(ctx context.Context, host component.Host) (err error) {
	if r.config.Storage != nil {
		if r.Storage, err = r.openStorage(ctx, host); err != nil {
			return err
		}
	}
	if r.config.LeaderElector == nil {
		r.Leadership = election.AlwaysLeads()
		return nil
	}
	if r.Leadership, err = r.openElector(host); err == nil && r.Storage == nil {
		r.Positions = r.openPositions(r.Client)
	}
	return err
}

func (r *eventsReceiver) newResolver(restConfig *rest.Config) error {
	if !r.config.Owners.Enabled {
		return nil
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = r.config.KubeAPIQPS
	restConfig.Burst = r.config.KubeAPIBurst
	var err error
	r.resolver, err = resolver.New(restConfig, resolver.Config{
		MaxDepth:       r.config.Owners.MaxDepth,
		LookupTimeout:  r.config.Owners.LookupTimeout,
		CacheSize:      r.config.Owners.CacheSize,
		CacheTTL:       r.config.Owners.CacheTTL,
		Namespaces:     r.config.Namespaces,
		KeepLabel:      r.extractor.KeepLabel,
		KeepAnnotation: r.extractor.KeepAnnotation,
		Observer:       r.Health,
	})
	return err
}

// elector is what is used of the extension k8s_leader_elector.
type elector interface {
	// SetCallBackFuncs registers what is called whenever this process starts and stops leading. The
	// extension waits for the calls to return.
	SetCallBackFuncs(started func(context.Context), stopped func())
}

// openElector registers with the leader elector that the configuration names.
func (r *eventsReceiver) openElector(host component.Host) (*election.Leadership, error) {
	id := *r.config.LeaderElector
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("k8s_leader_elector: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove k8s_leader_elector", id)
	}
	elector, ok := extension.(elector)
	if !ok {
		return nil, fmt.Errorf("k8s_leader_elector: %q is not a leader elector; name one, such as k8s_leader_elector", id)
	}
	config := election.ElectorConfigOf(extension)
	l := election.NewLeadership(config.LeaseDuration, config.RenewDeadline)
	elector.SetCallBackFuncs(l.Started, l.Stopped)
	var err error
	if r.lease, err = r.openLease(config); err != nil {
		r.Logger.Warn("Cannot read the leader election Lease; election failures will not be reported", zap.Error(err))
	}
	r.electorConfig = config
	return l, nil
}

// openLease returns the elector's lease; nil if its configuration does not name it. An error is not
// fatal: the elector may reach the API server in another way.
func (r *eventsReceiver) openLease(config election.ElectorConfig) (*election.Lease, error) {
	if config.LeaseNamespace == "" || config.LeaseName == "" {
		return nil, nil
	}
	restConfig, err := kubeclient.RESTConfig(kubeclient.Auth{Type: config.AuthType, Context: config.Context}, r.settings.BuildInfo.Version)
	if err != nil {
		return nil, err
	}
	return election.NewLease(restConfig, config.LeaseNamespace, config.LeaseName)
}

// openPositions makes it possible to read and publish the leader's position, in the lease's
// namespace of the watched cluster. Without it, a standby drops nothing.
func (r *eventsReceiver) openPositions(client rest.Interface) *election.Positions {
	config := r.electorConfig
	if config.LeaseNamespace == "" || config.LeaseName == "" {
		return election.NewPositions(election.NewStore(client, "", ""), r.Health)
	}
	name := election.ObjectName(config.LeaseName, r.settings.ID.String())
	return election.NewPositions(election.NewStore(client, config.LeaseNamespace, name), r.Health)
}

// launch starts all work in contexts of its own: Start's ends with Start.
func (r *eventsReceiver) launch() {
	stop, cancel := context.WithCancel(context.Background())
	drain, cancelDrain := context.WithCancel(context.Background())
	r.life.cancel, r.life.cancelDrain = cancel, cancelDrain
	r.life.done = make(chan struct{})
	go func() {
		defer close(r.life.done)
		var background sync.WaitGroup
		background.Go(func() { r.Cluster.Run(stop) })
		// Without a beat, the last deliveries would look like a pause of the process.
		beating, endBeat := context.WithCancel(context.Background())
		if r.Leadership.IsElected() {
			background.Go(func() { r.Leadership.Beat(beating) })
		}
		if r.lease != nil {
			background.Go(func() { r.lease.Watch(stop, r.Leadership, r.Health) })
		}
		if r.Positions != nil {
			background.Go(func() { r.Positions.Run(stop) })
		}
		r.Run(stop, drain)
		endBeat()
		background.Wait()
		r.close(drain)
	}()
}

// openStorage returns the client of the storage extension that the configuration names.
func (r *eventsReceiver) openStorage(ctx context.Context, host component.Host) (storage.Client, error) {
	id := *r.config.Storage
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("storage: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove storage", id)
	}
	storageExtension, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: %q is not a storage extension; name one, such as file_storage", id)
	}
	client, err := storageExtension.GetClient(ctx, component.KindReceiver, r.settings.ID, "")
	if err != nil {
		return nil, fmt.Errorf("storage: %q cannot be opened: %w; make its directory writable for the Collector, and give each Collector its own: only one at a time can use a file_storage directory", id, err)
	}
	return client, nil
}

// close releases what Start made.
func (r *eventsReceiver) close(ctx context.Context) {
	if r.resolver != nil {
		r.resolver.Close()
	}
	if r.Storage == nil {
		return
	}
	if err := r.Storage.Close(ctx); err != nil {
		r.Logger.Warn("Cannot close the storage", zap.Error(err))
	}
}

// Shutdown ends the watches, delivers what was taken from them, and returns when all work has
// ended, or with the context's error if a pipeline hangs longer than the context allows.
func (r *eventsReceiver) Shutdown(ctx context.Context) error {
	r.life.leave(r.reportAlone)
	r.life.stop.Do(func() { r.life.stopErr = r.end(ctx) })
	return r.life.stopErr
}

// reportAlone is for a partial reload of the Collector (service.partialReload) that removes the
// receiver from one of its pipelines. The Collector shuts down only that pipeline's receiver. This
// looks like the begin of the Collector's own shutdown.
func (r *eventsReceiver) reportAlone() {
	r.Logger.Error("The receiver has ended, because one of its pipelines no longer has it. Another pipeline has it, but receives nothing: restart the Collector")
}

func (l *lifecycle) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pipelines++
}

// leave calls alone later, if another pipeline still has the receiver then.
func (l *lifecycle) leave(alone func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pipelines--
	if l.alone != nil {
		l.alone.Stop()
	}
	if l.pipelines > 0 {
		l.alone = time.AfterFunc(aloneTimeout, alone)
	}
}

func (r *eventsReceiver) end(ctx context.Context) error {
	receivers.forget(r)
	defer r.Health.Shutdown()
	if r.life.cancel == nil {
		r.close(ctx)
		return nil
	}
	r.life.cancel()
	defer r.life.cancelDrain()
	grace := time.AfterFunc(shutdownGrace, r.life.cancelDrain)
	defer grace.Stop()
	select {
	case <-r.life.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("events were still being delivered: %w", ctx.Err())
	}
}
