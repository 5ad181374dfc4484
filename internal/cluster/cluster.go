// SPDX-License-Identifier: Apache-2.0

// Package cluster finds out which cluster this is: the UID of the namespace kube-system stands for it (OpenTelemetry's
// k8s.cluster.uid).
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
	// refusedPause is long, because a permission that is not given is seldom given later.
	forbiddenPause = 10 * time.Minute
)

// Identity is the cluster's UID, once it is known. Its methods may be called concurrently.
type Identity struct {
	client   rest.Interface
	uid      atomic.Value  // string
	answered chan struct{} // closed after the first answer that settles it
}

// New makes an identity that is not known yet. The client is one for the core group.
func New(client rest.Interface) *Identity {
	return &Identity{client: client, answered: make(chan struct{})}
}

// UID is empty while it is not known, which is for ever where the namespace may not be read.
func (i *Identity) UID() string {
	uid, _ := i.uid.Load().(string)
	return uid
}

// Refresh asks again, since another cluster may answer now. The error is that of the request; nil also
// means that the UID may not be read.
func (i *Identity) Refresh(ctx context.Context) error {
	err := i.fetch(ctx)
	if isAnswer(err) {
		return nil
	}
	return err
}

// isAnswer reports whether the API server has answered that the UID may not be read.
func isAnswer(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// Asked is closed when the API server has told the UID, or that it may not be read.
func (i *Identity) Answered() <-chan struct{} { return i.answered }

// Run asks until the answer is known or the context ends.
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

// newBackoff returns the delays between requests: from 250 ms, doubled up to 15 s, each with a random
// part of 0 to 50% on top. Package backoff puts its random part around the interval, so each interval
// is 1.25 times the shortest delay.
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
