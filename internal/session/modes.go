// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/delivery"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/position"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
)

// newSession makes a session of the mode that storage and the elector decide:
//
//	elector | storage | the session    | gate                | persistence
//	no      | no      | of the process | open                | none
//	no      | yes     | of the process | open                | checkpoints of this process
//	yes     | no      | of the process | open while it leads | none; the leader publishes its position
//	yes     | yes     | of one term    | open                | checkpoints of all leaders, with a head for each term
//
// start is where the receiver starts without a checkpoint; zero: nowhere in particular.
func (p *Process) newSession(m *memory.Memory, start position.Position, persist persistence) *session {
	s := &session{process: p, memory: m, start: start, persist: persist}
	s.gate = position.Open{}
	if p.Positions != nil {
		s.gate = position.NewGate(p.Leadership, p.Positions, p.Logger)
	}
	s.sums, s.pipeline = p.newSums(m), p.newPipeline(m, persist)
	s.intake = &intake{queue: queue.New(batchChanges), health: p.Health, together: readTogether}
	s.intake.queue.SetGate(p.Positions != nil)
	return s
}

func (p *Process) newSums(m *memory.Memory) *metricsPipeline {
	return &metricsPipeline{
		next: p.Metrics, tally: m.Tally, interval: p.CollectionInterval, clusterName: p.ClusterName,
		scope:      tally.Scope{Name: metadata.ScopeName, Version: p.Version},
		leadership: p.Leadership, health: p.Health, logger: p.Logger,
		saves: p.Storage != nil, unsaved: make(chan struct{}, 1), emitting: p.emitting,
	}
}

func (p *Process) newPipeline(m *memory.Memory, persist persistence) *logsPipeline {
	l := &logsPipeline{
		memory: m, converter: p.Converter, health: p.Health, logger: p.Logger,
		clusterName: p.ClusterName, encodes: p.Storage != nil, recordBytes: firstRecordBytes,
	}
	if p.Logs != nil {
		l.delivery = delivery.New(delivery.Settings{
			Next: p.Logs, Retry: p.Retry, Logger: p.Logger, Observer: p.Health, GiveUp: p.giveUp,
			Operations: p.Health.Operations, Format: metadata.Type.String(),
			MayDeliver: func(stop context.Context) bool {
				persist.saveMeanwhile(stop)
				return p.Leadership.WaitUntilCertain(stop)
			},
		})
	}
	return l
}

// newMemory makes an empty memory.
func (p *Process) newMemory(start position.Position) *memory.Memory {
	return memory.New(memory.Config{
		Coverage:      memory.Coverage{Namespaces: p.Streams, FieldSelector: p.Filter.FieldSelector()},
		FromBeginning: p.FromBeginning,
		DedupInterval: p.DedupInterval,
		Counts:        p.Metrics != nil,
		Tally:         p.Tally,
		Identity:      p.Identity,
		Saved:         p.Storage != nil,
		Objects:       p.StoredObjects,
		Start:         start,
	}, time.Now())
}
