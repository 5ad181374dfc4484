// SPDX-License-Identifier: Apache-2.0

// Package cluster finds out which cluster the receiver watches. The UID of the namespace
// kube-system identifies it (OpenTelemetry's k8s.cluster.uid).
package cluster

import (
	"context"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	responseTimeout = 10 * time.Second
	// forbiddenPause is as long as the resolver remembers that it may not read a kind.
	forbiddenPause = time.Minute
)

// Identity is the cluster's UID, once it is known. Its methods may be called concurrently.
type Identity struct {
	client   rest.Interface
	logger   *zap.Logger
	refused  sync.Once     // logs that the UID cannot be read
	uid      atomic.Value  // string
	answered chan struct{} // closed after the first final answer
}

// New returns an identity that is not known yet. The client must be one for the core group.
func New(client rest.Interface, logger *zap.Logger) *Identity {
	return &Identity{client: client, logger: logger, answered: make(chan struct{})}
}

// UID returns the UID; empty while it is not known. It stays empty if the server does not return the
// namespace.
func (i *Identity) UID() string {
	uid, _ := i.uid.Load().(string)
	return uid
}

// Refresh reads the UID again, because another cluster may answer now. The error is that of the
// request. A nil error may also mean that the server does not return the UID.
func (i *Identity) Refresh(ctx context.Context) error {
	final, err := i.fetch(ctx)
	if final {
		return nil
	}
	return err
}

// isAnswer reports whether a response with this status, which has no UID, is final: a permission is
// missing, or a proxy does not let the request through. Any other error may be over soon. No status
// means that there was no response.
func isAnswer(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= http.StatusOK && status < http.StatusInternalServerError
}

// Answered returns a channel that closes when the API server has returned the UID, or has refused
// it.
func (i *Identity) Answered() <-chan struct{} { return i.answered }

// Run requests the UID until it is known or the context ends.
func (i *Identity) Run(ctx context.Context) {
	delays := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Cap: 15 * time.Second, Jitter: 0.5, Steps: math.MaxInt}
	answered := sync.OnceFunc(func() { close(i.answered) })
	wasRefused := false
	for {
		final, err := i.fetch(ctx)
		if final {
			answered()
		}
		if err == nil {
			if wasRefused { // The first points may have no UID.
				reached.State("the cluster says which one it is after it refused to")
				i.logger.Info("The UID of the cluster is known now; records and points have k8s.cluster.uid, so the series of the metric begin again")
			}
			return
		}
		wasRefused = wasRefused || final
		pause := delays.Step()
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			pause = forbiddenPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// fetch reads the UID once. final is true if the result is final, also if it is an error.
func (i *Identity) fetch(ctx context.Context) (final bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	var status int
	namespace := &corev1.Namespace{}
	err = i.client.Get().Resource("namespaces").Name("kube-system").Do(ctx).StatusCode(&status).Into(namespace)
	if err == nil {
		i.uid.Store(string(namespace.UID))
		return true, nil
	}
	final = isAnswer(status)
	// A role for some namespaces does not include kube-system: this is no problem to report.
	if final && !apierrors.IsForbidden(err) {
		i.refused.Do(func() {
			i.logger.Warn("Cannot read the UID of the cluster; records and points have no k8s.cluster.uid", zap.Error(err))
		})
	}
	return final, err
}
