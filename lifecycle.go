// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/cluster"
	"github.com/kubeevents/kubeeventsreceiver/internal/inbox"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

const (
	// shutdownGrace is how long what was taken may still be delivered after Shutdown was called.
	shutdownGrace = 5 * time.Second
	// electionDelay is how long after the end of a lease the elector may take to notice it, and how far a producer's
	// event may be behind.
	electionDelay = 5 * time.Second
)

// lifecycle lets two pipelines start and shut down the receiver that they share: the first call of each counts.
type lifecycle struct {
	start    sync.Once
	startErr error
	stop     sync.Once
	stopErr  error

	cancel context.CancelFunc // nil: not started
	// cancelWork ends look-ups and deliveries that outlast the grace.
	cancelWork context.CancelFunc
	done       chan struct{} // closed when all work has ended
}

func newReceiver(config *Config, settings receiver.Settings) (*eventsReceiver, error) {
	telemetry, err := newTelemetry(settings)
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
		telemetry: telemetry,
		status:    newStatus(settings.Logger, telemetry),
		filter:    config.filter(),
		extractor: extractor,
		converter: logrecord.Converter{ScopeName: metadata.ScopeName, ScopeVersion: settings.BuildInfo.Version},
	}, nil
}

// Start fails for what the user must mend: the configuration of the client. It does not wait for the API server.
func (r *eventsReceiver) Start(ctx context.Context, host component.Host) error {
	r.status.addHost(host)
	r.life.start.Do(func() { r.life.startErr = r.begin(ctx, host) })
	return r.life.startErr
}

func (r *eventsReceiver) begin(ctx context.Context, host component.Host) error {
	r.config.warn(r.settings.Logger)
	restConfig, err := kubeclient.RESTConfig(r.config.auth(), r.settings.BuildInfo.Version)
	if err != nil {
		return err
	}
	client, bursts, err := kubeclient.Events(restConfig)
	if err != nil {
		return fmt.Errorf("the client configuration cannot be used: %w", err)
	}
	if err := r.useExtensions(ctx, host); err != nil {
		return err
	}
	if err := r.newResolver(restConfig); err != nil {
		return err
	}
	r.inbox = inbox.New(batchChanges)
	if err := r.telemetry.observe(r.resolver); err != nil {
		return err
	}
	r.cluster, r.bursts = cluster.New(client), bursts
	r.launch(client)
	return nil
}

// useExtensions takes up the storage and the leader elector that the configuration names.
func (r *eventsReceiver) useExtensions(ctx context.Context, host component.Host) error {
	if r.config.Storage != nil {
		store, err := r.openStorage(ctx, host)
		if err != nil {
			return err
		}
		r.saving = &saving{store: store}
	}
	if r.config.LeaderElector != nil {
		leadership, err := r.openElector(host)
		if err != nil {
			return err
		}
		r.leadership = leadership
		// A lease may have been renewed just before, and it takes the elector a while to notice that it has ended.
		r.standby.horizon = leadership.lease + electionDelay + r.config.DedupInterval
	}
	return nil
}

// lookupObserver counts look-ups, and names the permissions that they lack.
type lookupObserver struct {
	*telemetry
	*status
}

func (r *eventsReceiver) newResolver(restConfig *rest.Config) error {
	if !r.config.Owners.Enabled {
		return nil
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = r.config.KubeAPIQPS
	restConfig.Burst = r.config.KubeAPIBurst
	owners, err := resolver.New(restConfig, resolver.Config{
		MaxDepth:       r.config.Owners.MaxDepth,
		LookupTimeout:  r.config.Owners.LookupTimeout,
		CacheSize:      r.config.Owners.CacheSize,
		CacheTTL:       r.config.Owners.CacheTTL,
		Namespaces:     r.config.Namespaces,
		KeepLabel:      r.extractor.KeepLabel,
		KeepAnnotation: r.extractor.KeepAnnotation,
		Observer:       lookupObserver{r.telemetry, r.status},
	})
	r.resolver = owners
	return err
}

// launch starts all work in contexts of its own: Start's ends with Start.
func (r *eventsReceiver) launch(client rest.Interface) {
	stop, cancel := context.WithCancel(context.Background())
	work, cancelWork := context.WithCancel(context.Background())
	r.life.cancel, r.life.cancelWork = cancel, cancelWork
	r.life.done = make(chan struct{})
	go func() {
		defer close(r.life.done)
		var alongside sync.WaitGroup
		alongside.Go(func() { r.cluster.Run(stop) })
		if r.leadership != nil {
			alongside.Go(func() { r.leadership.beat(stop) })
		}
		if r.lease != nil {
			alongside.Go(func() { r.watchLease(stop) })
		}
		if r.leadership != nil && !r.followsOthers() {
			r.terms(stop, work, client)
		} else {
			r.session(stop, work, client)
		}
		alongside.Wait()
		r.letGo(work)
	}()
}

// terms runs a session for each term that this process leads.
func (r *eventsReceiver) terms(stop, work context.Context, client rest.Interface) {
	for stop.Err() == nil {
		r.watchElections()
		if term, ended, ok := r.leadership.begin(); ok {
			termStop, cancelStop := either(stop, term)
			termWork, cancelWork := either(work, term)
			r.session(termStop, termWork, client)
			r.forgetTerm()
			cancelStop()
			cancelWork()
			ended()
		}
		select {
		case <-r.elections:
		case <-stop.Done():
		}
	}
}

// forgetTerm takes out of the component's status what was used only while this process led.
func (r *eventsReceiver) forgetTerm() {
	for _, namespace := range r.config.streams() {
		r.status.forget(streamOf(namespace))
	}
	r.status.forget(storagePart)
	r.status.forget(logsPipeline)
}

// session remembers what the last one left, and runs the streams, the loop and the timer of the metrics until stop ends.
func (r *eventsReceiver) session(stop, work context.Context, client rest.Interface) {
	r.restore(stop)
	reading, endReading := context.WithCancel(stop)
	var alongside sync.WaitGroup
	for _, namespace := range r.config.streams() {
		stream := r.newStream(client, namespace)
		alongside.Go(func() { stream.Run(reading) })
	}
	if r.metrics != nil {
		alongside.Go(func() { r.meter(reading, work) })
	}
	r.awaitCluster(stop)
	r.run(stop, work)
	endReading()
	alongside.Wait()
	r.drain()
	r.letBatchGo()
	if r.metrics != nil {
		// The last sums, which nothing would carry otherwise.
		r.emitMetrics(work)
	}
}

func (r *eventsReceiver) newStream(client rest.Interface, namespace string) *watch.Stream {
	return watch.New(watch.Config{
		Client:          client,
		Namespace:       namespace,
		FieldSelector:   r.filter.FieldSelector(),
		ResourceVersion: r.streams[namespace].ResourceVersion,
		Taker:           r.inbox,
		Bursts:          r.bursts,
		Observer:        r.status,
	})
}

// awaitCluster gives the first records a chance to name their cluster.
func (r *eventsReceiver) awaitCluster(stop context.Context) {
	late := time.NewTimer(r.config.Owners.LookupTimeout)
	defer late.Stop()
	select {
	case <-r.cluster.Asked():
	case <-late.C:
	case <-stop.Done():
	}
}

func (r *eventsReceiver) meter(stop, work context.Context) {
	ticker := time.NewTicker(r.config.CollectionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.emitMetrics(work)
		case <-stop.Done():
			return
		}
	}
}

// letGo releases what Start made.
func (r *eventsReceiver) letGo(work context.Context) {
	if r.resolver != nil {
		r.resolver.Close()
	}
	r.closeStorage(work)
}

// Shutdown ends the watches, delivers what was taken from them, and returns when all work has ended, or with the
// context's error if a pipeline hangs longer than the context allows.
func (r *eventsReceiver) Shutdown(ctx context.Context) error {
	r.life.stop.Do(func() { r.life.stopErr = r.end(ctx) })
	return r.life.stopErr
}

func (r *eventsReceiver) end(ctx context.Context) error {
	receivers.forget(r)
	defer r.telemetry.builder.Shutdown()
	if r.life.cancel == nil {
		r.letGo(ctx)
		return nil
	}
	r.life.cancel()
	defer r.life.cancelWork()
	grace := time.AfterFunc(shutdownGrace, r.life.cancelWork)
	defer grace.Stop()
	select {
	case <-r.life.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("events were still being delivered: %w", ctx.Err())
	}
}
