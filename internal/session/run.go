// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// patience is how long a pipeline may take to return after drain has ended.
const patience = 2 * time.Second

// Run runs sessions until stop ends. What was taken by then is still delivered, as long as drain
// allows.
func (p *Process) Run(stop, drain context.Context) {
	defer context.AfterFunc(drain, func() { time.AfterFunc(patience, func() { close(p.giveUp) }) })()
	if p.Leadership.IsElected() && p.Storage != nil {
		p.runTerms(stop, drain)
		return
	}
	p.runSessions(stop, drain)
}

// runTerms runs sessions in each term that this process leads.
func (p *Process) runTerms(stop, drain context.Context) {
	for stop.Err() == nil {
		elections := p.Leadership.Changed()
		if term, end, ok := p.Leadership.Begin(stop, drain); ok {
			p.runSessions(term.Stop, term.Drain)
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
		p.Health.Paused(namespace)
	}
	p.Health.Forget(storagePart)
	p.Health.Forget(clusterPart)
}

// runSessions runs a session, and another one each time that another cluster answers.
func (p *Process) runSessions(stop, drain context.Context) {
	for stop.Err() == nil {
		if s := p.open(stop, drain); s != nil {
			s.serve(stop, drain)
		}
	}
}

// serve runs the streams, the loop and the emission of the metric until stop ends.
func (s *session) serve(stop, drain context.Context) {
	defer s.persist.close()
	reading, endReading := context.WithCancel(stop)
	defer endReading()
	var background sync.WaitGroup
	for _, namespace := range s.process.Streams {
		stream := s.newStream(namespace)
		background.Go(func() { stream.Run(reading) })
	}
	background.Go(func() { s.sums.run(reading) })
	s.loop(stop, drain)
	endReading()
	background.Wait()
	s.intake.discard()
	s.endTerm()
}

func (s *session) newStream(namespace string) *watch.Stream {
	p := s.process
	config := watch.Config{
		Client:          p.Client,
		Namespace:       namespace,
		FieldSelector:   p.Filter.FieldSelector(),
		ResourceVersion: s.memory.Resume(namespace),
		Versions:        s.versions,
		Taker:           s.intake.queue,
		Observer:        p.Health,
		Keep:            p.Owners.Keep,
	}
	if version, ok := s.start.Of(namespace); ok {
		config.ExactAt = strconv.FormatUint(version, 10)
	}
	return watch.New(config)
}
