// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/position"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// storageWait is how long the checkpoint may take to be read before the status reports it.
const storageWait = 10 * time.Second

var errSlowStorage = fmt.Errorf("the storage has not returned the checkpoint for %v: check the storage extension and its backend", storageWait)

// openCheckpoints continues from the checkpoint. A batch is saved before it is delivered, in one
// write: what it changed in the memory, where the streams resume, and its requests as bytes, the
// outbox. The next write removes them. So this is the recovery after a crash: the memory is that of
// the last complete write, its outbox is delivered as it is, and the streams resume at its
// versions. What was delivered without an acknowledged write is repeated. Owners are looked up with
// the objects that earlier records used. If the checkpoint is of another cluster, what it holds is
// delivered, and the receiver starts from scratch.
func (p *Process) openCheckpoints(stop, drain context.Context) *session {
	c := &checkpoints{leadership: p.Leadership, health: p.Health, logger: p.Logger, store: checkpoint.New(p.Storage), last: time.Now()}
	if p.Leadership.IsElected() {
		c.store = checkpoint.NewElected(p.Storage)
	}
	loaded, ok := p.load(stop, c)
	if !ok {
		c.close()
		return nil
	}
	s := p.newSession(c.memory, position.Position{}, c)
	t := leadership.Term{Stop: stop, Drain: drain}
	if p.Leadership.IsElected() || len(loaded.Outbox) > 0 {
		c.begin(t, len(loaded.Outbox) > 0)
	}
	c.note() // That it watches less than the last process is to be saved, also if no event comes.
	unanswered := p.Health.Unanswered(p.Streams)
	if len(loaded.Outbox) > 0 {
		p.forgetStreams() // They wait for the pipeline: its outage must not look like that of the API server.
	}
	if !s.pipeline.deliverOutbox(t, loaded) {
		return s.abandon()
	}
	if len(loaded.Outbox) > 0 && len(unanswered) > 0 {
		p.Health.Starting(unanswered) // Now they wait for the API server again.
	}
	if !p.askCluster(stop, func() { c.beforeDelivery(&batch{term: t}) }) { // It may take hours: what is delivered is removed meanwhile.
		reached.State("the outbox is delivered and the term ends before the cluster answers")
		c.finish(drain) // The outbox is delivered.
		return s.abandon()
	}
	if known, uid := s.memory.Cluster(), p.Cluster.UID(); known != "" && uid != "" && known != uid {
		if !s.deliverWindows(t) {
			return s.abandon()
		}
		s.pipeline.forget()
		s = p.setAside(t, c, known, uid)
	}
	p.Owners.Restore(s.memory.Objects())
	s.sums.enable(drain)
	return s
}

// abandon ends a session that was not ready when stop was cancelled. It returns nil.
func (s *session) abandon() *session {
	s.pipeline.forget()
	s.persist.close()
	return nil
}

// logLoaded logs whether there is a checkpoint, and what it means if there is none.
func (p *Process) logLoaded(loaded *checkpoint.Loaded, m *memory.Memory) {
	switch {
	case loaded != nil:
		p.Logger.Info("Resuming from the checkpoint", zap.Int("events_remembered", m.Len()))
	case p.Leadership.IsElected():
		p.Logger.Warn("No checkpoint found at the start of leading. Unless this is the first leader, the replicas do not share this storage: " +
			"what happened since the last leader ended is not emitted. Share the storage, or remove it: a standby then follows the leader")
	default:
		p.Logger.Info("No checkpoint in the storage: this is a first start; start_at decides about existing events")
	}
}

// load reads the checkpoint, for as long as the storage fails. Nothing is emitted or saved before.
// It reports false if stop ended before. Without a checkpoint, what it returns is empty.
func (p *Process) load(stop context.Context, c *checkpoints) (*checkpoint.Loaded, bool) {
	late := time.AfterFunc(storageWait, func() {
		p.Health.Failed(storagePart, "slow", "Reading the checkpoint takes long; waiting. The receiver emits nothing until then", errSlowStorage)
	})
	defer late.Stop()
	var loaded *checkpoint.Loaded
	err := wait.PollUntilContextCancel(stop, retryStorage, true, func(ctx context.Context) (done bool, err error) {
		c.memory = p.newMemory(position.Position{})
		loaded, err = c.load(ctx)
		late.Stop()
		switch {
		case err == nil:
			p.Health.Recovered(storagePart, "The storage can be read again")
		case stop.Err() != nil:
			return false, stop.Err()
		case errors.Is(err, checkpoint.ErrCorrupt):
			c.memory, loaded = p.newMemory(position.Position{}), nil
			p.Logger.Error("The checkpoint in the storage cannot be used; it is set aside, and the receiver starts from scratch: "+
				"start_at decides about existing events, and the metric starts at 0",
				zap.String("set_aside", c.store.SetAside()), zap.Error(err))
		default:
			p.Health.Failed(storagePart, "unreadable", "Cannot read the checkpoint; retrying. The receiver emits nothing until then", err)
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return nil, false
	}
	p.logLoaded(loaded, c.memory)
	if loaded == nil {
		loaded = &checkpoint.Loaded{}
	}
	return loaded, true
}

// load reads the checkpoint once. It returns nil if there is none.
func (c *checkpoints) load(stop context.Context) (*checkpoint.Loaded, error) {
	loaded, err := c.store.Load(stop, c.memory.Restore)
	if err != nil || loaded == nil {
		return nil, err
	}
	entries, example := c.memory.Unreadable()
	if err := c.memory.Settle(loaded.State, time.Now()); err != nil {
		entries, example = entries+1, err
	}
	if entries > 0 {
		c.logger.Error("A part of the checkpoint cannot be read; continuing without it", zap.Int("entries", entries), zap.Error(example))
	}
	return loaded, nil
}

// deliverWindows delivers what the windows of another cluster's checkpoint hold, like its outbox.
// This cluster does not know who owns it. It reports false if the term ended before.
func (s *session) deliverWindows(t leadership.Term) bool {
	held := s.memory.Windows.Held()
	s.process.Owners.NameInvolved(held)
	s.memory.Windows.Replace(held)
	isDelivered := s.endWindows(&batch{term: t}).isDelivered()
	if isDelivered {
		s.persist.finish(t.Drain)
	}
	return isDelivered
}

// setAside keeps the checkpoint of another cluster, and starts from scratch.
func (p *Process) setAside(t leadership.Term, c *checkpoints, known, uid string) *session {
	reached.State("a checkpoint is of another cluster")
	c.memory = p.newMemory(position.Position{})
	c.memory.SetCluster(uid)
	p.Logger.Warn("The checkpoint is of another cluster; it is set aside, and the receiver starts from scratch: "+
		"start_at decides about existing events, and the metric starts at 0",
		zap.String("set_aside", c.store.SetAside()), zap.String("checkpoint_cluster", known), zap.String("cluster", uid))
	c.write(t.Stop, t.Drain, nil)
	return p.newSession(c.memory, position.Position{}, c)
}
