// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Lease reads the Kubernetes Lease of the election, to report when no replica can be elected. An
// elector that lacks a permission only writes so to the log of its library, and waits as if another
// process led. A Lease is not safe for concurrent use.
type Lease struct {
	namespace, name string
	client          metadata.ResourceInterface

	looked          bool
	resourceVersion string // when it was looked at last; empty: there was none
	renewed         bool
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
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	return &Lease{namespace: namespace, name: name, client: client.Resource(leases).Namespace(namespace)}, nil
}

// Look reads the lease. The error is an *NoLeaderError if it may not be read, or if nobody has
// renewed it since it was looked at last, which has to be longer ago than the lease lasts; or that
// of a request that failed, which shows nothing.
func (l *Lease) Look(ctx context.Context) error {
	found, err := l.client.Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return l.noLeader("forbidden", err)
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	version := ""
	if err == nil {
		version = found.ResourceVersion
	}
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

// Renewed reports whether somebody has renewed the lease between the last two looks.
func (l *Lease) Renewed() bool { return l.renewed }

// Forget makes the next read of the lease the first one.
func (l *Lease) Forget() { l.looked = false }

func (l *Lease) noLeader(cause string, err error) *NoLeaderError {
	return &NoLeaderError{cause, fmt.Errorf("the lease %s in namespace %s cannot be taken (%w): "+
		"bind a Role in namespace %[2]s with the rules {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]} and "+
		"{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [%[1]s], verbs: [get, update]}", l.name, l.namespace, err)}
}

// lateness is how long after the end of a lease the elector may take to notice it.
const lateness = 5 * time.Second

// Watch reports when no process can be elected, until the context ends. It looks at intervals in
// which another process would have been elected.
func (l *Lease) Watch(ctx context.Context, leadership *Leadership, observer Observer) {
	unreadable := 0 // reads in a row that failed
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if leadership.Leads() {
			l.Forget()
			observer.ElectionWorks()
			return
		}
		var none *NoLeaderError
		switch err := l.Look(ctx); {
		case errors.As(err, &none):
			observer.ElectionFailed(err)
		case err == nil:
			unreadable = 0
			if l.Renewed() { // The first read shows nothing.
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
