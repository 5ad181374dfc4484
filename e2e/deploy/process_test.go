// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	proc "github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// process is a container that was started.
type process struct {
	*proc.Process
}

// start starts a container, which ends with the test at the latest.
func start(t *testing.T, c container) *process {
	t.Helper()
	return &process{harness.StartProcess(t, c.command(t))}
}

// terminate ends the container as the kubelet does. It must end with exit code 0.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	harness.Terminate(t, p.Process)
}

// logged reports whether the container's log has a text.
func (p *process) logged(text string) bool { return strings.Contains(p.Output.String(), text) }

// ordinary are lines that client-go's leader election writes, which knows nothing of the
// Collector's log. Of two replicas that make the lease at the same time, one is too late.
var ordinary = regexp.MustCompile(`^(I\d{4} .* leaderelection.go:|E\d{4} .* leaderelection.go:.*"Error initially creating lease lock".* already exists)`)

// complaints are the lines of the log that call for attention.
func (p *process) complaints() (lines []string) {
	for line := range strings.Lines(p.Output.String()) {
		var entry struct{ Level string }
		if _ = json.Unmarshal([]byte(line), &entry); entry.Level != "info" && !ordinary.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
