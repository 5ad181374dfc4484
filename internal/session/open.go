// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/internal/position"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// clusterPart is the part of the receiver that the component's status names if the cluster does
	// not answer which one it is.
	clusterPart = "the identity of the cluster"
	// clusterWait is how long the cluster may take to answer before the status reports it.
	clusterWait = 10 * time.Second
	// retryCluster is the pause between two requests.
	retryCluster = time.Second
)

// open makes a session that is ready to run: it has delivered the outbox of its checkpoint, or
// knows the position to start from. It returns nil if stop ended before.
func (p *Process) open(stop, drain context.Context) (s *session) {
	switch {
	case p.Storage != nil:
		s = p.openCheckpoints(stop, drain)
	case p.Positions != nil:
		s = p.openPosition(stop)
	default:
		s = p.openEmpty(stop, drain)
	}
	if s != nil {
		s.setCluster(cmp.Or(p.Cluster.UID(), s.memory.Cluster()))
	}
	return s
}

// openEmpty starts without anything that is known from before.
func (p *Process) openEmpty(stop, drain context.Context) *session {
	p.awaitCluster(stop)
	if stop.Err() != nil {
		return nil
	}
	s := p.newUnsaved(position.Position{})
	s.sums.enable(drain)
	return s
}

// newUnsaved makes a session without storage.
func (p *Process) newUnsaved(start position.Position) *session {
	return p.newSession(p.newMemory(start), start, unsaved{})
}

// awaitCluster gives the first records a chance to name their cluster.
func (p *Process) awaitCluster(stop context.Context) {
	late := time.NewTimer(p.LookupTimeout)
	defer late.Stop()
	select {
	case <-p.Cluster.Answered():
	case <-late.C:
		reached.State("the first records do not name their cluster")
	case <-stop.Done():
	}
}

// askCluster asks which cluster this is, until it answers, also if this may not be read. A process
// that has waited for its term may have been connected to another one. It reports false if stop ended
// before. It calls meanwhile before each request.
func (p *Process) askCluster(stop context.Context, meanwhile func()) bool {
	began := time.Now()
	return wait.PollUntilContextCancel(stop, retryCluster, true, func(ctx context.Context) (bool, error) {
		meanwhile()
		err := p.Cluster.Refresh(ctx)
		if err == nil {
			p.Health.Recovered(clusterPart, "The cluster answers again")
			return true, nil
		}
		if time.Since(began) >= clusterWait {
			p.Health.Failed(clusterPart, "unavailable", "Cannot read the UID of the cluster; retrying. The receiver emits no record until then",
				fmt.Errorf("cannot read namespace kube-system of the cluster: %w", err))
		}
		return false, nil
	}) == nil
}
