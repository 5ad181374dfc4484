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

	"github.com/kubeevents/kubeeventsreceiver/internal/delivery"
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
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
	// startsAtOnce is how many sessions may begin with the same outbox. In a later one, its records
	// are delivered one at a time: one of them may end the process.
	startsAtOnce = 4
)

var errSlowStorage = fmt.Errorf("the storage has not returned the checkpoint for %v: check the storage extension and its backend", storageWait)

func (p *Process) newSession() *session {
	s := &session{Process: p, queue: queue.New(batchChanges), recordBytes: firstRecordBytes}
	s.gate, s.persist = election.Open{Ended: s.endTerm}, withoutStorage{s}
	if p.Logs != nil {
		s.delivery = delivery.New(delivery.Settings{
			Next: p.Logs, Retry: p.Retry, Logger: p.Logger,
			Observer: p.Health, MayDeliver: s.mayDeliver,
			Operations: p.Health.Operations, Format: metadata.Type.String(),
		})
	}
	return s
}

// newMemory makes an empty memory.
func (s *session) newMemory() *memory.Memory {
	return memory.New(memory.Config{
		Coverage:      memory.Coverage{Namespaces: s.Streams, FieldSelector: s.Filter.FieldSelector()},
		FromBeginning: s.FromBeginning,
		DedupInterval: s.DedupInterval,
		Tally:         s.Tally,
		Identity:      s.Identity,
		Saved:         s.Storage != nil,
		Start:         s.start,
	}, time.Now())
}

// open makes the session ready: it loads the checkpoint and delivers its outbox, or finds the position
// to start from. It reports false if stop ended before.
func (s *session) open(stop, work context.Context) bool {
	switch {
	case s.Storage != nil:
		if !s.openCheckpoints(stop, work) {
			return false
		}
	case s.Positions != nil:
		if !s.openPosition(stop) {
			return false
		}
	default:
		s.awaitCluster(stop)
		s.memory = s.newMemory()
	}
	s.setCluster(cmp.Or(s.Cluster.UID(), s.memory.Cluster()))
	s.emits.Store(s.Positions == nil)
	s.versions = watch.NewVersions(s.Client, s.highest())
	return stop.Err() == nil
}

// highest returns the highest resource version that is known from before.
func (s *session) highest() (highest uint64) {
	for _, version := range s.memory.Delivered() {
		highest = max(highest, version)
	}
	for _, version := range s.start.Streams {
		highest = max(highest, version)
	}
	return highest
}

// awaitCluster gives the first records a chance to name their cluster.
func (s *session) awaitCluster(stop context.Context) {
	late := time.NewTimer(s.LookupTimeout)
	defer late.Stop()
	select {
	case <-s.Cluster.Answered():
	case <-late.C:
	case <-stop.Done():
	}
}

// askCluster asks which cluster this is, until it answers, also if this may not be read. A process that
// has waited for its term may have been connected to another one.
func (s *session) askCluster(stop context.Context) bool {
	began := time.Now()
	return wait.PollUntilContextCancel(stop, retryCluster, true, func(ctx context.Context) (bool, error) {
		err := s.Cluster.Refresh(ctx)
		if err == nil {
			s.Health.Recovered(clusterPart, "The cluster answers again")
			return true, nil
		}
		if time.Since(began) >= clusterWait {
			s.Health.Failed(clusterPart, "unavailable", "Cannot read the UID of the cluster; retrying. The receiver watches nothing until then",
				fmt.Errorf("cannot read namespace kube-system of the cluster: %w", err))
		}
		return false, nil
	}) == nil
}

// openPosition starts where the last leader got to.
func (s *session) openPosition(stop context.Context) bool {
	if !s.askCluster(stop) {
		return false
	}
	s.Positions.SetCluster(s.Cluster.UID())
	if !s.Positions.Await(stop) {
		return false
	}
	s.start = s.Positions.Latest().Position
	s.memory = s.newMemory()
	s.gate = election.NewGate(election.GateSettings{
		Leadership: s.Leadership, Positions: s.Positions, Logger: s.Logger,
		SetClosed: s.queue.SetGate, Withheld: s.memory.TakeBack, Ended: s.endTerm,
		Highest:       func() uint64 { return s.versions.Highest() },
		Newest:        s.newestVersion,
		CheckVersions: s.checkVersions,
	})
	return true
}

// newestVersion asks the cluster for its newest version, in the first namespace that may be read.
func (s *session) newestVersion(ctx context.Context) (now uint64, err error) {
	for _, namespace := range s.Streams {
		if now, err = s.versions.Now(ctx, namespace); !apierrors.IsForbidden(err) {
			break
		}
	}
	return now, err
}

// checkVersions asks the cluster whether its versions have gone back. If this fails, the gate asks again.
func (s *session) checkVersions(ctx context.Context) {
	for _, namespace := range s.Streams {
		err := s.versions.Check(ctx, namespace, func(known, now uint64) { s.Health.WentBack(namespace, known, now) })
		if !apierrors.IsForbidden(err) {
			return
		}
	}
}

// openCheckpoints continues from the checkpoint. First it delivers the records that were about to be
// delivered when the checkpoint was saved, as they are.
func (s *session) openCheckpoints(stop, work context.Context) bool {
	c := &checkpoints{session: s, store: checkpoint.New(s.Storage), last: time.Now()}
	s.persist = c
	loaded, ok := c.load(stop)
	if !ok {
		return false
	}
	if loaded != nil {
		s.Logger.Info("Resuming from the checkpoint", zap.Int("events_remembered", s.memory.Len()))
	} else if s.Leadership.IsElected() {
		s.Logger.Warn("No checkpoint found at the start of leading. Unless this is the first leader, the replicas do not share this storage: " +
			"what happened since the last leader ended is not emitted. Share the storage, or remove it: a standby then follows the leader")
	}
	if loaded == nil && !s.Leadership.IsElected() {
		s.Logger.Info("No checkpoint in the storage: this is a first start; start_at decides about existing events")
	}
	if loaded == nil {
		loaded = &checkpoint.Loaded{}
	}
	if s.Leadership.IsElected() || len(loaded.Outbox) > 0 {
		c.begin(stop, work)
	}
	if !c.deliverOutbox(stop, work, loaded) || !s.askCluster(stop) {
		return false
	}
	if known, uid := s.memory.Cluster(), s.Cluster.UID(); known != "" && uid != "" && known != uid {
		return c.setAside(stop, work, known, uid)
	}
	return true
}

// load reads the checkpoint, for as long as the storage fails. Nothing is emitted or saved before.
func (c *checkpoints) load(stop context.Context) (*checkpoint.Loaded, bool) {
	late := time.AfterFunc(storageWait, func() {
		c.Health.Failed(storagePart, "slow", "Reading the checkpoint takes long; waiting. The receiver emits nothing until then", errSlowStorage)
	})
	defer late.Stop()
	var loaded *checkpoint.Loaded
	err := wait.PollUntilContextCancel(stop, retryStorage, true, func(ctx context.Context) (done bool, err error) {
		loaded, err = c.loadOnce(ctx)
		late.Stop()
		if err == nil {
			c.Health.Recovered(storagePart, "The storage can be read again")
			return true, nil
		}
		if stop.Err() != nil {
			return false, stop.Err()
		}
		if errors.Is(err, checkpoint.ErrCorrupt) {
			c.memory = c.newMemory()
			c.Logger.Error("The checkpoint in the storage cannot be used; it is set aside, and the receiver starts from scratch: "+
				"start_at decides about existing events, and the metric starts at 0",
				zap.String("set_aside", c.store.SetAside()), zap.Error(err))
			loaded = nil
			return true, nil
		}
		c.Health.Failed(storagePart, "unreadable", "Cannot read the checkpoint; retrying. The receiver emits nothing until then", err)
		return false, nil
	})
	return loaded, err == nil
}

func (c *checkpoints) loadOnce(stop context.Context) (*checkpoint.Loaded, error) {
	c.memory = c.newMemory()
	loaded, err := c.store.Load(stop, c.memory.Restore)
	if err != nil || loaded == nil {
		return nil, err
	}
	return loaded, c.memory.Settle(loaded.State, time.Now())
}

// begin names the term, if there is one, and counts this start with the outbox.
func (c *checkpoints) begin(stop, work context.Context) {
	if !c.Leadership.WaitUntilCertain(stop) {
		return
	}
	content := c.memory.Content()
	content.KeepOutbox = true
	c.write(work, content)
}

// deliverOutbox delivers the outbox as it is. It reports false if stop ended before.
func (c *checkpoints) deliverOutbox(stop, work context.Context, loaded *checkpoint.Loaded) bool {
	requests := stored(loaded.Outbox)
	if len(requests) == 0 {
		return true
	}
	c.delivered = time.Now()
	if c.Logs == nil {
		records := 0
		for _, r := range requests {
			records += r.count
		}
		c.Health.Dropped(records, nil, true)
		c.Logger.Warn("The outbox has records, but the receiver is in no logs pipeline; dropping them",
			zap.Int("records", records))
		return true
	}
	c.Logger.Info("Delivering the outbox of the last start", zap.Int("requests", len(requests)))
	t := election.Term{Stop: stop, Work: work}
	if loaded.Starts < startsAtOnce {
		return len(c.deliver(t, requests)) == 0
	}
	for _, r := range one(requests) {
		c.Logger.Warn("Several starts did not deliver the outbox; delivering its records one at a time",
			zap.Int("starts", loaded.Starts+1), r.describe())
		if len(c.deliver(t, []*request{r})) > 0 {
			return false
		}
	}
	return true
}

// setAside keeps the checkpoint of another cluster, and starts from scratch. First it delivers what
// the windows hold, like the outbox; this cluster does not know who owns it. It reports false if stop
// ended before.
func (c *checkpoints) setAside(stop, work context.Context, known, uid string) bool {
	c.memory.Windows.Resolve(c.Owners.NameInvolved)
	for t := (election.Term{Stop: stop, Work: work}); c.holds(); {
		if !c.handle(t, nil, c.flush) {
			return false
		}
	}
	c.finish(work)
	c.memory = c.newMemory()
	c.memory.SetCluster(uid)
	c.Logger.Warn("The checkpoint is of another cluster; it is set aside, and the receiver starts from scratch: "+
		"start_at decides about existing events, and the metric starts at 0",
		zap.String("set_aside", c.store.SetAside()), zap.String("checkpoint_cluster", known), zap.String("cluster", uid))
	c.save(stop, work, nil)
	return true
}
