// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var (
	leases     = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	configMaps = schema.GroupResource{Resource: "configmaps"}
)

// The lease that replicas elect their leader by.
const (
	leaseNamespace = "observability"
	leaseName      = "kube-events"
)

// elector is contrib's extension k8s_leader_elector (v0.152.0): client-go's leader election, with
// the calls to its users in the same order, under the same lock, and the same loop around it.
type elector struct {
	process       *process
	times         LeaseTimes
	leaseHolderID string
	cancel        context.CancelFunc
	running       sync.WaitGroup

	mu        sync.Mutex // guards what follows, and is held during the calls
	callbacks []callback
	leads     bool
}

type callback struct {
	started func(context.Context)
	stopped func()
}

func newElector(p *process, times LeaseTimes) *elector {
	return &elector{process: p, leaseHolderID: p.name, times: times}
}

func (e *elector) SetCallBackFuncs(started func(context.Context), stopped func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.callbacks = append(e.callbacks, callback{started, stopped})
	if e.leads {
		started(context.Background())
	}
}

func (e *elector) startedLeading(ctx context.Context) {
	e.setLeads(true, func(c callback) { c.started(ctx) })
}

func (e *elector) stoppedLeading() { e.setLeads(false, func(c callback) { c.stopped() }) }

func (e *elector) setLeads(leads bool, call func(callback)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads = leads
	e.process.leads(leads)
	for _, c := range e.callbacks {
		call(c)
	}
}

// start begins to take part in the election.
func (e *elector) start(client *rest.Config) error {
	client = rest.CopyConfig(client)
	client.ContentType = runtime.ContentTypeProtobuf // The simulated API server has no other.
	leases, err := coordinationv1.NewForConfig(client)
	if err != nil {
		return err
	}
	le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: leaseNamespace, Name: leaseName},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.leaseHolderID},
		},
		LeaseDuration: e.times.Duration, RenewDeadline: e.times.Renew,
		RetryPeriod: e.times.Retry, Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: e.startedLeading, OnStoppedLeading: e.stoppedLeading,
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	e.running.Go(func() {
		for ctx.Err() == nil {
			le.Run(ctx)
		}
	})
	return nil
}

func (e *elector) Start(context.Context, component.Host) error { return nil }

// Shutdown returns when the election has ended.
func (e *elector) Shutdown(context.Context) error {
	if e.cancel != nil {
		e.cancel()
		e.running.Wait()
	}
	return nil
}
