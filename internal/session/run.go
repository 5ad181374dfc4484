// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/position"
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
		} else {
			p.forgetTerm() // A standby watches nothing, so it waits for no answer.
		}
		select {
		case <-elections:
		case <-stop.Done():
		}
	}
}

// forgetTerm takes out of the component's status what was used only while this process led.
func (p *Process) forgetTerm() {
	p.forgetStreams()
	p.Health.Forget(storagePart)
	p.Health.Forget(clusterPart)
}

// forgetStreams takes the streams out of the component's status while nothing is watched.
func (p *Process) forgetStreams() {
	for _, namespace := range p.Streams {
		p.Health.Paused(namespace)
	}
}

// runSessions runs a session, and another one each time that another cluster answers.
func (p *Process) runSessions(stop, drain context.Context) {
	for stop.Err() == nil {
		if s := p.open(stop, drain); s != nil {
			s.serve(stop, drain)
		}
	}
}

// serve runs the session until stop ends, or another cluster answers. While it runs, it emits the
// metric.
func (s *session) serve(stop, drain context.Context) {
	defer s.persist.close()
	emitting, endEmitting := context.WithCancel(stop)
	var emission sync.WaitGroup
	emission.Go(func() { s.sums.run(emitting) })
	held := s.memory.Windows.Held()
	s.resolve(drain, held)
	s.memory.Windows.Replace(held)
	for s.runHistory(stop, drain) {
		s.start = position.Position{} // It was one of the history that has ended.
	}
	endEmitting()
	emission.Wait()
	s.endTerm()
}
