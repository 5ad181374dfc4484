// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/lease"
)

// election is the part of the receiver that the component's status names if nobody can be elected.
const election = "the leader election"

// elector is what is used of the extension k8s_leader_elector.
type elector interface {
	// SetCallBackFuncs registers what is called whenever this process starts and stops leading. The extension waits for
	// the calls to return.
	SetCallBackFuncs(started func(context.Context), stopped func())
}

// openElector registers with the leader elector that the configuration names.
func (r *eventsReceiver) openElector(host component.Host) (*leadership, error) {
	id := *r.config.LeaderElector
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("k8s_leader_elector: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove k8s_leader_elector", id)
	}
	elector, ok := extension.(elector)
	if !ok {
		return nil, fmt.Errorf("k8s_leader_elector: %q is no leader elector; name one, such as k8s_leader_elector", id)
	}
	config := electorConfigOf(extension)
	l := newLeadership(config.lease())
	elector.SetCallBackFuncs(func(context.Context) { l.started() }, l.stopped)
	var err error
	if r.lease, err = r.openLease(config); err != nil {
		r.settings.Logger.Warn("The lease of the leader election cannot be looked at: if nobody can be elected, nothing says so", zap.Error(err))
	}
	return l, nil
}

// openLease makes it possible to look at the elector's lease; nil if its configuration does not tell which that is. The
// elector itself may know more ways to reach the API server, so that an error stops nothing.
func (r *eventsReceiver) openLease(config electorConfig) (*lease.Lease, error) {
	namespace, name := config.text("LeaseNamespace"), config.text("LeaseName")
	if namespace == "" || name == "" {
		return nil, nil
	}
	restConfig, err := kubeclient.RESTConfig(kubeclient.Auth{Type: config.text("AuthType"), Context: config.text("Context")}, r.settings.BuildInfo.Version)
	if err != nil {
		return nil, err
	}
	return lease.New(restConfig, namespace, name)
}

// watchLease says when nobody leads, at intervals in which somebody who may would have been elected.
func (r *eventsReceiver) watchLease(stop context.Context) {
	unreadable := 0 // reads in a row that failed
	for first := true; first || sleep(stop, r.leadership.lease+electionDelay); first = false {
		if r.leadership.leads() {
			r.lease.Forget()
			r.status.recovered(election, "A leader is elected again")
			continue
		}
		var trouble *lease.ElectionError
		switch err := r.lease.Look(stop); {
		case errors.As(err, &trouble):
			r.status.failed(election, trouble.Cause, "No leader can be elected, and nothing is emitted; trying again until it works", err)
		case err == nil:
			unreadable = 0
			r.status.recovered(election, "A leader is elected again")
		default:
			// A single request may fail when an API server is restarted.
			if unreadable++; unreadable > 1 && stop.Err() == nil {
				r.status.failed(election, "unavailable", "Cannot read the leader election Lease, and no replica may lead; retrying", err)
			}
		}
	}
}

// electorConfig is the configuration of the elector, which does not tell it: it is looked at.
type electorConfig struct{ reflect.Value }

func electorConfigOf(extension component.Component) electorConfig {
	value := reflect.Indirect(reflect.ValueOf(extension))
	if value.Kind() == reflect.Struct {
		value = reflect.Indirect(value.FieldByName("config"))
	}
	return electorConfig{value}
}

// lease is how long it lasts, and how long a leader tries to renew it.
func (c electorConfig) lease() (lease, renewDeadline time.Duration) {
	return c.duration("LeaseDuration", 15*time.Second), c.duration("RenewDuration", 10*time.Second)
}

// field is one of a kind; ok is false if the configuration is not as expected.
func (c electorConfig) field(name string, kind reflect.Kind) (value reflect.Value, ok bool) {
	if c.Kind() != reflect.Struct {
		return value, false
	}
	value = c.FieldByName(name)
	return value, value.IsValid() && value.Kind() == kind
}

// duration is how long the field says; the elector's default otherwise.
func (c electorConfig) duration(name string, otherwise time.Duration) time.Duration {
	value, ok := c.field(name, reflect.Int64)
	if !ok || value.Int() <= 0 {
		return otherwise
	}
	return time.Duration(value.Int())
}

// text is empty if there is no such field.
func (c electorConfig) text(name string) string {
	value, ok := c.field(name, reflect.String)
	if !ok {
		return ""
	}
	return value.String()
}
