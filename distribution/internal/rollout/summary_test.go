// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRollouts: what was rolled out, in short.
func TestRollouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		story story
		want  []string
	}{
		"a first rollout":    {firstRollout("0s"), []string{"shop-aaa first complete"}},
		"a rollback":         {join(firstRollout("0s"), secondRollout(), rollback()), []string{"shop-aaa first complete", "shop-bbb restart of shop-aaa complete", "shop-aaa rollback of shop-bbb complete"}},
		"a pull that fails":  {join(firstRollout("0s"), failedPull()), []string{"shop-aaa first complete", "shop-bbb update of shop-aaa failed"}},
		"runs of a CronJob":  {jobs(), nil},
		"a StatefulSet":      {statefulRollout(), []string{"hash-1 first complete", "hash-2 restart of hash-1 complete"}},
		"nothing older, yet": {failedPull(), []string{"shop-bbb failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, rolloutsIn(c.story))
		})
	}
}

func rolloutsIn(s story) (all []string) {
	for _, w := range modelOf(s).Workloads {
		for _, r := range w.Rollouts(late) {
			text := nameOf(r.Revision)
			if r.Reason != "" {
				text += " " + r.Reason
			}
			if r.Replaced != "" && r.Reason != "" {
				text += " of " + nameOf(r.Replaced)
			}
			all = append(all, fmt.Sprint(text, " ", r.Outcome))
		}
	}
	return all
}

// nameOf returns the name in a revision.
func nameOf(revision string) string { return revision[strings.LastIndex(revision, "/")+1:] }
