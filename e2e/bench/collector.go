// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/prometheus/procfs"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// collector is a Collector that runs.
type collector struct {
	runner
	*process.Process
}

// startCollector starts a runner that watches the cluster of a kubeconfig file and delivers to a
// sink. All have the same configuration, except for the receiver: the defaults, and addresses that are
// free.
func startCollector(c runner, kubeconfig, sinkURL string) (*collector, error) {
	free, err := process.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	telemetry := free[0]
	arguments := []string{"--config", "yaml:" + configOf(c, sinkURL, telemetry)}
	for _, signal := range c.signals() {
		arguments = append(arguments, "--config", "yaml:service::pipelines::"+signal+": {receivers: ["+c.name+"], processors: [batch], exporters: [otlp_http]}")
	}
	for _, part := range c.over {
		arguments = append(arguments, "--config", "yaml:"+part)
	}
	command := exec.Command(c.binary, arguments...)
	command.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig), c.env...)
	p, err := process.Run(command)
	if err != nil {
		return nil, err
	}
	col := &collector{c, p}
	return col, col.awaitTelemetry(telemetry)
}

// configOf is the configuration without pipelines: defaults, which are the same for both, and the
// Collector's own telemetry at its default level.
func configOf(c runner, sinkURL, telemetry string) string {
	_, port, _ := net.SplitHostPort(telemetry)
	return fmt.Sprintf(`
receivers:
  %[1]s: %[2]s
processors:
  batch:
exporters:
  otlp_http: {endpoint: %[3]q}
service:
  telemetry:
    logs: {level: warn, encoding: console}
    metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %[4]s}}}}]}
`, c.name, c.receiver, sinkURL, port)
}

// awaitTelemetry waits until the Collector serves its metrics, at which time it has read its
// configuration.
func (c *collector) awaitTelemetry(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := c.WaitUntilReady(ctx, 5*time.Millisecond, func() error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	if err != nil {
		return errors.Join(fmt.Errorf("receiver %s: %w", c.name, err), c.stop())
	}
	return nil
}

// failure returns an error with the end of what the Collector printed.
func (c *collector) failure(what string) error {
	return fmt.Errorf("receiver %s: %w", c.name, c.Failure(what))
}

// stop ends the Collector as Kubernetes does. A second call does nothing.
func (c *collector) stop() error { return c.Terminate(20 * time.Second) }

// usage is what a process has used since its start.
type usage struct {
	cpu     time.Duration // in user and kernel mode, to the kernel's 10 ms
	peakRSS int64         // bytes
}

// usage reads what the Collector has used so far.
func (c *collector) usage() (usage, error) {
	process, err := procfs.NewProc(c.PID())
	if err != nil {
		return usage{}, errors.Join(err, c.failure("has ended and cannot be measured"))
	}
	stat, errStat := process.Stat()
	status, errStatus := process.NewStatus()
	if err := errors.Join(errStat, errStatus); err != nil || status.VmHWM == 0 {
		return usage{}, errors.Join(err, c.failure("has ended and cannot be measured"))
	}
	return usage{time.Duration(stat.CPUTime() * float64(time.Second)), int64(status.VmHWM)}, nil
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
