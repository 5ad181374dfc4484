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

// evict forgets revisions while there are too many of them, or of their pods.
func (t *tracker) evict(ctx context.Context) {
	revisions, pods := t.size()
	for revisions > t.config.MaxRollouts || revisions > 1 && pods > podsPerRollout*t.config.MaxRollouts {
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
