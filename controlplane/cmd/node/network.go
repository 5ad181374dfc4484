// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/tunnel"
)

// createInterface creates the node's interface. It needs a network namespace of its own. Both ends
// of the pair are inside: nothing leaves the namespace through it. kubelet and the kernel need an
// interface with the node's address, and a default route.
func createInterface() error {
	for _, arguments := range []string{
		"link set lo up",
		"link add eth0 type veth peer name eth0-peer",
		"link set eth0-peer up",
		"link set eth0 up",
		"address add " + realnode.Address + "/24 dev eth0",
		"route add default dev eth0",
	} {
		if output, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", arguments, err, output)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600)
}

// connect connects the network namespace with the machine, through sockets in the node's directory:
// programs of the machine reach all addresses inside, and pods reach some ports of the machine,
// with the node's address. containerd reaches them on the loopback interface, too: there, it accepts
// a registry without TLS.
func (o options) connect() error {
	egress, err := net.Listen("unix", filepath.Join(nodeDir, realnode.EgressSocket))
	if err != nil {
		return err
	}
	go func() { _ = tunnel.Serve(egress, func(string) bool { return true }) }()

	for _, address := range o.hostAddresses() {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		for _, local := range []string{net.JoinHostPort(realnode.Address, port), address} {
			if err := forward(local, address); err != nil {
				return err
			}
		}
	}
	return nil
}

// forward connects the clients of an address inside to an address of the machine.
func forward(local, address string) error {
	listener, err := net.Listen("tcp", local)
	if err != nil {
		return err
	}
	go func() {
		_ = tunnel.Forward(context.Background(), listener, func(ctx context.Context) (net.Conn, error) {
			return tunnel.Dial(ctx, filepath.Join(nodeDir, realnode.HostSocket), address)
		})
	}()
	return nil
}
