// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/position"
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
	config     leadership.ElectorConfig
	leadership *leadership.Leadership
	lease      *leadership.Lease   // nil: it is not known which lease the leader is elected by
	positions  *position.Positions // nil: with storage, or without an elector
	leave      func()              // to be called when the receiver no longer uses the elector; nil: there is none
}

// openElector registers with the leader elector that the configuration names.
func (r *eventsReceiver) openElector(host component.Host, client rest.Interface) (elector, error) {
	if r.config.LeaderElector == nil {
		return elector{leadership: leadership.AlwaysLeads()}, nil
	}
	id := *r.config.LeaderElector
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return elector{}, fmt.Errorf("k8s_leader_elector: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove k8s_leader_elector", id)
	}
	registers, ok := extension.(leadership.Elector)
	if !ok {
		return elector{}, fmt.Errorf("k8s_leader_elector: %q is not a leader elector; name one, such as k8s_leader_elector", id)
	}
	e := elector{config: leadership.ElectorConfigOf(extension)}
	var err error
	if e.lease, err = r.openLease(e.config); err != nil {
		r.settings.Logger.Warn("Cannot read the leader election Lease; election failures will not be reported", zap.Error(err))
	}
	e.leadership, e.leave = leadership.Join(registers, e.config, e.lease)
	if r.storage == nil {
		e.positions = r.openPositions(e.config, client)
	}
	return e, nil
}

// openLease returns the elector's lease; nil if its configuration does not name it. An error is not
// fatal: the elector may reach the API server in another way.
func (r *eventsReceiver) openLease(config leadership.ElectorConfig) (*leadership.Lease, error) {
	if config.LeaseNamespace == "" || config.LeaseName == "" {
		return nil, nil
	}
	restConfig, err := kubeclient.RESTConfig(kubeclient.Auth{Type: config.AuthType, Context: config.Context}, r.settings.BuildInfo.Version)
	if err != nil {
		return nil, err
	}
	return leadership.NewLease(restConfig, config.LeaseNamespace, config.LeaseName)
}

// openPositions makes it possible to read and publish the leader's position, in the lease's
// namespace of the watched cluster. Without it, a standby drops nothing.
func (r *eventsReceiver) openPositions(config leadership.ElectorConfig, client rest.Interface) *position.Positions {
	if config.LeaseNamespace == "" || config.LeaseName == "" {
		return position.NewPositions(position.NewStore(client, "", ""), r.health)
	}
	name := position.ObjectName(config.LeaseName, r.settings.ID.String())
	return position.NewPositions(position.NewStore(client, config.LeaseNamespace, name), r.health)
}

// run follows the election in the background, until stop ends. What lets the process know whether it
// leads goes on until the last delivery: without it, that would look like a pause of the process.
func (e *elector) run(stop, delivering context.Context, observer *health.Health, background *sync.WaitGroup) {
	if e.leadership.IsElected() {
		background.Go(func() { e.leadership.Beat(delivering) })
	}
	if e.lease != nil {
		background.Go(func() { e.lease.Watch(stop, e.leadership, observer) })
		if e.config.Holder != "" {
			background.Go(func() { e.lease.Guard(delivering, e.leadership, e.config.Holder) })
		}
	}
	if e.positions != nil {
		background.Go(func() { e.positions.Run(stop) })
	}
}

// close leaves the elector.
func (e *elector) close() {
	if e.leave != nil {
		e.leave()
	}
}
