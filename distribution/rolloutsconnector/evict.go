// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// podsPerRollout bounds all pods together: max_rollouts times this number. One rollout can have more.
const podsPerRollout = 20

// evictIfFull counts what is in memory only if the records can have filled it: to count takes longer
// than to read the records.
func (t *tracker) evictIfFull(ctx context.Context, read *rollout.Model) {
	for _, w := range read.Workloads {
		t.room-- // It can have no revision.
		for _, r := range w.Revisions {
			t.room -= 1 + len(r.Pods)
		}
	}
	if t.room < 0 {
		t.evict(ctx)
	}
}

// evict forgets revisions if there are too many of them, of their pods, or of workloads without a
// revision. It forgets a twentieth, so that it does not do so with all records.
func (t *tracker) evict(ctx context.Context) {
	maxRevisions, maxPods := t.config.MaxRollouts, podsPerRollout*t.config.MaxRollouts
	revisions, pods := t.model.Size()
	if revisions > maxRevisions || pods > maxPods || len(t.model.Workloads) > 2*maxRevisions {
		t.forget(ctx, maxRevisions-maxRevisions/20, maxPods-maxPods/20)
		revisions, pods = t.model.Size()
	}
	t.room = min(maxRevisions-revisions, maxPods-pods)
}

// forget forgets the oldest revisions, until there are no more of them and of their pods than these
// numbers.
func (t *tracker) forget(ctx context.Context, maxRevisions, maxPods int) {
	t.model.Evict(maxRevisions, maxPods, func(key rollout.Key, r *rollout.Revision) {
		state := "closed"
		if !r.Closed {
			state = "open"
		}
		t.telemetry.KubeRolloutsEvicted.Add(ctx, 1, metric.WithAttributes(t.of, attribute.String("state", state)))
		delete(t.open, key)
	})
}
