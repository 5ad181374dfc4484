// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"context"
	"os"
	"os/exec"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// program is one that was started.
type program struct{ *process.Process }

// start starts a program in a directory, or in this one.
func start(directory string, env []string, path string, arguments ...string) (*program, error) {
	command := exec.Command(path, arguments...)
	command.Dir = directory
	command.Env = append(os.Environ(), env...)
	started, err := process.Run(command)
	return &program{started}, err
}

// stop ends the program, and kills it after a few seconds: its data is not needed.
func (p *program) stop() { _ = p.Terminate(5 * time.Second) }

// await waits until ready returns nil. The deadline only ends what would never end.
func (p *program) await(there func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return p.WaitUntilReady(ctx, 100*time.Millisecond, there)
}
