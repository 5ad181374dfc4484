// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Pipeline keeps what it accepts.
type Pipeline struct {
	consumertest.LogsSink

	// Rejects is the error for each request; nil: the pipeline accepts them. Reject changes it while a
	// receiver runs.
	Rejects error
	// Before runs at the begin of each attempt. OnAttempt changes it while a receiver runs.
	Before func()

	mu       sync.Mutex // guards all fields
	attempts int
}

// ConsumeLogs accepts or rejects a request.
func (p *Pipeline) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	p.mu.Lock()
	p.attempts++
	before, err := p.Before, p.Rejects
	p.mu.Unlock()
	if before != nil {
		before()
	}
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.LogsSink.ConsumeLogs(ctx, logs)
}

// Reject sets the error for each request; nil: the pipeline accepts them.
func (p *Pipeline) Reject(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Rejects = err
}

// OnAttempt sets what runs at the begin of each attempt.
func (p *Pipeline) OnAttempt(before func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Before = before
}

// Attempted returns how many requests the pipeline got, with those that it rejected.
func (p *Pipeline) Attempted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts
}

// Names returns the events of all records. See Names.
func (p *Pipeline) Names() []string { return Names(p.AllLogs()) }

// EachRecord calls do with each record that the pipeline has accepted, and its resource.
func (p *Pipeline) EachRecord(do func(resource map[string]any, record plog.LogRecord)) {
	for _, logs := range p.AllLogs() {
		for _, rl := range logs.ResourceLogs().All() {
			for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
				do(rl.Resource().Attributes().AsRaw(), record)
			}
		}
	}
}

// Occurrences returns the sum over all records.
func (p *Pipeline) Occurrences() (total int64) {
	p.EachRecord(func(_ map[string]any, record plog.LogRecord) {
		n, _ := record.Attributes().Get("k8s.event.occurrences")
		total += n.Int()
	})
	return total
}

// Names returns the events of all records, in order, with their occurrences.
func Names(all []plog.Logs) (found []string) {
	for _, logs := range all {
		for _, rl := range logs.ResourceLogs().All() {
			for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
				name, _ := record.Attributes().Get("k8s.event.name")
				occurrences, _ := record.Attributes().Get("k8s.event.occurrences")
				found = append(found, fmt.Sprintf("%s+%d", name.Str(), occurrences.Int()))
			}
		}
	}
	return found
}

// AwaitNames waits, outside of a bubble, for these records.
func AwaitNames(t *testing.T, sink *consumertest.LogsSink, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(Names(sink.AllLogs())) >= len(want) }, Timeout, 5*time.Millisecond)
	assert.Equal(t, want, Names(sink.AllLogs()))
}
