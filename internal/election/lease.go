// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Observer reports problems with the election, such as in the component's status. Its methods are
// called also several times in a row with the same result.
type Observer interface {
	// ElectionFailed gets why no process can be elected: forbidden, missing or expired. The cause
	// unavailable is that of a request that failed and was already repeated.
	ElectionFailed(cause string, err error)
	// ElectionWorks is called when a leader is known to be elected.
	ElectionWorks()
}

// Lease reads the Kubernetes Lease of the election, to report when no replica can be elected. An
// elector that lacks a permission only writes so to the log of its library, and waits as if another
// process led. Its methods must not be called concurrently.
type Lease struct {
	namespace, name string
	client          rest.Interface

	looked          bool
	resourceVersion string // when it was looked at last; empty: there was none
	renewed         bool   // whether somebody has renewed it between the last two looks
	unreadable      int    // looks in a row that failed
}

// Unavailable is the cause of an error that does not show whether a process can be elected.
const Unavailable = "unavailable"

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

// look reads the lease. No process can be elected if it may not be read, or if nobody has renewed it
// since it was looked at last, which has to be longer ago than the lease lasts. Any other error is
// that of a request, and shows nothing.
func (l *Lease) look(ctx context.Context) (cause string, err error) {
	found, err := l.read(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return "forbidden", l.explain(err)
	case err != nil && !apierrors.IsNotFound(err):
		return Unavailable, err
	}
	version := found.ResourceVersion // Empty: the lease does not exist.
	unchanged := l.looked && version == l.resourceVersion
	l.renewed = l.looked && !unchanged
	l.looked, l.resourceVersion = true, version
	switch {
	case unchanged && version == "":
		return "missing", l.explain(err)
	case unchanged:
		return "expired", l.explain(errors.New("it is not renewed"))
	}
	return "", nil
}

// explain adds the fix to the reason why no process can be elected.
func (l *Lease) explain(err error) error {
	return fmt.Errorf("the lease %s in namespace %s cannot be taken (%w): "+
		"create the namespace if it does not exist, and bind a Role in namespace %[2]s with the rules {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]} and "+
		"{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [%[1]s], verbs: [get, update]}", l.name, l.namespace, err)
}

// Watch reports when no process can be elected, until the context ends. It looks at intervals in
// which another process would have been elected, also on a busy machine, and whenever this process
// starts or stops leading.
func (l *Lease) Watch(ctx context.Context, leadership *Leadership, observer Observer) {
	ticker := time.NewTicker(2 * leadership.LeaseDuration())
	defer ticker.Stop()
	for ctx.Err() == nil {
		changed := leadership.Changed()
		if leadership.Leads() {
			l.looked = false // The next read is the first one.
			observer.ElectionWorks()
		} else {
			l.report(ctx, observer)
		}
		select {
		case <-ticker.C:
		case <-changed:
			ticker.Reset(2 * leadership.LeaseDuration()) // A Lease needs this long to show that nobody renews it.
		case <-ctx.Done():
		}
	}
}

// report reports what the Lease shows.
func (l *Lease) report(ctx context.Context, observer Observer) {
	cause, err := l.look(ctx)
	if cause != Unavailable {
		l.unreadable = 0
	} else if l.unreadable++; l.unreadable == 1 || ctx.Err() != nil {
		return // A single request may fail when an API server is restarted.
	}
	if err != nil {
		observer.ElectionFailed(cause, err)
	} else if l.renewed { // The first read shows nothing.
		observer.ElectionWorks()
	}
}

func (l *Lease) read(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := l.client.Get().Namespace(l.namespace).Resource("leases").Name(l.name).Do(ctx).Into(lease)
	return lease, err
}
