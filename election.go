// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
)

// electionPart is the part of the receiver that the component's status names if nobody can be elected.
const electionPart = "the leader election"

// elector is what is used of the extension k8s_leader_elector.
type elector interface {
	// SetCallBackFuncs registers what is called whenever this process starts and stops leading. The extension waits for
	// the calls to return.
	SetCallBackFuncs(started func(context.Context), stopped func())
}

// openElector registers with the leader elector that the configuration names.
func (r *eventsReceiver) openElector(host component.Host) (*election.Leadership, error) {
	id := *r.config.LeaderElector
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("k8s_leader_elector: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove k8s_leader_elector", id)
	}
	elector, ok := extension.(elector)
	if !ok {
		return nil, fmt.Errorf("k8s_leader_elector: %q is no leader elector; name one, such as k8s_leader_elector", id)
	}
	config := election.ElectorConfigOf(extension)
	l := election.NewLeadership(config.LeaseDuration, config.RenewDeadline)
	elector.SetCallBackFuncs(l.Started, l.Stopped)
	var err error
	if r.lease, err = r.openLease(config); err != nil {
		r.settings.Logger.Warn("Cannot read the leader election Lease; election failures will not be reported", zap.Error(err))
	}
	r.electorConfig = config
	return l, nil
}

// openLease makes it possible to look at the elector's lease; nil if its configuration does not tell which that is. The
// elector itself may know more ways to reach the API server, so that an error stops nothing.
func (r *eventsReceiver) openLease(config election.ElectorConfig) (*election.Lease, error) {
	if config.LeaseNamespace == "" || config.LeaseName == "" {
		return nil, nil
	}
	restConfig, err := kubeclient.RESTConfig(kubeclient.Auth{Type: config.AuthType, Context: config.Context}, r.settings.BuildInfo.Version)
	if err != nil {
		return nil, err
	}
	return election.NewLease(restConfig, config.LeaseNamespace, config.LeaseName)
}

// openPositions makes it possible to read and publish the leader's position, in the lease's namespace
// of the watched cluster. Without it, a standby drops nothing.
func (r *eventsReceiver) openPositions(client rest.Interface) *election.Positions {
	config := r.electorConfig
	if config.LeaseNamespace == "" || config.LeaseName == "" {
		return election.NewPositions(election.NewStore(client, "", ""), r.config.streams(), r.health)
	}
	name := election.ObjectName(config.LeaseName, r.settings.ID.String())
	return election.NewPositions(election.NewStore(client, config.LeaseNamespace, name), r.config.streams(), r.health)
}

// watchLease says when nobody leads, at intervals in which somebody who may would have been elected.
func (r *eventsReceiver) watchLease(stop context.Context) {
	unreadable := 0 // reads in a row that failed
	wait.UntilWithContext(stop, func(context.Context) {
		if r.leadership.Leads() {
			r.lease.Forget()
			r.health.Recovered(electionPart, "A leader is elected again")
			return
		}
		var trouble *election.ElectionError
		switch err := r.lease.Look(stop); {
		case errors.As(err, &trouble):
			r.health.Failed(electionPart, trouble.Cause, "No replica can be elected leader, and nothing is emitted; retrying", err)
		case err == nil:
			unreadable = 0
			if !r.lease.Renewed() {
				return // The first look shows nothing.
			}
			r.health.Recovered(electionPart, "A leader is elected again")
		default:
			// A single request may fail when an API server is restarted.
			if unreadable++; unreadable > 1 && stop.Err() == nil {
				r.health.Failed(electionPart, "unavailable", "Cannot read the leader election Lease, and no replica may lead; retrying", err)
			}
		}
	}, r.leadership.Lease()+electionDelay)
}
