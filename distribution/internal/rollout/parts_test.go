// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// some returns a part of a story, in its order: a connector that starts late, kubelets that drop
// Events, and lookups that fail hide any of its records.
func (s story) some(random *rand.Rand) (chosen story) {
	share := random.Float64()
	for _, logs := range s[random.IntN(len(s)):] {
		if random.Float64() < share {
			chosen = append(chosen, logs)
		}
	}
	return chosen
}

// TestEachPodHasATrace: whatever records are missing, each pod that the model knows has a span, and
// each trace with the start of a pod has the span of its rollout.
func TestEachPodHasATrace(t *testing.T) {
	t.Parallel()
	for name, s := range stories {
		for seed := range uint64(500) {
			chosen := s.some(rand.New(rand.NewPCG(seed, 0)))
			m := modelOf(chosen)
			spans := spansOf(m, late)
			roots, pods := map[pcommon.TraceID]bool{}, map[any]bool{}
			for _, span := range spans {
				roots[span.Trace] = roots[span.Trace] || span.Parent.IsEmpty()
				pods[span.Attributes["k8s.pod.uid"]] = true
			}
			for _, span := range spans {
				isStop := strings.HasPrefix(span.Name, "stop ")
				assert.True(t, isStop || roots[span.Trace], "%s, seed %d: %s has no rollout:\n%s", name, seed, span.Name, tree(spans))
			}
			for _, w := range m.Workloads {
				for _, r := range w.Revisions {
					for uid := range r.Pods {
						require.True(t, pods[uid], "%s, seed %d: %s has no span:\n%s", name, seed, uid, tree(spans))
					}
				}
			}
		}
	}
}
