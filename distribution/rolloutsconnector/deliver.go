// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"cmp"
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/distribution/rolloutsconnector/internal/metadata"
)

const (
	// interval is how often the loop looks for rollouts that ended.
	interval = time.Second
	// maxBackoff is how long the loop waits at most after the pipeline rejected spans.
	maxBackoff = 30 * time.Second
	// maxRequest bounds a request, in bytes of OTLP. Most backends accept 4 MiB.
	maxRequest = 2 << 20
)

// delivery is what the pipeline is to get of one revision.
type delivery struct {
	key      rollout.Key
	requests []ptrace.Traces
	sent     map[string]uint64 // hashes of the parts in the requests
	replaced map[string]uint64 // the parts of which the pipeline has another version, with uncertain as their hash
	news     int64             // the last news that it contains
	at       time.Time         // when it was prepared
	complete bool
	settled  bool
	// uncertain reports that a container has started so late that it is not known whether it goes on.
	uncertain bool
	size      int // of the requests, in bytes
}

// deliverUntil delivers the rollouts that have ended, until ctx ends.
func (t *tracker) deliverUntil(ctx context.Context) {
	backoff := interval
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
		if t.deliverDue(ctx) {
			backoff = interval
		} else {
			backoff = min(2*backoff, maxBackoff)
		}
	}
}

// deliverDue reports whether the pipeline accepted everything.
func (t *tracker) deliverDue(ctx context.Context) bool {
	return t.deliverAll(ctx, t.crowding(), true) && t.deliverAll(ctx, t.due(time.Now()), false)
}

// deliverRest delivers all rollouts, also those that have not ended.
func (t *tracker) deliverRest(ctx context.Context) {
	t.deliverAll(ctx, t.due(time.Now().Add(t.config.IdleTimeout)), true)
}

// deliverAll delivers several rollouts in as few requests as possible: a request costs more than the
// spans of a small rollout.
func (t *tracker) deliverAll(ctx context.Context, keys []rollout.Key, early bool) bool {
	delivered := &rollout.Model{}
	defer t.saveDelivered(ctx, delivered)
	var group []*delivery
	size := 0
	for _, key := range keys {
		d := t.prepare(key, early)
		if d == nil {
			continue
		}
		if size+d.size > maxRequest {
			if !t.deliver(ctx, group, delivered) {
				return false
			}
			group, size = nil, 0
		}
		group, size = append(group, d), size+d.size
	}
	return t.deliver(ctx, group, delivered)
}

// saveDelivered saves what was delivered. If it cannot, a restart delivers the same spans again.
func (t *tracker) saveDelivered(ctx context.Context, delivered *rollout.Model) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for workload, w := range delivered.Workloads {
		for revision, r := range w.Revisions {
			// News that came since then are saved already.
			_, known := t.model.Revision(rollout.Key{Workload: workload, Revision: revision})
			r.Closed = known != nil && known.Closed
		}
	}
	if err := t.saveMarks(ctx, delivered); err != nil {
		t.settings.Logger.Warn("Cannot save that spans were delivered; a restart would deliver them again", zap.Error(err))
	}
}

// saveMarks saves what is known of the versions that a backend has.
func (t *tracker) saveMarks(ctx context.Context, marks *rollout.Model) error {
	if t.saved == nil || len(marks.Workloads) == 0 {
		return nil
	}
	return t.saved.append(ctx, time.Unix(0, 0), marks)
}

// due returns the revisions to look at, in a fixed order.
func (t *tracker) due(now time.Time) (keys []rollout.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, w := range t.open {
		if !w.next.After(now) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b rollout.Key) int {
	return cmp.Or(strings.Compare(a.Workload, b.Workload), strings.Compare(a.Revision, b.Revision))
}

// crowding returns the open revisions that the connector would soon forget, because there are so many
// others. A container that crashes has no news for a long time, so it would be forgotten first, again
// and again, and never delivered. Room is left for those that come until the loop looks again: hundreds.
func (t *tracker) crowding() []rollout.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	undelivered := t.undelivered()
	if undelivered <= t.config.MaxRollouts*3/4 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(t.open), func(a, b rollout.Key) int {
		if once := rollout.CanLiveOnce(a.Revision); once != rollout.CanLiveOnce(b.Revision) {
			return map[bool]int{true: -1, false: 1}[once]
		}
		return cmp.Or(cmp.Compare(t.newsOf(a), t.newsOf(b)), compareKeys(a, b))
	})
	keys = slices.DeleteFunc(keys, func(key rollout.Key) bool { return t.open[key].again })
	return keys[:undelivered-t.config.MaxRollouts/2]
}

func (t *tracker) newsOf(key rollout.Key) int64 {
	_, r := t.model.Revision(key)
	return r.News
}

// prepare returns what is to be delivered; nil: the rollout has not ended. Early, it does not wait for
// that.
func (t *tracker) prepare(key rollout.Key, early bool) *delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, r := t.model.Revision(key)
	if r == nil {
		delete(t.open, key)
		return nil
	}
	now := time.Now()
	result := w.Spans(key.Revision, rollout.Options{Idle: t.config.IdleTimeout, Now: now})
	waits := t.open[key]
	if end := t.endOf(r, result, waits); !early && end.After(now) {
		waits.next = end
		t.open[key] = waits
		return nil
	}
	d := &delivery{key: key, sent: map[string]uint64{}, replaced: map[string]uint64{}, news: r.News, at: now, complete: result.Complete, settled: result.Settled}
	d.uncertain = !early && result.Complete && !result.Settled && waits.started.Add(t.config.IdleTimeout).After(now)
	if t.traces != nil {
		d.pack(r, result.Parts, t.settings.BuildInfo.Version)
	}
	return d
}

// endOf returns when the rollouts of a revision end, if there are no more news.
func (t *tracker) endOf(r *rollout.Revision, result rollout.Result, waits waiting) time.Time {
	end := latest(time.Unix(0, r.News), t.started)
	switch {
	case result.Settled:
		end = end.Add(t.settleTime(r, result.Parts))
	case result.Complete: // A container that has started again can end again.
		end = latest(end, waits.started).Add(t.config.IdleTimeout)
	case waits.again:
		return t.quiet(waits)
	default:
		end = end.Add(t.config.IdleTimeout)
	}
	if waits.again {
		return end
	}
	return earliest(end, waits.most)
}

// settleTime returns how long a rollout that is settled waits for news. It can take a while until it is
// known which rollout ended a pod.
func (t *tracker) settleTime(r *rollout.Revision, parts []rollout.Part) time.Duration {
	wait := t.config.SettleTime
	for _, part := range parts {
		if _, sent := r.Sent[part.Key]; part.IsStop() && !sent {
			wait = max(wait, min(rollout.StopWindow, t.config.IdleTimeout))
		}
	}
	return wait
}

// quiet returns when no more records are expected of a revision that was delivered. A kubelet writes one
// about a container that crashes forever every five minutes: this is no reason to deliver it each time.
func (t *tracker) quiet(waits waiting) time.Time { return waits.changed.Add(2 * t.config.IdleTimeout) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// pack puts the parts that have changed into requests.
func (d *delivery) pack(r *rollout.Revision, parts []rollout.Part, version string) {
	resource := encode(r.Write(nil, metadata.ScopeName, version))
	var request ptrace.SpanSlice
	size := maxRequest // of the request; the first part begins one
	for _, part := range parts {
		// Without the resource, which is the same for all parts.
		written := (&rollout.Revision{}).Write([]rollout.Part{part}, metadata.ScopeName, version)
		encoded := encode(written)
		sum := fingerprint(resource, encoded)
		known, sent := r.Sent[part.Key]
		if sent && known == sum {
			continue
		}
		if sent && known != uncertain {
			d.replaced[part.Key] = uncertain
		}
		if size+len(encoded) > maxRequest {
			d.requests = append(d.requests, r.Write(nil, metadata.ScopeName, version))
			request, size = spansIn(d.requests[len(d.requests)-1]), len(resource)
			d.size += size
		}
		spansIn(written).MoveAndAppendTo(request)
		size, d.size = size+len(encoded), d.size+len(encoded)
		d.sent[part.Key] = sum
	}
}

// spansIn returns the spans of what Write returned.
func spansIn(traces ptrace.Traces) ptrace.SpanSlice {
	return traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
}

func encode(traces ptrace.Traces) []byte {
	encoded, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
	if err != nil {
		return nil // It never fails for what Write returns.
	}
	return encoded
}

func fingerprint(parts ...[]byte) uint64 {
	hash := fnv.New64a()
	for _, part := range parts {
		_, _ = hash.Write(part) // A hash returns no error.
	}
	return hash.Sum64()
}

// uncertain is the hash of a part of which it is not known which version the backend has.
const uncertain = 0

// withMarks returns the deliveries that can go on. Those that replace spans in the backend are marked before: without
// that, a process that is killed before it has saved what it delivered would not deliver the version before again.
// If the storage does not work, they wait.
func (t *tracker) withMarks(ctx context.Context, group []*delivery) []*delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	marks := &rollout.Model{}
	for _, d := range group {
		if w, r := t.model.Revision(d.key); r != nil && len(d.replaced) > 0 {
			marks.Join(w.Mark(d.key, d.replaced))
		}
	}
	if err := t.saveMarks(ctx, marks); err != nil {
		t.settings.Logger.Warn("Cannot save that spans are about to be replaced; retrying", zap.Error(err))
		return slices.DeleteFunc(group, func(d *delivery) bool { return len(d.replaced) > 0 })
	}
	t.model.Join(marks)
	return group
}

// deliver reports whether the pipeline accepted the spans, or rejected them permanently. Those that it does not
// accept are delivered again later, with the same ids.
func (t *tracker) deliver(ctx context.Context, group []*delivery, delivered *rollout.Model) bool {
	all := len(group)
	group = t.withMarks(ctx, group)
	for _, request := range requestsOf(group) {
		spans := int64(request.SpanCount())
		err := t.traces.ConsumeTraces(ctx, request)
		switch {
		case err == nil:
			t.telemetry.KubeRolloutsSpans.Add(ctx, spans, metric.WithAttributes(t.of))
		case consumererror.IsPermanent(err) && len(group) > 1:
			return t.deliverEach(ctx, group, delivered)
		case consumererror.IsPermanent(err):
			t.telemetry.KubeRolloutsSpansDropped.Add(ctx, spans, metric.WithAttributes(t.of))
			t.settings.Logger.Error("The pipeline rejected spans of a rollout permanently; they are dropped", zap.Error(err))
		default:
			t.settings.Logger.Warn("The pipeline rejected spans of rollouts; retrying", zap.Error(err))
			return false
		}
	}
	for _, d := range group {
		t.finish(ctx, d, delivered)
	}
	return len(group) == all
}

// requestsOf returns one request with all that is to be delivered of several rollouts, or the requests of
// a single one, which can be large.
func requestsOf(group []*delivery) []ptrace.Traces {
	if len(group) == 0 {
		return nil
	}
	if len(group) == 1 {
		return group[0].requests
	}
	together := ptrace.NewTraces()
	for _, d := range group {
		for _, request := range d.requests {
			request.ResourceSpans().MoveAndAppendTo(together.ResourceSpans())
		}
	}
	if together.ResourceSpans().Len() == 0 {
		return nil // Nothing has changed since the last delivery.
	}
	return []ptrace.Traces{together}
}

// deliverEach delivers rollouts one by one, so that what the pipeline rejects of one does not drop the
// others.
func (t *tracker) deliverEach(ctx context.Context, group []*delivery, delivered *rollout.Model) bool {
	for _, d := range group {
		again := t.prepare(d.key, true)
		if again != nil && !t.deliver(ctx, []*delivery{again}, delivered) {
			return false
		}
	}
	return true
}

// finish notes what was delivered, also in the model that is saved. A revision that had news in the
// meantime, or can still fail without news, stays open. Others wait until no more records come.
func (t *tracker) finish(ctx context.Context, d *delivery, delivered *rollout.Model) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, r := t.model.Revision(d.key)
	if r == nil {
		return
	}
	r.MarkSent(d.sent)
	waits := t.open[d.key]
	waits.again, waits.next = true, d.at.Add(t.config.IdleTimeout)
	t.open[d.key] = waits
	switch r.Closed = r.News == d.news && !d.uncertain; {
	case !r.Closed:
		t.wait(d.key, time.Now())
	case d.settled && !waits.changed.After(d.at), !t.quiet(waits).After(d.at):
		delete(t.open, d.key)
	}
	if len(d.requests) > 0 {
		t.telemetry.KubeRolloutsDelivered.Add(ctx, 1, metric.WithAttributes(t.of, attribute.String("outcome", d.outcome())))
	}
	delivered.Join(w.Mark(d.key, d.sent))
}

func (d *delivery) outcome() string {
	if d.complete {
		return "complete"
	}
	return "incomplete"
}
