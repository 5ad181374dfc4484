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

	mu  sync.Mutex // guards out: lines of two batches must not mix
	out io.Writer
}

// Capabilities reports that the exporter only reads records.
func (*linesExporter) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeLogs writes the batch in one write. An error is permanent, because a closed standard
// output stays closed.
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
