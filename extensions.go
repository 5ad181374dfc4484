// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
)

// openStorage returns the client of the storage extension that the configuration names; nil if it
// names none.
func (r *eventsReceiver) openStorage(ctx context.Context, host component.Host) (storage.Client, error) {
	if r.config.Storage == nil {
		return nil, nil
	}
	id := *r.config.Storage
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("storage: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove storage", id)
	}
	storageExtension, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: %q is not a storage extension; name one, such as file_storage", id)
	}
	client, err := storageExtension.GetClient(ctx, component.KindReceiver, r.settings.ID, "")
	if err != nil {
		return nil, fmt.Errorf("storage: %q cannot be opened: %w; make its directory writable for the Collector, give each Collector its own (only one at a time can use a file_storage directory), and remove a file that is damaged", id, err)
	}
	return client, nil
}

// elector is the leader elector that the configuration names, with what depends on it. If the
// configuration names none, it has only the leadership.
type elector struct {
	lease      types.NamespacedName // next to which the leader notes its progress
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
	lease := election.LeaseOf(extension)
	if lease.Namespace == "" || lease.Name == "" {
		return elector{}, fmt.Errorf("k8s_leader_elector: %q does not say which Lease it uses, next to which the leader notes its progress; name an extension of the type k8s_leader_elector", id)
	}
	leadership, leave := election.Join(registers)
	return elector{lease, leadership, leave}, nil
}

// close leaves the elector.
func (e *elector) close() {
	if e.leave != nil {
		e.leave()
	}
}
