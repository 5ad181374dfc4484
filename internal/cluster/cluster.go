// SPDX-License-Identifier: Apache-2.0

// Package cluster finds out which cluster the receiver watches. The UID of the namespace
// kube-system identifies it (OpenTelemetry's k8s.cluster.uid).
package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const (
	responseTimeout = 10 * time.Second
	// forbiddenPause is long, because a missing permission is seldom added later.
	forbiddenPause = 10 * time.Minute
)

// Identity is the cluster's UID, once it is known. Its methods may be called concurrently.
type Identity struct {
	client   rest.Interface
	uid      atomic.Value  // string
	answered chan struct{} // closed after the first final answer
}

// New returns an identity that is not known yet. The client must be one for the core group.
func New(client rest.Interface) *Identity {
	return &Identity{client: client, answered: make(chan struct{})}
}

// UID returns the UID; empty while it is not known. Without permission to read the namespace, it
// stays empty.
func (i *Identity) UID() string {
	uid, _ := i.uid.Load().(string)
	return uid
}

// Refresh reads the UID again, because another cluster may answer now. The error is that of the
// request. A nil error may also mean that the permission is missing.
func (i *Identity) Refresh(ctx context.Context) error {
	err := i.fetch(ctx)
	if isAnswer(err) {
		return nil
	}
	return err
}

// isAnswer reports whether the error is a final answer: the UID cannot be read.
func isAnswer(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// Answered returns a channel that closes when the API server has returned the UID, or has refused
// it.
func (i *Identity) Answered() <-chan struct{} { return i.answered }

// Ask reads the UID again in the background, until the API server answers or the context ends. The
// channel is closed then.
func (i *Identity) Ask(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		delays := newBackoff()
		for i.Refresh(ctx) != nil && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(delays.NextBackOff()):
			}
		}
	}()
	return done
}

// Run requests the UID until it is known or the context ends.
func (i *Identity) Run(ctx context.Context) {
	delays := newBackoff()
	answered := sync.OnceFunc(func() { close(i.answered) })
	for {
		err := i.fetch(ctx)
		if err == nil {
			answered()
			return
		}
		pause := delays.NextBackOff()
		if isAnswer(err) {
			answered()
			pause = forbiddenPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// newBackoff returns the delays between requests: from 250 ms, doubled up to 15 s, each with a
// random part of 0 to 50% on top. Package backoff puts its random part around the interval, so each
// interval is 1.25 times the shortest delay.
func newBackoff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     250 * time.Millisecond * 5 / 4,
		RandomizationFactor: 0.2,
		Multiplier:          2,
		MaxInterval:         15 * time.Second * 5 / 4,
	}
}

func (i *Identity) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	namespace := &corev1.Namespace{}
	if err := i.client.Get().Resource("namespaces").Name("kube-system").Do(ctx).Into(namespace); err != nil {
		return err
	}
	i.uid.Store(string(namespace.UID))
	return nil
}
