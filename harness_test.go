// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadatatest"
	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// inBubble runs a test against a fake API server, without a network and with a simulated clock.
func inBubble(t *testing.T, test func(t *testing.T, api *apitest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewInMemory(t)
		accepted := pipes(make(chan net.Conn))
		server := &http.Server{Handler: api, ReadHeaderTimeout: time.Hour}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(accepted)
		}()
		dial := kubeclient.Dial
		kubeclient.Dial = accepted.dial
		t.Cleanup(func() {
			// A request that Shutdown canceled can still be opening its connection.
			synctest.Wait()
			kubeclient.Dial = dial
			close(accepted)
			_ = server.Close()
			<-served
			time.Sleep(time.Minute) // What reads the connections notices that they are closed.
		})
		test(t, api)
	})
}

// pipes are connections within the process.
type pipes chan net.Conn

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := apiserver.Pipe()
	select {
	case p <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// eventually waits, in a bubble, until the condition holds.
func eventually(t *testing.T, holds func() bool, message ...any) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 10*time.Minute; {
		if synctest.Wait(); holds() {
			return
		}
		step := time.Millisecond
		if time.Since(began) > time.Second {
			step = 100 * time.Millisecond
		}
		time.Sleep(step)
	}
	require.Fail(t, "it never happened", message...)
}

// disk is a storage extension whose content outlives the receivers that use it.
type disk struct {
	component.StartFunc
	component.ShutdownFunc

	mu         sync.Mutex
	values     map[string][]byte
	unreadable error
	unwritable error
	// answer is called for each write that was applied, and returns what the storage answers.
	answer  func() error
	writes  int
	largest int // the bytes that a write set
	calls   int // also those that read
}

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *disk) Get(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	return bytes.Clone(d.values[key]), d.unreadable
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Batch(_ context.Context, operations ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	written, size := false, 0
	for _, op := range operations {
		if op.Type == storage.Get {
			op.Value = bytes.Clone(d.values[op.Key])
			if d.unreadable != nil {
				return d.unreadable
			}
			continue
		}
		if d.unwritable != nil {
			return d.unwritable
		}
		written, size = true, size+len(op.Value)
		if op.Type == storage.Set {
			d.values[op.Key] = bytes.Clone(op.Value)
		} else {
			delete(d.values, op.Key)
		}
	}
	if !written {
		return nil
	}
	d.writes++
	d.largest = max(d.largest, size)
	if d.answer != nil {
		return d.answer()
	}
	return nil
}

func (d *disk) Close(context.Context) error { return nil }

// fail makes reads and writes fail; nil: they work.
func (d *disk) fail(unreadable, unwritable error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unreadable, d.unwritable = unreadable, unwritable
}

// copied is the content at this moment, as a crash would leave it.
func (d *disk) copied() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{values: maps.Clone(d.values)}
}

// content is a copy of the values.
func (d *disk) content() map[string][]byte { return d.copied().values }

// size is the sum of the values' sizes.
func (d *disk) size() (total int) {
	for _, value := range d.content() {
		total += len(value)
	}
	return total
}

// host has the extensions "disk" and "vote", and collects the component's status.
type host struct {
	extensions map[component.ID]component.Component
	mu         sync.Mutex
	statuses   []*componentstatus.Event
}

func (h *host) GetExtensions() map[component.ID]component.Component { return h.extensions }

func (h *host) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses = append(h.statuses, event)
}

// status is the last one; its error is empty if there is none.
func (h *host) status() (status componentstatus.Status, text string) {
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

func (h *host) fails() bool {
	status, _ := h.status()
	return status == componentstatus.StatusRecoverableError
}

// pipeline keeps what it accepts, also as the bytes of OTLP.
type pipeline struct {
	consumertest.LogsSink

	mu       sync.Mutex
	accepted [][]byte
	attempts int
	rejects  error
	before   func() // runs at the begin of each attempt
}

func (p *pipeline) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	p.mu.Lock()
	p.attempts++
	before, err := p.before, p.rejects
	p.mu.Unlock()
	if before != nil {
		before()
	}
	if err != nil {
		return err
	}
	encoded, _ := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	p.mu.Lock()
	p.accepted = append(p.accepted, encoded)
	p.mu.Unlock()
	return p.LogsSink.ConsumeLogs(ctx, logs)
}

func (p *pipeline) reject(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rejects = err
}

// onAttempt sets what runs at the begin of each attempt.
func (p *pipeline) onAttempt(before func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = before
}

// requests are what the pipeline has accepted.
func (p *pipeline) requests() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.accepted)
}

func (p *pipeline) attempted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts
}

func (p *pipeline) names() []string { return names(p.AllLogs()) }

// records are the bytes of each record that the pipeline has accepted, with its resource.
func (p *pipeline) records() (found [][]byte) {
	for _, encoded := range p.requests() {
		for _, rl := range decode(encoded).ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				alone := plog.NewLogs()
				resource := alone.ResourceLogs().AppendEmpty()
				rl.Resource().CopyTo(resource.Resource())
				resource.SetSchemaUrl(rl.SchemaUrl())
				scope := resource.ScopeLogs().AppendEmpty()
				rl.ScopeLogs().At(0).Scope().CopyTo(scope.Scope())
				scope.SetSchemaUrl(rl.ScopeLogs().At(0).SchemaUrl())
				lr.CopyTo(scope.LogRecords().AppendEmpty())
				record, _ := (&plog.ProtoMarshaler{}).MarshalLogs(alone)
				found = append(found, record)
			}
		}
	}
	return found
}

func decode(encoded []byte) plog.Logs {
	logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(encoded)
	if err != nil {
		panic(err)
	}
	return logs
}

// occurrences is the sum over all records, without those that are the same byte for byte.
func occurrences(records ...[]byte) (total int64) {
	seen := map[string]bool{}
	for _, encoded := range records {
		if seen[string(encoded)] {
			continue
		}
		seen[string(encoded)] = true
		record := decode(encoded).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		n, _ := record.Attributes().Get("k8s.event.occurrences")
		total += n.Int()
	}
	return total
}

// options are what a process is started with.
type options struct {
	config            string
	name              string // of the receiver; empty: it has none
	disk              *disk  // nil: no storage
	vote              *vote  // nil: no leader election
	logs              *pipeline
	noLogs, noMetrics bool
	telemetry         *componenttest.Telemetry
	interval          time.Duration // of the metric; 0: 100 ms
	// through is what the metric passes before the sink; nil: nothing.
	through func(sink consumer.Metrics) consumer.Metrics
}

// process is one life of a receiver.
type process struct {
	*vote
	logs    *pipeline
	metrics *consumertest.MetricsSink
	host    *host
	log     *observer.ObservedLogs
	stop    func()
	// receivers are that of the logs pipeline and that of the metrics pipeline.
	receivers []component.Component
}

func launch(t *testing.T, api *apitest.Server, o options) *process {
	t.Helper()
	p := &process{logs: &pipeline{}, metrics: &consumertest.MetricsSink{}, vote: o.vote}
	if o.logs != nil {
		p.logs = o.logs
	}
	p.host = &host{extensions: map[component.ID]component.Component{}}
	cfg := configFor(t, api.URL, o.config)
	cfg.CollectionInterval = cmp.Or(o.interval, 100*time.Millisecond)
	if o.disk != nil {
		id := component.MustNewID("disk")
		cfg.Storage, p.host.extensions[id] = &id, o.disk
	}
	if o.vote != nil {
		id := component.MustNewID("vote")
		cfg.LeaderElector, p.host.extensions[id] = &id, o.vote
	}
	settings := receivertest.NewNopSettings(metadata.Type)
	if o.telemetry != nil {
		settings = metadatatest.NewSettings(o.telemetry)
	}
	settings.ID = component.NewIDWithName(metadata.Type, o.name)
	settings.BuildInfo.Version = "v0.0.0"
	core, log := observer.New(zap.InfoLevel)
	settings.Logger, p.log = zap.New(core), log

	if !o.noLogs {
		r, err := NewFactory().CreateLogs(t.Context(), settings, cfg, consumer.Logs(p.logs))
		require.NoError(t, err)
		p.receivers = append(p.receivers, r)
	}
	if !o.noMetrics {
		next := consumer.Metrics(p.metrics)
		if o.through != nil {
			next = o.through(next)
		}
		r, err := NewFactory().CreateMetrics(t.Context(), settings, cfg, next)
		require.NoError(t, err)
		p.receivers = append(p.receivers, r)
	}
	for _, r := range p.receivers {
		require.NoError(t, r.Start(t.Context(), p.host))
	}
	p.stop = sync.OnceFunc(func() {
		for _, r := range p.receivers {
			assert.NoError(t, r.Shutdown(context.Background()))
		}
	})
	t.Cleanup(p.stop)
	return p
}

// awaitRecords waits for these records, and for no others.
func (p *process) awaitRecords(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, func() bool { return len(p.logs.names()) >= len(want) }, "%d records: %v", len(p.logs.names()), p.logs.names())
	time.Sleep(5 * time.Second)
	assert.Equal(t, want, p.logs.names())
}

// settle waits until all that exists is read, delivered and saved.
func settle() {
	synctest.Wait()
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

// sum is the newest value of the metric over all series.
func (p *process) sum() (total int64) {
	if all := p.metrics.AllMetrics(); len(all) > 0 {
		eachPoint(all[len(all)-1], func(dp pmetric.NumberDataPoint) { total += dp.IntValue() })
	}
	return total
}

// sums are all values of the metric over all series, in order, each once.
func (p *process) sums() (found []int64) {
	for _, metrics := range p.metrics.AllMetrics() {
		total := int64(0)
		eachPoint(metrics, func(dp pmetric.NumberDataPoint) { total += dp.IntValue() })
		found = append(found, total)
	}
	return slices.Compact(found)
}

// starts are the start times of all points, each once.
func (p *process) starts() (found []time.Time) {
	for _, metrics := range p.metrics.AllMetrics() {
		eachPoint(metrics, func(dp pmetric.NumberDataPoint) {
			if at := dp.StartTimestamp().AsTime(); !slices.ContainsFunc(found, at.Equal) {
				found = append(found, at)
			}
		})
	}
	return found
}

func eachPoint(metrics pmetric.Metrics, do func(pmetric.NumberDataPoint)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, dp := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			do(dp)
		}
	}
}

func (p *process) awaitSum(t *testing.T, want int64) {
	t.Helper()
	eventually(t, func() bool { return p.sum() == want }, "it is %d instead of %d", p.sum(), want)
}

// logged are the messages with a field of this name.
func (p *process) logged(field string) []observer.LoggedEntry {
	return p.log.FilterFieldKey(field).All()
}

// warned are the warnings and errors whose error is err.
func (p *process) warned(err error) []observer.LoggedEntry {
	return p.log.Filter(func(e observer.LoggedEntry) bool {
		return e.Level >= zap.WarnLevel && strings.Contains(fmt.Sprint(e.ContextMap()["error"]), err.Error())
	}).All()
}
