// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

// pipelineFails answers with retryable errors for a minute; then with permanent ones; then not at
// all; then it accepts everything and does not answer.
func pipelineFails(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	f.watchedBy(t, f.cluster.Kubeconfig(), withStorage, givesUpSoon)
	f.begin(t)
	f.delivers(t, 50)
	for _, trouble := range []struct {
		answer answer
		lasts  time.Duration
	}{{rejectRetryable, 60 * time.Second}, {rejectPermanently, 3 * time.Second}, {withoutAnswer, 15 * time.Second}, {acceptWithoutAnswer, 10 * time.Second}} {
		f.sink.answers(trouble.answer)
		time.Sleep(trouble.lasts)
		f.sink.answers(accept)
		f.delivers(t, 50)
	}
	r := f.conclude(t)
	r.remark = "rejected occurrences are not in the logs, but in the metric"
	return r
}

// exportersDiffer has three exporters behind one receiver, without queues: one accepts everything,
// one refuses permanently, and one refuses for half a minute with a retryable error.
func exportersDiffer(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	final, later := newSink(t), newSink(t)
	exporter := func(name string, to *sink) setting {
		return fmt.Sprintf("exporters::otlp_http/%s: {endpoint: %q, headers: {%s: %[1]s}, compression: none, timeout: 3s, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}",
			name, to.url, replicaHeader)
	}
	const all = "[otlp_http/final, otlp_http, otlp_http/later]"
	f.watchedBy(t, f.cluster.Kubeconfig(), withStorage, exporter("final", final), exporter("later", later),
		"service::pipelines::logs::exporters: "+all, "service::pipelines::metrics::exporters: "+all)
	f.begin(t)
	f.delivers(t, 50)
	final.answers(rejectPermanently)
	f.delivers(t, 50)
	later.answers(rejectRetryable)
	time.Sleep(30 * time.Second)
	later.answers(accept)
	f.delivers(t, 50)
	final.answers(accept)
	f.delivers(t, 50)
	r := f.conclude(t)
	r.remark = "the row is that of the first; the second misses what it rejected and nothing else, the third misses nothing"

	judged := func(s *sink) row {
		return judge(f.truth(), recordsIn(f.namespace, s.allRecords()), pointsIn(f.namespace, s.allPoints()))
	}
	second, third := judged(final), judged(later)
	t.Log("the second:", second)
	t.Log("the third:", third)
	assert.Positive(t, second.Rejected)
	for _, r := range []row{second, third} {
		assert.Zero(t, r.Lost, "lost occurrences")
		assert.Zero(t, r.Surplus, "occurrences that come twice without the same log.record.uid")
		assert.Equal(t, r.Made, r.metric, "the metric's total")
	}
	assert.Zero(t, third.Rejected)
	return r
}

// withQueue lets the exporter keep in storage, and retry, what the backend refuses.
const withQueue setting = "exporters::otlp_http: {sending_queue: {enabled: true, storage: file_storage, sizer: bytes, queue_size: 500000000}, " +
	"retry_on_failure: {enabled: true, initial_interval: 200ms, max_interval: 2s, max_elapsed_time: 0s}}"

// killedWhileRefused kills the Collector while the pipeline refuses what it took from the API
// server.
func killedWhileRefused(settings ...setting) func(*testing.T) row {
	return func(t *testing.T) row { return killWhileRefused(t, settings) }
}

func killWhileRefused(t *testing.T, settings []setting) row {
	t.Helper()
	f := newFixture(t, sharedCluster(t))
	f.isQueued = slices.Contains(settings, withQueue)
	c := f.watchedBy(t, f.cluster.Kubeconfig(), append(settings, withStorage)...)
	f.begin(t)
	f.delivers(t, 50)
	f.sink.answers(rejectRetryable)
	f.load.Grows(t, 200)
	c.kill()
	f.load.Grows(t, 50)
	c.start(t)
	c.isReady(t)
	f.load.Grows(t, 50)
	c.terminate(t)
	f.load.Grows(t, 50)
	c.start(t)
	f.sink.answers(accept)
	f.delivers(t, 50)
	f.remark = "kill -9, then SIGTERM, while it answers 503"
	return f.conclude(t)
}

// backend rejects the first request of each event with a status, and accepts the others. With 200, it
// rejects the records in its answer: a partial success. With 0, it accepts everything.
type backend struct {
	mu                 sync.Mutex
	status             int
	rejected, accepted []string // names of events
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := plogotlp.NewExportRequest()
	if r.URL.Path != "/v1/logs" || err != nil || request.UnmarshalProto(body) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for _, resource := range request.Logs().ResourceLogs().All() {
		for _, log := range resource.ScopeLogs().At(0).LogRecords().All() {
			names = append(names, otlpsink.Text(log.Attributes(), "k8s.event.name"))
		}
	}
	if b.status == 0 || slices.Contains(b.rejected, names[0]) {
		b.accepted = append(b.accepted, names...)
		return
	}
	b.rejected = append(b.rejected, names...)
	answer := plogotlp.NewExportResponse()
	answer.PartialSuccess().SetRejectedLogRecords(int64(len(names)))
	body, _ = answer.MarshalProto()
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(b.status)
	_, _ = w.Write(body)
}

func (b *backend) answers(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

func (b *backend) has(names *[]string, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(*names, name)
}

// TestStatusesOfABackend: the exporter otlp_http decides which of them are retryable.
func TestStatusesOfABackend(t *testing.T) {
	b := &backend{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	f := newFixture(t, sharedCluster(t))
	f.sink.url = server.URL
	f.watchedBy(t, f.cluster.Kubeconfig(), withStorage, "receivers::kube_events::start_at: beginning")
	for status, isRetried := range map[int]bool{
		200: false, 301: false, 400: false, 401: false, 403: false, 404: false, 408: false, 413: false, 429: true,
		500: false, 501: false, 502: true, 503: true, 504: true, 505: false,
	} {
		b.answers(status)
		first := f.probe(t)
		harness.Eventually(t, func() bool { return b.has(&b.rejected, first) }, "status %d", status)
		b.answers(0)
		next := f.probe(t)
		harness.Eventually(t, func() bool { return b.has(&b.accepted, next) }, "the event after status %d", status)
		assert.Equal(t, isRetried, b.has(&b.accepted, first), "status %d", status)
	}
}
