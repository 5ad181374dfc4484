// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// Host has the extensions "disk" and "vote", and collects the component's status.
type Host struct {
	Extensions map[component.ID]component.Component

	mu       sync.Mutex // guards statuses
	statuses []*componentstatus.Event
}

// GetExtensions returns the extensions.
func (h *Host) GetExtensions() map[component.ID]component.Component { return h.Extensions }

// Report keeps the status.
func (h *Host) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses = append(h.statuses, event)
}

// Status returns the last status; its error is empty if there is none.
func (h *Host) Status() (status componentstatus.Status, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.statuses) == 0 {
		return componentstatus.StatusNone, ""
	}
	last := h.statuses[len(h.statuses)-1]
	if last.Err() != nil {
		text = last.Err().Error()
	}
	return last.Status(), text
}

// Fails reports whether the last status is a recoverable error.
func (h *Host) Fails() bool {
	status, _ := h.Status()
	return status == componentstatus.StatusRecoverableError
}

// IsStandby reports whether the last status says that another process leads.
func (h *Host) IsStandby() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.statuses) == 0 {
		return false
	}
	standby, ok := h.statuses[len(h.statuses)-1].Attributes().Get("kube_events.standby")
	return ok && standby.Bool()
}

// Options are what a process is started with.
type Options struct {
	Config            string
	Name              string    // of the receiver; empty: it has none
	Disk              *Disk     // nil: no storage
	Elector           *Elector  // nil: no leader election
	Logs              *Pipeline // nil: a new one
	NoLogs, NoMetrics bool
	Telemetry         *componenttest.Telemetry
	Interval          time.Duration // of the metric; 0: 100 ms
	// Through is what the metric passes before the sink; nil: nothing.
	Through func(sink consumer.Metrics) consumer.Metrics
}

// Process is one life of a receiver.
type Process struct {
	*Elector
	Logs      *Pipeline
	Metrics   *consumertest.MetricsSink
	Host      *Host
	Log       *observer.ObservedLogs
	Telemetry *componenttest.Telemetry
	Stop      func()
}

// Launch starts a receiver in a logs and a metrics pipeline. It stops at the latest when the test ends.
func Launch(t *testing.T, api *apitest.Server, o Options) *Process {
	t.Helper()
	p := &Process{Logs: &Pipeline{}, Metrics: &consumertest.MetricsSink{}, Elector: o.Elector}
	if o.Logs != nil {
		p.Logs = o.Logs
	}
	p.Host = &Host{Extensions: map[component.ID]component.Component{}}
	cfg := ConfigFor(t, api, o.Config)
	cfg.CollectionInterval = cmp.Or(o.Interval, 100*time.Millisecond)
	if o.Disk != nil {
		id := component.MustNewID("disk")
		cfg.Storage, p.Host.Extensions[id] = &id, o.Disk
	}
	if o.Elector != nil {
		id := component.MustNewID("vote")
		cfg.LeaderElector, p.Host.Extensions[id] = &id, o.Elector
		cfg.ProgressConfigMap = ProgressNamespace + "/" + strings.TrimSuffix(ProgressName+"."+o.Name, ".")
	}
	if p.Telemetry = o.Telemetry; p.Telemetry == nil {
		p.Telemetry = componenttest.NewTelemetry()
	}
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.ID = component.NewIDWithName(metadata.Type, o.Name)
	settings.TelemetrySettings = p.Telemetry.NewTelemetrySettings()
	settings.BuildInfo.Version = "v0.0.0"
	core, log := observer.New(zap.InfoLevel)
	settings.Logger, p.Log = zap.New(core), log

	var logs consumer.Logs
	if !o.NoLogs {
		logs = p.Logs
	}
	var metrics consumer.Metrics
	if !o.NoMetrics {
		metrics = p.Metrics
	}
	if o.Through != nil {
		metrics = o.Through(metrics)
	}
	p.Stop = StartIn(t, cfg, settings, p.Host, logs, metrics)
	return p
}

// AwaitRecords waits for these records, and for no others.
func (p *Process) AwaitRecords(t *testing.T, want ...string) {
	t.Helper()
	Eventually(t, func() bool { return len(p.Logs.Names()) >= len(want) }, "%d records: %v", len(p.Logs.Names()), p.Logs.Names())
	time.Sleep(5 * time.Second)
	assert.Equal(t, want, p.Logs.Names())
}

// Sum returns the newest value of the metric over all series.
func (p *Process) Sum() (total int64) {
	if all := p.Metrics.AllMetrics(); len(all) > 0 {
		EachPoint(all[len(all)-1], func(dp pmetric.NumberDataPoint) { total += dp.IntValue() })
	}
	return total
}

// Sums returns all values of the metric over all series, in order, each once.
func (p *Process) Sums() (found []int64) {
	for _, metrics := range p.Metrics.AllMetrics() {
		total := int64(0)
		EachPoint(metrics, func(dp pmetric.NumberDataPoint) { total += dp.IntValue() })
		found = append(found, total)
	}
	return slices.Compact(found)
}

// Starts returns the start times of all points, each once.
func (p *Process) Starts() (found []time.Time) {
	for _, metrics := range p.Metrics.AllMetrics() {
		EachPoint(metrics, func(dp pmetric.NumberDataPoint) {
			if at := dp.StartTimestamp().AsTime(); !slices.ContainsFunc(found, at.Equal) {
				found = append(found, at)
			}
		})
	}
	return found
}

// EachPoint calls do with each point of the metric.
func EachPoint(metrics pmetric.Metrics, do func(pmetric.NumberDataPoint)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, dp := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			do(dp)
		}
	}
}

// AwaitSum waits until the newest value of the metric is this one.
func (p *Process) AwaitSum(t *testing.T, want int64) {
	t.Helper()
	Eventually(t, func() bool { return p.Sum() == want }, "it is %d instead of %d", p.Sum(), want)
}

// Logged returns the messages with a field of this name.
func (p *Process) Logged(field string) []observer.LoggedEntry {
	return p.Log.FilterFieldKey(field).All()
}

// Warned returns the warnings and errors whose error is err.
func (p *Process) Warned(err error) []observer.LoggedEntry {
	return p.Log.Filter(func(e observer.LoggedEntry) bool {
		return e.Level >= zap.WarnLevel && strings.Contains(fmt.Sprint(e.ContextMap()["error"]), err.Error())
	}).All()
}

// Waiting returns how many events have arrived and are not processed yet.
func (p *Process) Waiting(t *testing.T) (events int64) {
	t.Helper()
	metric, err := p.Telemetry.GetMetric("otelcol_kube_events_waiting")
	require.NoError(t, err)
	for _, dp := range metric.Data.(metricdata.Gauge[int64]).DataPoints {
		events += dp.Value
	}
	return events
}

// ElectAndDeliver lets the process lead, and waits until it has delivered an event of this name.
func (p *Process) ElectAndDeliver(t *testing.T, api *apitest.Server, name string) {
	t.Helper()
	p.Elect()
	api.Put(Event(name, 1))
	p.AwaitRecords(t, name+"+1")
}
