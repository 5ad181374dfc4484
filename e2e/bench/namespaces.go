// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

const (
	coldEach  = "requests for each namespace"
	coldRatio = "latency, 99th percentile, over that of the fewest namespaces"
	coldPods  = 10 // in each namespace
)

// coldSize is a cluster with namespaces that a Collector does not know.
func coldSize(namespaces int) size {
	pods := namespaces * coldPods
	return size{namespaces: namespaces, deployments: namespaces, pods: pods, retired: 1, observations: pods, perSecond: 1000}
}

func inNamespaces(n int) string { return ", " + thousands(n) + " namespaces" }

func runNamespaces(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.setups(direct)
	if err != nil {
		return r, err
	}
	clusters := map[int]*cluster{}
	defer func() {
		for _, kube := range clusters {
			err = errors.Join(err, kube.Stop())
		}
	}()
	for _, n := range b.namespaces {
		kube, err := newCluster(ctx, b.controlPlane, coldSize(n))
		if err != nil {
			return r, err
		}
		clusters[n] = kube
	}
	var figures []figure
	m := measurements{}
	for range b.rounds {
		var fewest float64
		for _, n := range b.namespaces {
			err := m.interleave(ctx, b, 1, setups, inNamespaces(n), func(ctx context.Context, c runner) (values, error) {
				v, err := clusters[n].coldOnce(ctx, c, n)
				if fewest == 0 {
					fewest = v[latencyTail]
				} else {
					v[coldRatio] = v[latencyTail] / fewest
				}
				return v, err
			})
			if err != nil {
				return r, err
			}
		}
	}
	for _, n := range b.namespaces {
		figures = append(figures, coldFigures(n)...)
	}
	r.Groups = m.groups(setups, func(string) []figure { return figures })
	r.Text = fmt.Sprintf(`Real API servers have up to %s namespaces. Each namespace has a Deployment with %d pods and two ReplicaSets, one of
them without pods. The Collector knows none of these objects. After it has started its watch, each pod has one event, in random
order, 1,000 a second in all.`, thousands(b.namespaces[len(b.namespaces)-1]), coldPods)
	r.Notes = []string{
		"Latency is from just before an event is written to the arrival of its record.",
		"Requests are GET and LIST of pods, ReplicaSets and Deployments. A list is one for each page.",
	}
	return r, nil
}

func coldFigures(namespaces int) []figure {
	return suffixed([]figure{
		{Name: lost, Goal: oursAtMost(0)},
		{Name: unowned, Goal: oursAtMost(0)},
		{Name: latencyTail, Unit: "ms"},
		{Name: coldRatio, Goal: oursAtMost(1.5)},
		{Name: ownerRequests, Goal: oursAtMost(float64(3*namespaces + 20))},
		{Name: coldEach},
		{Name: peakRSS, Unit: "MiB"},
	}, inNamespaces(namespaces))
}

func (c *cluster) coldOnce(ctx context.Context, runner runner, namespaces int) (values, error) {
	return c.onRig(runner, func(r *rig) (values, error) {
		if err := r.settle(ctx); err != nil {
			return nil, err
		}
		changes := steady(coldSize(namespaces))
		for i, pod := range rand.New(rand.NewPCG(1, 2)).Perm(len(c.pods)) {
			changes[i].pod = pod
		}
		v, err := r.measure(ctx, changes, 0)
		if err == nil {
			v[coldEach] = v[ownerRequests] / float64(namespaces)
		}
		return v, err
	})
}
