// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
)

// collector is a Collector that runs.
type collector struct {
	contestant
	*proc.Process

	pprof   string // the address of the pprof extension
	metrics string // the address of the Collector's own metrics
}

// startCollector starts a contestant that watches the cluster of a kubeconfig file and delivers to a sink. Both have the
// same configuration, but for the receiver: the defaults, and addresses that are free.
func startCollector(c contestant, kubeconfig, sinkURL string) (*collector, error) {
	free, err := proc.FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	pprof, telemetry := free[0], free[1]
	col := &collector{contestant: c, pprof: pprof, metrics: telemetry}
	arguments := []string{"--config", "yaml:" + configOf(c, sinkURL, pprof, telemetry)}
	for _, part := range c.over {
		arguments = append(arguments, "--config", "yaml:"+part)
	}
	command := exec.Command(c.binary, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	if col.Process, err = proc.Start(command); err != nil {
		return nil, err
	}
	return col, col.awaitPprof()
}

// configOf is the whole configuration: defaults, which are the same for both, and the Collector's own telemetry at its
// default level.
func configOf(c contestant, sinkURL, pprof, telemetry string) string {
	_, port, _ := net.SplitHostPort(telemetry)
	return fmt.Sprintf(`
receivers:
  %[1]s: %[2]s
processors:
  batch:
exporters:
  otlp_http: {endpoint: %[3]q}
extensions:
  pprof: {endpoint: %[4]q}
service:
  extensions: [pprof]
  pipelines:
    logs: {receivers: [%[1]s], processors: [batch], exporters: [otlp_http]}
  telemetry:
    logs: {level: warn, encoding: console}
    metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %[5]s}}}}]}
`, c.name, c.receiver, sinkURL, pprof, port)
}

// awaitPprof waits until the Collector serves its extensions, at which time it has read its configuration.
func (c *collector) awaitPprof() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := c.WaitUntilReady(ctx, 5*time.Millisecond, func() error {
		connection, err := net.Dial("tcp", c.pprof)
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
	files := os.DirFS(fmt.Sprintf("/proc/%d", c.PID()))
	stat, errStat := fs.ReadFile(files, "stat")
	status, errStatus := fs.ReadFile(files, "status")
	if err := errors.Join(errStat, errStatus); err != nil {
		return usage{}, errors.Join(err, c.failure("is not there to be measured"))
	}
	cpu, err := cpuOf(string(stat))
	if err != nil {
		return usage{}, err
	}
	peak, err := peakOf(string(status))
	return usage{cpu, peak}, err
}

// cpuOf reads the fields 14 and 15 of /proc/PID/stat. The second field, the name in parentheses, may hold anything.
func cpuOf(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields", len(fields))
	}
	userTicks, errUser := strconv.ParseInt(fields[user], 10, 64)
	systemTicks, errSystem := strconv.ParseInt(fields[system], 10, 64)
	const tick = time.Second / 100 // Linux' USER_HZ, on all that Go runs on
	return time.Duration(userTicks+systemTicks) * tick, errors.Join(errUser, errSystem)
}

// peakOf reads VmHWM of /proc/PID/status.
func peakOf(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/PID/status has no VmHWM")
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
