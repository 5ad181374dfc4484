// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/cgroup"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/tunnel"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// supervise runs the node in namespaces of its own until ctx ends or the node ends. The kernel ends
// all processes, mounts and interfaces in these namespaces with their first process. supervise then
// removes what the kernel keeps: cgroups and files.
func (o options) supervise(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, cgroup.Remove(o.cgroup), removeFiles(o.dir)) }()
	if err := cgroup.Create(o.cgroup); err != nil {
		return err
	}
	listener, err := net.Listen("unix", filepath.Join(o.dir, realnode.HostSocket))
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		_ = tunnel.Serve(listener, func(address string) bool { return slices.Contains(o.hostAddresses(), address) })
	}()
	return o.superviseInit(ctx)
}

func (o options) superviseInit(ctx context.Context) error {
	first, err := process.Start(process.Command{
		Path: "/proc/self/exe", Args: selfArgs("init"), Stdout: os.Stdout, Stderr: os.Stderr,
		Attributes: func(attributes *syscall.SysProcAttr) {
			attributes.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET
		},
	})
	if err != nil {
		return fmt.Errorf("start a process in new namespaces: %w", err)
	}
	select {
	case <-ctx.Done():
		// It returns when all processes in the namespace have ended.
		return first.Kill()
	case <-first.Done():
		return fmt.Errorf("the node ended with exit code %d", first.ExitCode())
	}
}

// removeFiles removes everything from the node's directory but the logs.
func removeFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), realnode.Log("")) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
