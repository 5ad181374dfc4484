// SPDX-License-Identifier: Apache-2.0

// Package proc runs the programs that tests and benchmarks start. It collects their output and ends
// them, each by its own process ID.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Process is a program that was started. Its methods may be called concurrently.
type Process struct {
	// Started is the time just before the program was started.
	Started time.Time
	// Output is what the program prints, unless its command writes that elsewhere.
	Output *Output

	command *exec.Cmd
	ended   chan struct{}
}

// Start starts a program. Standard output and standard error go to Output if the command does not
// direct them elsewhere. Unless the command has other attributes, the program leads a process group
// of its own, and Linux kills it when this process ends.
func Start(command *exec.Cmd) (*Process, error) {
	p := &Process{Started: time.Now(), Output: &Output{}, command: command, ended: make(chan struct{})}
	if command.Stdout == nil {
		command.Stdout = p.Output
	}
	if command.Stderr == nil {
		command.Stderr = p.Output
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = ownGroup()
	}
	started := make(chan error)
	go func() {
		// The thread must live as long as the program: Linux treats the end of the thread that
		// started the program as the end of the parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	return p, nil
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

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running reports whether the program has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// ExitCode waits for the end of the program and returns its exit code; -1 if a signal ended it.
func (p *Process) ExitCode() int {
	<-p.ended
	return p.command.ProcessState.ExitCode()
}

// Signal sends a signal to the program, and to nothing else.
func (p *Process) Signal(signal syscall.Signal) error { return p.command.Process.Signal(signal) }

// Kill ends the program as kill -9 does, and waits for its end. A second call does nothing.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// Terminate ends the program as Kubernetes does: SIGTERM, and kill -9 after the grace period. It
// returns an error if the program had to be killed or if its exit code is not 0. It returns nil if
// the program had ended before.
func (p *Process) Terminate(grace time.Duration) error {
	if !p.Running() {
		return nil
	}
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.Kill()
		return p.Failure(fmt.Sprintf("did not end within %s after SIGTERM", grace))
	}
	if code := p.ExitCode(); code != 0 {
		return p.Failure(fmt.Sprintf("ended with exit code %d after SIGTERM", code))
	}
	return nil
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
	return fmt.Errorf("%s %s:\n%s", filepath.Base(p.command.Path), what, p.Output.Tail())
}
