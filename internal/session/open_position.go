// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// openPosition starts where the last leader got to.
func (p *Process) openPosition(stop context.Context) *session {
	if !p.askCluster(stop, func() {}) {
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
