// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/internal/delivery"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// requestBytes bounds a request, in bytes of OTLP. Several hosted backends refuse a larger one, and
// exporters treat this as a permanent error. A larger record is its own request.
const requestBytes = 1_000_000

// logsPipeline converts records to requests, and delivers these to the logs pipeline. Without one, a
// request has no logs, and counts as delivered.
type logsPipeline struct {
	converter logrecord.Converter
	delivery  *delivery.Deliverer // nil: the receiver is in no logs pipeline
	health    *health.Health
	cluster   semconv.Cluster
}

// request has the records that are delivered together.
type request struct {
	records []observation.Observation
	logs    func() plog.Logs // returns a fresh copy
}

func (l *Loop) newPipeline(cluster semconv.Cluster) *logsPipeline {
	p := &logsPipeline{converter: l.Converter, health: l.Health, cluster: cluster}
	if l.Logs != nil {
		p.delivery = delivery.New(delivery.Settings{
			Next: l.Logs, Retry: l.Retry, Logger: l.Logger, Observer: l.Health,
			Operations: l.Health.Operations, Format: metadata.Type.String(),
		})
	}
	return p
}

// forget forgets how the pipeline behaved: the next leader delivers what it rejected.
func (p *logsPipeline) forget() {
	if p.delivery != nil {
		p.delivery.Forget()
	}
}

// convert converts records to requests. It halves records until each request is small enough.
func (p *logsPipeline) convert(records []observation.Observation) []request {
	switch {
	case len(records) == 0:
		return nil
	case p.delivery == nil:
		return []request{{records: records}}
	}
	convert := func() plog.Logs { return p.converter.Convert(p.cluster, records) }
	logs := convert()
	if half := len(records) / 2; half > 0 && (&plog.ProtoMarshaler{}).LogsSize(logs) > requestBytes {
		return append(p.convert(records[:half]), p.convert(records[half:])...)
	}
	return []request{{records: records, logs: onceThen(logs, convert)}}
}

// onceThen returns the logs at the first call, and what again returns at any other.
func onceThen(logs plog.Logs, again func() plog.Logs) func() plog.Logs {
	used := false
	return func() plog.Logs {
		if used {
			return again()
		}
		used = true
		return logs
	}
}

// deliver delivers the requests one after the other, until stop and drain end. It returns the records
// that are delivered: accepted, or permanently rejected.
func (p *logsPipeline) deliver(stop, drain context.Context, requests []request) (delivered []observation.Observation) {
	began := time.Now()
	for _, r := range requests {
		if p.delivery == nil {
			if drain.Err() != nil { // It also ended the lookups of their owners.
				return nil
			}
			return r.records
		}
		switch p.delivery.Deliver(stop, drain, delivery.Request{Records: len(r.records), Logs: r.logs}) {
		case delivery.OutcomeStopped:
			return delivered
		case delivery.OutcomeAccepted:
			p.health.Delivered(r.records, time.Now())
		}
		delivered = append(delivered, r.records...)
	}
	if len(requests) > 0 {
		p.health.Waited(health.WaitCauseDelivering, time.Since(began))
	}
	return delivered
}
