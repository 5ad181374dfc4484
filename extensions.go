// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/journal"
)

// openStorage returns the client of the storage extension that the configuration names; nil if it
// names none.
func (r *eventsReceiver) openStorage(ctx context.Context, host component.Host) (storage.Client, error) {
	if r.config.Storage == nil {
		return nil, nil
	}
	return journal.Client(ctx, host, *r.config.Storage, component.KindReceiver, r.settings.ID, "")
}

// elector is the leader elector that the configuration names, with what depends on it. If the
// configuration names none, it has only the leadership.
type elector struct {
	leadership *election.Leadership
	leave      func() // to be called when the receiver no longer uses the elector; nil: there is none
}

// openElector registers with the leader elector that the configuration names.
func (r *eventsReceiver) openElector(host component.Host) (elector, error) {
	if r.config.LeaderElector == nil {
		return elector{leadership: election.AlwaysLeads()}, nil
	}
	id := *r.config.LeaderElector
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return elector{}, fmt.Errorf("k8s_leader_elector: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove k8s_leader_elector", id)
	}
	registers, ok := extension.(election.Elector)
	if !ok {
		return elector{}, fmt.Errorf("k8s_leader_elector: %q is not a leader elector; name one, such as k8s_leader_elector", id)
	}
	at := r.config.progressConfigMap(r.settings.ID)
	if !namesConfigMap(at) { // The ID has letters that Kubernetes does not allow.
		return elector{}, fmt.Errorf("progress_config_map: its default %q, which has the receiver's ID, cannot be the name of a ConfigMap; write NAMESPACE/NAME", at)
	}
	leadership, leave, ok := election.Join(registers, at)
	if !ok {
		return elector{}, fmt.Errorf("progress_config_map: %q is also that of another receiver of k8s_leader_elector: %q; give each receiver its own", at, id)
	}
	return elector{leadership, leave}, nil
}

// close leaves the elector.
func (e *elector) close() {
	if e.leave != nil {
		e.leave()
	}
}
