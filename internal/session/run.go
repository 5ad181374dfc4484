// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// lastEmission is how long the emission of the last sums may take.
const lastEmission = 5 * time.Second

// Run runs sessions until stop ends. What was taken by then is still delivered, as long as work allows.
func (p *Process) Run(stop, work context.Context) {
	if p.Leadership.IsElected() && p.Storage != nil {
		p.runTerms(stop, work)
		return
	}
	p.runSessions(stop, work)
}

// runTerms runs sessions in each term that this process leads.
func (p *Process) runTerms(stop, work context.Context) {
	for stop.Err() == nil {
		elections := p.Leadership.Changed()
		if term, end, ok := p.Leadership.Begin(stop, work); ok {
			p.runSessions(term.Stop, term.Work)
			p.forgetTerm()
			end()
		}
		select {
		case <-elections:
		case <-stop.Done():
		}
	}
}

// forgetTerm takes out of the component's status what was used only while this process led.
func (p *Process) forgetTerm() {
	for _, namespace := range p.Streams {
		p.Health.ForgetStream(namespace)
	}
	p.Health.Forget(storagePart)
	p.Health.Forget(clusterPart)
}

// runSessions runs a session, and another one each time that another cluster answers.
func (p *Process) runSessions(stop, work context.Context) {
	for stop.Err() == nil {
		s := p.newSession()
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
	for _, namespace := range s.Streams {
		stream := s.newStream(namespace)
		background.Go(func() { stream.Run(reading) })
	}
	if s.Metrics != nil {
		background.Go(func() { s.meter(reading, work) })
	}
	s.loop(stop, work)
	endReading()
	background.Wait()
	s.drain()
	s.release()
	s.gate.Close(work)
}

func (s *session) newStream(namespace string) *watch.Stream {
	config := watch.Config{
		Client:          s.Client,
		Namespace:       namespace,
		FieldSelector:   s.Filter.FieldSelector(),
		ResourceVersion: s.memory.Resume(namespace),
		Versions:        s.versions,
		Taker:           s.queue,
		Bursts:          s.Bursts,
		Observer:        s.Health,
	}
	if version, ok := s.start.Of(namespace); ok {
		config.ExactAt = strconv.FormatUint(version, 10)
	}
	return watch.New(config)
}

func (s *session) meter(stop, work context.Context) {
	ticker := time.NewTicker(s.CollectionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if s.emits.Load() && s.Leadership.CertainlyLeads() {
				s.emitMetrics(work)
			}
		case <-stop.Done():
			return
		}
	}
}

// emitLast emits the last sums of the term: no later emission has them.
func (s *session) emitLast() {
	if s.Metrics != nil && s.Leadership.NobodyElseLeads(time.Now()) {
		ctx, cancel := context.WithTimeout(context.Background(), lastEmission)
		defer cancel()
		s.emitMetrics(ctx)
	}
}

// resolve adds to each observation who owns its involved object.
func (s *session) resolve(ctx context.Context, observations []observation.Observation) {
	s.Owners.Resolve(ctx, observations)
	s.Health.Resolved(observations)
}

// emitMetrics emits the sums to the metrics pipeline. Rejected points are not emitted again: the next
// ones carry their values.
func (s *session) emitMetrics(ctx context.Context) {
	now, sums := time.Now(), s.memory.Tally
	sums.Expire(now)
	metrics := sums.Metrics(tally.Scope{Name: metadata.ScopeName, Version: s.Version}, *s.clusterUID.Load(), now)
	points := metrics.DataPointCount()
	if points == 0 {
		return
	}
	ctx = s.Health.Operations.StartMetricsOp(ctx)
	err := s.Metrics.ConsumeMetrics(ctx, metrics)
	if err == nil {
		sums.Emitted()
	}
	s.Health.Operations.EndMetricsOp(ctx, metadata.Type.String(), points, err)
}
