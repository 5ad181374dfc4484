// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
)

// elector has the methods of the extension k8s_leader_elector that the exporter uses.
type elector interface {
	SetCallBackFuncs(started func(context.Context), stopped func())
}

// followElection lets the page say while this replica is a standby.
func (e *pageExporter) followElection(host component.Host) error {
	if e.config.LeaderElector == nil {
		return nil
	}
	id := *e.config.LeaderElector
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return fmt.Errorf("k8s_leader_elector: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove k8s_leader_elector", id)
	}
	registers, ok := extension.(elector)
	if !ok {
		return fmt.Errorf("k8s_leader_elector: %q is not a leader elector; name one, such as k8s_leader_elector", id)
	}
	e.board.standby.Store(true)
	registers.SetCallBackFuncs(
		func(term context.Context) {
			if term.Err() == nil { // The elector may make this call after the term.
				e.board.standby.Store(false)
			}
		},
		func() { e.board.standby.Store(true) },
	)
	return nil
}
