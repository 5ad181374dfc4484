// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
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
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

const (
	// shutdownGrace is how long what was taken may still be delivered after Shutdown was called.
	shutdownGrace = 5 * time.Second
	// electionDelay is how long after the end of a lease the elector may take to notice it.
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
		health:    observer,
		filter:    config.filter(),
		extractor: extractor,
		converter: logrecord.Converter{ScopeName: metadata.ScopeName, ScopeVersion: settings.BuildInfo.Version},
	}, nil
}

// Start fails for what the user must mend: the configuration of the client. It does not wait for the API server.
func (r *eventsReceiver) Start(ctx context.Context, host component.Host) error {
	r.health.AddHost(host)
	r.life.start.Do(func() { r.life.startErr = r.begin(ctx, host) })
	return r.life.startErr
}

func (r *eventsReceiver) begin(ctx context.Context, host component.Host) error {
	r.config.warn(r.settings.Logger)
	restConfig, err := kubeclient.RESTConfig(r.config.auth(), r.settings.BuildInfo.Version)
	if err != nil {
		return err
	}
	if r.client, r.bursts, err = kubeclient.Events(restConfig); err != nil {
		return fmt.Errorf("the client configuration cannot be used: %w", err)
	}
	if err := r.useExtensions(ctx, host); err != nil {
		return err
	}
	if err := r.newResolver(restConfig); err != nil {
		return err
	}
	r.owners = owners.New(r.resolver, r.extractor)
	if err := r.health.Measure(r.resolver); err != nil {
		return err
	}
	r.cluster = cluster.New(r.client)
	r.launch()
	return nil
}

// useExtensions opens the storage and the leader elector that the configuration names.
func (r *eventsReceiver) useExtensions(ctx context.Context, host component.Host) (err error) {
	if r.config.Storage != nil {
		if r.storage, err = r.openStorage(ctx, host); err != nil {
			return err
		}
	}
	if r.config.LeaderElector == nil {
		r.leadership = election.AlwaysLeads()
		return nil
	}
	if r.leadership, err = r.openElector(host); err == nil && r.storage == nil {
		r.positions = r.openPositions(r.client)
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
		Observer:       r.health,
	})
	return err
}

// launch starts all work in contexts of its own: Start's ends with Start.
func (r *eventsReceiver) launch() {
	stop, cancel := context.WithCancel(context.Background())
	work, cancelWork := context.WithCancel(context.Background())
	r.life.cancel, r.life.cancelWork = cancel, cancelWork
	r.life.done = make(chan struct{})
	go func() {
		defer close(r.life.done)
		var background sync.WaitGroup
		background.Go(func() { r.cluster.Run(stop) })
		// Without a beat, the last deliveries would look like a pause of the process.
		beating, endBeat := context.WithCancel(context.Background())
		if r.leadership.IsElected() {
			background.Go(func() { r.leadership.Beat(beating) })
		}
		if r.lease != nil {
			background.Go(func() { r.watchLease(stop) })
		}
		if r.positions != nil {
			background.Go(func() { r.positions.Run(stop) })
		}
		if r.leadership.IsElected() && r.storage != nil {
			r.terms(stop, work)
		} else {
			r.sessions(stop, work)
		}
		endBeat()
		background.Wait()
		r.close(work)
	}()
}

// terms runs sessions in each term that this process leads.
func (r *eventsReceiver) terms(stop, work context.Context) {
	for stop.Err() == nil {
		elections := r.leadership.Changed()
		if term, end, ok := r.leadership.Begin(stop, work); ok {
			r.sessions(term.Stop, term.Work)
			r.forgetTerm()
			end()
		}
		select {
		case <-elections:
		case <-stop.Done():
		}
	}
}

// forgetTerm takes out of the component's status what was used only while this process led.
func (r *eventsReceiver) forgetTerm() {
	for _, namespace := range r.config.streams() {
		r.health.ForgetStream(namespace)
	}
	r.health.Forget(storagePart)
	r.health.Forget(clusterPart)
}

// sessions runs a session, and another one each time that another cluster answers.
func (r *eventsReceiver) sessions(stop, work context.Context) {
	for stop.Err() == nil {
		s := r.newSession()
		if s.open(stop, work) {
			s.serve(stop, work)
		} else {
			s.endTerm()
		}
		s.persist.close()
	}
}

// serve runs the streams, the loop and the timer of the metrics until stop ends.
func (s *session) serve(stop, work context.Context) {
	reading, endReading := context.WithCancel(stop)
	defer endReading()
	var background sync.WaitGroup
	for _, namespace := range s.config.streams() {
		stream := s.newStream(namespace)
		background.Go(func() { stream.Run(reading) })
	}
	if s.metrics != nil {
		background.Go(func() { s.meter(reading, work) })
	}
	s.run(stop, work)
	endReading()
	background.Wait()
	s.drain()
	s.release()
	s.gate.Close(work)
}

func (s *session) newStream(namespace string) *watch.Stream {
	config := watch.Config{
		Client:          s.client,
		Namespace:       namespace,
		FieldSelector:   s.filter.FieldSelector(),
		ResourceVersion: s.memory.Resume(namespace),
		Versions:        s.versions,
		Taker:           s.queue,
		Bursts:          s.bursts,
		Observer:        s.health,
	}
	if version, ok := s.start.Of(namespace); ok {
		config.ExactAt = strconv.FormatUint(version, 10)
	}
	return watch.New(config)
}

func (s *session) meter(stop, work context.Context) {
	ticker := time.NewTicker(s.config.CollectionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if s.emits.Load() && s.leadership.CertainlyLeads() {
				s.emitMetrics(work)
			}
		case <-stop.Done():
			return
		}
	}
}

// emitLast emits the last sums, which nothing would carry otherwise.
func (s *session) emitLast() {
	if s.metrics != nil && s.leadership.NobodyElseLeads(time.Now()) {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
		defer cancel()
		s.emitMetrics(ctx)
	}
}

// close releases what Start made.
func (r *eventsReceiver) close(ctx context.Context) {
	if r.resolver != nil {
		r.resolver.Close()
	}
	if r.storage == nil {
		return
	}
	if err := r.storage.Close(ctx); err != nil {
		r.settings.Logger.Warn("Cannot close the storage", zap.Error(err))
	}
}

// Shutdown ends the watches, delivers what was taken from them, and returns when all work has ended, or with the
// context's error if a pipeline hangs longer than the context allows.
func (r *eventsReceiver) Shutdown(ctx context.Context) error {
	r.life.stop.Do(func() { r.life.stopErr = r.end(ctx) })
	return r.life.stopErr
}

func (r *eventsReceiver) end(ctx context.Context) error {
	receivers.forget(r)
	defer r.health.Shutdown()
	if r.life.cancel == nil {
		r.close(ctx)
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
