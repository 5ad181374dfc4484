// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"strings"
	"sync"
)

// Output collects what a program prints. It may be used concurrently.
type Output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

// String returns everything that was printed so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// Tail returns the end of the output, which is what a failure is usually about.
func (o *Output) Tail() string {
	const limit = 12_000
	all := o.String()
	return all[max(0, len(all)-limit):]
}

// Lines returns the lines so far that contain all parts.
func (o *Output) Lines(parts ...string) (found []string) {
	for line := range strings.Lines(o.String()) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}
