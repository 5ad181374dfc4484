// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
)

// output is the connector between two pipelines.
type output struct {
	tracker   *tracker
	instances *instances
	stamped   consumer.Logs // gets stamped records; nil: nobody wants them from this output
	released  sync.Once
}

// Start starts the tracker, if the other output has not.
func (o *output) Start(ctx context.Context, host component.Host) error {
	return o.tracker.start(ctx, host)
}

// Shutdown ends the tracker, if no other output uses it.
func (o *output) Shutdown(ctx context.Context) (err error) {
	o.released.Do(func() {
		if o.instances.Release(o.tracker.config) {
			err = o.tracker.shutdown(ctx)
		}
	})
	return err
}

// Capabilities reports that the output of stamped records writes ids into them.
func (o *output) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: o.stamped != nil}
}

// ConsumeLogs never fails because of rollouts or problems. All outputs get the same records, and one of them takes them.
func (o *output) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	if o != o.tracker.taker {
		return nil
	}
	o.tracker.take(ctx, logs)
	if o.stamped == nil {
		return nil
	}
	o.tracker.stamp(logs)
	return o.stamped.ConsumeLogs(ctx, logs)
}
