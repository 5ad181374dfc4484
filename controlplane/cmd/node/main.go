// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Node runs a real node of Kubernetes: containerd, kubelet and kube-proxy, in namespaces of their
// own. Package node starts it; see there for how it works. It needs root.
//
// Its first argument selects which of three processes it is. `supervise` is outside of the
// namespaces, and removes what is left when they have ended. `init` is the first process inside.
// `run` sets the namespaces up and runs the node's programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// options are the arguments of all three processes.
type options struct {
	name     string // of the Node
	dir      string // the node's directory
	binaries string // the directory of the programs that make builds
	cgroup   string // the cgroup of all pods, below the root
	ports    string // of the machine's loopback interface, that are also ports of the node; separated by commas
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "node: package node of the control plane starts this program")
		os.Exit(2)
	}
	var o options
	flags := flag.NewFlagSet("node", flag.ExitOnError)
	flags.StringVar(&o.name, "name", "", "name of the Node")
	flags.StringVar(&o.dir, "dir", "", "the node's directory")
	flags.StringVar(&o.binaries, "binaries", "", "directory of containerd, kubelet and so on")
	flags.StringVar(&o.cgroup, "cgroup", "", "cgroup of all pods, below the root")
	flags.StringVar(&o.ports, "ports", "", "ports of this machine that are also ports of the node")
	_ = flags.Parse(os.Args[2:]) // it exits after an error

	if err := o.start(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func (o options) start(process string) error {
	switch process {
	case "supervise":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return o.supervise(ctx)
	case "init":
		return initialize()
	case "run":
		return o.run()
	}
	return errors.New("unknown process " + process)
}

// selfArgs returns the arguments that make this program another one of the three processes.
func selfArgs(process string) []string { return append([]string{process}, os.Args[2:]...) }

// hostAddresses returns the addresses of the machine that pods can reach.
func (o options) hostAddresses() (addresses []string) {
	for port := range strings.SplitSeq(o.ports, ",") {
		addresses = append(addresses, net.JoinHostPort("127.0.0.1", port))
	}
	return addresses
}
