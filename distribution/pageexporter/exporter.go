// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

// pageExporter puts log records into a board and serves its answers. It may be used concurrently.
type pageExporter struct {
	config   *Config
	settings exporter.Settings
	board    *board

	address net.Addr // of the page; set by Start
	server  *http.Server
	served  sync.WaitGroup
}

func newPageExporter(config *Config, settings exporter.Settings) *pageExporter {
	e := &pageExporter{config: config, settings: settings, board: newBoard(time.Now)}
	e.board.own.Load().Harmless = config.HarmlessReasons
	e.board.shares = e.useModelOf
	return e
}

// useModelOf notes that the page uses the model of a connector from now on.
func (e *pageExporter) useModelOf(connector *incident.Live) {
	if own := e.config.HarmlessReasons; len(own) > 0 && !slices.Equal(own, connector.Harmless) {
		e.settings.Logger.Warn("The page shows the problems of kube_incidents: set harmless_reasons there, and remove it from event_page",
			zap.Strings("event_page", own), zap.Strings("kube_incidents", connector.Harmless))
	}
}

// Start serves the page. It returns an error if it cannot listen on the address, or if the
// configuration of the server does not work.
func (e *pageExporter) Start(ctx context.Context, host component.Host) error {
	for _, extension := range host.GetExtensions() {
		if receivers, ok := extension.(*statusextension.Extension); ok {
			e.board.delivery = receivers.Delivery
			e.board.incidents = func() statusextension.Incidents { return receivers.IncidentsFor(e.settings.ID) }
		}
	}
	handler := newHandler(e.board, e.config, e.settings.BuildInfo.Version)
	server, err := e.config.Server.ToServer(ctx, host.GetExtensions(), e.settings.TelemetrySettings, handler)
	if err != nil {
		return fmt.Errorf("%w: add the extensions that auth and middlewares name to extensions and service.extensions", err)
	}
	listener, err := e.config.Server.ToListener(ctx)
	if network := (*net.OpError)(nil); errors.As(err, &network) {
		return fmt.Errorf("endpoint: cannot listen on %q: %w: set a free address of this machine", e.config.Server.NetAddr.Endpoint, err)
	} else if err != nil {
		return fmt.Errorf("tls: %w: set cert_file and key_file to files that the Collector may read", err)
	}
	e.address, e.server = listener.Addr(), server
	e.settings.Logger.Info("Serving the page of events", zap.Stringer("address", e.address))
	if tcp, ok := e.address.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !e.config.Server.Auth.HasValue() {
		e.settings.Logger.Warn("Everybody who can connect to the page sees all events. Set auth of event_page, or its endpoint to "+defaultEndpoint,
			zap.Stringer("address", e.address))
	}
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
