// SPDX-License-Identifier: Apache-2.0

// Package process runs programs that must not outlive the program that started them: those of the
// control plane, and those of tests and benchmarks. Each has its own process group. Stop uses the
// process id, and waits for the end. On Linux, a program also ends with its parent, in whatever way
// the parent ended.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Command is the program to run.
type Command struct {
	Path string   // the program's file
	Args []string // its arguments, without the program's name
	Env  []string // added to the environment of this process

	// Stdout and Stderr receive the output. With nil, Log receives it; without Log, it is
	// discarded.
	Stdout, Stderr *os.File
	// Log, if set, is the file to which output without a destination is appended.
	Log string

	// Attributes, if set, changes how the operating system starts the program.
	Attributes func(*syscall.SysProcAttr)
}

// Process is a program that was started. Its methods may be used concurrently.
type Process struct {
	// Started is the time just before the program was started.
	Started time.Time
	// Output is what the program prints, unless its command writes that elsewhere.
	Output *Output

	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
}

// Start starts the program.
func Start(command Command) (*Process, error) {
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Env = append(os.Environ(), command.Env...)
	cmd.SysProcAttr = groupLeader()
	if command.Attributes != nil {
		command.Attributes(cmd.SysProcAttr)
	}
	if command.Stdout != nil {
		cmd.Stdout = command.Stdout
	}
	if command.Stderr != nil {
		cmd.Stderr = command.Stderr
	}
	if command.Log != "" {
		log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", filepath.Base(command.Path), err)
		}
		defer log.Close() // the program has a copy
		printTo(log, cmd)
	}
	p, err := Run(cmd)
	if err == nil {
		p.log = command.Log
	}
	return p, err
}

// printTo directs output that has no destination yet.
func printTo(w io.Writer, cmd *exec.Cmd) {
	if cmd.Stdout == nil {
		cmd.Stdout = w
	}
	if cmd.Stderr == nil {
		cmd.Stderr = w
	}
}

// Run starts a command. Standard output and standard error go to Output if the command does not
// direct them elsewhere. A command that has attributes must make its program the leader of a process
// group.
func Run(cmd *exec.Cmd) (*Process, error) {
	p := &Process{
		Started: time.Now(), Output: &Output{},
		name: filepath.Base(cmd.Path), cmd: cmd, done: make(chan struct{}),
	}
	printTo(p.Output, cmd)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = groupLeader()
	}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// run starts the program and waits for it on one locked thread. For Linux, the parent of a program
// is the thread that started it, and the end of this thread is the end of the parent.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // ExitCode returns how it ended
	close(p.done)
}

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the program has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// PID returns the program's process id, which is also its process group's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ExitCode waits for the program's end and returns its exit code. If a signal ended the program, it
// returns 128 plus the signal's number, as a shell does.
func (p *Process) ExitCode() int {
	<-p.done
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Stop asks the program to end, kills it if it has not ended after grace, and returns when it has
// ended. A second Stop does nothing.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.reap()
	case <-time.After(grace):
		return p.Kill()
	}
}

// Kill ends the program and its process group immediately.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return p.reap()
}

// reap kills what the program left behind in its group.
func (p *Process) reap() error {
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop what %s left behind: %w", p.name, err)
	}
	return nil
}

// Signal sends sig to the program's group. If the program has ended, it does nothing, because
// another program may have the id.
func (p *Process) Signal(sig syscall.Signal) error {
	if !p.Running() {
		return nil
	}
	if err := syscall.Kill(-p.PID(), sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to %s: %w", sig, p.name, err)
	}
	return nil
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
			return false, p.Ended()
		}
		return false, nil
	})
	if err != nil && wait.Interrupted(err) {
		return errors.Join(last, p.Failure("is not ready"))
	}
	return err
}

// Ended returns an error for an unexpected end.
func (p *Process) Ended() error {
	return p.Failure(fmt.Sprintf("ended with exit code %d", p.ExitCode()))
}

// Failure returns an error with the end of what the program printed.
func (p *Process) Failure(what string) error {
	if p.log == "" {
		return fmt.Errorf("%s %s:\n%s", p.name, what, p.Output.Tail())
	}
	return fmt.Errorf("%s %s; the end of %s:\n%s", p.name, what, p.log, p.LogTail())
}

// A failure quotes at most the last 20 lines of the last 4 KiB of a log.
const (
	maxTail      = 4 << 10
	maxTailLines = 20
)

// LogTail returns the last lines of the log.
func (p *Process) LogTail() string { return Tail(p.log) }

// Tail returns the last lines of a log file.
func Tail(path string) string {
	log, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer log.Close()
	if size, err := log.Seek(0, io.SeekEnd); err == nil {
		_, _ = log.Seek(max(0, size-maxTail), io.SeekStart)
	}
	tail, err := io.ReadAll(log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(tail)), "\n")
	return strings.Join(lines[max(0, len(lines)-maxTailLines):], "\n")
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
