// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	deliveries "github.com/kubeevents/kubeeventsreceiver/internal/delivery"
)

const (
	// maxItems bounds the records that wait for the pipeline. Each has a few kilobytes.
	maxItems = 2000
	// itemsInRequest and bytesInRequest bound a request, unless a single record is larger.
	itemsInRequest, bytesInRequest = 200, 1_000_000
)

// outbox has the records that the pipeline has not accepted, the oldest first.
type outbox struct {
	items   []item
	full    int // records for which there was no room
	backoff time.Duration
	retryAt time.Time // zero: at once
}

// add adds a record. Without room, another one goes.
func (o *outbox) add(one item) {
	if len(o.items) == maxItems {
		o.drop()
	}
	o.items = append(o.items, one)
}

// drop drops the oldest record of the namespace that has most, so that nobody displaces what others have.
func (o *outbox) drop() {
	counts, most := map[problem.Space]int{}, o.items[0].in
	for i := range o.items {
		in := o.items[i].in
		if counts[in]++; counts[in] > counts[most] {
			most = in
		}
	}
	oldest := slices.IndexFunc(o.items, func(one item) bool { return one.in == most })
	o.items, o.full = slices.Delete(o.items, oldest, oldest+1), o.full+1
}

// deliver delivers what waits, if it is time. It returns what the pipeline has accepted, how many records are dropped,
// and the last error; nil: there was none. What no pipeline wants counts as delivered. After a permanent error, each
// record of the request gets one of its own, so that one does not take others with it.
func (o *outbox) deliver(ctx context.Context, now time.Time, to consumer.Logs) (delivered []item, dropped int, err error) {
	dropped, o.full = o.full, 0
	if now.Before(o.retryAt) {
		return nil, dropped, nil
	}
	alone := 0 // records that get their own request
	for len(o.items) > 0 {
		group := o.items[:1]
		if alone > 0 {
			alone--
		} else {
			group = o.next()
		}
		failure := consume(ctx, group, to)
		switch {
		case failure == nil:
		case !deliveries.IsPermanent(failure):
			o.backoff = min(max(2*o.backoff, 2*interval), maxBackoff)
			o.retryAt = now.Add(o.backoff)
			return delivered, dropped, failure
		case len(group) > 1:
			alone = len(group)
			continue
		default:
			dropped, err = dropped+1, failure
		}
		delivered = append(delivered, group...)
		o.items, o.backoff = o.items[len(group):], 0
		clear(group) // Else the array keeps the records.
	}
	return delivered, dropped, err
}

// next returns the records of the next request.
func (o *outbox) next() []item {
	bytes := 0
	for i := range o.items[:min(itemsInRequest, len(o.items))] {
		bytes += (&plog.ProtoMarshaler{}).LogsSize(o.items[i].logs)
		if i > 0 && bytes > bytesInRequest {
			return o.items[:i]
		}
	}
	return o.items[:min(itemsInRequest, len(o.items))]
}

func consume(ctx context.Context, group []item, to consumer.Logs) error {
	if to == nil {
		return nil
	}
	request := plog.NewLogs()
	for _, one := range group {
		one.logs.ResourceLogs().At(0).CopyTo(request.ResourceLogs().AppendEmpty())
	}
	return to.ConsumeLogs(ctx, request)
}

// waiting returns the ids of the problems and changes whose records wait, and of those that one of them opens.
func (o *outbox) waiting() (all, opening map[string]bool) {
	all, opening = map[string]bool{}, map[string]bool{}
	for _, one := range o.items {
		all[one.id()] = true
		if one.opens {
			opening[one.id()] = true
		}
	}
	return all, opening
}
