// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
)

// NodeDir returns the directory of the real node, below the data directory. Package node uses it.
func (cp *ControlPlane) NodeDir() string { return cp.layout.path("node") }

// Binaries returns the directory of the programs.
func (cp *ControlPlane) Binaries() string { return cp.options.Binaries }

// egressConfiguration makes the API server reach kubelets, pods and Services through a socket. They
// are in another network namespace.
const egressConfiguration = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// prepareForRealNode writes what the API server needs to reach a real node.
func (cp *ControlPlane) prepareForRealNode() error {
	if !cp.options.RealNode {
		return nil
	}
	configuration := fmt.Appendf(nil, egressConfiguration, cp.NodeDir()+"/"+realnode.EgressSocket)
	return os.WriteFile(cp.layout.path("egress.yaml"), configuration, 0o600)
}

// addressArgs returns the arguments of kube-apiserver about where it is and how it reaches nodes.
func (cp *ControlPlane) addressArgs() []string {
	if !cp.options.RealNode {
		return []string{
			"--advertise-address=" + loopback,
			// A loopback address is not a valid endpoint of the kubernetes Service.
			"--endpoint-reconciler-type=none",
		}
	}
	return []string{
		// The node forwards connections to its address to the API server.
		"--advertise-address=" + realnode.Address,
		"--egress-selector-config-file=" + cp.layout.path("egress.yaml"),
		"--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged=true",
	}
}
