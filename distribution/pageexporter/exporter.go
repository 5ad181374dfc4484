// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
)

// pageExporter puts log records into a board and serves its answers. It may be used concurrently.
type pageExporter struct {
	config    *Config
	telemetry component.TelemetrySettings
	board     *board

	address net.Addr // of the page; set by Start
	server  *http.Server
	served  sync.WaitGroup
}

func newPageExporter(config *Config, telemetry component.TelemetrySettings) *pageExporter {
	e := &pageExporter{config: config, telemetry: telemetry, board: newBoard(time.Now)}
	e.board.model.HarmlessReasons = config.HarmlessReasons
	return e
}

// Start serves the page. It returns an error if it cannot listen on the address, or if the
// configuration of the server does not work.
func (e *pageExporter) Start(ctx context.Context, host component.Host) error {
	if err := e.followElection(host); err != nil {
		return err
	}
	server, err := e.config.Server.ToServer(ctx, host.GetExtensions(), e.telemetry, newHandler(e.board, e.config))
	if err != nil {
		return err
	}
	listener, err := e.config.Server.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("endpoint: cannot listen on %q: %w: set a free address of this machine", e.config.Server.NetAddr.Endpoint, err)
	}
	e.address, e.server = listener.Addr(), server
	e.telemetry.Logger.Info("Serving the page of events", zap.Stringer("address", e.address))
	e.served.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// shutdownTimeout is the time that a browser may take to read the rest of its response at the
// shutdown.
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

// ConsumeLogs takes the records of events, and ignores others. It never returns an error: the receiver
// would repeat the records of all other exporters.
func (e *pageExporter) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	e.board.add(logs)
	return nil
}
