// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
)

// process is a program that was started.
type process struct {
	command *exec.Cmd
	output  *proc.Output
	ended   <-chan struct{} // closed when it has ended
}

// start starts a program in a directory, or in this one.
func start(directory string, env []string, program string, arguments ...string) (*process, error) {
	p := &process{command: exec.Command(program, arguments...), output: &proc.Output{}}
	p.command.Dir = directory
	p.command.Env = append(os.Environ(), env...)
	p.command.Stdout, p.command.Stderr = p.output, p.output
	p.command.SysProcAttr = proc.OwnGroup()
	var err error
	p.ended, err = proc.Start(p.command)
	return p, err
}

// stop ends the program, at once if it takes its time: what it holds is thrown away.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// await waits until what is awaited of the program is there. The deadline only ends what would never end.
func (p *process) await(there func() error) error {
	var err error
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = there(); err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s has ended:\n%s", filepath.Base(p.command.Path), p.output)
		default:
		}
	}
	return fmt.Errorf("%s: %w\n%s", filepath.Base(p.command.Path), err, p.output)
}
