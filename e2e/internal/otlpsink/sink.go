// SPDX-License-Identifier: Apache-2.0

// Package otlpsink receives OTLP over HTTP and gRPC in the process of a test or benchmark, with the OTLP
// receiver of the Collector core. Its users decide what becomes of the data.
package otlpsink

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// Callbacks receive the data. What they return decides the answer: nil is 200, Rejected is 400, a
// gRPC status is its HTTP equivalent (ResourceExhausted is 429), consumererror.NewPermanent is 500,
// and any other error is 503. A callback that waits for the end of its context does not answer: the
// context ends when the client gives up, and when the sink stops.
type Callbacks struct {
	Logs    consumer.ConsumeLogsFunc
	Metrics consumer.ConsumeMetricsFunc // nil: metrics are accepted and dropped
	Traces  consumer.ConsumeTracesFunc  // nil: traces are accepted and dropped
}

// Rejected is an error that no retry helps against. The client gets 400.
var Rejected = status.Error(codes.InvalidArgument, "rejected by the test") //nolint:errname // It reads as otlpsink.Rejected.

// Sink is a running receiver.
type Sink struct {
	URL  string
	GRPC string // the URL for gRPC

	receivers []component.Component
	stop      context.CancelFunc // ends the callbacks that wait
}

// Start starts a sink on two free ports of the loopback interface.
func Start(callbacks Callbacks) (*Sink, error) {
	// Another program may take the port between the check that it is free and the start.
	const attempts = 5
	for attempt := 1; ; attempt++ {
		addresses, err := process.FreeAddresses(2)
		if err != nil {
			return nil, err
		}
		s, err := startAt(addresses[0], addresses[1], callbacks)
		if attempt == attempts || !errors.Is(err, syscall.EADDRINUSE) {
			return s, err
		}
	}
}

func startAt(address, grpcAddress string, callbacks Callbacks) (*Sink, error) {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	err := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"http": map[string]any{
			"endpoint": address, "include_metadata": true,
			"max_request_body_size": 1 << 30, // The default is smaller than some batches of a benchmark.
		},
		"grpc": map[string]any{"endpoint": grpcAddress},
	}}).Unmarshal(config)
	if err != nil {
		return nil, fmt.Errorf("configure the OTLP receiver: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	logs, errLogs := consumer.NewLogs(func(request context.Context, data plog.Logs) error {
		request, release := endsWith(request, ctx)
		defer release()
		return callbacks.Logs(request, data)
	})
	metrics, errMetrics := consumer.NewMetrics(func(request context.Context, data pmetric.Metrics) error {
		if callbacks.Metrics == nil {
			return nil
		}
		request, release := endsWith(request, ctx)
		defer release()
		return callbacks.Metrics(request, data)
	})
	traces, errTraces := consumer.NewTraces(func(request context.Context, data ptrace.Traces) error {
		if callbacks.Traces == nil {
			return nil
		}
		request, release := endsWith(request, ctx)
		defer release()
		return callbacks.Traces(request, data)
	})
	// All share one server, because they have the same configuration.
	settings := receivertest.NewNopSettings(factory.Type())
	logsReceiver, errLogsReceiver := factory.CreateLogs(ctx, settings, config, logs)
	metricsReceiver, errMetricsReceiver := factory.CreateMetrics(ctx, settings, config, metrics)
	tracesReceiver, errTracesReceiver := factory.CreateTraces(ctx, settings, config, traces)
	s := &Sink{URL: "http://" + address, GRPC: "http://" + grpcAddress, receivers: []component.Component{logsReceiver, metricsReceiver, tracesReceiver}, stop: stop}
	if err := errors.Join(errLogs, errMetrics, errTraces, errLogsReceiver, errMetricsReceiver, errTracesReceiver); err != nil {
		stop()
		return nil, err
	}
	for _, receiver := range s.receivers {
		err = errors.Join(err, receiver.Start(ctx, componenttest.NewNopHost()))
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// endsWith returns a context that ends with either of two.
func endsWith(one, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(one)
	release := context.AfterFunc(other, cancel)
	return ctx, func() {
		release()
		cancel()
	}
}

// Stop ends the callbacks that wait, and then the server. A request that is under way may delay it
// by a few seconds.
func (s *Sink) Stop() error {
	s.stop()
	const timeout = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var err error
	for _, receiver := range s.receivers {
		err = errors.Join(err, receiver.Shutdown(ctx))
	}
	return err
}

// Header returns a header of the request that a callback received; empty if it has none.
func Header(ctx context.Context, name string) string {
	values := client.FromContext(ctx).Metadata.Get(name)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
