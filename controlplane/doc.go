// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts a real Kubernetes control plane on this machine:
// etcd and kube-apiserver, and, where asked for, kube-controller-manager,
// kube-scheduler and fake nodes (kwok) on which pods seem to run. The demo and
// the tests against a real cluster use it.
//
// It needs no root, no containers and no network: the programs are ordinary
// processes that listen on free ports of the loopback interface, and all they
// write stays in one directory. `make controlplane` builds the programs; a
// directory that setup-envtest filled does as well, for etcd and kube-apiserver.
//
// Whatever was started ends with Stop. On Linux it also ends when the program
// that called Start does, even if that one was killed.
package controlplane
