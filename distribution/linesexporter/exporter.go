// SPDX-License-Identifier: Apache-2.0

package linesexporter

import (
	"context"
	"fmt"
	"io"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
)

// linesExporter writes log records to out. It may be used concurrently.
type linesExporter struct {
	component.StartFunc
	component.ShutdownFunc

	format lineFormat

	mu  sync.Mutex // guards out, so that lines of two batches do not mix
	out io.Writer
}

// Capabilities says that records are read only.
func (*linesExporter) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeLogs writes the batch in one piece. A failing write is permanent: a
// standard output that was closed does not come back.
func (e *linesExporter) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	var lines []byte
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				lines = e.format.appendLine(lines, rl.Resource(), record)
			}
		}
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.out.Write(lines); err != nil {
		return consumererror.NewPermanent(fmt.Errorf("write event lines to standard output: %w", err))
	}
	return nil
}
