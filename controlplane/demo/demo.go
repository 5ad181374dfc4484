// SPDX-License-Identifier: Apache-2.0

// Package demo creates workloads that cause events: one that runs and is scaled up and down, one
// that cannot be scheduled, one that crashes, one that a custom resource owns, and a CronJob.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

//go:embed manifests
var manifests embed.FS

// A controller's client writes 25 events of an object at once, and later one in 5 minutes. With more
// changes, the demo would show deleted pods without the scaling that deleted them.
const (
	firstScaling  = 15 * time.Second
	scaleInterval = 5 * time.Minute
)

// definitions are the kinds of the demo's custom resources.
const definitions = "manifests/definitions/*.yaml"

// Define applies the demo's CustomResourceDefinitions. A Collector that starts before them knows their
// kinds only a few seconds after the first events. The end of ctx is not an error.
func Define(ctx context.Context, config *rest.Config) error {
	return unlessCanceled(apply(ctx, config, definitions))
}

// Run applies the demo to the cluster, and then scales a Deployment until ctx ends. The end of ctx
// is not an error.
func Run(ctx context.Context, config *rest.Config) error {
	err := apply(ctx, config, definitions, "manifests/*.yaml")
	if err == nil {
		err = scaleUpAndDown(ctx, config)
	}
	return unlessCanceled(err)
}

func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func apply(ctx context.Context, config *rest.Config, patterns ...string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var paths []string
	for _, pattern := range patterns {
		matches, err := fs.Glob(manifests, pattern)
		if err != nil {
			return err
		}
		paths = append(paths, matches...)
	}
	for _, path := range paths {
		manifest, err := manifests.ReadFile(path)
		if err != nil {
			return err
		}
		if err := (applier{client}).applyManifest(ctx, manifest); err != nil {
			return fmt.Errorf("apply %s: %w", path, err)
		}
	}
	return nil
}

// scaleUpAndDown sets the Deployment shop to three replicas, then to two, and so on. It ignores errors:
// the API server may be down for a while, which the Collector logs, and users may delete the Deployment.
func scaleUpAndDown(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	timer := time.NewTimer(firstScaling)
	defer timer.Stop()
	for replicas := 3; ; replicas = 5 - replicas {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		timer.Reset(scaleInterval)
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		_, _ = client.AppsV1().Deployments("demo").Patch(ctx, "shop", types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	}
}
