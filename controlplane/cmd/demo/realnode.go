// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/node"
)

// The nodes that the demo's cluster may have.
const (
	simulatedNodes = "simulated"
	realNode       = "real"
)

// clusterOptions returns the options of the demo's cluster, or an error that names what a real node
// lacks.
func (s show) clusterOptions() (controlplane.Options, error) {
	options := controlplane.Options{Binaries: s.binaries, ControllerManager: true, Scheduler: true}
	switch s.nodes {
	case "", simulatedNodes:
		options.Nodes = 3
		return options, nil
	case realNode:
		options.RealNode = true
		return options, node.Check(s.binaries)
	}
	return options, fmt.Errorf("-node=%s: use %s or %s", s.nodes, simulatedNodes, realNode)
}

// showRealNode runs the demo with containers.
func (s show) showRealNode(ctx context.Context, cp *controlplane.ControlPlane) (code int, err error) {
	say("starting containerd, kubelet and kube-proxy ...")
	n, err := node.Start(ctx, cp, node.Options{})
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return 0, nil
		}
		return 1, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	say("the node %s is ready; containers really run, in a network of their own: no image can be pulled", n.Name())
	say("to cause a problem: "+breakage, cp.Kubeconfig())
	return s.perform(ctx, cp.Kubeconfig(), func(ctx context.Context) error { return demo.RunWithContainers(ctx, cp, n) })
}
