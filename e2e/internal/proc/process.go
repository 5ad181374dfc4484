// SPDX-License-Identifier: Apache-2.0

// Package proc runs the programs that tests and benchmarks start, and collects their output.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// Process is a program that was started. Its methods may be called concurrently.
type Process struct {
	*process.Process

	// Started is the time just before the program was started.
	Started time.Time
	// Output is what the program prints, unless its command writes that elsewhere.
	Output *Output

	name string
}

// Start starts a program. Standard output and standard error go to Output if the command does not
// direct them elsewhere.
func Start(command *exec.Cmd) (*Process, error) {
	p := &Process{Started: time.Now(), Output: &Output{}, name: filepath.Base(command.Path)}
	if command.Stdout == nil {
		command.Stdout = p.Output
	}
	if command.Stderr == nil {
		command.Stderr = p.Output
	}
	var err error
	p.Process, err = process.Run(command)
	return p, err
}

// Shell runs a command of the shell in a directory, with variables in addition to the environment,
// and returns what it prints.
func Shell(directory, line string, env ...string) (string, error) {
	command := exec.Command("sh", "-c", line)
	command.Dir = directory
	command.Env = append(os.Environ(), env...)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", line, err, output)
	}
	return string(output), err
}

// Kill ends the program as kill -9 does, and waits for its end. A second call does nothing.
func (p *Process) Kill() {
	if err := p.Process.Kill(); err != nil {
		panic(err) // A process may signal its children.
	}
}

// Terminate ends the program as Kubernetes does: SIGTERM, and kill -9 after the grace period. It
// returns an error if the program had to be killed or if its exit code is not 0. It returns nil if
// the program had ended before.
func (p *Process) Terminate(grace time.Duration) error {
	if !p.Running() {
		return nil
	}
	if err := p.Stop(grace); err != nil {
		return err
	}
	switch code := p.ExitCode(); code {
	case 0:
		return nil
	case 128 + int(syscall.SIGKILL):
		return p.Failure(fmt.Sprintf("did not end within %s after SIGTERM", grace))
	default:
		return p.Failure(fmt.Sprintf("ended with exit code %d after SIGTERM", code))
	}
}

// WaitUntilReady polls until ready returns nil. It returns an error if the program ends before, or
// if the context does.
func (p *Process) WaitUntilReady(ctx context.Context, interval time.Duration, ready func() error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		if last = ready(); last == nil {
			return true, nil
		}
		if !p.Running() {
			return false, p.Failure("has ended")
		}
		return false, nil
	})
	if err != nil && wait.Interrupted(err) {
		return errors.Join(last, p.Failure("is not ready"))
	}
	return err
}

// Failure returns an error with the end of what the program printed.
func (p *Process) Failure(what string) error {
	return fmt.Errorf("%s %s:\n%s", p.name, what, p.Output.Tail())
}
