// SPDX-License-Identifier: Apache-2.0

// Package proc runs the programs that tests and benchmarks start. It collects their output and ends
// them with the test.
package proc

import (
	"bytes"
	"sync"
)

// Output takes what a program prints. It may be used concurrently.
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

// String is all that was printed so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// Tail is the end of it, which is what a failure is usually about.
func (o *Output) Tail() string {
	const most = 12_000
	all := o.String()
	return all[max(0, len(all)-most):]
}
