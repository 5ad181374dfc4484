// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
)

const (
	// clusterPart is the part of the receiver that the component's status names if the cluster does
	// not answer which one it is.
	clusterPart = "the identity of the cluster"
	// clusterWait is how long the cluster may take to answer before the status reports it.
	clusterWait = 10 * time.Second
	// storageWait is how long the checkpoint may take to be read before the status reports it.
	storageWait = 10 * time.Second
	// retryCluster is the pause between two requests.
	retryCluster = time.Second
)

var errSlowStorage = fmt.Errorf("the storage has not returned the checkpoint for %v: check the storage extension and its backend", storageWait)

// open makes a session that is ready to run: it has delivered the outbox of its checkpoint, or
// knows the position to start from. It returns nil if stop ended before.
func (p *Process) open(stop, drain context.Context) (s *session) {
	switch {
	case p.Storage != nil:
		s = p.openCheckpoints(stop, drain)
	case p.Positions != nil:
		s = p.openPosition(stop)
	default:
		s = p.openEmpty(stop)
	}
	if s != nil {
		s.cluster.set(cmp.Or(p.Cluster.UID(), s.memory.Cluster()))
	}
	return s
}

// openEmpty starts without anything that is known from before.
func (p *Process) openEmpty(stop context.Context) *session {
	p.awaitCluster(stop)
	if stop.Err() != nil {
		return nil
	}
	s := p.newUnsaved(election.Position{})
	s.sums.enable()
	return s
}

// newUnsaved makes a session without storage.
func (p *Process) newUnsaved(start election.Position) *session {
	m := p.newMemory(start)
	return p.newSession(m, start, &unsaved{m, p.DedupInterval > 0})
}

// awaitCluster gives the first records a chance to name their cluster.
func (p *Process) awaitCluster(stop context.Context) {
	late := time.NewTimer(p.LookupTimeout)
	defer late.Stop()
	select {
	case <-p.Cluster.Answered():
	case <-late.C:
	case <-stop.Done():
	}
}

// askCluster asks which cluster this is, until it answers, also if this may not be read. A process
// that has waited for its term may have been connected to another one.
func (p *Process) askCluster(stop context.Context) bool {
	began := time.Now()
	return wait.PollUntilContextCancel(stop, retryCluster, true, func(ctx context.Context) (bool, error) {
		err := p.Cluster.Refresh(ctx)
		if err == nil {
			p.Health.Recovered(clusterPart, "The cluster answers again")
			return true, nil
		}
		if time.Since(began) >= clusterWait {
			p.Health.Failed(clusterPart, "unavailable", "Cannot read the UID of the cluster; retrying. The receiver watches nothing until then",
				fmt.Errorf("cannot read namespace kube-system of the cluster: %w", err))
		}
		return false, nil
	}) == nil
}

// openPosition starts where the last leader got to.
func (p *Process) openPosition(stop context.Context) *session {
	if !p.askCluster(stop) {
		return nil
	}
	p.Positions.SetCluster(p.Cluster.UID())
	if !p.Positions.Await(stop) {
		return nil
	}
	return p.newUnsaved(p.Positions.Latest().Position)
}

// newestVersion asks the cluster for its newest version, in the first namespace that may be read.
func (s *session) newestVersion(ctx context.Context) (now uint64, err error) {
	for _, namespace := range s.process.Streams {
		if now, err = s.versions.Now(ctx, namespace); !apierrors.IsForbidden(err) {
			break
		}
	}
	return now, err
}

// checkVersions asks the cluster whether its versions have gone back. If this fails, the gate asks
// again.
func (s *session) checkVersions(ctx context.Context) {
	for _, namespace := range s.process.Streams {
		err := s.versions.Check(ctx, namespace, func(known, now uint64) { s.process.Health.WentBack(namespace, known, now) })
		if !apierrors.IsForbidden(err) {
			return
		}
	}
}

// openCheckpoints continues from the checkpoint. A batch is saved before it is delivered, in one
// write: what it changed in the memory, where the streams resume, and its requests as bytes, the
// outbox. The next write removes them. So this is the recovery after a crash: the memory is that of
// the last complete write, its outbox is delivered as it is, and the streams resume at its
// versions. What was delivered without an acknowledged write is repeated. Owners are looked up with
// the objects that earlier records used. If the checkpoint is of another cluster, what it holds is
// delivered, and the receiver starts from scratch.
func (p *Process) openCheckpoints(stop, drain context.Context) *session {
	c := &checkpoints{leadership: p.Leadership, health: p.Health, store: checkpoint.New(p.Storage), last: time.Now()}
	loaded, ok := p.load(stop, c)
	if !ok {
		c.close()
		return nil
	}
	s := p.newSession(c.memory, election.Position{}, c)
	t := election.Term{Stop: stop, Drain: drain}
	if p.Leadership.IsElected() || len(loaded.Outbox) > 0 {
		c.begin(t, len(loaded.Outbox) > 0)
	}
	if !s.pipeline.deliverOutbox(t, loaded) {
		return s.abandon()
	}
	if !p.askCluster(stop) {
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
	s.sums.enable()
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
		c.memory = p.newMemory(election.Position{})
		loaded, err = c.load(ctx)
		late.Stop()
		switch {
		case err == nil:
			p.Health.Recovered(storagePart, "The storage can be read again")
		case stop.Err() != nil:
			return false, stop.Err()
		case errors.Is(err, checkpoint.ErrCorrupt):
			c.memory, loaded = p.newMemory(election.Position{}), nil
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
	return loaded, c.memory.Settle(loaded.State, time.Now())
}

// deliverWindows delivers what the windows of another cluster's checkpoint hold, like its outbox.
// This cluster does not know who owns it. It reports false if the term ended before.
func (s *session) deliverWindows(t election.Term) bool {
	s.memory.Windows.Resolve(s.process.Owners.NameInvolved)
	isDelivered := s.endWindows(&batch{term: t}).isDelivered()
	if isDelivered {
		s.persist.finish(t.Drain)
	}
	return isDelivered
}

// setAside keeps the checkpoint of another cluster, and starts from scratch.
func (p *Process) setAside(t election.Term, c *checkpoints, known, uid string) *session {
	c.memory = p.newMemory(election.Position{})
	c.memory.SetCluster(uid)
	p.Logger.Warn("The checkpoint is of another cluster; it is set aside, and the receiver starts from scratch: "+
		"start_at decides about existing events, and the metric starts at 0",
		zap.String("set_aside", c.store.SetAside()), zap.String("checkpoint_cluster", known), zap.String("cluster", uid))
	c.write(t.Stop, t.Drain, nil)
	return p.newSession(c.memory, election.Position{}, c)
}
