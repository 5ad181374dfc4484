// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/child"
)

// process is a program that was started.
type process struct {
	command *exec.Cmd
	output  *child.Output
	ended   chan struct{} // closed when it has ended
}

// start starts a program. The thread that starts it stays until it ends, because Linux takes the end of that thread for
// the parent's.
func start(env []string, program string, arguments ...string) (*process, error) {
	p := &process{command: exec.Command(program, arguments...), output: &child.Output{}, ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), env...)
	p.command.Stdout, p.command.Stderr = p.output, p.output
	p.command.SysProcAttr = child.OwnGroup()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait()
			close(p.ended)
		}
	}()
	return p, <-started
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

// freeAddresses are ones that nobody listens on, all different.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		listener, errListen := net.Listen("tcp", "127.0.0.1:0")
		if errListen != nil {
			return nil, errors.Join(err, errListen)
		}
		defer listener.Close()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
