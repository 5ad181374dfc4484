// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts a real Kubernetes control plane on this machine: etcd and
// kube-apiserver and, optionally, kube-controller-manager, kube-scheduler and simulated nodes
// (kwok). The demo and the tests against a real cluster use it.
//
// It needs no root, no containers and no network. The programs are ordinary processes. They listen
// on free ports of the loopback interface, and write to one directory. `make controlplane` builds
// the programs. For etcd and kube-apiserver, a directory of setup-envtest works, too.
//
// Package node adds a real node to it, which needs Linux, root, and some programs of the machine.
//
// Stop ends all programs. On Linux, they also end when the program that called Start ends, even if
// it was killed.
package controlplane
