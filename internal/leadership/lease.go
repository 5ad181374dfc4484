// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// Observer reports problems with the election, such as in the component's status. Its methods are
// called also several times in a row with the same result.
type Observer interface {
	// ElectionFailed gets an *NoLeaderError if no process can be elected, or the error of a request
	// that failed and was already repeated.
	ElectionFailed(err error)
	// ElectionWorks is called when a leader is known to be elected.
	ElectionWorks()
}

// Lease reads the Kubernetes Lease of the election, to report when no replica can be elected. An
// elector that lacks a permission only writes so to the log of its library, and waits as if another
// process led. Of its methods, only Guard and confirm may be called concurrently.
type Lease struct {
	namespace, name string
	client          rest.Interface

	looked          bool
	resourceVersion string // when it was looked at last; empty: there was none
	renewed         bool   // whether somebody has renewed it between the last two looks
}

// NoLeaderError is the reason why no process can be elected.
type NoLeaderError struct {
	Cause string // one word: forbidden, missing or expired
	err   error
}

func (e *NoLeaderError) Error() string { return e.err.Error() }

// Unwrap implements errors.Unwrap.
func (e *NoLeaderError) Unwrap() error { return e.err }

// NewLease makes a Lease that is looked at with the configuration of the elector's own client.
func NewLease(config *rest.Config, namespace, name string) (*Lease, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &coordinationv1.SchemeGroupVersion
	scheme := runtime.NewScheme() // client-go's own has the code of all types.
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Lease{namespace: namespace, name: name, client: client}, nil
}

// look reads the lease. The error is an *NoLeaderError if it may not be read, or if nobody has
// renewed it since it was looked at last, which has to be longer ago than the lease lasts; or that
// of a request that failed, which shows nothing.
func (l *Lease) look(ctx context.Context) error {
	found, err := l.read(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return l.noLeader("forbidden", err)
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	version := found.ResourceVersion // Empty: the lease does not exist.
	unchanged := l.looked && version == l.resourceVersion
	l.renewed = l.looked && !unchanged
	l.looked, l.resourceVersion = true, version
	switch {
	case unchanged && version == "":
		return l.noLeader("missing", err)
	case unchanged:
		return l.noLeader("expired", errors.New("it is not renewed"))
	}
	return nil
}

// forget makes the next read of the lease the first one.
func (l *Lease) forget() { l.looked = false }

func (l *Lease) noLeader(cause string, err error) *NoLeaderError {
	return &NoLeaderError{cause, fmt.Errorf("the lease %s in namespace %s cannot be taken (%w): "+
		"bind a Role in namespace %[2]s with the rules {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]} and "+
		"{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [%[1]s], verbs: [get, update]}", l.name, l.namespace, err)}
}

// lateness is how long after the end of a lease another elector may take to have it, on a busy machine.
const lateness = 10 * time.Second

// Watch reports when no process can be elected, until the context ends. It looks at intervals in
// which another process would have been elected.
func (l *Lease) Watch(ctx context.Context, leadership *Leadership, observer Observer) {
	unreadable := 0 // reads in a row that failed
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if leadership.Leads() {
			l.forget()
			observer.ElectionWorks()
			return
		}
		var none *NoLeaderError
		switch err := l.look(ctx); {
		case errors.As(err, &none):
			observer.ElectionFailed(err)
		case err == nil:
			unreadable = 0
			if l.renewed { // The first read shows nothing.
				observer.ElectionWorks()
			}
		default:
			// A single request may fail when an API server is restarted.
			if unreadable++; unreadable > 1 && ctx.Err() == nil {
				observer.ElectionFailed(err)
			}
		}
	}, leadership.LeaseDuration()+lateness)
}

// Guard proves that the open term has not ended, until it ends or ctx does. If an elector already
// leads when a receiver registers, it passes a context that never ends. At the end of the term, it
// calls its users one after the other: a slow one delays the call of the next one until another
// process leads. holder is the name of this process in the lease. If the lease cannot be read at
// all, nothing is proven, and the term lasts until that call.
func (l *Lease) Guard(ctx context.Context, leadership *Leadership, holder string) {
	margin := leadership.lease - leadership.deadline
	version, requestedAt := "", time.Time{} // the last one that was read, and when
	for leadership.isOpen() {
		now := time.Now()
		if found, err := l.readWithin(ctx, margin); err == nil {
			switch {
			case !isHeldBy(found, holder):
				reached.State("an open term goes on while another process holds the lease")
			case version == "": // The elector has renewed it within the deadline.
				leadership.prove(now.Add(margin))
			case version != found.ResourceVersion: // It has renewed it since the last request.
				leadership.prove(requestedAt.Add(leadership.deadline))
			}
			version, requestedAt = found.ResourceVersion, now
		}
		if !sleep(ctx, margin/2) {
			return
		}
	}
}

func isHeldBy(lease *coordinationv1.Lease, holder string) bool {
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == holder
}

// confirmEvery is the pause between two reads of the lease at the beginning of a term.
const confirmEvery = time.Second

// confirm waits until the lease shows that this process has renewed it, so lately that no other
// process can have it yet, or until the context ends. The time of the renewal is from before the
// request, whose answer may have come late, and from the clock of this process.
func (l *Lease) confirm(ctx context.Context, leadership *Leadership, holder string) {
	for {
		found, err := l.readWithin(ctx, leadership.lease-leadership.deadline)
		if err == nil && isHeldBy(found, holder) && (found.Spec.RenewTime == nil || time.Since(found.Spec.RenewTime.Time) < leadership.deadline) {
			return
		}
		reached.State("a term waits until the lease shows that it has begun")
		if !sleep(ctx, confirmEvery) {
			return
		}
	}
}

func (l *Lease) readWithin(ctx context.Context, timeout time.Duration) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return l.read(ctx)
}

func (l *Lease) read(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := l.client.Get().Namespace(l.namespace).Resource("leases").Name(l.name).Do(ctx).Into(lease)
	return lease, err
}
