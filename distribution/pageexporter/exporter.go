// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// pageExporter puts log records into a store and serves the store as a page. It may be used
// concurrently.
type pageExporter struct {
	config    *Config
	telemetry component.TelemetrySettings
	store     *store
	out       io.Writer // for lines
	lacks     rollout.Lacks

	address net.Addr // of the page; set by Start
	server  *http.Server
	served  sync.WaitGroup
}

func newPageExporter(config *Config, telemetry component.TelemetrySettings) *pageExporter {
	return &pageExporter{config: config, telemetry: telemetry, store: newStore(time.Now), out: os.Stdout}
}

// Start serves the page. It returns an error if it cannot listen on the address, or if the
// configuration of the server does not work.
func (e *pageExporter) Start(ctx context.Context, host component.Host) error {
	if err := e.followElection(host); err != nil {
		return err
	}
	updates, endUpdates := context.WithCancel(context.Background())
	server, err := e.config.Server.ToServer(ctx, host.GetExtensions(), e.telemetry, newHandler(e.store, updates.Done()))
	if err != nil {
		endUpdates()
		return err
	}
	listener, err := e.config.Server.ToListener(ctx)
	if err != nil {
		endUpdates()
		return fmt.Errorf("endpoint: cannot listen on %q: %w: set a free address of this machine", e.config.Server.NetAddr.Endpoint, err)
	}
	// A shutdown waits for requests to end. Requests for updates end only when this context ends.
	server.RegisterOnShutdown(endUpdates)
	e.address, e.server = listener.Addr(), server
	e.telemetry.Logger.Info("Serving the page of events", zap.Stringer("address", e.address))
	e.served.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// shutdownTimeout is how long a browser may take to read the rest of its response at the shutdown.
const shutdownTimeout = 2 * time.Second

// Shutdown ends the page, and waits until all responses are written. After shutdownTimeout, or when
// ctx is done, it closes the remaining connections. This is not an error.
func (e *pageExporter) Shutdown(ctx context.Context) error {
	if e.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	err := e.server.Shutdown(ctx)
	if ctx.Err() != nil {
		err = e.server.Close()
	}
	e.served.Wait()
	return err
}

// Capabilities reports that the exporter only reads records.
func (*pageExporter) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeLogs takes the records of events, and ignores others. It returns an error only if it cannot
// write lines. The error is permanent, because a closed standard output stays closed.
func (e *pageExporter) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	entries := entriesIn(logs)
	err := e.writeLines(entries)
	read, _ := rollout.Read(logs)
	e.lacks.Report(e.telemetry.Logger, "event_page", logs)
	e.store.follow(read)
	e.store.add(entries)
	return err
}

// writeLines writes all lines in one write: lines of two batches must not mix.
func (e *pageExporter) writeLines(entries []entry) error {
	if !e.config.Lines {
		return nil
	}
	var lines []byte
	for i := range entries {
		lines = append(lines, entries[i].line()...)
	}
	if _, err := e.out.Write(lines); err != nil {
		return consumererror.NewPermanent(fmt.Errorf("write lines to standard output: %w", err))
	}
	return nil
}
