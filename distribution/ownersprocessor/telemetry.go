// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/ownersprocessor/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/rights"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// outcome is what became of a resource.
type outcome uint8

const (
	outcomeUnknown   outcome = iota // nothing: its object was never looked up
	outcomeFound                    // it has the attributes
	outcomeLate                     // the lookup took too long, and goes on
	outcomeUntouched                // it names no object, or has the attributes already
	outcomeNotFound                 // this and the following are resolutions
)

// outcomes are the values of the attribute result.
var outcomes = [...]string{"", "found", "late", "untouched", "not_found", "forbidden", "timeout", "unavailable", "cycle", "depth"}

// outcomeOf returns why an object or its workload is not known.
func outcomeOf(failure resolver.Resolution) outcome {
	return outcome(max(0, slices.Index(outcomes[:], string(failure))))
}

// counts has the number of resources by outcome.
type counts [len(outcomes)]int64

// telemetry counts resources and requests, and logs missing permissions and outages of the API server. It implements
// resolver.Observer.
type telemetry struct {
	*rights.Missing
	outage
	builder  *metadata.TelemetryBuilder
	id       attribute.KeyValue
	outcomes [len(outcomes)][]metric.AddOption
}

func newTelemetry(settings processor.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{Missing: rights.NewMissing(settings.Logger), outage: outage{logger: settings.Logger}, builder: builder, id: attribute.String("processor", settings.ID.String())}
	for o, name := range outcomes {
		t.outcomes[o] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(t.id, attribute.String("result", name)))}
	}
	return t, nil
}

func (t *telemetry) count(ctx context.Context, all *counts) {
	for o, n := range all {
		if n > 0 {
			t.builder.KubeOwnersResources.Add(ctx, n, t.outcomes[o]...)
		}
	}
}

// LookupDone implements resolver.Observer.
func (t *telemetry) LookupDone(err error, _ time.Duration) {
	t.note(err)
	result := cmp.Or(string(resolver.ResolutionOf(err)), "found")
	t.builder.KubeOwnersRequests.Add(context.Background(), 1, metric.WithAttributes(t.id, attribute.String("result", result)))
}

// CacheHit implements resolver.Observer.
func (*telemetry) CacheHit() {}

// logInterval is the minimum time between two logged outages: one kind of object may fail while others work.
const logInterval = 10 * time.Minute

// outage logs that requests get no answer, once until they do again.
type outage struct {
	logger *zap.Logger

	mu       sync.Mutex // guards the following
	isOn     bool
	loggedAt time.Time
}

// note notes how a request ended.
func (o *outage) note(err error) {
	isFailure := err != nil && !resolver.IsAnswer(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case isFailure && !o.isOn && time.Since(o.loggedAt) >= logInterval:
		o.isOn, o.loggedAt = true, time.Now()
		o.logger.Warn("Cannot read objects from the API server; retrying. Resources of unknown objects get no workload. Check its address and the credentials", zap.Error(err))
	case !isFailure && o.isOn:
		o.isOn = false
		o.logger.Info("The API server answers again")
	}
}
