// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// TestBegun: of the scale-ups from zero, some begin a rollout.
func TestBegun(t *testing.T) {
	t.Parallel()
	const first, second = "replicaset.apps/shop-aaa", "replicaset.apps/shop-bbb"
	for name, c := range map[string]struct {
		story story
		want  []string
	}{
		"a first rollout":                   {firstRollout("0s"), []string{first}},
		"an update":                         {join(firstRollout("0s"), secondRollout()), []string{first, second}},
		"a rollback":                        {join(firstRollout("0s"), secondRollout(), rollback()), []string{first, first, second}},
		"a rollback in a combined Event":    {join(firstRollout("0s"), secondRollout(), combinedRollback()), []string{first, first, second}},
		"a repeated scale-up alone":         {rollback(), nil},
		"from zero again":                   {join(firstRollout("0s"), fromZero()), []string{first}},
		"a scale-up":                        {join(firstRollout("0s"), scaleUp()), []string{first}},
		"records without a scale-up at all": {dropped(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range modelOf(c.story).Workloads {
				assert.Equal(t, c.want, slices.Sorted(maps.Values(w.Begun())))
			}
		})
	}
}

// TestIntroduced: a revision of a StatefulSet is new if another one is older, and its first pod was created.
func TestIntroduced(t *testing.T) {
	t.Parallel()
	whole := statefulRollout()
	created := rollout.Creation{Pod: "db-0", At: after("10m30s").UnixNano()}
	for name, c := range map[string]struct {
		story story
		want  map[rollout.Creation]string
	}{
		"a new revision":                       {whole, map[rollout.Creation]string{created: "hash-2"}},
		"without a record of the old one":      {whole[8:], map[rollout.Creation]string{}},
		"without a record of the creation":     {join(whole[:8], whole[9:]), map[rollout.Creation]string{}},
		"revisions that are names, not hashes": {join(firstRollout("0s"), secondRollout()), map[rollout.Creation]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range modelOf(c.story).Workloads {
				assert.Equal(t, c.want, w.Introduced())
			}
		})
	}
}
