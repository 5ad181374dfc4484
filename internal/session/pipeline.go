// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/delivery"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

const (
	// requestBytes bounds a request, in bytes of OTLP. Several hosted backends refuse a larger one,
	// and exporters treat this as a permanent error. A larger record is its own request.
	requestBytes = 1_000_000
	// firstRecordBytes is the size of a record in OTLP before any was measured.
	firstRecordBytes = 1000
	// startsAtOnce is how many sessions deliver the same outbox request by request. Later ones
	// deliver its records one at a time: one of them may end the process.
	startsAtOnce = 4
)

// logsPipeline converts records to requests, and delivers these to the logs pipeline. Without one, a
// batch has no requests.
type logsPipeline struct {
	memory      *memory.Memory
	converter   logrecord.Converter
	delivery    *delivery.Deliverer // nil: the receiver is in no logs pipeline
	health      *health.Health
	logger      *zap.Logger
	clusterName string // empty: it has none
	// encodes reports whether requests are saved, and so must be encoded.
	encodes bool
	// recordBytes is the mean size of a record in OTLP, as measured last.
	recordBytes int
}

// forget forgets how the pipeline behaved.
func (l *logsPipeline) forget() {
	if l.delivery != nil {
		l.delivery.Forget()
	}
}

// convert cuts the records into requests of about the same size. If the first ones were as large as
// they may be, records a little larger than the last ones would not fit: requestsWithin would halve
// them, and an exporter that takes long for each request would get more of them.
func (l *logsPipeline) convert(b *batch) {
	if l.delivery == nil {
		return
	}
	for records := b.records; len(records) > 0; {
		expected := int64(len(records)) * int64(l.recordBytes)
		requests := 1 + int((expected+expected/20)/requestBytes) // 5% more, because sizes vary.
		part := records[:(len(records)+requests-1)/requests]
		b.requests = append(b.requests, l.requestsWithin(part)...)
		records = records[len(part):]
	}
}

// requestsWithin halves records until each request is small enough.
func (l *logsPipeline) requestsWithin(records []observation.Observation) []*request {
	// The UID may become known between two attempts, which must be the same.
	cluster := semconv.Cluster{UID: l.memory.Cluster(), Name: l.clusterName}
	convert := func() plog.Logs { return l.converter.Convert(cluster, records) }
	logs := convert()
	made := &request{records: records, count: len(records)}
	var size int
	if l.encodes {
		made.encoded, _ = (&plog.ProtoMarshaler{}).MarshalLogs(logs) // It knows no error.
		size = len(made.encoded)
	} else {
		size = (&plog.ProtoMarshaler{}).LogsSize(logs)
	}
	if half := len(records) / 2; size > requestBytes && half > 0 {
		reached.State("a request is too large and is halved")
		return append(l.requestsWithin(records[:half]), l.requestsWithin(records[half:])...)
	}
	l.recordBytes = max(1, size/len(records))
	again := convert
	if made.encoded != nil {
		again = decoded(made.encoded)
	}
	made.logs = onceThen(logs, again)
	return []*request{made}
}

// deliver delivers the requests one after the other, until the term ends.
func (l *logsPipeline) deliver(b *batch) {
	if len(b.requests) == 0 {
		return
	}
	began := time.Now()
	b.undelivered = l.deliverAll(b.term, b.requests)
	l.health.Waited(health.Delivering, time.Since(began))
}

// deliverAll returns the requests that could not be delivered before the term ended.
func (l *logsPipeline) deliverAll(t leadership.Term, requests []*request) (undelivered []*request) {
	for i, r := range requests {
		switch l.delivery.Deliver(t.Stop, t.Drain, delivery.Request{Records: r.count, Logs: r.logs}) {
		case delivery.Stopped:
			if i > 0 {
				reached.State("a term ends between the requests of a batch")
			}
			return slices.Clone(requests[i:])
		case delivery.Accepted:
			l.health.Delivered(r.records, time.Now())
		}
	}
	return nil
}

// deliverOutbox delivers the outbox of a checkpoint as it is. It reports false if the term ended
// before.
func (l *logsPipeline) deliverOutbox(t leadership.Term, loaded *checkpoint.Loaded) bool {
	requests := stored(loaded.Outbox)
	switch {
	case len(requests) == 0:
		return true
	case l.delivery == nil:
		l.drop(requests)
		return true
	}
	l.logger.Info("Delivering the outbox of the last start", zap.Int("requests", len(requests)))
	if len(requests) > 1 {
		reached.State("an outbox is delivered in several requests")
	}
	if loaded.Starts < startsAtOnce {
		return len(l.deliverAll(t, requests)) == 0
	}
	reached.State("an outbox is delivered one record at a time")
	for _, r := range one(requests) {
		l.logger.Warn("Several starts did not deliver the outbox; delivering its records one at a time",
			zap.Int("starts", loaded.Starts+1), r.describe())
		if len(l.deliverAll(t, []*request{r})) > 0 {
			return false
		}
	}
	return true
}

// drop drops what is in the outbox, since there is no logs pipeline any more.
func (l *logsPipeline) drop(requests []*request) {
	records := 0
	for _, r := range requests {
		records += r.count
	}
	if records > 0 {
		l.health.Dropped(records, nil, true)
		l.logger.Warn("The outbox has records, but the receiver is in no logs pipeline; dropping them",
			zap.Int("records", records))
	}
}
