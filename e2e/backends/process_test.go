// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"context"
	"os"
	"os/exec"
	"time"

	proc "github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// process is a program that was started.
type process struct{ *proc.Process }

// start starts a program in a directory, or in this one.
func start(directory string, env []string, program string, arguments ...string) (*process, error) {
	command := exec.Command(program, arguments...)
	command.Dir = directory
	command.Env = append(os.Environ(), env...)
	started, err := proc.Run(command)
	return &process{started}, err
}

// stop ends the program, and kills it after a few seconds: its data is not needed.
func (p *process) stop() { _ = p.Terminate(5 * time.Second) }

// await waits until ready returns nil. The deadline only ends what would never end.
func (p *process) await(there func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return p.WaitUntilReady(ctx, 100*time.Millisecond, there)
}
