// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	deliveries "github.com/kubeevents/kubeeventsreceiver/internal/delivery"
)

const (
	// interval is the time between two looks for parts that are final.
	interval = time.Second
	// maxBackoff is the longest time that a rollout waits after the pipeline rejected its spans.
	maxBackoff = 30 * time.Second
	// patience is the time for which the pipeline may reject the spans of a rollout before they are
	// dropped.
	patience = time.Hour
	// deliveryTimeout is the time that the pipeline may take for a request.
	deliveryTimeout = time.Minute
	// maxRequest bounds a request, in bytes of OTLP. Most backends accept 4 MiB.
	maxRequest = 2 << 20
)

// delivery is some parts of one revision, in at most one request.
type delivery struct {
	key      rollout.Key
	revision *rollout.Revision
	parts    []rollout.Part
	size     int // in bytes of OTLP
}

// deliverUntil delivers the parts that are final, until ctx ends.
func (t *tracker) deliverUntil(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
			t.deliver(ctx, false)
		}
	}
}

// deliver delivers the parts that are final, or all. It puts several rollouts into one request: a request costs more
// than the spans of a small rollout.
func (t *tracker) deliver(ctx context.Context, all bool) {
	copies := map[string]*rollout.Workload{}
	var group []delivery
	size := 0
	for _, key := range t.due(all) {
		if copies[key.Workload] == nil {
			copies[key.Workload] = t.copyOf(key.Workload)
		}
		for _, d := range t.prepare(key, copies[key.Workload], all) {
			if size+d.size > maxRequest {
				t.send(ctx, group)
				group, size = nil, 0
			}
			group, size = append(group, d), size+d.size
		}
	}
	t.send(ctx, group)
}

// due returns the revisions to look at, in a fixed order.
func (t *tracker) due(all bool) (keys []rollout.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for key, l := range t.open {
		if all || !l.at.After(now) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b rollout.Key) int {
		return cmp.Or(strings.Compare(a.Workload, b.Workload), strings.Compare(a.Revision, b.Revision))
	})
	return keys
}

// prepare returns the parts of a revision that are final, and were not delivered.
func (t *tracker) prepare(key rollout.Key, w *rollout.Workload, all bool) []delivery {
	if w == nil || w.Revisions[key.Revision] == nil {
		t.closeForgotten(key)
		return nil
	}
	o := rollout.Options{Idle: t.config.IdleTimeout, Settle: t.config.SettleTime, Now: time.Now()}
	r := w.Revisions[key.Revision]
	return cut(key, r, t.final(key, r, w.Spans(key.Revision, o), all), t.settings.BuildInfo.Version)
}

// closeForgotten closes a revision, unless records have brought it back meanwhile.
func (t *tracker) closeForgotten(key rollout.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, r := t.model.Revision(key); r == nil {
		delete(t.open, key)
	}
}

// final returns the parts that are final, and notes when to look again. If no part is left, and no news came since the
// revision was copied, it is closed.
func (t *tracker) final(key rollout.Key, copied *rollout.Revision, parts []rollout.Part, all bool) (final []rollout.Part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, r := t.model.Revision(key)
	if r == nil {
		return nil
	}
	now, next := time.Now(), time.Time{}
	for _, part := range parts {
		at := time.Unix(0, max(part.News, t.started.UnixNano())).Add(part.Wait)
		switch {
		case r.Sent[part.Key] || t.former[partOf{key, part.Key}]:
		case all || !at.After(now):
			final = append(final, part)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	if len(final) == 0 && next.IsZero() && r.News == copied.News {
		r.Closed = true
		delete(t.open, key)
		t.saved.append(w.Mark(key))
		return nil
	}
	if next.IsZero() {
		next = now.Add(interval)
	}
	l := t.open[key]
	l.at = next
	t.open[key] = l
	return final
}

// cut returns the parts in requests.
func cut(key rollout.Key, r *rollout.Revision, parts []rollout.Part, version string) (all []delivery) {
	size := func(some ...rollout.Part) int {
		return (&ptrace.ProtoMarshaler{}).TracesSize(r.Write(some, metadata.ScopeName, version))
	}
	resource := size()
	for _, part := range parts {
		bytes, last := size(part), len(all)-1
		if last < 0 || all[last].size+bytes > maxRequest {
			all, last = append(all, delivery{key: key, revision: r, size: resource}), last+1
		}
		all[last].parts, all[last].size = append(all[last].parts, part), all[last].size+bytes-resource
	}
	return all
}

// send sends deliveries in one request. If the pipeline rejects it, each gets one of its own, so that one rollout does not
// hold up the others. A pipeline that hangs, or that ends, gets them later.
func (t *tracker) send(ctx context.Context, group []delivery) {
	if len(group) == 0 {
		return
	}
	request := ptrace.NewTraces()
	for _, d := range group {
		d.revision.Write(d.parts, metadata.ScopeName, t.settings.BuildInfo.Version).ResourceSpans().MoveAndAppendTo(request.ResourceSpans())
	}
	spans := int64(request.SpanCount())
	sending, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	err := t.consume(sending, request)
	switch {
	case err == nil:
		t.telemetry.KubeIncidentsSpans.Add(ctx, spans, metric.WithAttributes(t.own))
		for _, d := range group {
			t.done(d)
			t.count(ctx, d.parts)
		}
	case len(group) > 1 && sending.Err() == nil:
		for _, d := range group {
			t.send(ctx, []delivery{d})
		}
	case deliveries.IsPermanent(err) && sending.Err() == nil:
		t.drop(ctx, group[0], spans, err)
	default:
		for _, d := range group {
			t.rejected(ctx, d, err)
		}
	}
}

func (t *tracker) consume(ctx context.Context, request ptrace.Traces) error {
	if t.traces == nil {
		return nil
	}
	return t.traces.ConsumeTraces(ctx, request)
}

// count counts the rollouts whose span was delivered.
func (t *tracker) count(ctx context.Context, parts []rollout.Part) {
	for _, part := range parts {
		if part.Outcome != "" {
			t.telemetry.KubeIncidentsDelivered.Add(ctx, 1, metric.WithAttributes(t.own, attribute.String("outcome", part.Outcome)))
		}
	}
}

// done notes that parts were delivered, or given up.
func (t *tracker) done(d delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, r := t.model.Revision(d.key)
	if r == nil {
		return
	}
	for _, part := range d.parts {
		r.MarkSent(part.Key)
	}
	if l, ok := t.open[d.key]; ok {
		l.backoff, l.rejected = 0, time.Time{}
		t.open[d.key] = l
	}
	t.saved.append(w.Mark(d.key))
}

// rejected makes a rollout wait, and drops its spans after a while.
func (t *tracker) rejected(ctx context.Context, d delivery, err error) {
	t.mu.Lock()
	l, isOpen := t.open[d.key]
	if !isOpen { // It was forgotten meanwhile, and counted then.
		t.mu.Unlock()
		return
	}
	now := time.Now()
	if l.rejected.IsZero() {
		l.rejected = now
	}
	l.backoff = min(max(2*l.backoff, 2*interval), maxBackoff)
	l.at = now.Add(l.backoff)
	t.open[d.key] = l
	t.mu.Unlock()
	if now.Sub(l.rejected) > patience {
		t.drop(ctx, d, int64(d.revision.Write(d.parts, "", "").SpanCount()), err)
		return
	}
	t.settings.Logger.Warn("The pipeline rejected spans of rollouts; retrying", zap.String("revision", d.key.Revision), zap.Error(err))
}

// drop gives parts up.
func (t *tracker) drop(ctx context.Context, d delivery, spans int64, err error) {
	t.telemetry.KubeIncidentsSpansDropped.Add(ctx, spans, metric.WithAttributes(t.own))
	t.settings.Logger.Error("The pipeline rejected spans of a rollout; they are dropped", zap.String("revision", d.key.Revision), zap.Error(err))
	t.done(d)
}
