// SPDX-License-Identifier: Apache-2.0

// Package realnode has what package node and the program cmd/node both know of a real node: its
// addresses, its files, and what it needs of the machine.
package realnode

// Address is the node's address, from a range for documentation. It exists only in the node's
// network namespace.
const Address = "192.0.2.10"

// Dir is where the node finds its directory.
const Dir = "/run/node"

// Files in the node's directory.
const (
	Kubeconfig = "kubeconfig"
	Manifests  = "manifests" // of static pods
	Volumes    = "volumes"   // directories for pods
	// EgressSocket is served inside the node's network namespace. Programs outside reach kubelet, pods
	// and Services through it.
	EgressSocket = "egress.sock"
	// HostSocket is served outside. Pods reach ports of the machine through it.
	HostSocket       = "host.sock"
	ContainerdSocket = "containerd.sock"
)

// Log is the name of a program's log.
func Log(program string) string { return program + ".log" }

// Programs are the programs that make builds, in one directory with those of the control plane.
func Programs() []string {
	return []string{"containerd", "containerd-shim-runc-v2", "ctr", "kube-proxy", "kubelet", "node", "workload"}
}
