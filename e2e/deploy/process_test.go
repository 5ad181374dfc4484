// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
)

// process is a container that was started.
type process struct {
	command *exec.Cmd
	output  *proc.Output
	ended   <-chan struct{} // closed when it has ended
}

// start starts a container, which ends with the test at the latest.
func start(t *testing.T, name string, c container) *process {
	t.Helper()
	p := &process{command: c.command(t), output: &proc.Output{}}
	p.command.Stdout, p.command.Stderr = p.output, p.output
	var err error
	p.ended, err = proc.Start(p.command)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s:\n%s", name, p.output)
		}
	})
	return p
}

// terminate ends the container as the kubelet does, and says whether it ended well.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	<-p.ended
	assert.Equal(t, 0, p.command.ProcessState.ExitCode(), "the exit code after SIGTERM")
}

// says whether the container's log has a text.
func (p *process) says(text string) bool { return strings.Contains(p.output.String(), text) }

// ordinary are lines that client-go's leader election writes, which knows nothing of the Collector's log. Of two replicas
// that make the lease at the same time, one is too late.
var ordinary = regexp.MustCompile(`^(I\d{4} .* leaderelection.go:|E\d{4} .* leaderelection.go:.*"Error initially creating lease lock".* already exists)`)

// complaints are the lines of the log that call for attention.
func (p *process) complaints() (lines []string) {
	for line := range strings.Lines(p.output.String()) {
		var entry struct{ Level string }
		if _ = json.Unmarshal([]byte(line), &entry); entry.Level != "info" && !ordinary.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
