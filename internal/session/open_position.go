// SPDX-License-Identifier: Apache-2.0

package session

import "context"

// openPosition starts where the last leader got to.
func (p *Process) openPosition(stop context.Context) *session {
	if !p.askCluster(stop, func() {}) {
		return nil
	}
	p.Positions.SetCluster(p.Cluster.UID())
	if !p.Positions.Await(stop) {
		return nil
	}
	return p.newUnsaved(p.Positions.Begin())
}
