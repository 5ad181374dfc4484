// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/kubeevents/kubeeventsreceiver/distribution/rolloutsconnector/internal/rollout"
)

// podsPerRollout bounds all pods together: max_rollouts times this number. One rollout can have more.
const podsPerRollout = 20

// size returns how many revisions and pods are in memory.
func (t *tracker) size() (revisions, pods int) {
	for _, w := range t.model.Workloads {
		revisions += len(w.Revisions)
		for _, r := range w.Revisions {
			pods += len(r.Pods)
		}
	}
	return revisions, pods
}

// evictIfFull counts what is in memory only if the records can have filled it: to count takes longer
// than to read the records.
func (t *tracker) evictIfFull(ctx context.Context, read *rollout.Model) {
	for _, w := range read.Workloads {
		for _, r := range w.Revisions {
			t.room -= 1 + len(r.Pods)
		}
	}
	if t.room < 0 {
		t.evict(ctx)
	}
}

// evict forgets revisions if there are too many of them, or of their pods. It forgets a twentieth, so
// that it does not do so with all records.
func (t *tracker) evict(ctx context.Context) {
	maxRevisions, maxPods := t.config.MaxRollouts, podsPerRollout*t.config.MaxRollouts
	revisions, pods := t.size()
	if revisions > maxRevisions || pods > maxPods {
		t.forget(ctx, maxRevisions-maxRevisions/20, maxPods-maxPods/20)
		revisions, pods = t.size()
	}
	t.room = min(maxRevisions-revisions, maxPods-pods)
}

// forget forgets the oldest revisions, until there are no more of them and of their pods than these
// numbers.
func (t *tracker) forget(ctx context.Context, maxRevisions, maxPods int) {
	revisions, pods := t.size()
	for revisions > maxRevisions || revisions > 1 && pods > maxPods {
		key, r := t.oldest()
		state := "closed"
		if !r.Closed {
			state = "open"
		}
		t.telemetry.KubeRolloutsEvicted.Add(ctx, 1, metric.WithAttributes(t.of, attribute.String("state", state)))
		t.model.Forget(key)
		delete(t.open, key)
		revisions, pods = revisions-1, pods-len(r.Pods)
	}
}

// oldest returns the revision that had no news for the longest time. One that was delivered is older
// than one that was not.
func (t *tracker) oldest() (key rollout.Key, oldest *rollout.Revision) {
	for workload, w := range t.model.Workloads {
		for name, r := range w.Revisions {
			if oldest == nil || compareAge(r, oldest) < 0 {
				key, oldest = rollout.Key{Workload: workload, Revision: name}, r
			}
		}
	}
	return key, oldest
}

func compareAge(a, b *rollout.Revision) int {
	if a.Closed != b.Closed {
		if a.Closed {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.News, b.News)
}
