// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// initialize starts the process `run` and waits for it. As the first process of its PID namespace,
// it is also the parent of every process whose parent has ended, and waits for these, too. That is
// why `run` is another process: there, nothing but the package os waits for programs.
func initialize() error {
	run := exec.Command("/proc/self/exe", selfArgs("run")...)
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	if err := run.Start(); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("wait for the node's processes: %w", err)
		case pid == run.Process.Pid:
			return fmt.Errorf("the process that runs the node has ended: exit code %d, signal %d", status.ExitStatus(), status.Signal())
		}
	}
}
