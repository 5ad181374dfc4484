// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// pollInterval is the pause between two checks.
const pollInterval = 100 * time.Millisecond

// waitUntil calls there until it returns no error, ctx ends, or a program of the control plane
// ends.
func (cp *ControlPlane) waitUntil(ctx context.Context, what string, there func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := there(ctx)
		if err == nil {
			return nil
		}
		if failure := cp.failure(); failure != nil {
			return fmt.Errorf("wait for %s: %w", what, failure)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// failure returns an error for the first program that ended without a request.
func (cp *ControlPlane) failure() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	all := slices.Clone(cp.others)
	for _, s := range cp.apiServers {
		if s.process != nil {
			all = append(all, s.process)
		}
	}
	for _, p := range all {
		select {
		case <-p.Done():
			if strings.Contains(p.LogTail(), "address already in use") {
				return fmt.Errorf("%w: %w", errPortTaken, p.Ended())
			}
			return p.Ended()
		default:
		}
	}
	return nil
}

// connect creates the client configuration and the administrator's kubeconfig file, when the API
// server has written its certificate.
func (cp *ControlPlane) connect(ctx context.Context) error {
	return cp.waitUntil(ctx, "the API server's certificate", func(context.Context) error {
		// The API server writes the key last. If the key exists, the certificate is complete.
		if _, err := os.Stat(cp.layout.path("certificates/apiserver.key")); err != nil {
			return err
		}
		authority, err := os.ReadFile(cp.layout.certificate())
		if err != nil {
			return err
		}
		cp.config = &rest.Config{
			Host:            cp.apiServers[0].url(),
			BearerToken:     cp.token,
			TLSClientConfig: rest.TLSClientConfig{CAData: authority},
			QPS:             -1,
		}
		_, err = cp.layout.writeKubeconfig("admin", cp.config)
		return err
	})
}

// waitForNamespace waits until clients can create pods in the namespace default. The namespace must
// exist. With a controller manager, its service account must exist, too.
func (cp *ControlPlane) waitForNamespace(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(cp.config)
	if err != nil {
		return err
	}
	return cp.waitUntil(ctx, "the namespace default", func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if err != nil || !cp.options.ControllerManager {
			return err
		}
		_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// ignoreExists drops the error that an object exists: an earlier control plane may have created it
// in the same data directory.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
