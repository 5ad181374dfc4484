// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func (e *enricher) logs(ctx context.Context, data plog.Logs) (plog.Logs, error) {
	all := data.ResourceLogs()
	e.enrich(ctx, all.Len(), false, func(i int) pcommon.Map { return all.At(i).Resource().Attributes() })
	return data, nil
}

func (e *enricher) metrics(ctx context.Context, data pmetric.Metrics) (pmetric.Metrics, error) {
	all := data.ResourceMetrics()
	e.enrich(ctx, all.Len(), true, func(i int) pcommon.Map { return all.At(i).Resource().Attributes() })
	return data, nil
}

func (e *enricher) traces(ctx context.Context, data ptrace.Traces) (ptrace.Traces, error) {
	all := data.ResourceSpans()
	e.enrich(ctx, all.Len(), false, func(i int) pcommon.Map { return all.At(i).Resource().Attributes() })
	return data, nil
}

// unanswered is a resource whose subject is being looked up.
type unanswered struct {
	attributes pcommon.Map
	*pending
}

// enrich adds what is known to n resources. They wait together for what is not.
func (e *enricher) enrich(ctx context.Context, n int, isMetric bool, resource func(int) pcommon.Map) {
	var counts counts
	var waiting []unanswered
	for i := range n {
		attributes := resource(i)
		s, ok := subjectOf(attributes, isMetric, e.extractor.Uses())
		if !ok {
			counts[outcomeUntouched]++
			continue
		}
		known, pending := e.table.get(s)
		if pending != nil {
			waiting = append(waiting, unanswered{attributes, pending})
			continue
		}
		counts[add(attributes, known)]++
	}
	if len(waiting) > 0 {
		e.await(ctx, waiting, &counts)
	}
	e.telemetry.count(ctx, &counts)
}

// await adds the answers that come in time. Nothing waits twice for one lookup.
func (e *enricher) await(ctx context.Context, waiting []unanswered, counts *counts) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Wait)
	defer cancel()
	for _, w := range waiting {
		if time.Since(w.since) < e.config.Wait {
			select {
			case <-w.done:
			case <-ctx.Done():
			}
		}
		select {
		case <-w.done:
			counts[add(w.attributes, w.answer)]++
		default:
			counts[outcomeLate]++
		}
	}
}

// add adds the attributes that a resource does not have.
func add(to pcommon.Map, known answer) outcome {
	if known.outcome != outcomeFound {
		return known.outcome
	}
	to.EnsureCapacity(to.Len() + known.attributes.Len())
	for name, value := range known.attributes.All() {
		if added, isOld := to.GetOrPutEmpty(name); !isOld {
			value.CopyTo(added)
		}
	}
	return outcomeFound
}
