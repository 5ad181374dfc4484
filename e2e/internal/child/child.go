// SPDX-License-Identifier: Apache-2.0

// Package child holds what the tests and benchmarks need of every program that they start: what it printed, and that it
// ends with them.
package child

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
