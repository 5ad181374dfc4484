// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
)

// output is the connector between two pipelines: to traces, or to logs.
type output struct {
	tracker   *tracker
	instances *instances
	logs      consumer.Logs // gets stamped records; nil: this is the output of traces
	released  sync.Once
}

// Start starts the tracker, if the other output has not.
func (o *output) Start(ctx context.Context, host component.Host) error {
	return o.tracker.start(ctx, host)
}

// Shutdown ends the tracker, if no other output uses it.
func (o *output) Shutdown(ctx context.Context) (err error) {
	o.released.Do(func() {
		if o.instances.release(o.tracker) {
			err = o.tracker.shutdown(ctx)
		}
	})
	return err
}

// Capabilities reports that the output of logs writes ids into the records.
func (o *output) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: o.logs != nil}
}

// ConsumeLogs never fails because of rollouts. Both outputs get the same records, so that of traces leaves them to that of
// logs.
func (o *output) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	if o.logs == nil && o.tracker.stamps {
		return nil
	}
	o.tracker.take(ctx, logs)
	if o.logs == nil {
		return nil
	}
	o.tracker.stamp(logs)
	return o.logs.ConsumeLogs(ctx, logs)
}
